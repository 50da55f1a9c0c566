// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/figure/export_dialog.h"

#include "core/base/error.h"
#include "views/common/controls.h"
#include "views/common/format.h"
#include "views/common/paths.h"
#include "views/figure/figure_command.h"
#include "views/figure/figure_file.h"
#include "views/figure/figure_form.h"
#include "views/figure/name_list.h"
#include "views/figure/parts.h"
#include "views/figure/vision.h"

#include <QComboBox>
#include <QDialogButtonBox>
#include <QDir>
#include <QFileDialog>
#include <QFileInfo>
#include <QLabel>
#include <QListWidget>
#include <QPushButton>
#include <QScreen>
#include <QScrollArea>
#include <QScrollBar>
#include <QSignalBlocker>
#include <QVBoxLayout>

#include <algorithm>
#include <set>

using namespace Qt::StringLiterals;

namespace ponderscope {

using namespace figure;

namespace {

constexpr int trace_role = Qt::UserRole + 1; ///< the trace of a run's entry
constexpr int form_width = 384;

/// Scales a page down to the available width, so that it needs no sideways scrolling.
class PreviewArea : public QScrollArea {
public:
    PreviewArea(FigurePreview* preview, QWidget* parent) : QScrollArea(parent), preview_(preview) {
        setWidget(preview);
    }

protected:
    void resizeEvent(QResizeEvent* event) override {
        QScrollArea::resizeEvent(event);
        // Always leave room for the scroll bar. Otherwise bar and page size would depend on each other.
        preview_->setRoom(width() - 2 * frameWidth() - verticalScrollBar()->sizeHint().width());
    }

private:
    FigurePreview* preview_;
};

} // namespace

ExportDialog::ExportDialog(ViewContext context, FigureSpec initial, QWidget* parent)
    : QDialog(parent),
      data_(context.data),
      selection_(context.selection),
      windowTheme_(context.theme),
      initial_(std::move(initial)),
      panels_(initial_.panels),
      kinds_(new QListWidget(this)),
      about_(soft_label(this)),
      runs_(new NameList(u"Runs"_s,
                         u"The figure shows the checked runs in this order. Double-click a run "
                         "to rename it."_s,
                         this)),
      entries_(new NameList(
          u"Legend entries"_s,
          u"The figure draws the checked entries in this order. Drag an entry to move it. Double-click "
          "an entry to rename it."_s,
          this)),
      form_(new FigureForm({}, this)),
      vision_(new QComboBox(this)),
      add_(new QPushButton(u"Add to Page"_s, this)),
      clear_(new QPushButton(u"Clear Page"_s, this)),
      file_(new FigureFile(this)),
      command_(new CommandLine(context.theme, this)),
      message_(new QLabel(this)),
      preview_(new FigurePreview),
      buttons_(new QDialogButtonBox(QDialogButtonBox::Close, this)) {
    setWindowTitle(u"Figure Workbench"_s);
    for (const KindInfo& info : figure_kinds()) {
        auto* item = new QListWidgetItem(QString::fromUtf8(info.title), kinds_);
        item->setToolTip(QString::fromUtf8(info.shows));
    }
    kinds_->setAccessibleName(u"Kinds of figures"_s);
    kinds_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    kinds_->setFixedWidth(230);
    auto* scroll = new PreviewArea(preview_, this);
    scroll->setAlignment(Qt::AlignCenter);
    scroll->setMinimumSize(420, 320);
    scroll->setBackgroundRole(QPalette::Mid);
    scroll->setAccessibleName(u"The figure at true size"_s);
    command_->setToolTip(u"Copies a command that draws the same figure from the trace"_s);
    message_->setObjectName(u"message"_s);
    message_->setWordWrap(true);
    message_->setTextFormat(Qt::PlainText);
    message_->setTextInteractionFlags(Qt::TextSelectableByMouse);
    message_->setContentsMargins(8, 0, 8, 0);
    message_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred); // as wide as the form
    // A message takes room from the preview, so that no field moves.
    QBoxLayout* right = make_column(nullptr, {}, -1, {about_, {scroll, 1}, message_, command_});
    buttons_->addButton(u"Export"_s, QDialogButtonBox::AcceptRole)->setDefault(true);
    QPushButton* open = buttons_->addButton(u"Open Specification…"_s, QDialogButtonBox::ActionRole);
    open->setToolTip(u"Opens the FILE.json of an exported figure"_s);
    connect(open, &QPushButton::clicked, this, [this] {
        auto* dialog =
            new QFileDialog(this, u"Open Specification"_s, {}, u"Specifications of figures (*.json)"_s);
        dialog->setAttribute(Qt::WA_DeleteOnClose);
        dialog->setFileMode(QFileDialog::ExistingFile);
        dialog->setDirectory(QFileInfo(file_->file()).path());
        connect(dialog, &QFileDialog::fileSelected, this, &ExportDialog::openSpec);
        dialog->open();
    });
    QPushButton* dock = buttons_->addButton(u"Dock in Window"_s, QDialogButtonBox::ActionRole);
    dock->setToolTip(u"Shows the figure as a panel that follows the chosen run"_s);
    connect(dock, &QPushButton::clicked, this, [this] { Q_EMIT dockWanted(spec()); });
    auto* layout = new QVBoxLayout(this);
    layout->addLayout(make_row(nullptr, {}, -1, {kinds_, buildForm(), {right, 1}}), 1);
    layout->addWidget(buttons_);
    // Large enough for a figure of two columns at true size, if the screen allows.
    resize(QSize(1380, 720).boundedTo(screen()->availableSize() * 0.95));

    setKind(initial_.kind);
    file_->setFreeName(QString::fromUtf8(name_of(initial_.kind)), path_text(initial_.runs.front().trace));
    fillRuns();
    kindChanged();

    pending_.setSingleShot(true);
    pending_.setInterval(150);
    connect(&pending_, &QTimer::timeout, this, &ExportDialog::make);
    connect(kinds_, &QListWidget::currentRowChanged, this, [this] {
        file_->setFreeName(QString::fromUtf8(name_of(kind())));
        initial_ = form_->spec();
        initial_.series.clear(); // they belong to the previous figure
        entries_->clear();
        kindChanged();
    });
    connect(form_, &FigureForm::changed, &pending_, qOverload<>(&QTimer::start));
    for (NameList* list : {runs_, entries_}) {
        connect(list, &QListWidget::itemChanged, &pending_, qOverload<>(&QTimer::start));
        connect(list->model(), &QAbstractItemModel::rowsMoved, &pending_, qOverload<>(&QTimer::start));
    }
    connect(vision_, &QComboBox::currentIndexChanged, this, &ExportDialog::arrived);
    connect(file_, &FigureFile::changed, this, &ExportDialog::showCommand);
    connect(add_, &QPushButton::clicked, this, &ExportDialog::addPanel);
    connect(clear_, &QPushButton::clicked, this, [this] {
        panels_.clear();
        kindChanged();
    });
    connect(buttons_, &QDialogButtonBox::rejected, this, &QDialog::reject);
    connect(buttons_, &QDialogButtonBox::accepted, this, &ExportDialog::write);
    pending_.start();
}

QWidget* ExportDialog::buildForm() {
    vision_->addItem(u"As printed"_s, static_cast<int>(Vision::normal));
    vision_->addItem(u"In grey"_s, static_cast<int>(Vision::grey));
    vision_->addItem(u"To a deuteranope"_s, static_cast<int>(Vision::deuteranopia));
    vision_->setAccessibleName(u"Check"_s);
    add_->setToolTip(u"Add this figure to a page of several figures. The kind “Panels” shows the page"_s);
    auto* panel = new QWidget(this);
    make_column(panel, {8, 0, 8, 0}, -1,
                {new QLabel(u"Runs"_s, panel), runs_, form_, entries_,
                 make_row(nullptr, {}, -1, {new QLabel(u"Check"_s, panel), vision_}),
                 make_row(nullptr, {}, -1, {add_, clear_}), new QLabel(u"File"_s, panel), file_})
        ->addStretch(1);
    formArea_ = form_area(panel, this);
    return formArea_;
}

void ExportDialog::fillRuns() {
    const QSignalBlocker quiet(runs_);
    runs_->clear();
    const auto add = [this](const std::filesystem::path& trace, const std::string& name, bool shown) {
        runs_->add(name, shown_name(initial_, name), shown)->setData(trace_role, path_text(trace));
    };
    // The runs of the initial figure come first, then all other runs over its text.
    std::string digest;
    std::set<RunKey> listed;
    for (const RunName& run : initial_.runs) {
        add(run.trace, run.run, true);
        if (const RunInfo* info = run_named(data_, run)) {
            listed.insert({path_text(run.trace), info->id});
            digest = digest.empty() ? info->text_digest : digest;
        }
    }
    for (const QString& trace : data_.traces()) {
        for (const RunInfo& info : data_.runs(trace)) {
            if (info.text_digest == digest && !listed.contains({trace, info.id})) {
                add(path_of(trace), info.name, false);
            }
        }
    }
}

void ExportDialog::fillEntries() {
    if (!entries_->hasAll(figure_->entries)) {
        const QSignalBlocker quiet(entries_);
        entries_->clear();
        for (const std::string& name : figure_->entries) {
            const bool hidden = std::ranges::any_of(
                initial_.series, [&](const SeriesSpec& one) { return one.name == name && !one.show; });
            entries_->add(name, shown_name(initial_, name), !hidden);
        }
    }
    entries_->setVisible(entries_->count() > 0);
}

bool ExportDialog::openSpec(const QString& file) {
    try {
        FigureSpec spec = read_figure_spec(path_of(file));
        for (RunName& run : spec.runs) {
            if (!data_.isOpen(path_text(run.trace))) {
                message_->setText(u"%1 needs %2. Open %2 first."_s.arg(file, path_text(run.trace)));
                return false;
            }
            run = by_name(run, data_.runs(path_text(run.trace)));
        }
        apply(spec);
        const QFileInfo info(file);
        file_->setFile(info.absolutePath() + u'/' + info.completeBaseName() + u'.' +
                       QFileInfo(file_->file()).suffix());
        return true;
    } catch (const Error& error) {
        message_->setText(QString::fromUtf8(error.what()));
        return false;
    }
}

void ExportDialog::apply(const FigureSpec& spec) {
    initial_ = spec;
    panels_ = spec.panels;
    entries_->clear();
    {
        const QSignalBlocker quiet(kinds_);
        setKind(spec.kind);
    }
    fillRuns();
    kindChanged();
}

/// Offers the run's signals and the installed fonts.
void ExportDialog::fillChoices() {
    QList<std::pair<QString, QString>> signals_of_run;
    const RunName& first = initial_.runs.front();
    if (const RunInfo* run = run_named(data_, first)) {
        for (const SignalInfo& info : data_.signalsOf({path_text(first.trace), run->id})) {
            if (info.axes == std::vector<std::string>{"token", "step"}) {
                signals_of_run.append(
                    {QString::fromStdString(info.name), QString::fromStdString(info.shown_name())});
            }
        }
    }
    form_->setChoices(u"signal"_s, signals_of_run);
    QList<std::pair<QString, QString>> families;
    for (const QString& family : Fonts::families()) {
        families.append({family, family});
    }
    form_->setChoices(u"font"_s, families);
}

void ExportDialog::kindChanged() {
    const bool page = kind() == FigureKind::panels;
    initial_.kind = kind();
    if (kind() != FigureKind::token_text && kind() != FigureKind::step_heatmap) {
        initial_.tokens.reset(); // charts cover the whole text by default
        initial_.sequence.reset();
    }
    fillChoices();
    form_->setSpec(initial_);
    fit_form_area(*formArea_, form_width);
    about_->setText(QString::fromUtf8(info_of(kind()).shows));
    runs_->setEnabled(!page); // each panel keeps its own runs
    entries_->setVisible(entries_->count() > 0);
    add_->setEnabled(!page && panels_.size() < 26);
    clear_->setEnabled(!panels_.empty());
    clear_->setText(panels_.empty() ? u"Clear Page"_s : u"Clear Page (%1)"_s.arg(panels_.size()));
    pending_.start();
}

FigureKind ExportDialog::kind() const {
    return static_cast<FigureKind>(kinds_->currentRow());
}

void ExportDialog::setKind(FigureKind kind) {
    kinds_->setCurrentRow(static_cast<int>(kind));
}

void ExportDialog::addPanel() {
    if (kind() != FigureKind::panels) {
        panels_.push_back(spec());
        kindChanged();
    }
}

FigureSpec ExportDialog::spec() const {
    FigureSpec spec = form_->spec();
    reset_unread_keys(spec);
    spec.series = namedSeries();
    spec.runs.clear();
    for (int row = 0; row < runs_->count(); ++row) {
        if (runs_->item(row)->checkState() == Qt::Checked) {
            spec.runs.push_back({path_of(runs_->item(row)->data(trace_role).toString()), runs_->nameAt(row)});
        }
    }
    if (spec.runs.empty()) {
        spec.runs = initial_.runs;
    }
    spec.panels.clear();
    if (spec.kind == FigureKind::panels) {
        spec.panels = panels_;
        for (FigureSpec& panel : spec.panels) {
            panel.theme = spec.theme;
            panel.width_mm = single_column_mm; // the default width of a panel; the page sets the real width
        }
        spec.runs = panels_.empty() ? initial_.runs : panels_.front().runs;
        return spec;
    }
    if (spec.tokens) {
        spec.sequence = spec.sequence.value_or(0);
    }
    spec.runs.resize(std::min(spec.runs.size(), most_runs(spec)));
    // A specification keeps its colours; a figure from the window has the window's colours.
    spec.colours = spec.runs == initial_.runs && !initial_.colours.empty() ? initial_.colours
                   : !selection_.runA().isValid()
                       ? std::vector<std::int64_t>()
                       : window_colours({data_, selection_, windowTheme_}, spec.runs);
    return spec;
}

/// The runs and entries that are renamed, reordered or left out.
std::vector<SeriesSpec> ExportDialog::namedSeries() const {
    if (entries_->count() == 0 && is_chart(kind())) {
        return initial_.series; // the figure does not exist yet
    }
    std::vector<SeriesSpec> named = entries_->changed(true);
    for (SeriesSpec& one : runs_->changed(false)) {
        const bool known =
            std::ranges::any_of(named, [&](const SeriesSpec& other) { return other.name == one.name; });
        if (!known) {
            named.push_back(std::move(one));
        }
    }
    return named;
}

QString ExportDialog::message() const {
    return message_->text();
}

void ExportDialog::showCommand() {
    const QFileInfo info(file_->file());
    command_->setCommand(
        shell_command(
            {u"figure"_s, info.path() + u'/' + info.completeBaseName() + u".json"_s, u"-o"_s, file_->file()}),
        figure::figure_command(spec(), file_->file()));
}

void ExportDialog::make() {
    showCommand();
    if (kind() == FigureKind::panels && panels_.empty()) {
        reading_.cancel();
        refuse(u"The page is empty. Choose a figure at the left and add it to the page."_s);
        return;
    }
    message_->setText(u"Making the figure…"_s);
    const FigureSpec wanted = spec();
    reading_.start(
        [wanted, known = gatheredOf_ && same_numbers(*gatheredOf_, wanted) ? gathered_ : nullptr](
            const std::stop_token& stop) {
            return known ? known : std::make_shared<const FigureData>(gather(wanted, {}, stop));
        },
        [this, wanted](const std::shared_ptr<const FigureData>& gathered) { compose(wanted, gathered); },
        [this](const QString& sentence) { refuse(sentence); });
}

void ExportDialog::compose(const FigureSpec& spec, const std::shared_ptr<const FigureData>& gathered) {
    gathered_ = gathered;
    gatheredOf_ = spec;
    try {
        const QString family = QString::fromStdString(spec.font);
        if (!fonts_ || fonts_->family() != family) {
            figure_.reset(); // its texts were measured in the previous font
            fonts_ = std::make_unique<Fonts>(Fonts::load(family));
        }
        figure_ = std::make_unique<Figure>(figure::compose(spec, *gathered, *fonts_));
        arrived();
    } catch (const Error& error) {
        refuse(QString::fromUtf8(error.what()));
    }
}

void ExportDialog::refuse(const QString& sentence) {
    preview_->setFigure(nullptr, nullptr);
    figure_.reset();
    message_->setText(sentence);
}

void ExportDialog::arrived() {
    const auto vision = static_cast<Vision>(vision_->currentData().toInt());
    preview_->setVision(vision);
    if (figure_ == nullptr) {
        return;
    }
    preview_->setFigure(figure_.get(), fonts_.get());
    fillEntries();
    const QSizeF size = figure_->page.size() / points_per_mm;
    QString text = u"%1 × %2 mm"_s.arg(size.width(), 0, 'f', 0).arg(size.height(), 0, 'f', 0);
    for (const Notice& notice : figure_->notices) {
        text += u'\n' + QString::fromStdString(notice.text);
    }
    for (const QString& range : form_->unusedRanges()) {
        text += u"\n%1: type both ends, the smaller end first. Until then the axis covers all values."_s.arg(
            range);
    }
    const Style style(spec(), *fonts_);
    const bool rules = reads(kind(), "policies");
    std::vector<QColor> lines = rules ? style.rules : style.runs;
    lines.resize(std::min<std::size_t>(lines.size(), rules ? lines.size() : 4));
    if (vision != Vision::normal && least_difference(lines, vision) < readable_difference) {
        text += u'\n' + u"Two line colours look alike. Choose another palette."_s;
    }
    message_->setText(text);
}

bool ExportDialog::write() {
    // Write only the figure that the preview shows.
    if (pending_.isActive() || isBusy()) {
        message_->setText(u"The figure is not ready. Export again when the preview shows the figure."_s);
        return false;
    }
    if (figure_ == nullptr) {
        return false;
    }
    try {
        const QStringList names = file_->write(spec(), *figure_, *fonts_);
        if (!names.isEmpty()) {
            message_->setText(u"Written: %1"_s.arg(QDir::toNativeSeparators(names.join(u'\n'))));
            Q_EMIT exported(names);
        }
        return !names.isEmpty();
    } catch (const Error& error) {
        message_->setText(QString::fromUtf8(error.what()));
        return false;
    }
}

} // namespace ponderscope
