// SPDX-License-Identifier: GPL-3.0-or-later
// The workbench's form: its fields, what they offer, and which of them a kind of figure reads.
#include "views/figure/export_dialog.h"

#include "core/base/error.h"
#include "views/common/format.h"
#include "views/common/number_box.h"
#include "views/figure/export_roles.h"
#include "views/figure/figure_gallery.h"
#include "views/figure/vision.h"

#include <QCheckBox>
#include <QComboBox>
#include <QEvent>
#include <QFileInfo>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QPushButton>
#include <QScrollArea>
#include <QScrollBar>
#include <QSignalBlocker>
#include <QSpinBox>
#include <QVBoxLayout>

#include <algorithm>

namespace ponderscope {

using namespace figure;

namespace {

constexpr int least_height = 15; ///< mm, of a specification

/// Scrolls up and down only: as wide as its rows are in the font at hand.
class FormArea : public QScrollArea {
public:
    explicit FormArea(QWidget* parent) : QScrollArea(parent) {
        setFrameShape(QFrame::NoFrame);
        setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
        setWidgetResizable(true);
        setSizePolicy(QSizePolicy::Fixed, QSizePolicy::Expanding);
    }
    QSize sizeHint() const override { return {width_needed(), QScrollArea::sizeHint().height()}; }
    QSize minimumSizeHint() const override {
        return {width_needed(), QScrollArea::minimumSizeHint().height()};
    }

protected:
    bool eventFilter(QObject* object, QEvent* event) override {
        if (object == widget() && event->type() == QEvent::LayoutRequest) {
            updateGeometry();
        }
        return QScrollArea::eventFilter(object, event);
    }

private:
    int width_needed() const {
        const int form = widget() != nullptr ? widget()->minimumSizeHint().width() : 0;
        return std::max(336, form + verticalScrollBar()->sizeHint().width());
    }
};

} // namespace

void ExportDialog::buildList(QListWidget& list, const QString& name, const QString& tip) {
    list.setAccessibleName(name);
    list.setToolTip(tip);
    list.setDragDropMode(QAbstractItemView::InternalMove);
    list.setEditTriggers(QAbstractItemView::DoubleClicked | QAbstractItemView::EditKeyPressed);
    list.setTextElideMode(Qt::ElideMiddle);
    list.setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    list.setFixedHeight(104);
}

QWidget* ExportDialog::limits(QLineEdit*& low, QLineEdit*& high, const QString& name) {
    auto* both = new QWidget(this);
    low = new QLineEdit(both);
    high = new QLineEdit(both);
    for (QLineEdit* line : {low, high}) {
        line->setValidator(new NumberValidator(line));
        line->setPlaceholderText(tr("from the values"));
    }
    low->setAccessibleName(tr("%1, low end").arg(name));
    high->setAccessibleName(tr("%1, high end").arg(name));
    auto* row = new QHBoxLayout(both);
    row->setContentsMargins(0, 0, 0, 0);
    row->addWidget(low);
    row->addWidget(new QLabel(tr("to"), both));
    row->addWidget(high);
    both->setFocusProxy(low);
    return both;
}

void ExportDialog::fillRuns() {
    const QSignalBlocker quiet(runs_);
    runs_->clear();
    const auto add = [this](const QString& trace, const std::string& name, bool shown) {
        auto* item = new QListWidgetItem(QString::fromStdString(name), runs_);
        item->setFlags((item->flags() | Qt::ItemIsEditable | Qt::ItemIsUserCheckable) &
                       ~Qt::ItemIsDropEnabled);
        item->setCheckState(shown ? Qt::Checked : Qt::Unchecked);
        item->setData(name_role, QString::fromStdString(name));
        item->setData(trace_role, trace);
        item->setToolTip(plain_tip(trace));
    };
    // Those that the figure began with, then all others over its text.
    std::string digest;
    for (const RunName& run : initial_.runs) {
        add(path_text(run.trace), run.run, true);
        for (const RunInfo& info : data_.runs(path_text(run.trace))) {
            if (info.name == run.run || std::to_string(info.id) == run.run || run.run.empty()) {
                digest = digest.empty() ? info.text_digest : digest;
            }
        }
    }
    const QStringList traces = data_.traces();
    for (const QString& trace : traces) {
        for (const RunInfo& info : data_.runs(trace)) {
            const bool known =
                std::any_of(initial_.runs.begin(), initial_.runs.end(), [&](const RunName& run) {
                    return run.trace == path_of(trace) &&
                           (run.run == info.name || run.run == std::to_string(info.id));
                });
            if (!known && info.text_digest == digest) {
                add(trace, info.name, false);
            }
        }
    }
}

void ExportDialog::fillEntries() {
    const std::vector<std::string>& names = maker_.figure()->entries;
    QStringList before;
    for (int row = 0; row < entries_->count(); ++row) {
        before << entries_->item(row)->data(name_role).toString();
    }
    QStringList now;
    for (const std::string& name : names) {
        now << QString::fromStdString(name);
    }
    if (QSet<QString>(before.begin(), before.end()) != QSet<QString>(now.begin(), now.end())) {
        const QSignalBlocker quiet(entries_);
        entries_->clear();
        for (const QString& name : now) {
            auto* item = new QListWidgetItem(QString::fromStdString(shown_name(initial_, name.toStdString())),
                                             entries_);
            item->setFlags((item->flags() | Qt::ItemIsEditable | Qt::ItemIsUserCheckable) &
                           ~Qt::ItemIsDropEnabled);
            const bool hidden =
                std::any_of(initial_.series.begin(), initial_.series.end(), [&](const SeriesSpec& one) {
                    return one.name == name.toStdString() && !one.show;
                });
            item->setCheckState(hidden ? Qt::Unchecked : Qt::Checked);
            item->setData(name_role, name);
        }
        entriesAsMade_ = now;
    }
    showApplicable();
}

bool ExportDialog::entriesMoved() const {
    QStringList now;
    for (int row = 0; row < entries_->count(); ++row) {
        now << entries_->item(row)->data(name_role).toString();
    }
    return now != entriesAsMade_;
}

void ExportDialog::allow(QWidget* field, const QString& reason) {
    field->setEnabled(reason.isEmpty());
    const QVariant own = field->property("ownTip");
    if (!own.isValid()) {
        field->setProperty("ownTip", field->toolTip());
    }
    field->setToolTip(reason.isEmpty() ? field->property("ownTip").toString() : plain_tip(reason));
    if (QWidget* label = form_->labelForField(field)) {
        label->setEnabled(reason.isEmpty());
        label->setToolTip(field->toolTip());
    }
}

void ExportDialog::showApplicable() {
    const bool page = kind() == FigureKind::panels;
    const bool chart = is_chart(kind());
    const QString title = tr(info_of(kind()).title);
    const auto unless = [&](bool applies, const QString& reason) { return applies ? QString() : reason; };
    const QString axes = tr("“%1” has no axes with numbers of their own").arg(title);
    allow(runs_, unless(!page, tr("Each panel has the runs that it was added with")));
    allow(shown_, unless(shown_->count() > 0, tr("“%1” shows one thing only").arg(title)));
    allow(policies_, unless(reads("policies"), tr("“%1” replays no halting rules").arg(title)));
    allow(range_, unless(reads("tokens"), tr("“%1” is of the whole run").arg(title)));
    allow(columns_, unless(page, tr("Only a page of panels has columns")));
    allow(extra_,
          unless(page || reads("step_ticks") || reads("scatter"), tr("“%1” has no such part").arg(title)));
    allow(xLimits_, unless(chart, axes));
    allow(yLimits_, unless(chart, axes));
    allow(legend_, unless(chart, tr("“%1” has no legend that could stand elsewhere").arg(title)));
    allow(entries_, unless(chart && entries_->count() > 0, tr("“%1” has no legend with entries").arg(title)));
    allow(palette_,
          unless(page || kind() != FigureKind::step_heatmap, tr("“%1” has cells, no lines").arg(title)));
}

void ExportDialog::apply(const FigureSpec& spec) {
    initial_ = spec;
    panels_ = spec.panels;
    const QSignalBlocker quiet(gallery_);
    width_->setValue(spec.width_mm);
    height_->setValue(spec.height_mm.value_or(height_->minimum()));
    letters_->setValue(spec.font_size);
    title_->setText(QString::fromStdString(spec.title));
    const auto choose = [](QComboBox* box, const std::string& name) {
        box->setCurrentIndex(std::max(0, box->findData(QString::fromStdString(name))));
    };
    choose(palette_, spec.palette);
    choose(map_, spec.colour_map);
    choose(theme_, spec.theme);
    choose(legend_, spec.legend);
    family_->setCurrentText(QString::fromStdString(spec.font));
    columns_->setValue(static_cast<int>(spec.columns));
    QStringList policies;
    for (const std::string& policy : spec.policies) {
        policies << QString::fromStdString(policy);
    }
    policies_->setText(policies.join(QStringLiteral(", ")));
    const auto ends = [](QLineEdit* low, QLineEdit* high, const std::optional<std::array<double, 2>>& range) {
        low->setText(range ? QString::number((*range)[0], 'g', 10) : QString());
        high->setText(range ? QString::number((*range)[1], 'g', 10) : QString());
    };
    ends(xLow_, xHigh_, spec.x_range);
    ends(yLow_, yHigh_, spec.y_range);
    entries_->clear();
    setKind(spec.kind);
    fillRuns();
    for (int row = 0; row < runs_->count(); ++row) {
        runs_->item(row)->setText(QString::fromStdString(
            shown_name(spec, runs_->item(row)->data(name_role).toString().toStdString())));
    }
    kindChanged();
}

bool ExportDialog::openSpec(const QString& file) {
    try {
        FigureSpec spec = read_figure_spec(path_of(file));
        for (RunName& run : spec.runs) {
            if (!data_.isOpen(path_text(run.trace))) {
                message_->setText(
                    tr("%1 is of %2, which is not open; open it first.").arg(file, path_text(run.trace)));
                return false;
            }
            run = by_name(run, data_.runs(path_text(run.trace)));
        }
        apply(spec);
        setFile(QFileInfo(file).absolutePath() + u'/' + QFileInfo(file).completeBaseName() + u'.' + suffix());
        return true;
    } catch (const Error& error) {
        message_->setText(QString::fromUtf8(error.what()));
        return false;
    }
}

void ExportDialog::buildTokenRange() {
    std::int64_t tokens = 0;
    const QString trace = path_text(initial_.runs.front().trace);
    for (const RunInfo& run : data_.runs(trace)) {
        if (run.name == initial_.runs.front().run || initial_.runs.front().run.empty() ||
            std::to_string(run.id) == initial_.runs.front().run) {
            for (const SequenceInfo& sequence : data_.sequences({trace, run.id})) {
                if (sequence.index == initial_.sequence.value_or(0)) {
                    tokens = sequence.tokens;
                }
            }
        }
    }
    const int all = static_cast<int>(std::clamp<std::int64_t>(tokens, 1, 100'000'000));
    first_->setRange(0, all - 1);
    last_->setRange(1, all);
    first_->setValue(initial_.tokens ? static_cast<int>((*initial_.tokens)[0]) : 0);
    last_->setValue(initial_.tokens ? static_cast<int>((*initial_.tokens)[1]) : all);
    first_->setAccessibleName(tr("First token"));
    last_->setAccessibleName(tr("Token after the last"));
    first_->setKeyboardTracking(false);
    last_->setKeyboardTracking(false);
    auto* range = new QHBoxLayout(range_);
    range->setContentsMargins(0, 0, 0, 0);
    range->addWidget(first_);
    range->addWidget(new QLabel(tr("to"), range_));
    range->addWidget(last_);
}

QWidget* ExportDialog::buildForm() {
    width_->setRange(40, 1000);
    width_->setDecimals(0);
    width_->setSuffix(tr(" mm"));
    width_->setValue(initial_.width_mm);
    width_->setToolTip(tr("84 is one column, 174 two"));
    height_->setRange(least_height, 1000);
    height_->setDecimals(0);
    height_->setSuffix(tr(" mm"));
    height_->setSpecialValueText(tr("as it needs"));
    height_->setValue(initial_.height_mm.value_or(height_->minimum()));
    height_->setAccessibleName(tr("Height"));
    auto* measures = new QWidget(this);
    auto* measuresRow = new QHBoxLayout(measures);
    measuresRow->setContentsMargins(0, 0, 0, 0);
    measuresRow->addWidget(width_, 1);
    measuresRow->addWidget(new QLabel(QStringLiteral("×"), measures));
    measuresRow->addWidget(height_, 1);
    measures->setFocusProxy(width_);
    width_->setAccessibleName(tr("Width"));
    title_->setPlaceholderText(tr("none: the paper's caption says it"));
    title_->setText(QString::fromStdString(initial_.title));
    buildList(*runs_, tr("Runs"),
              tr("Checked runs are shown, in this order, drawn from the top; a double click renames"));
    buildList(*entries_, tr("Legend entries"),
              tr("Checked ones are drawn; drag them into the legend's order, a double click renames"));
    xLimits_ = limits(xLow_, xHigh_, tr("Horizontal axis"));
    yLimits_ = limits(yLow_, yHigh_, tr("Vertical axis"));
    letters_->setRange(4, 24);
    letters_->setDecimals(1);
    letters_->setSuffix(tr(" pt"));
    letters_->setValue(initial_.font_size);
    const QString font = QString::fromStdString(initial_.font);
    family_->addItems(Fonts::families());
    if (family_->findText(font) < 0) {
        family_->insertItem(0, font); // the preview says that it is not there
    }
    family_->setCurrentText(font);
    family_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    family_->setMinimumContentsLength(8);
    family_->setAccessibleName(tr("Typeface"));
    family_->setToolTip(tr("Embedded in the figure. A font of this machine; the paper's own, perhaps"));
    letters_->setAccessibleName(tr("Size of letters"));
    auto* letters = new QWidget(this);
    auto* lettersRow = new QHBoxLayout(letters);
    lettersRow->setContentsMargins(0, 0, 0, 0);
    lettersRow->addWidget(family_, 1);
    lettersRow->addWidget(letters_);
    letters->setFocusProxy(family_);
    const auto fill = [](QComboBox* box, std::initializer_list<std::pair<QString, const char*>> entries,
                         const std::string& chosen) {
        for (const auto& [text, name] : entries) {
            box->addItem(text, QString::fromLatin1(name));
        }
        box->setCurrentIndex(std::max(0, box->findData(QString::fromStdString(chosen))));
    };
    fill(palette_,
         {{tr("Ponderscope"), "default"},
          {tr("Okabe–Ito (colour-blind safe)"), "okabe_ito"},
          {tr("Grey"), "grey"}},
         initial_.palette);
    fill(map_,
         {{tr("Viridis"), "viridis"},
          {tr("Cividis"), "cividis"},
          {tr("Magma"), "magma"},
          {tr("Grey"), "grey"}},
         initial_.colour_map);
    fill(legend_,
         {{tr("where it fits"), "auto"},
          {tr("above the plot"), "above"},
          {tr("at its right"), "right"},
          {tr("none"), "none"}},
         initial_.legend);
    fill(theme_, {{tr("Light, for paper"), "light"}, {tr("Dark, for slides"), "dark"}}, initial_.theme);
    fill(format_,
         {{tr("PDF"), "pdf"}, {tr("SVG"), "svg"}, {tr("PNG"), "png"}, {tr("LaTeX (pgfplots)"), "tex"}},
         "pdf");
    vision_->addItem(tr("As printed"), static_cast<int>(Vision::normal));
    vision_->addItem(tr("In grey"), static_cast<int>(Vision::grey));
    vision_->addItem(tr("To a deuteranope"), static_cast<int>(Vision::deuteranopia));
    columns_->setRange(1, 6);
    columns_->setValue(static_cast<int>(initial_.columns));
    policies_->setPlaceholderText(tr("such as learned, entropy"));
    add_->setToolTip(tr("A page of several figures: gather them one after the other, then choose Panels"));

    buildTokenRange();
    auto* browse = new QPushButton(tr("Choose…"), this);
    connect(browse, &QPushButton::clicked, this, &ExportDialog::chooseFile);
    auto* place = new QHBoxLayout;
    place->addWidget(file_, 1);
    place->addWidget(browse);
    auto* page = new QHBoxLayout;
    page->addWidget(add_);
    page->addWidget(clear_);
    message_->setObjectName(QStringLiteral("message"));
    message_->setWordWrap(true);
    message_->setTextFormat(Qt::PlainText);
    message_->setTextInteractionFlags(Qt::TextSelectableByMouse);
    message_->setContentsMargins(8, 0, 8, 0);
    message_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred); // as wide as the form

    auto* panel = new QWidget(this);
    form_ = new QFormLayout(panel);
    form_->setContentsMargins(8, 0, 8, 0);
    form_->addRow(tr("Runs"), runs_);
    form_->addRow(tr("Shows"), shown_);
    form_->addRow(tr("Policies"), policies_);
    form_->addRow(tr("Tokens"), range_);
    form_->addRow(tr("Columns"), columns_);
    form_->addRow(QString(), extra_);
    form_->addRow(tr("Size"), measures);
    form_->addRow(tr("Axis x"), xLimits_);
    form_->addRow(tr("Axis y"), yLimits_);
    form_->addRow(tr("Legend"), legend_);
    form_->addRow(tr("Entries"), entries_);
    form_->addRow(tr("Title"), title_);
    form_->addRow(tr("Letters"), letters);
    form_->addRow(tr("Lines"), palette_);
    form_->addRow(tr("Cells"), map_);
    form_->addRow(tr("Theme"), theme_);
    form_->addRow(tr("Check"), vision_);
    form_->addRow(QString(), page);
    form_->addRow(tr("Format"), format_);
    form_->addRow(tr("File"), place);
    auto* scroll = new FormArea(this);
    scroll->setWidget(panel);
    auto* column = new QWidget(this);
    auto* rows = new QVBoxLayout(column);
    rows->setContentsMargins(0, 0, 0, 0);
    rows->addWidget(scroll, 1);
    return column;
}

void ExportDialog::fillChoices() {
    const QSignalBlocker quiet(shown_);
    shown_->clear();
    if (reads("quantity")) {
        const bool text = kind() == FigureKind::token_text;
        for (const bool minus_b : {false, true}) {
            for (const QuantityInfo& one : token_quantities) {
                const bool swept = one.quantity == Quantity::nll || one.quantity == Quantity::steps ||
                                   one.quantity == Quantity::flops;
                if (text ? !minus_b || initial_.runs.size() > 1 : swept && !minus_b) {
                    const QString name = text_of(one.name);
                    shown_->addItem(minus_b ? tr("Difference of %1, A − B").arg(name) : name,
                                    code_of({one.quantity, minus_b}));
                }
            }
        }
        const QString own = QString::fromStdString(text ? initial_.annotation : "");
        shown_->setCurrentIndex(std::max(0, shown_->findData(code_of(initial_.quantity))));
        if (!own.isEmpty()) {
            shown_->insertItem(0, own, own);
            shown_->setCurrentIndex(0);
        }
    } else if (reads("signal")) {
        const QString trace = path_text(initial_.runs.front().trace);
        for (const RunInfo& run : data_.runs(trace)) {
            if (run.name != initial_.runs.front().run && !initial_.runs.front().run.empty() &&
                std::to_string(run.id) != initial_.runs.front().run) {
                continue;
            }
            for (const SignalInfo& info : data_.signalsOf({trace, run.id})) {
                if (info.axes == std::vector<std::string>{"token", "step"}) {
                    shown_->addItem(QString::fromStdString(info.shown_name()),
                                    QString::fromStdString(info.name));
                }
            }
            break;
        }
        shown_->setCurrentIndex(std::max(0, shown_->findData(QString::fromStdString(initial_.signal))));
    } else if (reads("curve")) {
        shown_->addItem(tr("Loss and held-out NLL"), QStringLiteral("loss"));
        shown_->addItem(tr("Mean steps"), QStringLiteral("mean_steps"));
        shown_->addItem(tr("Gates by step"), QString::fromLatin1(training_quantity::held_out_gate));
        shown_->addItem(tr("Share of tokens by step"),
                        QString::fromLatin1(training_quantity::held_out_steps_share));
        shown_->addItem(tr("Penalty"), QString::fromLatin1(training_quantity::penalty));
        shown_->addItem(tr("Learning rate"), QString::fromLatin1(training_quantity::learning_rate));
        shown_->addItem(tr("Gradient norm"), QString::fromLatin1(training_quantity::gradient_norm));
        shown_->setCurrentIndex(std::max(0, shown_->findData(QString::fromStdString(initial_.curve))));
    } else if (reads("by")) {
        shown_->addItem(tr("by token class"), QStringLiteral("class"));
        shown_->addItem(tr("by token type"), QStringLiteral("type"));
        shown_->addItem(tr("by position"), QStringLiteral("position"));
        shown_->addItem(tr("by difficulty"), QStringLiteral("difficulty"));
        shown_->setCurrentIndex(std::max(0, shown_->findData(QString::fromStdString(initial_.by))));
    }
}

void ExportDialog::kindChanged() {
    fillChoices();
    about_->setText(tr(info_of(kind()).shows));
    const bool page = kind() == FigureKind::panels;
    {
        // What is on the screen for what shows tokens; numbers are of the whole text unless it is asked for.
        const bool tokens = kind() == FigureKind::token_text || kind() == FigureKind::step_heatmap;
        const QSignalBlocker quietFirst(first_);
        const QSignalBlocker quietLast(last_);
        const bool some = tokens && initial_.tokens;
        first_->setValue(some ? static_cast<int>((*initial_.tokens)[0]) : 0);
        last_->setMinimum(first_->value() + 1);
        last_->setValue(some ? static_cast<int>((*initial_.tokens)[1]) : last_->maximum());
    }
    showApplicable();
    {
        const QSignalBlocker quiet(extra_);
        extra_->setText(page               ? tr("Letters of the panels")
                        : reads("scatter") ? tr("Token against token")
                                           : tr("Steps under each token"));
        extra_->setChecked(page               ? initial_.letters
                           : reads("scatter") ? initial_.scatter
                                              : initial_.step_ticks);
    }
    add_->setEnabled(!page && panels_.size() < 26);
    clear_->setEnabled(!panels_.empty());
    clear_->setText(panels_.empty() ? tr("Clear page") : tr("Clear page (%1)").arg(panels_.size()));
    changed();
}

} // namespace ponderscope
