// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/figure/export_dialog.h"

#include "core/base/error.h"
#include "core/base/files.h"
#include "views/figure/command.h"

#include <QCheckBox>
#include <QComboBox>
#include <QDialogButtonBox>
#include <QFileDialog>
#include <QFileInfo>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
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

QString text_of(const std::filesystem::path& path) {
    return QString::fromStdU16String(path.u16string());
}

QString text_of(std::string_view name) {
    return QString::fromUtf8(name.data(), static_cast<qsizetype>(name.size()));
}

} // namespace

ExportDialog::ExportDialog(ViewContext context, FigureSpec initial, QWidget* parent)
    : QDialog(parent),
      data_(context.data),
      initial_(std::move(initial)),
      kind_(new QComboBox(this)),
      shown_(new QComboBox(this)),
      first_(new QSpinBox(this)),
      last_(new QSpinBox(this)),
      width_(new QComboBox(this)),
      format_(new QComboBox(this)),
      extra_(new QCheckBox(this)),
      file_(new QLineEdit(this)),
      message_(new QLabel(this)),
      preview_(new FigurePreview),
      buttons_(new QDialogButtonBox(QDialogButtonBox::Cancel, this)) {
    setWindowTitle(tr("Export figure"));
    kind_->addItem(tr("Text overlay"), static_cast<int>(FigureKind::token_text));
    kind_->addItem(tr("Step heatmap"), static_cast<int>(FigureKind::step_heatmap));
    kind_->addItem(tr("NLL comparison"), static_cast<int>(FigureKind::nll_comparison));
    kind_->addItem(tr("Policy fronts (replay)"), static_cast<int>(FigureKind::policy_front));
    kind_->addItem(tr("Histogram of steps"), static_cast<int>(FigureKind::steps_histogram));
    kind_->addItem(tr("NLL by halt step"), static_cast<int>(FigureKind::nll_by_halt_step));
    kind_->addItem(tr("Gate curves"), static_cast<int>(FigureKind::gate_curves));
    kind_->addItem(tr("Steps against entropy"), static_cast<int>(FigureKind::steps_entropy));
    kind_->setCurrentIndex(kind_->findData(static_cast<int>(initial_.kind)));
    width_->addItem(tr("One column, 84 mm"), single_column_mm);
    width_->addItem(tr("Two columns, 174 mm"), double_column_mm);
    width_->setCurrentIndex(initial_.width_mm > 130 ? 1 : 0);
    for (const char* format : {"pdf", "svg", "png"}) {
        format_->addItem(QString::fromLatin1(format).toUpper(), QString::fromLatin1(format));
    }

    std::int64_t tokens = 0;
    const QString trace = text_of(initial_.runs.front().trace);
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

    auto* range = new QHBoxLayout;
    range->addWidget(first_);
    range->addWidget(new QLabel(tr("to"), this));
    range->addWidget(last_);
    auto* browse = new QPushButton(tr("Choose…"), this);
    auto* place = new QHBoxLayout;
    place->addWidget(file_, 1);
    place->addWidget(browse);
    auto* form = new QFormLayout;
    form->addRow(tr("Figure"), kind_);
    form->addRow(tr("Shows"), shown_);
    form->addRow(tr("Tokens"), range);
    form->addRow(tr("Width"), width_);
    form->addRow(QString(), extra_);
    form->addRow(tr("Format"), format_);
    form->addRow(tr("File"), place);
    form->addRow(QString(), message_);
    message_->setWordWrap(true);
    message_->setTextFormat(Qt::PlainText);
    message_->setMinimumWidth(260);

    auto* scroll = new QScrollArea(this);
    scroll->setWidget(preview_);
    scroll->setAlignment(Qt::AlignCenter);
    scroll->setMinimumSize(420, 320);
    scroll->setBackgroundRole(QPalette::Mid);
    buttons_->addButton(tr("Export"), QDialogButtonBox::AcceptRole);
    auto* columns = new QHBoxLayout;
    columns->addLayout(form);
    columns->addWidget(scroll, 1);
    auto* layout = new QVBoxLayout(this);
    layout->addLayout(columns, 1);
    layout->addWidget(buttons_);
    resize(960, 520);

    setFile(QFileInfo(trace).absolutePath() + u'/' + text_of(name_of(initial_.kind)) +
            QStringLiteral(".pdf"));
    kindChanged();

    pending_.setSingleShot(true);
    pending_.setInterval(150);
    connect(&pending_, &QTimer::timeout, this, [this] { maker_.make(spec()); });
    connect(kind_, &QComboBox::activated, this, &ExportDialog::kindChanged);
    connect(shown_, &QComboBox::activated, this, &ExportDialog::changed);
    connect(width_, &QComboBox::activated, this, &ExportDialog::changed);
    connect(extra_, &QCheckBox::toggled, this, &ExportDialog::changed);
    connect(first_, &QSpinBox::valueChanged, this, [this](int value) {
        last_->setMinimum(value + 1);
        changed();
    });
    connect(last_, &QSpinBox::valueChanged, this, &ExportDialog::changed);
    connect(format_, &QComboBox::activated, this, [this] {
        const QFileInfo info(file());
        setFile(info.path() + u'/' + info.completeBaseName() + u'.' + suffix());
    });
    connect(browse, &QPushButton::clicked, this, &ExportDialog::chooseFile);
    connect(buttons_, &QDialogButtonBox::rejected, this, &QDialog::reject);
    connect(buttons_, &QDialogButtonBox::accepted, this, [this] {
        if (write()) {
            accept();
        }
    });
    connect(&maker_, &FigureMaker::started, this, [this] { message_->setText(tr("Making the figure…")); });
    connect(&maker_, &FigureMaker::ready, this, [this] {
        preview_->setFigure(maker_.figure(), maker_.fonts());
        const QSizeF size = maker_.figure()->page.size() / points_per_mm;
        QString text = tr("%1 × %2 mm").arg(size.width(), 0, 'f', 0).arg(size.height(), 0, 'f', 0);
        for (const std::string& notice : maker_.figure()->notices) {
            text += u'\n' + QString::fromStdString(notice);
        }
        message_->setText(text);
    });
    connect(&maker_, &FigureMaker::failed, this, [this](const QString& sentence) {
        preview_->setFigure(nullptr, nullptr);
        message_->setText(sentence);
    });
    changed();
}

FigureKind ExportDialog::kind() const {
    return static_cast<FigureKind>(kind_->currentData().toInt());
}

QString ExportDialog::suffix() const {
    return format_->currentData().toString();
}

void ExportDialog::fillChoices() {
    const QSignalBlocker quiet(shown_);
    shown_->clear();
    if (kind() == FigureKind::token_text) {
        const std::pair<TokenQuantity, QString> quantities[] = {
            {TokenQuantity::nll, tr("NLL")},
            {TokenQuantity::entropy, tr("Entropy")},
            {TokenQuantity::rank, tr("Rank")},
            {TokenQuantity::max_probability, tr("Highest probability")},
            {TokenQuantity::steps, tr("Steps")},
            {TokenQuantity::flops, tr("FLOPs")},
            {TokenQuantity::nll_difference, tr("Difference of NLL, A − B")}};
        for (const auto& [quantity, name] : quantities) {
            if (quantity != TokenQuantity::nll_difference || initial_.runs.size() > 1) {
                shown_->addItem(name, static_cast<int>(quantity));
            }
        }
        shown_->setCurrentIndex(std::max(0, shown_->findData(static_cast<int>(initial_.quantity))));
    } else if (kind() == FigureKind::step_heatmap) {
        const QString trace = text_of(initial_.runs.front().trace);
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
    }
    shown_->setEnabled(shown_->count() > 0);
}

void ExportDialog::kindChanged() {
    fillChoices();
    const QSignalBlocker quiet(extra_);
    extra_->setVisible(kind() == FigureKind::token_text || kind() == FigureKind::nll_comparison);
    first_->setEnabled(!is_chart(kind()));
    last_->setEnabled(!is_chart(kind()));
    extra_->setText(kind() == FigureKind::token_text ? tr("Steps under each token")
                                                     : tr("Token against token"));
    extra_->setChecked(kind() == FigureKind::token_text ? initial_.step_ticks : initial_.scatter);
    changed();
}

FigureSpec ExportDialog::spec() const {
    FigureSpec spec = initial_;
    spec.kind = kind();
    spec.width_mm = width_->currentData().toDouble();
    const bool whole = first_->value() == 0 && last_->value() == last_->maximum();
    spec.tokens.reset();
    if (!whole) {
        spec.tokens = {first_->value(), last_->value()};
        spec.sequence = initial_.sequence.value_or(0);
    }
    if (spec.kind == FigureKind::token_text) {
        spec.quantity = static_cast<TokenQuantity>(shown_->currentData().toInt());
        spec.step_ticks = extra_->isChecked();
    } else if (spec.kind == FigureKind::step_heatmap) {
        spec.signal = shown_->count() > 0 ? shown_->currentData().toString().toStdString() : initial_.signal;
    } else if (is_chart(spec.kind)) {
        spec.sequence.reset(); // of the whole run
        spec.tokens.reset();
    } else {
        spec.scatter = extra_->isChecked();
        if (whole) {
            spec.sequence.reset(); // all of the text
        }
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
}

QString ExportDialog::message() const {
    return message_->text();
}

void ExportDialog::changed() {
    pending_.start();
}

void ExportDialog::chooseFile() {
    const QString file = QFileDialog::getSaveFileName(this, tr("Save the figure"), file_->text(),
                                                      tr("PDF (*.pdf);;SVG (*.svg);;PNG (*.png)"));
    if (!file.isEmpty()) {
        setFile(QFileInfo(file).suffix().isEmpty() ? file + u'.' + suffix() : file);
    }
}

bool ExportDialog::write() {
    if (pending_.isActive() || maker_.isBusy() || !maker_.figure()) {
        // What stands in the preview is what is written; it is not there yet.
        if (!maker_.isBusy() && !pending_.isActive()) {
            return false;
        }
        message_->setText(tr("Making the figure… Export again when it is shown."));
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
            names.append(text_of(one));
        }
        emit exported(names);
        return true;
    } catch (const Error& error) {
        message_->setText(QString::fromUtf8(error.what()));
        return false;
    }
}

} // namespace ponderscope
