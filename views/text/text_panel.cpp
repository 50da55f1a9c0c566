// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/text/text_panel.h"

#include "views/figure/figure_command.h"
#include "views/text/corpus_map.h"
#include "views/text/find_bar.h"
#include "views/text/legend.h"
#include "views/text/span_bar.h"
#include "views/text/text_view.h"
#include "views/text/token_model.h"

#include <QCheckBox>
#include <QContextMenuEvent>
#include <QHeaderView>
#include <QLabel>
#include <QPainter>
#include <QSignalBlocker>
#include <QStackedWidget>
#include <QTableView>
#include <QToolButton>
#include <QWheelEvent>

#include <algorithm>

using namespace Qt::StringLiterals;

namespace ponderscope {

namespace {

constexpr int replayed = -1;     ///< data of the entry that stands for a replay's steps
constexpr int none = -2;         ///< data of the entry without bars
constexpr int slide_legend = 20; ///< size of the legend's letters in a presentation, in pixels

} // namespace

TextPanel::TextPanel(const ViewContext& context, QWidget* parent)
    : QWidget(parent),
      context_(context),
      view_(new TextView(context, this)),
      find_(new FindBar(context, *view_, this)),
      spanBar_(new SpanBar(context, *view_, this)),
      legend_(new Legend(context.theme, this)),
      colour_(make_chooser(u"Colour of the text"_s, u"Quantity that colours the text"_s, this)),
      bars_(make_chooser(u"Bars under the text"_s,
                         u"Second quantity, drawn under each token. For steps: a tick per step, filled "
                         "if the token ran the step"_s,
                         this)),
      difference_(new QCheckBox(u"A − B"_s, this)),
      controls_(new QWidget(this)),
      notice_(soft_label(this)),
      zoomBox_(make_chooser(u"Zoom"_s,
                            u"One token per line, running text, or all sequences with one pixel per token "
                            "(Ctrl+wheel, Ctrl+plus, Ctrl+minus)"_s,
                            this)),
      stack_(new QStackedWidget(this)),
      table_(new QTableView(this)),
      model_(new TokenModel(context, this)),
      corpus_(new CorpusMap(context, this)) {
    buildZoom();
    difference_->setToolTip(u"Colour by the difference of runs A and B"_s);

    // A name and its field stay together when the row wraps.
    const auto pair = [this](const QString& name, QWidget* field) {
        auto* both = new QWidget(controls_);
        make_row(both, {0, 0, 4, 0}, 8, {field_label(name, field, both), field});
        return both;
    };
    auto* row = new FlowLayout(controls_);
    row->setContentsMargins(16, 6, 8, 6);
    row->setSpacing(8);
    row->addWidget(pair(u"Colour"_s, colour_));
    row->addWidget(pair(u"Bars"_s, bars_));
    row->addWidget(difference_);
    row->addWidget(zoomBox_);
    row->addWidget(legend_);
    auto* help = flat_button(u"?"_s, u"Help on the text (F1)"_s, controls_);
    connect(help, &QToolButton::clicked, this, &TextPanel::helpRequested);
    row->addWidget(help);

    // The notice above the text says why the text has no colour.
    notice_->setContentsMargins(24, 8, 24, 0);
    notice_->hide();

    make_column(this, {}, 0, {controls_, find_, notice_, {stack_, 1}, spanBar_});
    setFocusProxy(view_);

    connect(colour_, &QComboBox::currentIndexChanged, this, [this] {
        const QVariant chosen = colour_->currentData();
        if (chosen.typeId() == QMetaType::QString) {
            setAnnotation(chosen.toString());
        } else if (chosen.toInt() >= 0) {
            setQuantity(static_cast<Quantity>(chosen.toInt()));
        }
    });
    connect(find_, &FindBar::queryChanged, this, &TextPanel::viewChanged);
    connect(spanBar_, &SpanBar::figureWanted, this, &TextPanel::figureWanted);
    connect(spanBar_, &SpanBar::failed, this, &TextPanel::failed);
    connect(bars_, &QComboBox::currentIndexChanged, this, [this] {
        const int chosen = bars_->currentData().toInt();
        setBars(chosen == none ? std::nullopt : std::optional(static_cast<Quantity>(chosen)));
    });
    connect(difference_, &QCheckBox::toggled, this, &TextPanel::setDifference);
    connect(&context_.selection, &Selection::lookChanged, this, [this] {
        fillBoxes();
        Q_EMIT viewChanged();
    });
    connect(view_, &TextView::contentChanged, this, &TextPanel::fillBoxes);
    connect(view_, &TextView::valuesChanged, this, [this] {
        legend_->show(view_->values());
        const QString& notice = view_->values().notice;
        notice_->setText(notice + u'.');
        notice_->setVisible(!notice.isEmpty());
        corpus_->setShown(view_->values());
        fillBoxes();
    });
    connect(legend_, &Legend::rangeWanted, this, &TextPanel::askForRange);
    connect(&context_.theme, &Theme::changed, this, qOverload<>(&QWidget::update));
    legend_->show(view_->values());
    corpus_->setShown(view_->values());
    fillBoxes();
}

void TextPanel::askForRange() {
    HeldRange range = view_->range();
    if (ask_for_range(this, view_->values().scale, range)) {
        view_->setRange(range);
    }
}

void TextPanel::fillBoxes() {
    const TextLook& look = context_.selection.look();
    const QString& replay = view_->values().replay;
    std::vector<ChooserEntry> colours;
    std::vector<ChooserEntry> bars;
    for (const QuantityInfo& one : token_quantities) {
        colours.push_back({quantity_name(one.quantity), static_cast<int>(one.quantity),
                           quantity_meaning(one.quantity, Attribution::predicted)});
        bars.insert(one.quantity == Quantity::steps ? bars.begin() : bars.end(),
                    {quantity_name(one.quantity), static_cast<int>(one.quantity)});
    }
    bars.push_back({u"None"_s, none});
    const auto offer = [&colours](const QString& name) {
        if (!name.isEmpty() && std::ranges::none_of(colours, [&](const ChooserEntry& one) {
                return one.data == QVariant(name);
            })) {
            colours.push_back({name, name, u"An annotation of the tokens"_s});
        }
    };
    if (const auto shown = view_->sequence()) {
        for (const TokenAnnotation& one : shown->annotations) {
            offer(one.name);
        }
    }
    // Also offer a chosen annotation that this run lacks. The legend says so.
    offer(look.annotation);
    if (!replay.isEmpty()) {
        colours.push_back(
            {u"Steps (replay)"_s, replayed, u"Steps in a replay of the policy %1"_s.arg(replay)});
    }
    fill_chooser(*colour_, colours,
                 !replay.isEmpty()           ? QVariant(replayed)
                 : look.annotation.isEmpty() ? QVariant(static_cast<int>(look.quantity))
                                             : QVariant(look.annotation));
    fill_chooser(*bars_, bars, look.bars ? static_cast<int>(*look.bars) : none);
    const QSignalBlocker silent(difference_);
    difference_->setChecked(look.difference);
    difference_->setEnabled(replay.isEmpty() && look.annotation.isEmpty());
}

void TextPanel::buildZoom() {
    zoomBox_->addItems({u"Tokens"_s, u"Text"_s, u"Map"_s}); // as TextZoom
    zoomBox_->setCurrentIndex(1);
    connect(zoomBox_, &QComboBox::currentIndexChanged, this,
            [this](int index) { setZoom(static_cast<TextZoom>(index)); });
    // Columns are only as wide as their titles, so that A's columns fit in a small window.
    QHeaderView* header = table_->horizontalHeader();
    connect(header, &QHeaderView::sectionCountChanged, this, [header] {
        for (int column = 0; column < header->count(); ++column) {
            const int least = column == TokenModel::token_column ? 140 : 66;
            header->resizeSection(column, std::max(least, header->sectionSizeHint(column) + 4));
        }
    });
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
    table_->verticalHeader()->setDefaultSectionSize(context_.theme.scaled(26));
    table_->verticalHeader()->setSectionResizeMode(QHeaderView::Fixed);
    header->setSectionResizeMode(QHeaderView::Interactive);
    header->setHighlightSections(false);
    header->setAccessibleName(u"Quantities"_s);
    table_->setAccessibleName(u"Tokens, one per line"_s);
    table_->viewport()->installEventFilter(this);
    table_->installEventFilter(this);
    for (QWidget* shown : std::initializer_list<QWidget*>{table_, view_, corpus_}) { // as TextZoom
        stack_->addWidget(shown);
    }
    stack_->setCurrentWidget(view_);
    connect(table_->selectionModel(), &QItemSelectionModel::currentRowChanged, this,
            [this](const QModelIndex& now) {
                if (now.isValid()) {
                    context_.selection.setToken(model_->tokenOf(now.row()));
                }
            });
    connect(&context_.selection, &Selection::tokenChanged, this, &TextPanel::showRow);
    const auto refill = [this] {
        fillTable();
        showRow(context_.selection.token());
    };
    connect(view_, &TextView::contentChanged, this, refill);
    connect(view_, &TextView::otherChanged, this, refill);
    connect(view_, &TextView::valuesChanged, this, &TextPanel::fillTable);
    connect(&context_.selection, &Selection::attributionChanged, this, [this, header] {
        table_->sortByColumn(header->sortIndicatorSection(), header->sortIndicatorOrder());
    });
    // Clicks on a header: ascending, descending, then the order of the text.
    header->setSectionsClickable(true);
    header->setSortIndicatorClearable(true);
    header->setSortIndicator(-1, Qt::AscendingOrder);
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
    if (zoom_ != TextZoom::tokens) {
        return;
    }
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
    zoomBox_->setCurrentIndex(static_cast<int>(zoom));
    {
        const QSignalBlocker quiet(
            table_->selectionModel()); // filling or focusing the table would select a row
        if (zoom == TextZoom::tokens) {
            fillTable();
        } else {
            model_->show(nullptr, nullptr, &view_->values());
        }
        stack_->setCurrentIndex(static_cast<int>(zoom));
        setFocusProxy(stack_->currentWidget());
        stack_->currentWidget()->setFocus();
    }
    showRow(context_.selection.token());
    if (zoom == TextZoom::text && context_.selection.token() >= 0) {
        view_->scrollTo(context_.selection.token());
    }
    Q_EMIT viewChanged();
}

void TextPanel::zoomBy(int points) {
    if (zoom_ != TextZoom::text) {
        if (zoom_ == (points > 0 ? TextZoom::corpus : TextZoom::tokens)) {
            setZoom(TextZoom::text);
        }
        return;
    }
    const int before = context_.theme.textSize();
    context_.theme.setTextSize(before + points);
    if (context_.theme.textSize() == before) {
        setZoom(points > 0 ? TextZoom::tokens : TextZoom::corpus);
    }
}

bool TextPanel::isBusy() const {
    return !view_->settled() || spanBar_->isBusy() || find_->isBusy() ||
           (zoom_ == TextZoom::corpus && corpus_->isBusy());
}

bool TextPanel::eventFilter(QObject* watched, QEvent* event) {
    if (watched == table_->viewport() && event->type() == QEvent::Wheel) {
        const auto* wheel = static_cast<QWheelEvent*>(event);
        if ((wheel->modifiers() & Qt::ControlModifier) != 0) {
            if (tableWheel_.turn(*wheel) < 0) {
                zoomOut();
            }
            return true;
        }
    } else if (watched == table_->viewport() && event->type() == QEvent::ContextMenu) {
        const auto* menu = static_cast<QContextMenuEvent*>(event);
        Q_EMIT view_->menuWanted(model_->tokenOf(table_->rowAt(menu->pos().y())), menu->globalPos());
        return true;
    } else if (watched == table_ && event->type() == QEvent::ContextMenu) { // by the keyboard
        const QRect row = table_->visualRect(table_->currentIndex());
        Q_EMIT view_->menuWanted(model_->tokenOf(table_->currentIndex().row()),
                                 table_->viewport()->mapToGlobal(row.bottomLeft()));
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

void TextPanel::listNotes() {
    findText(note_annotation + u" != \"\""_s);
    find_->setListed(true);
}

void TextPanel::findNext() {
    find_->isVisible() ? find_->next() : find_->open();
}

void TextPanel::findPrevious() {
    find_->isVisible() ? find_->previous() : find_->open();
}

void TextPanel::setPlain(bool plain) {
    legend_->setLetters(plain ? slide_legend : 0);
    for (QWidget* child : controls_->findChildren<QWidget*>(Qt::FindDirectChildrenOnly)) {
        child->setVisible(!plain || child == legend_);
    }
}

void TextPanel::resizeEvent(QResizeEvent* event) {
    QWidget::resizeEvent(event);
    find_->setRoom(height());
}

QString TextPanel::notice() const {
    return notice_->isHidden() ? QString() : notice_->text();
}

void TextPanel::setLook(const TextLook& look) {
    if (view_->showsReplay()) {
        view_->setReplay({});
        Q_EMIT replayDismissed();
    }
    context_.selection.setLook(look);
}

void TextPanel::setDifference(bool on) {
    TextLook look = context_.selection.look();
    look.difference = on;
    if (on) { // annotations have no difference
        look.annotation.clear();
        setLook(look);
    } else {
        context_.selection.setLook(look);
    }
}

void TextPanel::setBars(std::optional<Quantity> quantity) {
    TextLook look = context_.selection.look();
    look.bars = quantity;
    context_.selection.setLook(look);
}

void TextPanel::setAnnotation(const QString& name) {
    TextLook look = context_.selection.look();
    look.annotation = name;
    setLook(look);
}

void TextPanel::setQuantity(Quantity quantity) {
    TextLook look = context_.selection.look();
    look.annotation.clear();
    look.quantity = quantity;
    setLook(look);
}

void TextPanel::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    painter.fillRect(rect(), context_.theme.colours().panel);
    painter.fillRect(0, controls_->geometry().bottom(), width(), 1, context_.theme.colours().line);
}

figure::FigureSpec TextPanel::figureSpec(figure::FigureKind kind) const {
    figure::FigureSpec spec = figure::window_figure(context_.data, context_.selection, kind);
    spec.sequence = context_.selection.sequence();
    // Use the chosen span, or the visible text: a figure of a whole book is useless.
    const TokenSpan span = view_->span().isEmpty()
                               ? TokenSpan{view_->firstVisibleToken(), view_->endVisibleToken()}
                               : view_->span();
    if (!span.isEmpty()) {
        spec.tokens = std::array<std::int64_t, 2>{span.first, span.last};
    }
    const TextLook& look = context_.selection.look();
    spec.annotation = look.annotation.toStdString();
    const bool difference = look.difference && look.annotation.isEmpty();
    spec.quantity = {look.quantity, difference && spec.runs.size() > 1};
    if (spec.quantity.minus_b == difference) {
        spec.range = view_->range();
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
        QStringList line{u"page"_s, selection.runA().trace, u"--run="_s + run_name(a)};
        if (const RunInfo* other = traces.run(b); other != nullptr && b.trace == selection.runA().trace) {
            line << u"--run="_s + run_name(*other);
        }
        return shell_view({line << u"--output=page.html"_s});
    }
    if (zoom_ == TextZoom::tokens) {
        return python_view(
            traces, selection,
            {u"columns = a.columns(%1)"_s.arg(selection.sequence()),
             u"for at, text in enumerate(a.token_texts(%1, columns)):"_s.arg(selection.sequence()),
             u"    print(at, repr(text), *(columns[k][at] for k in (\"nll\", "
             "\"rank\", \"entropy\", \"steps\")))"_s});
    }
    if (view_->showsReplay()) {
        return shell_view({{u"policy"_s, run_a_reference(traces, selection),
                            u"--policy="_s + view_->replay().policy, u"--per-token=tokens.csv"_s}});
    }
    return figure::figure_view(traces, selection, figureSpec(figure::FigureKind::token_text));
}

} // namespace ponderscope
