// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/figure/export_dialog.h"

#include "core/base/error.h"
#include "core/base/files.h"
#include "views/common/command_line.h"
#include "views/figure/command.h"
#include "views/figure/figure_command.h"
#include "views/figure/parts.h"
#include "views/figure/vision.h"

#include <QCheckBox>
#include <QComboBox>
#include <QCoreApplication>
#include <QDialogButtonBox>
#include <QDoubleSpinBox>
#include <QFileDialog>
#include <QFileInfo>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QPushButton>
#include <QScreen>
#include <QScrollArea>
#include <QSignalBlocker>
#include <QSpinBox>
#include <QVBoxLayout>

#include <algorithm>
#include <filesystem>

namespace ponderscope {

using namespace figure;

namespace {

std::filesystem::path path_of(const QString& text) {
    return std::filesystem::path(text.toStdU16String());
}

QString path_text(const std::filesystem::path& path) {
    return QString::fromStdU16String(path.u16string());
}

QString text_of(std::string_view name) {
    return QString::fromUtf8(name.data(), static_cast<qsizetype>(name.size()));
}

QString translated(const char* text) {
    return QCoreApplication::translate("Figure", text);
}

} // namespace

ExportDialog::ExportDialog(ViewContext context, FigureSpec initial, QWidget* parent)
    : QDialog(parent),
      data_(context.data),
      initial_(std::move(initial)),
      gallery_(new QListWidget(this)),
      about_(new QLabel(this)),
      shown_(new QComboBox(this)),
      policies_(new QLineEdit(this)),
      range_(new QWidget(this)),
      first_(new QSpinBox(this)),
      last_(new QSpinBox(this)),
      width_(new QDoubleSpinBox(this)),
      family_(new QComboBox(this)),
      letters_(new QDoubleSpinBox(this)),
      palette_(new QComboBox(this)),
      map_(new QComboBox(this)),
      theme_(new QComboBox(this)),
      vision_(new QComboBox(this)),
      format_(new QComboBox(this)),
      extra_(new QCheckBox(this)),
      columns_(new QSpinBox(this)),
      add_(new QPushButton(tr("Add to the page"), this)),
      clear_(new QPushButton(tr("Clear the page"), this)),
      file_(new QLineEdit(this)),
      command_(new CommandLine(context.theme, this)),
      message_(new QLabel(this)),
      preview_(new FigurePreview),
      buttons_(new QDialogButtonBox(QDialogButtonBox::Close, this)) {
    setWindowTitle(tr("Figure workbench"));
    gallery_->setAccessibleName(tr("Kinds of figures"));
    for (const KindInfo& info : figure_kinds()) {
        auto* item = new QListWidgetItem(translated(info.title), gallery_);
        item->setData(Qt::UserRole, static_cast<int>(info.kind));
        item->setToolTip(translated(info.shows));
    }
    gallery_->setFixedWidth(gallery_->sizeHintForColumn(0) + 32); // and the scroll bar
    about_->setWordWrap(true);
    about_->setForegroundRole(QPalette::PlaceholderText);

    auto* scroll = new QScrollArea(this);
    scroll->setWidget(preview_);
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
    right->addWidget(command_);
    buttons_->addButton(tr("Export"), QDialogButtonBox::AcceptRole)->setDefault(true);
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
    setFile(QFileInfo(path_text(initial_.runs.front().trace)).absolutePath() + u'/' +
            text_of(name_of(initial_.kind)) + QStringLiteral(".pdf"));
    kindChanged();

    pending_.setSingleShot(true);
    pending_.setInterval(150);
    connect(&pending_, &QTimer::timeout, this, &ExportDialog::make);
    connect(gallery_, &QListWidget::currentRowChanged, this, [this] {
        const QFileInfo info(file());
        setFile(info.path() + u'/' + text_of(name_of(kind())) + u'.' + suffix());
        kindChanged();
    });
    for (QComboBox* box : {shown_, family_, palette_, map_, theme_}) {
        connect(box, &QComboBox::currentIndexChanged, this, &ExportDialog::changed);
    }
    for (QDoubleSpinBox* box : {width_, letters_}) {
        box->setKeyboardTracking(false);
        connect(box, &QDoubleSpinBox::valueChanged, this, &ExportDialog::changed);
    }
    connect(columns_, &QSpinBox::valueChanged, this, &ExportDialog::changed);
    connect(policies_, &QLineEdit::editingFinished, this, &ExportDialog::changed);
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
    connect(buttons_, &QDialogButtonBox::accepted, this, [this] {
        if (write()) {
            accept();
        }
    });
    connect(&maker_, &FigureMaker::started, this, [this] { message_->setText(tr("Making the figure…")); });
    connect(&maker_, &FigureMaker::ready, this, &ExportDialog::arrived);
    connect(&maker_, &FigureMaker::failed, this, [this](const QString& sentence) {
        preview_->setFigure(nullptr, nullptr);
        message_->setText(sentence);
    });
    changed();
}

QWidget* ExportDialog::buildForm() {
    width_->setRange(40, 1000);
    width_->setDecimals(0);
    width_->setSuffix(tr(" mm"));
    width_->setValue(initial_.width_mm);
    width_->setToolTip(tr("84 is one column, 174 two"));
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
    family_->setToolTip(
        tr("Embedded in the figure. A font of this machine; the paper's own, perhaps"));
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
    auto* browse = new QPushButton(tr("Choose…"), this);
    connect(browse, &QPushButton::clicked, this, &ExportDialog::chooseFile);
    auto* place = new QHBoxLayout;
    place->addWidget(file_, 1);
    place->addWidget(browse);
    auto* page = new QHBoxLayout;
    page->addWidget(add_);
    page->addWidget(clear_);
    message_->setWordWrap(true);
    message_->setTextFormat(Qt::PlainText);
    message_->setTextInteractionFlags(Qt::TextSelectableByMouse);

    auto* panel = new QWidget(this);
    panel->setFixedWidth(330);
    form_ = new QFormLayout(panel);
    form_->setContentsMargins(8, 0, 8, 0);
    form_->addRow(tr("Shows"), shown_);
    form_->addRow(tr("Policies"), policies_);
    form_->addRow(tr("Tokens"), range_);
    form_->addRow(tr("Columns"), columns_);
    form_->addRow(QString(), extra_);
    form_->addRow(tr("Width"), width_);
    form_->addRow(tr("Letters"), letters);
    form_->addRow(tr("Lines"), palette_);
    form_->addRow(tr("Cells"), map_);
    form_->addRow(tr("Theme"), theme_);
    form_->addRow(tr("Check"), vision_);
    form_->addRow(QString(), page);
    form_->addRow(tr("Format"), format_);
    form_->addRow(tr("File"), place);
    form_->addRow(message_);
    return panel;
}

FigureKind ExportDialog::kind() const {
    const QListWidgetItem* item = gallery_->currentItem();
    return item == nullptr ? initial_.kind : static_cast<FigureKind>(item->data(Qt::UserRole).toInt());
}

void ExportDialog::setKind(FigureKind kind) {
    for (int row = 0; row < gallery_->count(); ++row) {
        if (gallery_->item(row)->data(Qt::UserRole).toInt() == static_cast<int>(kind)) {
            gallery_->setCurrentRow(row);
        }
    }
}

QString ExportDialog::suffix() const {
    return format_->currentData().toString();
}

bool ExportDialog::reads(std::string_view key) const {
    const std::string keys = "," + std::string(info_of(kind()).keys) + ",";
    return keys.find("," + std::string(key) + ",") != std::string::npos;
}

void ExportDialog::fillChoices() {
    const QSignalBlocker quiet(shown_);
    shown_->clear();
    if (reads("quantity")) {
        const bool text = kind() == FigureKind::token_text;
        const std::pair<TokenQuantity, QString> quantities[] = {
            {TokenQuantity::nll, tr("NLL")},
            {TokenQuantity::entropy, tr("Entropy")},
            {TokenQuantity::rank, tr("Rank")},
            {TokenQuantity::max_probability, tr("Highest probability")},
            {TokenQuantity::steps, tr("Steps")},
            {TokenQuantity::flops, tr("FLOPs")},
            {TokenQuantity::nll_difference, tr("Difference of NLL, A − B")}};
        for (const auto& [quantity, name] : quantities) {
            const bool swept = quantity == TokenQuantity::nll || quantity == TokenQuantity::steps ||
                               quantity == TokenQuantity::flops;
            if (text ? quantity != TokenQuantity::nll_difference || initial_.runs.size() > 1 : swept) {
                shown_->addItem(name, static_cast<int>(quantity));
            }
        }
        const QString own = QString::fromStdString(text ? initial_.annotation : "");
        shown_->setCurrentIndex(std::max(0, shown_->findData(static_cast<int>(initial_.quantity))));
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
                    shown_->addItem(QString::fromStdString(info.title.empty() ? info.name : info.title),
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
    about_->setText(translated(info_of(kind()).shows));
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
    const auto show = [this](QWidget* field, bool wanted) {
        field->setVisible(wanted);
        if (QWidget* label = form_->labelForField(field)) {
            label->setVisible(wanted);
        }
    };
    show(shown_, shown_->count() > 0);
    show(policies_, reads("policies"));
    show(range_, reads("tokens"));
    show(columns_, page);
    {
        const QSignalBlocker quiet(extra_);
        extra_->setVisible(reads("step_ticks") || reads("scatter") || page);
        extra_->setText(page                  ? tr("Letters of the panels")
                        : reads("step_ticks") ? tr("Steps under each token")
                                              : tr("Token against token"));
        extra_->setChecked(page                  ? initial_.letters
                           : reads("step_ticks") ? initial_.step_ticks
                                                 : initial_.scatter);
    }
    add_->setEnabled(!page && panels_.size() < 26);
    clear_->setEnabled(!panels_.empty());
    clear_->setText(panels_.empty() ? tr("Clear the page") : tr("Clear the page (%1)").arg(panels_.size()));
    changed();
}

void ExportDialog::addPanel() {
    if (kind() != FigureKind::panels) {
        panels_.push_back(spec());
        kindChanged();
    }
}

FigureSpec ExportDialog::spec() const {
    FigureSpec spec = initial_;
    spec.kind = kind();
    spec.width_mm = width_->value();
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
        spec.quantity = static_cast<TokenQuantity>(chosen.toInt());
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
        const QStringList names = policies_->text().split(u',', Qt::SkipEmptyParts);
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
    const bool b = info_of(spec.kind).uses_b &&
                   (spec.kind != FigureKind::token_text || spec.quantity == TokenQuantity::nll_difference);
    // An ablation's runs are found by themselves.
    if ((!b || spec.kind == FigureKind::depth_ablation) && spec.runs.size() > 1) {
        spec.runs.resize(1);
    }
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
    const QSizeF size = maker_.figure()->page.size() / points_per_mm;
    QString text = tr("%1 × %2 mm").arg(size.width(), 0, 'f', 0).arg(size.height(), 0, 'f', 0);
    for (const std::string& notice : maker_.figure()->notices) {
        text += u'\n' + QString::fromStdString(notice);
    }
    std::vector<QColor> lines = Style(spec(), *maker_.fonts()).runs;
    lines.resize(std::min<std::size_t>(lines.size(), 4));
    if (vision != Vision::normal && least_difference(lines, vision) < readable_difference) {
        text += u'\n' + tr("Two of the first four line colours look alike so; choose another palette.");
    }
    message_->setText(text);
}

void ExportDialog::chooseFile() {
    const QString file =
        QFileDialog::getSaveFileName(this, tr("Save the figure"), file_->text(),
                                     tr("PDF (*.pdf);;SVG (*.svg);;PNG (*.png);;LaTeX (*.tex)"));
    if (!file.isEmpty()) {
        setFile(QFileInfo(file).suffix().isEmpty() ? file + u'.' + suffix() : file);
    }
}

bool ExportDialog::write() {
    // What stands in the preview is what is written.
    if (pending_.isActive() || maker_.isBusy()) {
        message_->setText(tr("Making the figure… Export again when it is shown."));
        return false;
    }
    if (!maker_.figure()) {
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
        emit exported(names);
        return true;
    } catch (const Error& error) {
        message_->setText(QString::fromUtf8(error.what()));
        return false;
    }
}

} // namespace ponderscope
