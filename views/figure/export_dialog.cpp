// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/figure/export_dialog.h"

#include "core/base/error.h"
#include "core/base/files.h"
#include "views/common/command_line.h"
#include "views/common/format.h"
#include "views/common/number_box.h"
#include "views/common/trace_name.h"
#include "views/figure/command.h"
#include "views/figure/export_roles.h"
#include "views/figure/figure_command.h"
#include "views/figure/figure_gallery.h"
#include "views/figure/parts.h"
#include "views/figure/vision.h"

#include <QCheckBox>
#include <QComboBox>
#include <QCoreApplication>
#include <QDialogButtonBox>
#include <QDir>
#include <QFile>
#include <QFileDialog>
#include <QFileInfo>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QMessageBox>
#include <QPushButton>
#include <QRegularExpression>
#include <QScreen>
#include <QScrollArea>
#include <QScrollBar>
#include <QSignalBlocker>
#include <QSpinBox>
#include <QStandardPaths>
#include <QVBoxLayout>

#include <algorithm>
#include <filesystem>

namespace ponderscope {

using namespace figure;

namespace {

/// To be opened; it goes with \p parent, and runs no loop of its own in the middle of the caller.
QFileDialog* file_dialog(QWidget* parent, const QString& title, const QString& filter) {
    auto* dialog = new QFileDialog(parent, title, {}, filter);
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    return dialog;
}

/// A page that is wider than the room is shown smaller: nobody reads a figure by scrolling sideways.
class PreviewArea : public QScrollArea {
public:
    PreviewArea(FigurePreview* preview, QWidget* parent) : QScrollArea(parent), preview_(preview) {
        setWidget(preview);
    }

protected:
    void resizeEvent(QResizeEvent* event) override {
        QScrollArea::resizeEvent(event);
        // Whether the bar is there or not, so that the one does not depend on the other.
        preview_->setRoom(width() - 2 * frameWidth() - verticalScrollBar()->sizeHint().width());
    }

private:
    FigurePreview* preview_;
};

/// Whether the lines of a figure are halting rules.
bool draws_rules(FigureKind kind) {
    return kind == FigureKind::policy_front || kind == FigureKind::policy_comparison ||
           kind == FigureKind::matched_rules || kind == FigureKind::parameter_sweep;
}

/// Both ends of an axis, when both are numbers in order.
std::optional<std::array<double, 2>> range_of(const QLineEdit& low, const QLineEdit& high) {
    const std::optional<double> from = typed_number(low.text());
    const std::optional<double> to = typed_number(high.text());
    return from && to && *from < *to ? std::optional(std::array{*from, *to}) : std::nullopt;
}

/// Where figures of a trace go first: beside it, or among the user's documents where it lies on another
/// machine.
QString folderBeside(const QString& trace) {
    if (!is_elsewhere(trace)) {
        return QFileInfo(trace).absolutePath();
    }
    const QString documents = QStandardPaths::writableLocation(QStandardPaths::DocumentsLocation);
    return QFileInfo(documents).isDir() ? documents : QDir::homePath();
}

/// Runs that a figure of this kind shows.
std::size_t mostRuns(const FigureSpec& spec) {
    const bool difference = spec.kind != FigureKind::token_text || spec.quantity.minus_b;
    return !info_of(spec.kind).uses_b || !difference || spec.kind == FigureKind::depth_ablation ? 1
           : spec.kind == FigureKind::token_text || spec.kind == FigureKind::winners            ? 2
                                                                                                : 1000;
}

} // namespace

ExportDialog::ExportDialog(ViewContext context, FigureSpec initial, QWidget* parent)
    : QDialog(parent),
      data_(context.data),
      selection_(context.selection),
      windowTheme_(context.theme),
      initial_(std::move(initial)),
      gallery_(new FigureGallery(initial_, this)),
      about_(new QLabel(this)),
      runs_(new QListWidget(this)),
      entries_(new QListWidget(this)),
      shown_(new QComboBox(this)),
      policies_(new QLineEdit(this)),
      range_(new QWidget(this)),
      first_(new QSpinBox(this)),
      last_(new QSpinBox(this)),
      width_(new NumberBox(this)),
      height_(new NumberBox(this)),
      legend_(new QComboBox(this)),
      title_(new QLineEdit(this)),
      family_(new QComboBox(this)),
      letters_(new NumberBox(this)),
      palette_(new QComboBox(this)),
      map_(new QComboBox(this)),
      theme_(new QComboBox(this)),
      vision_(new QComboBox(this)),
      format_(new QComboBox(this)),
      extra_(new QCheckBox(this)),
      columns_(new QSpinBox(this)),
      add_(new QPushButton(tr("Add to page"), this)),
      clear_(new QPushButton(tr("Clear page"), this)),
      file_(new QLineEdit(this)),
      command_(new CommandLine(context.theme, this)),
      message_(new QLabel(this)),
      preview_(new FigurePreview),
      buttons_(new QDialogButtonBox(QDialogButtonBox::Close, this)) {
    setWindowTitle(tr("Figure workbench"));
    about_->setWordWrap(true);
    about_->setForegroundRole(QPalette::PlaceholderText);

    auto* scroll = new PreviewArea(preview_, this);
    scroll->setAlignment(Qt::AlignCenter);
    scroll->setMinimumSize(420, 320);
    scroll->setBackgroundRole(QPalette::Mid);
    scroll->setAccessibleName(tr("The figure at true size"));
    command_->setToolTip(
        tr("Makes the same bytes again, once the figure has been exported; what is copied needs "
           "only the trace"));
    auto* right = new QVBoxLayout;
    right->addWidget(about_);
    right->addWidget(scroll, 1);
    right->addWidget(message_); // the preview gives way to it, and no field moves
    right->addWidget(command_);
    buttons_->addButton(tr("Export"), QDialogButtonBox::AcceptRole)->setDefault(true);
    QPushButton* open = buttons_->addButton(tr("Open a specification…"), QDialogButtonBox::ActionRole);
    open->setToolTip(tr("A FILE.json that was written beside a figure"));
    connect(open, &QPushButton::clicked, this, [this] {
        QFileDialog* dialog =
            file_dialog(this, tr("Open a specification"), tr("Specifications of figures (*.json)"));
        dialog->setFileMode(QFileDialog::ExistingFile);
        dialog->setDirectory(QFileInfo(file_->text()).path());
        connect(dialog, &QFileDialog::fileSelected, this, &ExportDialog::openSpec);
        dialog->open();
    });
    auto* columns = new QHBoxLayout;
    columns->addWidget(gallery_);
    columns->addWidget(buildForm());
    columns->addLayout(right, 1);
    auto* layout = new QVBoxLayout(this);
    layout->addLayout(columns, 1);
    layout->addWidget(buttons_);
    // A figure of two columns at true size fits, where the screen has the room.
    resize(QSize(1380, 720).boundedTo(screen()->availableSize() * 0.95));

    setKind(initial_.kind);
    setFile(freeName(folderBeside(path_text(initial_.runs.front().trace)) + u'/' +
                     text_of(name_of(initial_.kind)) + QStringLiteral(".pdf")));
    fillRuns();
    kindChanged();

    pending_.setSingleShot(true);
    pending_.setInterval(150);
    connect(&pending_, &QTimer::timeout, this, &ExportDialog::make);
    connect(gallery_, &QListWidget::currentRowChanged, this, [this] {
        const QFileInfo info(file());
        setFile(freeName(info.path() + u'/' + text_of(name_of(kind())) + u'.' + suffix()));
        initial_.series.clear(); // names of another figure's series
        kindChanged();
    });
    for (QComboBox* box : {shown_, family_, palette_, map_, theme_, legend_}) {
        connect(box, &QComboBox::currentIndexChanged, this, &ExportDialog::changed);
    }
    for (QDoubleSpinBox* box : {width_, height_, letters_}) {
        box->setKeyboardTracking(false);
        connect(box, &QDoubleSpinBox::valueChanged, this, &ExportDialog::changed);
    }
    connect(columns_, &QSpinBox::valueChanged, this, &ExportDialog::changed);
    for (QLineEdit* line : {policies_, title_, xLow_, xHigh_, yLow_, yHigh_}) {
        connect(line, &QLineEdit::editingFinished, this, &ExportDialog::changed);
    }
    for (QListWidget* list : {runs_, entries_}) {
        connect(list, &QListWidget::itemChanged, this, &ExportDialog::changed);
        connect(list->model(), &QAbstractItemModel::rowsMoved, this, &ExportDialog::changed);
    }
    connect(extra_, &QCheckBox::toggled, this, &ExportDialog::changed);
    connect(vision_, &QComboBox::currentIndexChanged, this, &ExportDialog::arrived);
    connect(first_, &QSpinBox::valueChanged, this, [this](int value) {
        last_->setMinimum(value + 1);
        changed();
    });
    connect(last_, &QSpinBox::valueChanged, this, &ExportDialog::changed);
    connect(format_, &QComboBox::activated, this, [this] {
        const QFileInfo info(file());
        setFile(info.path() + u'/' + info.completeBaseName() + u'.' + suffix());
    });
    connect(add_, &QPushButton::clicked, this, &ExportDialog::addPanel);
    connect(clear_, &QPushButton::clicked, this, [this] {
        panels_.clear();
        kindChanged();
    });
    connect(buttons_, &QDialogButtonBox::rejected, this, &QDialog::reject);
    connect(buttons_, &QDialogButtonBox::accepted, this, &ExportDialog::askAndWrite);
    connect(&maker_, &FigureMaker::started, this, [this] { message_->setText(tr("Making the figure…")); });
    connect(&maker_, &FigureMaker::ready, this, &ExportDialog::arrived);
    connect(&maker_, &FigureMaker::failed, this, [this](const QString& sentence) {
        preview_->setFigure(nullptr, nullptr);
        message_->setText(sentence);
    });
    changed();
}

FigureKind ExportDialog::kind() const {
    return gallery_->kind();
}

void ExportDialog::setKind(FigureKind kind) {
    gallery_->setKind(kind);
}

QString ExportDialog::suffix() const {
    return format_->currentData().toString();
}

bool ExportDialog::reads(std::string_view key) const {
    return figure::reads(kind(), key);
}

void ExportDialog::addPanel() {
    if (kind() != FigureKind::panels) {
        panels_.push_back(spec());
        kindChanged();
    }
}

/// Those of the Library; nothing where they are what comes without being said.
std::vector<std::int64_t> ExportDialog::coloursOf(const std::vector<RunName>& runs) const {
    const std::vector<QColor>& others = Theme::runColours(windowTheme_.dark());
    std::vector<std::int64_t> colours;
    bool asTheyCome = true;
    for (const RunName& run : runs) {
        auto colour = static_cast<std::int64_t>(colours.size());
        for (const RunInfo& info : data_.runs(path_text(run.trace))) {
            const RunKey key{path_text(run.trace), info.id};
            if (info.name != run.run && std::to_string(info.id) != run.run && !run.run.empty()) {
                continue;
            }
            const Selection nobody; // as which a run has the colour that the Library gave it
            const auto place = std::find(others.begin(), others.end(), windowTheme_.runColour(key, nobody));
            colour = key == selection_.runA()   ? 0
                     : key == selection_.runB() ? 1
                                                : 2 + (place - others.begin());
            break;
        }
        asTheyCome = asTheyCome && colour == static_cast<std::int64_t>(colours.size());
        colours.push_back(colour);
    }
    return asTheyCome ? std::vector<std::int64_t>() : colours;
}

FigureSpec ExportDialog::spec() const {
    FigureSpec spec = initial_;
    spec.kind = kind();
    spec.width_mm = width_->value();
    spec.height_mm.reset();
    if (height_->value() > height_->minimum()) {
        spec.height_mm = height_->value();
    }
    spec.title = title_->text().trimmed().toStdString();
    spec.legend = "auto";
    spec.x_range.reset();
    spec.y_range.reset();
    if (is_chart(spec.kind)) {
        spec.legend = legend_->currentData().toString().toStdString();
        spec.x_range = range_of(*xLow_, *xHigh_);
        spec.y_range = range_of(*yLow_, *yHigh_);
    }
    spec.series.clear();
    for (const QListWidget* list : {runs_, entries_}) {
        if (list == entries_ && !entries_->isEnabled()) {
            continue;
        }
        for (int row = 0; row < list->count(); ++row) {
            const QListWidgetItem& item = *list->item(row);
            SeriesSpec one{item.data(name_role).toString().toStdString(), item.text().trimmed().toStdString(),
                           item.checkState() == Qt::Checked};
            one.as = one.as == one.name ? std::string() : one.as;
            const bool known = std::any_of(spec.series.begin(), spec.series.end(),
                                           [&](const SeriesSpec& other) { return other.name == one.name; });
            const bool ordered = list == entries_ && entriesMoved();
            if (!known && (!one.as.empty() || ordered || (list == entries_ && !one.show))) {
                one.show = list == runs_ || one.show;
                spec.series.push_back(std::move(one));
            }
        }
    }
    spec.runs.clear();
    for (int row = 0; row < runs_->count(); ++row) {
        if (runs_->item(row)->checkState() == Qt::Checked) {
            spec.runs.push_back({path_of(runs_->item(row)->data(trace_role).toString()),
                                 runs_->item(row)->data(name_role).toString().toStdString()});
        }
    }
    if (spec.runs.empty()) {
        spec.runs = initial_.runs;
    }
    spec.font = family_->currentText().toStdString();
    spec.font_size = letters_->value();
    spec.palette = palette_->currentData().toString().toStdString();
    spec.colour_map = map_->currentData().toString().toStdString();
    spec.theme = theme_->currentData().toString().toStdString();
    spec.policies.clear();
    if (spec.kind == FigureKind::panels) {
        spec.panels = panels_;
        for (FigureSpec& panel : spec.panels) {
            panel.theme = spec.theme;
            panel.width_mm = single_column_mm; // what a specification's panel has; the page decides
        }
        spec.runs = panels_.empty() ? initial_.runs : panels_.front().runs;
        spec.columns = columns_->value();
        spec.letters = extra_->isChecked();
        spec.sequence.reset();
        spec.tokens.reset();
        return spec;
    }
    spec.tokens.reset();
    const bool whole = first_->value() == 0 && last_->value() == last_->maximum();
    if (!whole) {
        spec.tokens = {first_->value(), last_->value()};
        spec.sequence = initial_.sequence.value_or(0);
    }
    if (reads("quantity")) {
        const QVariant chosen = shown_->currentData(); // a name is no number, and gives the first quantity
        spec.quantity = {static_cast<Quantity>(chosen.toInt() / 2), chosen.toInt() % 2 == 1};
        spec.annotation = chosen.typeId() == QMetaType::QString ? chosen.toString().toStdString() : "";
    }
    if (reads("signal")) {
        spec.signal = shown_->count() > 0 ? shown_->currentData().toString().toStdString() : initial_.signal;
    }
    if (reads("curve")) {
        spec.curve = shown_->currentData().toString().toStdString();
    }
    if (reads("by")) {
        spec.by = shown_->currentData().toString().toStdString();
    }
    if (reads("step_ticks")) {
        spec.step_ticks = extra_->isChecked();
    }
    if (reads("scatter")) {
        spec.scatter = extra_->isChecked();
    }
    if (reads("policies")) {
        // A comma also parts the numbers of a policy: uniform:rate=1.2,seed=7.
        static const QRegularExpression between(QStringLiteral(R"re(,\s*(?=[a-z_]+\s*(?:[:,]|$)))re"));
        const QStringList names = policies_->text().split(between, Qt::SkipEmptyParts);
        for (const QString& name : names) {
            spec.policies.push_back(name.trimmed().toStdString());
        }
    }
    if (!reads("tokens")) {
        spec.sequence.reset(); // of the whole run
        spec.tokens.reset();
    } else if (whole && spec.kind != FigureKind::token_text && spec.kind != FigureKind::step_heatmap) {
        spec.sequence.reset(); // all of the text
    }
    spec.runs.resize(std::min(spec.runs.size(), mostRuns(spec)));
    // What a specification said stays; a figure from the window has the window's colours.
    spec.colours = spec.runs == initial_.runs && !initial_.colours.empty() ? initial_.colours
                   : spec.kind == FigureKind::panels || !selection_.runA().isValid()
                       ? std::vector<std::int64_t>()
                       : coloursOf(spec.runs);
    return spec;
}

QString ExportDialog::file() const {
    return file_->text();
}

void ExportDialog::setFile(const QString& file) {
    file_->setText(file);
    const int format = format_->findData(QFileInfo(file).suffix().toLower());
    if (format >= 0) {
        format_->setCurrentIndex(format);
    }
    showCommand();
}

QString ExportDialog::message() const {
    return message_->text();
}

void ExportDialog::showCommand() {
    const QFileInfo info(file());
    command_->setCommand(
        shell_command({QStringLiteral("figure"),
                       info.path() + u'/' + info.completeBaseName() + QStringLiteral(".json"),
                       QStringLiteral("-o"), file()}),
        figure::figure_command(spec(), file()));
}

QString ExportDialog::copiedCommand() const {
    return command_->copied();
}

QString ExportDialog::commandLine() const {
    return command_->shown();
}

void ExportDialog::changed() {
    pending_.start();
}

void ExportDialog::make() {
    showCommand();
    if (kind() == FigureKind::panels && panels_.empty()) {
        preview_->setFigure(nullptr, nullptr);
        message_->setText(
            tr("The page is empty. Choose a figure at the left and add it to the page; then come "
               "back here."));
        return;
    }
    maker_.make(spec());
}

void ExportDialog::arrived() {
    const auto vision = static_cast<Vision>(vision_->currentData().toInt());
    preview_->setVision(vision);
    if (maker_.figure() == nullptr) {
        return;
    }
    preview_->setFigure(maker_.figure(), maker_.fonts());
    fillEntries();
    gallery_->makeExamples();
    const QSizeF size = maker_.figure()->page.size() / points_per_mm;
    QString text = tr("%1 × %2 mm").arg(size.width(), 0, 'f', 0).arg(size.height(), 0, 'f', 0);
    for (const std::string& notice : maker_.figure()->notices) {
        text += u'\n' + QString::fromStdString(notice);
    }
    const Style style(spec(), *maker_.fonts());
    std::vector<QColor> lines = draws_rules(spec().kind) ? style.rules : style.runs;
    lines.resize(std::min<std::size_t>(lines.size(), draws_rules(spec().kind) ? lines.size() : 4));
    if (vision != Vision::normal && least_difference(lines, vision) < readable_difference) {
        text += u'\n' + tr("Two of the line colours look alike so; choose another palette.");
    }
    message_->setText(text);
}

void ExportDialog::chooseFile() {
    QFileDialog* dialog =
        file_dialog(this, tr("Save the figure"), tr("PDF (*.pdf);;SVG (*.svg);;PNG (*.png);;LaTeX (*.tex)"));
    dialog->setAcceptMode(QFileDialog::AcceptSave);
    dialog->selectFile(file_->text());
    connect(dialog, &QFileDialog::fileSelected, this, [this](const QString& file) {
        setFile(QFileInfo(file).suffix().isEmpty() ? file + u'.' + suffix() : file);
    });
    dialog->open();
}

QString ExportDialog::freeName(const QString& file) const {
    const QFileInfo info(file);
    QString name = file;
    for (int number = 2; QFileInfo::exists(name); ++number) {
        name = QStringLiteral("%1/%2-%3.%4")
                   .arg(info.path(), info.completeBaseName(), QString::number(number), info.suffix());
    }
    return name;
}

QStringList ExportDialog::inTheWay() const {
    const QFileInfo info(file());
    const QString beside = info.path() + u'/' + info.completeBaseName() + QStringLiteral(".json");
    QFile known(beside);
    const bool same =
        known.open(QIODevice::ReadOnly) &&
        known.readAll() == QByteArray::fromStdString(write_figure_spec(
                               spec(), std::filesystem::absolute(path_of(file())).parent_path()));
    QStringList others;
    for (const QString& name : {file(), beside}) {
        if (!same && QFileInfo::exists(name)) {
            others << QFileInfo(name).fileName();
        }
    }
    return others;
}

void ExportDialog::askAndWrite() {
    const QStringList others = inTheWay();
    if (others.isEmpty()) {
        write();
        return;
    }
    const QString free = freeName(file());
    QMessageBox box(QMessageBox::Question, tr("There is a figure of this name"),
                    tr("%1 exists and belongs to another figure.").arg(others.join(tr(" and "))),
                    QMessageBox::Cancel, this);
    QPushButton* both =
        box.addButton(tr("Write %1").arg(QFileInfo(free).fileName()), QMessageBox::AcceptRole);
    QPushButton* replace = box.addButton(tr("Replace"), QMessageBox::DestructiveRole);
    box.setDefaultButton(both);
    box.exec();
    if (box.clickedButton() == both) {
        setFile(free);
        write();
    } else if (box.clickedButton() == replace) {
        write(true);
    }
}

bool ExportDialog::write(bool replace) {
    // What stands in the preview is what is written.
    if (pending_.isActive() || maker_.isBusy()) {
        message_->setText(tr("Making the figure… Export again when it is shown."));
        return false;
    }
    if (!maker_.figure()) {
        return false;
    }
    if (const QStringList others = inTheWay(); !replace && !others.isEmpty()) {
        message_->setText(tr("%1 exists and belongs to another figure. Choose a different name.")
                              .arg(others.join(tr(" and "))));
        return false;
    }
    try {
        const std::filesystem::path path = path_of(file());
        auto written = write_figure(*maker_.figure(), *maker_.fonts(), path, initial_.dpi);
        std::filesystem::path beside = path;
        beside.replace_extension(".json");
        write_file_atomically(beside,
                              write_figure_spec(spec(), std::filesystem::absolute(path).parent_path()));
        written.push_back(beside);
        QStringList names;
        for (const std::filesystem::path& one : written) {
            names.append(path_text(one));
        }
        message_->setText(tr("Written: %1").arg(QDir::toNativeSeparators(names.join(u'\n'))));
        Q_EMIT exported(names);
        return true;
    } catch (const Error& error) {
        message_->setText(QString::fromUtf8(error.what()));
        return false;
    }
}

} // namespace ponderscope
