// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/text/text_panel.h"

#include "views/common/flow_layout.h"
#include "views/figure/figure_command.h"
#include "views/text/corpus_map.h"
#include "views/text/find_bar.h"
#include "views/text/legend.h"
#include "views/text/span_bar.h"
#include "views/text/step_column_dialog.h"
#include "views/text/text_view.h"
#include "views/text/token_model.h"

#include <QCheckBox>
#include <QComboBox>
#include <QContextMenuEvent>
#include <QDialog>
#include <QDialogButtonBox>
#include <QDoubleSpinBox>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QPainter>
#include <QPushButton>
#include <QSignalBlocker>
#include <QStackedWidget>
#include <QTableView>
#include <QToolButton>
#include <QVBoxLayout>
#include <QWheelEvent>

namespace ponderscope {

namespace {

constexpr int replayed = -1;  ///< data of the entry that stands for a replay's steps
constexpr int of_a_step = -2; ///< of the entry that asks for a column of a step
constexpr int blink_ms = 600;

} // namespace

TextPanel::TextPanel(const ViewContext& context, QWidget* parent)
    : QWidget(parent),
      context_(context),
      view_(new TextView(context, this)),
      find_(new FindBar(context, *view_, this)),
      spanBar_(new SpanBar(context, *view_, this)),
      legend_(new Legend(context.theme, this)),
      colour_(new QComboBox(this)),
      bars_(new QComboBox(this)),
      difference_(new QCheckBox(tr("A − B"), this)),
      blink_(new QCheckBox(tr("Blink"), this)),
      controls_(new QWidget(this)),
      zoomBox_(new QComboBox(this)),
      stack_(new QStackedWidget(this)),
      table_(new QTableView(this)),
      model_(new TokenModel(context, this)),
      corpus_(new CorpusMap(context, this)),
      deriving_(this) {
    buildZoom();
    const auto label = [this](const QString& text, QWidget* buddy) {
        auto* made = new QLabel(text, controls_);
        made->setForegroundRole(QPalette::PlaceholderText);
        made->setBuddy(buddy);
        return made;
    };
    for (const Quantity quantity : all_quantities) {
        colour_->addItem(quantity_name(quantity), static_cast<int>(quantity));
        colour_->setItemData(colour_->count() - 1, quantity_meaning(quantity, Attribution::predicted),
                             Qt::ToolTipRole);
    }
    colour_->addItem(tr("Of a step…"), of_a_step);
    colour_->setItemData(colour_->count() - 1,
                         tr("A signal at a step, what the steps between gained, B minus A at a step"),
                         Qt::ToolTipRole);
    colour_->setAccessibleName(tr("Colour of the text"));
    colour_->setToolTip(tr("What colours the text"));
    bars_->addItem(tr("Steps"), static_cast<int>(Quantity::steps));
    for (const Quantity quantity : all_quantities) {
        if (quantity != Quantity::steps) {
            bars_->addItem(quantity_name(quantity), static_cast<int>(quantity));
        }
    }
    bars_->addItem(tr("None"), QVariant());
    bars_->setAccessibleName(tr("Bars under the text"));
    bars_->setToolTip(
        tr("A second quantity at once, under each token. Steps are ticks: those that ran, of those that "
           "could"));
    blink_->setToolTip(tr("Shows the colours of A and of B in turn: what differs moves"));
    difference_->setToolTip(tr("Colour by the difference of runs A and B on the same tokens"));

    // What belongs together stays together where the row ends.
    const auto pair = [this](QWidget* name, QWidget* field) {
        auto* both = new QWidget(controls_);
        auto* line = new QHBoxLayout(both);
        line->setContentsMargins(0, 0, 4, 0);
        line->setSpacing(8);
        line->addWidget(name);
        line->addWidget(field);
        return both;
    };
    auto* row = new FlowLayout(controls_);
    row->setContentsMargins(16, 6, 8, 6);
    row->setSpacing(8);
    row->addWidget(pair(label(tr("Colour"), colour_), colour_));
    row->addWidget(pair(label(tr("Bars"), bars_), bars_));
    row->addWidget(pair(difference_, blink_));
    row->addWidget(zoomBox_);
    row->addWidget(legend_);
    auto* help = new QToolButton(controls_);
    help->setText(QStringLiteral("?"));
    help->setToolTip(tr("What the text shows, and what must not be concluded (F1)"));
    help->setAccessibleName(tr("Help on the text"));
    help->setAutoRaise(true);
    connect(help, &QToolButton::clicked, this, &TextPanel::helpRequested);
    row->addWidget(help);
    for (QComboBox* box : {colour_, bars_, zoomBox_}) {
        box->setSizeAdjustPolicy(QComboBox::AdjustToContents);
    }

    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    column->addWidget(controls_);
    column->addWidget(find_);
    column->addWidget(stack_, 1);
    column->addWidget(spanBar_);
    setFocusProxy(view_);

    connect(colour_, &QComboBox::currentIndexChanged, this, [this] {
        const QVariant chosen = colour_->currentData();
        if (chosen == QVariant(of_a_step)) {
            nameColour(); // it colours by nothing itself
            askForStep();
            return;
        }
        const bool annotation = chosen.typeId() == QMetaType::QString;
        if (annotation || chosen.toInt() != replayed) {
            const bool dismissed = view_->showsReplay();
            view_->setAnnotation(annotation ? chosen.toString() : QString());
            corpus_->setAnnotation(view_->annotation());
            if (!annotation) {
                view_->setQuantity(static_cast<Quantity>(chosen.toInt()));
                corpus_->setQuantity(static_cast<Quantity>(chosen.toInt()));
            }
            if (dismissed) {
                view_->setReplay({});
                emit replayDismissed();
            }
            emit viewChanged();
        }
    });
    connect(find_, &FindBar::queryChanged, this, &TextPanel::viewChanged);
    connect(spanBar_, &SpanBar::figureWanted, this, &TextPanel::figureWanted);
    connect(spanBar_, &SpanBar::failed, this, &TextPanel::failed);
    connect(bars_, &QComboBox::currentIndexChanged, this, [this] {
        setBars(bars_->currentData().isNull()
                    ? std::nullopt
                    : std::optional(static_cast<Quantity>(bars_->currentData().toInt())));
    });
    connect(difference_, &QCheckBox::toggled, this, [this](bool on) {
        if (on) {
            blink_->setChecked(false);
        }
        view_->setShowDifference(on);
        emit viewChanged();
    });
    blinking_.setInterval(blink_ms);
    connect(&blinking_, &QTimer::timeout, this, [this] { view_->setShowOther(!view_->showsOther()); });
    connect(blink_, &QCheckBox::toggled, this, [this](bool on) {
        if (on) {
            difference_->setChecked(false);
            blinking_.start();
        } else {
            blinking_.stop();
            view_->setShowOther(false);
        }
    });
    connect(view_, &TextView::contentChanged, this, &TextPanel::offerAnnotations);
    connect(view_, &TextView::valuesChanged, this, [this] {
        legend_->show(view_->values());
        corpus_->setRange(view_->showsDifference() ? HeldRange() : view_->range());
        nameColour();
    });
    connect(legend_, &Legend::rangeWanted, this, &TextPanel::askForRange);
    connect(&context_.theme, &Theme::changed, this, qOverload<>(&QWidget::update));
    legend_->show(view_->values());
}

void TextPanel::askForRange() {
    const ColourScale& scale = view_->values().scale;
    QDialog dialog(this);
    dialog.setWindowTitle(tr("Ends of the colour scale"));
    const auto field = [&](double value) {
        auto* made = new QDoubleSpinBox(&dialog);
        made->setRange(-1e15, 1e15);
        made->setDecimals(3);
        made->setStepType(QAbstractSpinBox::AdaptiveDecimalStepType);
        made->setValue(value);
        made->setMinimumWidth(160);
        return made;
    };
    QDoubleSpinBox* low = field(scale.low);
    QDoubleSpinBox* high = field(scale.high);
    auto* buttons = new QDialogButtonBox(QDialogButtonBox::Ok | QDialogButtonBox::Cancel, &dialog);
    buttons->button(QDialogButtonBox::Ok)->setText(tr("Hold"));
    QPushButton* automatic = buttons->addButton(tr("From the values"), QDialogButtonBox::ResetRole);
    automatic->setEnabled(view_->range().has_value());
    auto* words =
        new QLabel(tr("Held for every run and sequence, in text, table, map and figures."), &dialog);
    words->setForegroundRole(QPalette::PlaceholderText);
    auto* form = new QFormLayout(&dialog);
    form->addRow(tr("Low"), low);
    form->addRow(tr("High"), high);
    form->addRow(words);
    form->addRow(buttons);
    const auto check = [&] {
        buttons->button(QDialogButtonBox::Ok)->setEnabled(low->value() < high->value());
    };
    connect(low, &QDoubleSpinBox::valueChanged, &dialog, check);
    connect(high, &QDoubleSpinBox::valueChanged, &dialog, check);
    connect(buttons, &QDialogButtonBox::accepted, &dialog, &QDialog::accept);
    connect(buttons, &QDialogButtonBox::rejected, &dialog, &QDialog::reject);
    connect(automatic, &QPushButton::clicked, &dialog, [&] {
        view_->setRange({});
        dialog.reject();
    });
    if (dialog.exec() == QDialog::Accepted) {
        view_->setRange(std::array{low->value(), high->value()});
    }
}

void TextPanel::askForStep() {
    StepColumnDialog dialog(context_, this);
    if (dialog.exec() == QDialog::Accepted) {
        deriveColumn(dialog.againstB() ? context_.selection.runB() : RunKey(), dialog.name(),
                     dialog.column());
    }
}

void TextPanel::deriveColumn(const RunKey& b, const QString& name, const QString& column) {
    const RunKey a = context_.selection.runA();
    if (context_.data.isLive(a.trace)) {
        emit failed(tr("A run that is not in a file yet takes no annotations; wait until it is recorded."));
        return;
    }
    deriving_.start(
        [a, b, name, column](const std::stop_token& stop) {
            derive_column(a, b, name, column, stop);
            return true;
        },
        [this, name](bool) {
            context_.data.refresh();
            setAnnotation(name);
        },
        [this](const QString& sentence) { emit failed(sentence); });
}

void TextPanel::offerAnnotations() {
    const QSignalBlocker quiet(colour_);
    for (int i = colour_->count() - 1; i >= 0; --i) {
        if (colour_->itemData(i).typeId() == QMetaType::QString) {
            colour_->removeItem(i);
        }
    }
    QStringList names;
    if (const auto shown = view_->sequence()) {
        for (const TokenAnnotation& one : shown->annotations) {
            names << one.name;
        }
    }
    if (!view_->annotation().isEmpty() && !names.contains(view_->annotation())) {
        names << view_->annotation(); // the legend says that this run has none
    }
    for (const QString& name : names) {
        colour_->addItem(name, name);
        colour_->setItemData(colour_->count() - 1, tr("An annotation of the tokens"), Qt::ToolTipRole);
    }
    nameColour();
}

void TextPanel::nameColour() {
    const QSignalBlocker quiet(colour_);
    const int entry = colour_->findData(replayed);
    difference_->setEnabled(view_->values().replay.isEmpty() && view_->annotation().isEmpty());
    if (view_->values().replay.isEmpty()) {
        if (entry >= 0) {
            colour_->removeItem(entry);
        }
        const QVariant shown = view_->annotation().isEmpty() ? QVariant(static_cast<int>(view_->quantity()))
                                                             : QVariant(view_->annotation());
        if (colour_->currentData() != shown) {
            colour_->setCurrentIndex(colour_->findData(shown));
        }
        return;
    }
    if (entry < 0) {
        colour_->addItem(tr("Steps (replay)"), replayed);
    }
    const int place = colour_->findData(replayed);
    colour_->setItemData(place, tr("Steps that %1 would have given, by replay").arg(view_->values().replay),
                         Qt::ToolTipRole);
    colour_->setCurrentIndex(place);
}

void TextPanel::buildZoom() {
    zoomBox_->addItem(tr("Tokens"), static_cast<int>(TextZoom::tokens));
    zoomBox_->addItem(tr("Text"), static_cast<int>(TextZoom::text));
    zoomBox_->addItem(tr("Map"), static_cast<int>(TextZoom::corpus));
    zoomBox_->setCurrentIndex(1);
    zoomBox_->setAccessibleName(tr("Zoom"));
    zoomBox_->setToolTip(tr("One line a token, running text, or all sequences with one pixel a token "
                            "(Ctrl+wheel, Ctrl+plus, Ctrl+minus)"));
    connect(zoomBox_, &QComboBox::currentIndexChanged, this,
            [this] { setZoom(static_cast<TextZoom>(zoomBox_->currentData().toInt())); });
    table_->setModel(model_);
    table_->setFrameShape(QFrame::NoFrame);
    table_->setShowGrid(false);
    table_->setSelectionBehavior(QAbstractItemView::SelectRows);
    table_->setSelectionMode(QAbstractItemView::SingleSelection);
    table_->setEditTriggers(QAbstractItemView::NoEditTriggers);
    table_->setTabKeyNavigation(false);
    table_->setWordWrap(false);
    table_->setCornerButtonEnabled(false);
    table_->verticalHeader()->hide();
    table_->verticalHeader()->setDefaultSectionSize(26);
    table_->verticalHeader()->setSectionResizeMode(QHeaderView::Fixed);
    table_->horizontalHeader()->setSectionResizeMode(QHeaderView::Interactive);
    table_->horizontalHeader()->setSectionResizeMode(TokenModel::token_column, QHeaderView::Stretch);
    table_->horizontalHeader()->setHighlightSections(false);
    table_->horizontalHeader()->setAccessibleName(tr("Quantities"));
    table_->setAccessibleName(tr("Tokens, one a line"));
    table_->viewport()->installEventFilter(this);
    stack_->addWidget(table_);
    stack_->addWidget(view_);
    stack_->addWidget(corpus_);
    stack_->setCurrentWidget(view_);
    connect(table_->selectionModel(), &QItemSelectionModel::currentRowChanged, this,
            [this](const QModelIndex& now) {
                if (now.isValid()) {
                    context_.selection.setToken(model_->tokenOf(now.row()));
                }
            });
    connect(&context_.selection, &Selection::tokenChanged, this, &TextPanel::showRow);
    connect(view_, &TextView::contentChanged, this, [this] {
        if (zoom_ == TextZoom::tokens) {
            fillTable();
            showRow(context_.selection.token());
        }
    });
    connect(view_, &TextView::valuesChanged, this, [this] {
        if (zoom_ == TextZoom::tokens) {
            fillTable(); // B may be another one
        }
    });
    connect(&context_.selection, &Selection::attributionChanged, this, [this] {
        const QHeaderView* header = table_->horizontalHeader();
        table_->sortByColumn(header->sortIndicatorSection(), header->sortIndicatorOrder());
    });
    // Three clicks: up, down, as in the text again.
    table_->horizontalHeader()->setSectionsClickable(true);
    table_->horizontalHeader()->setSortIndicatorClearable(true);
    table_->horizontalHeader()->setSortIndicator(-1, Qt::AscendingOrder);
    table_->setSortingEnabled(true);
    connect(view_, &TextView::zoomedBeyond, this,
            [this](bool in) { setZoom(in ? TextZoom::tokens : TextZoom::corpus); });
    connect(corpus_, &CorpusMap::zoomedIn, this, [this] { setZoom(TextZoom::text); });
}

void TextPanel::showRow(qint64 token) {
    if (zoom_ != TextZoom::tokens || token >= model_->rowCount()) {
        return;
    }
    const QSignalBlocker quiet(table_->selectionModel());
    if (token < 0) {
        table_->clearSelection();
    } else {
        table_->selectRow(model_->rowOf(token));
        table_->scrollTo(model_->index(model_->rowOf(token), 0));
    }
    table_->viewport()->update();
}

void TextPanel::fillTable() {
    const auto shown = view_->sequence();
    const RunKey other = context_.selection.runB();
    model_->show(shown, shown && other.isValid() ? context_.data.sequence(other, shown->sequence) : nullptr,
                 &view_->values());
}

void TextPanel::setZoom(TextZoom zoom) {
    if (zoom == zoom_) {
        return;
    }
    zoom_ = zoom;
    zoomBox_->setCurrentIndex(zoomBox_->findData(static_cast<int>(zoom)));
    QWidget* shown = zoom == TextZoom::tokens ? static_cast<QWidget*>(table_)
                     : zoom == TextZoom::text ? static_cast<QWidget*>(view_)
                                              : static_cast<QWidget*>(corpus_);
    {
        const QSignalBlocker quiet(
            table_->selectionModel()); // a table that is filled or gets the focus chooses a row
        if (zoom == TextZoom::tokens) {
            fillTable();
        } else {
            model_->show(nullptr, nullptr, &view_->values());
        }
        stack_->setCurrentWidget(shown);
        setFocusProxy(shown);
        shown->setFocus();
    }
    showRow(context_.selection.token());
    if (zoom == TextZoom::text && context_.selection.token() >= 0) {
        view_->scrollTo(context_.selection.token());
    }
    emit viewChanged();
}

void TextPanel::zoomIn() {
    if (zoom_ == TextZoom::corpus) {
        setZoom(TextZoom::text);
    } else if (const int before = context_.theme.textSize(); zoom_ == TextZoom::text) {
        context_.theme.setTextSize(before + 1);
        if (context_.theme.textSize() == before) {
            setZoom(TextZoom::tokens);
        }
    }
}

void TextPanel::zoomOut() {
    if (zoom_ == TextZoom::tokens) {
        setZoom(TextZoom::text);
    } else if (const int before = context_.theme.textSize(); zoom_ == TextZoom::text) {
        context_.theme.setTextSize(before - 1);
        if (context_.theme.textSize() == before) {
            setZoom(TextZoom::corpus);
        }
    }
}

bool TextPanel::isBusy() const {
    return !view_->settled() || spanBar_->isBusy() || deriving_.isBusy() ||
           (zoom_ == TextZoom::corpus && corpus_->isBusy());
}

bool TextPanel::eventFilter(QObject* watched, QEvent* event) {
    if (watched == table_->viewport() && event->type() == QEvent::Wheel) {
        const auto* wheel = static_cast<QWheelEvent*>(event);
        if ((wheel->modifiers() & Qt::ControlModifier) != 0) {
            if (wheel->angleDelta().y() < 0) {
                zoomOut();
            }
            return true;
        }
    } else if (watched == table_->viewport() && event->type() == QEvent::ContextMenu) {
        const auto* menu = static_cast<QContextMenuEvent*>(event);
        emit view_->menuWanted(model_->tokenOf(table_->rowAt(menu->pos().y())), menu->globalPos());
        return true;
    }
    return QWidget::eventFilter(watched, event);
}

void TextPanel::find() {
    find_->open();
}

void TextPanel::findText(const QString& query) {
    find_->open();
    find_->setQuery(query);
}

void TextPanel::findNext() {
    if (find_->isVisible()) {
        find_->next();
    } else {
        find_->open();
    }
}

void TextPanel::findPrevious() {
    if (find_->isVisible()) {
        find_->previous();
    } else {
        find_->open();
    }
}

void TextPanel::setDifference(bool on) {
    difference_->setChecked(on);
}

void TextPanel::setBlink(bool on) {
    blink_->setChecked(on);
}

void TextPanel::setBars(std::optional<Quantity> quantity) {
    const int at = quantity ? bars_->findData(static_cast<int>(*quantity)) : bars_->count() - 1;
    bars_->setCurrentIndex(at);
    view_->setBars(quantity);
    emit viewChanged();
}

void TextPanel::setAnnotation(const QString& name) {
    if (name.isEmpty()) {
        setQuantity(view_->quantity());
        return;
    }
    if (colour_->findData(name) < 0) {
        colour_->addItem(name, name); // its sequence is still being read
    }
    colour_->setCurrentIndex(colour_->findData(name));
}

void TextPanel::setQuantity(Quantity quantity) {
    colour_->setCurrentIndex(colour_->findData(static_cast<int>(quantity)));
}

void TextPanel::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    painter.fillRect(rect(), context_.theme.colours().panel);
    painter.fillRect(0, controls_->geometry().bottom(), width(), 1, context_.theme.colours().line);
}

figure::FigureSpec TextPanel::figureSpec(figure::FigureKind kind) const {
    figure::FigureSpec spec = figure::window_figure(context_.data, context_.selection, kind);
    spec.sequence = context_.selection.sequence();
    // The span that was chosen, or what is on the screen: a figure of a whole book helps nobody.
    const TokenSpan span = view_->span().isEmpty()
                               ? TokenSpan{view_->firstVisibleToken(), view_->endVisibleToken()}
                               : view_->span();
    if (!span.isEmpty()) {
        spec.tokens = std::array<std::int64_t, 2>{span.first, span.last};
    }
    spec.annotation = view_->annotation().toStdString();
    spec.range = view_->range();
    switch (view_->quantity()) {
    case Quantity::nll:
        spec.quantity = view_->showsDifference() && spec.runs.size() > 1
                            ? figure::TokenQuantity::nll_difference
                            : figure::TokenQuantity::nll;
        break;
    case Quantity::entropy:
        spec.quantity = figure::TokenQuantity::entropy;
        break;
    case Quantity::rank:
        spec.quantity = figure::TokenQuantity::rank;
        break;
    case Quantity::steps:
        spec.quantity = figure::TokenQuantity::steps;
        break;
    case Quantity::maxProbability:
        spec.quantity = figure::TokenQuantity::max_probability;
        break;
    case Quantity::flops:
        spec.quantity = figure::TokenQuantity::flops;
        break;
    }
    return spec;
}

ViewCommand TextPanel::viewCommand() const {
    const TraceData& traces = context_.data;
    const Selection& selection = context_.selection;
    if (const QString why = why_no_run(traces, selection); !why.isEmpty()) {
        return no_command(why);
    }
    const RunInfo& a = *traces.run(selection.runA());
    const RunKey b = selection.runB();
    if (zoom_ == TextZoom::corpus) {
        QStringList line{QStringLiteral("page"), selection.runA().trace,
                         QStringLiteral("--run=") + run_name(a)};
        if (const RunInfo* other = traces.run(b); other != nullptr && b.trace == selection.runA().trace) {
            line << QStringLiteral("--run=") + run_name(*other);
        }
        return shell_view({line << QStringLiteral("--output=page.html")});
    }
    if (zoom_ == TextZoom::tokens) {
        return python_view(traces, selection,
                           {QStringLiteral("columns = a.columns(%1)").arg(selection.sequence()),
                            QStringLiteral("for at, text in enumerate(a.token_texts(%1, columns)):")
                                .arg(selection.sequence()),
                            QStringLiteral("    print(at, repr(text), *(columns[k][at] for k in (\"nll\", "
                                           "\"rank\", \"entropy\", \"steps\")))")});
    }
    if (view_->showsReplay()) {
        return shell_view({{QStringLiteral("policy"), run_a_reference(traces, selection),
                            QStringLiteral("--policy=") + view_->replay().policy,
                            QStringLiteral("--per-token=tokens.csv")}});
    }
    return figure::figure_view(traces, selection, figureSpec(figure::FigureKind::token_text));
}

} // namespace ponderscope
