// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/record_dialog.h"

#include "app/desktop/settings.h"
#include "core/policy/policy.h"
#include "views/common/controls.h"
#include "views/common/format.h"
#include "views/common/theme.h"
#include "views/common/view_command.h"

#include <QDialogButtonBox>
#include <QDir>
#include <QFileInfo>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QPushButton>
#include <QStandardPaths>

#include <algorithm>
#include <cmath>

using namespace Qt::StringLiterals;

namespace ponderscope {

namespace {

/// A level of --record in the dialog, with its cost.
struct Level {
    const char* level;
    const char* name;
    const char* price;
};
constexpr Level levels[] = {
    {"steps", "steps",
     "Also read-outs, candidates, KL and cosine at every step, for "
     "replays; costs one more head product a step"},
    {"basic", "basic", "Only what the method computes anyway; costs a few percent of the time"},
    {"layers", "layers as steps",
     "For a plain model: a read-out after every layer, to replay "
     "exits over layers; costs one more head product a layer"},
    {"steps,layers", "steps, every layer",
     "Also a read-out of every layer at every step; each costs one more head product"},
    {"steps,states", "steps, states",
     "Also the state at the end of every step: 2 bytes × the "
     "model's width per token and step"},
    {"steps,experts", "steps, experts",
     "For a mixture of experts: also the experts that each token chose, and their weights"},
};

/// Fields that the settings store, with their names in the settings.
constexpr std::pair<const char*, QString RecordRequest::*> remembered[] = {
    {"checkpoint", &RecordRequest::checkpoint},
    {"text", &RecordRequest::textFile},
    {"device", &RecordRequest::device},
    {"dtype", &RecordRequest::dtype},
    {"level", &RecordRequest::level}};

/// A first value: the middle of the allowed range, or 1 if the range has no upper end.
QString suggested_number(const PolicyParameter& parameter) {
    constexpr double endless = 1e6;
    const double middle =
        parameter.high < endless ? (parameter.low + parameter.high) / 2 : std::max(1.0, parameter.low);
    return QString::number(parameter.whole ? std::ceil(middle) : middle);
}

} // namespace

RecordDialog::RecordDialog(Settings& settings, Theme& theme, const QString& openTrace, QWidget* parent)
    : QDialog(parent), settings_(settings), openTrace_(openTrace), command_(new CommandLine(theme, this)) {
    setWindowTitle(u"Record a run"_s);
    resize(700, 660); // the minimum size comes from the layout
    dressFields(theme);
    layOut();
    connectFields();
    setRequest(lastRequest());
}

void RecordDialog::dressFields(const Theme& theme) {
    prompt_->setMaximumHeight(88);
    prompt_->setTabChangesFocus(true);
    QPalette fieldPalette = prompt_->palette();
    fieldPalette.setColor(QPalette::Base, theme.colours().field);
    prompt_->setPalette(fieldPalette);
    prompt_->setAccessibleName(u"Prompt"_s);
    prompt_->setPlaceholderText(u"Type the prompt"_s);
    const auto describe = [](QWidget* field, const QString& name, const QString& tip) {
        field->setAccessibleName(name);
        field->setToolTip(tip);
    };
    const auto number = [&](QSpinBox* box, int most, const QString& otherwise, const QString& tip) {
        box->setRange(0, most);
        box->setSpecialValueText(otherwise);
        box->setButtonSymbols(QAbstractSpinBox::NoButtons);
        box->setGroupSeparatorShown(true);
        box->setFixedWidth(92);
        describe(box, tip, tip);
    };
    number(context_, 1'000'000, u"automatic"_s,
           u"Tokens in a context window. Automatic: the model's context length, at most 2,048"_s);
    number(stride_, 1'000'000, u"automatic"_s,
           u"Tokens between the starts of neighbouring context windows. Automatic: half a window"_s);
    number(batch_, 4096, u"automatic"_s, u"Context windows in a batch"_s);
    method_->setObjectName(u"method"_s);
    method_->setMinimumWidth(236);
    describe(method_, u"Method"_s,
             u"Method of the model. Choose a method only if the checkpoint fits several methods"_s);
    method_->addItem(u"method of the checkpoint"_s, QString());
    for (const QString& method : all_methods()) {
        method_->addItem(method, method);
    }
    policy_->setEditable(true);
    offerPolicies();
    policy_->lineEdit()->setPlaceholderText(u"the method's own"_s);
    policy_->setMinimumWidth(176);
    policy_->setAccessibleName(u"Halting policy"_s);
    more_->setPlaceholderText(u"--steps=4 --kv=skip"_s);
    more_->setObjectName(u"more"_s);
    describe(more_, u"Further options"_s, about_options());
    device_->setEditable(true);
    device_->addItems({u"cpu"_s, u"cuda"_s, u"auto"_s});
    device_->setMinimumWidth(92);
    describe(device_, u"Device"_s, u"Device: cpu, cuda, cuda:N or auto"_s);
    dtype_->addItems({u"float32"_s, u"tf32"_s, u"bfloat16"_s, u"float16"_s});
    describe(dtype_, u"Precision"_s,
             u"Precision of matrix products. tf32 (GPU only) is faster and less exact. bfloat16 is the least "
             "exact, and several times faster on processors that support bfloat16"_s);
    for (const Level& one : levels) {
        level_->addItem(QString::fromUtf8(one.name), QString::fromLatin1(one.level));
        level_->setItemData(level_->count() - 1, QString::fromUtf8(one.price), Qt::ToolTipRole);
    }
    level_->setAccessibleName(u"What to record"_s);
    name_->setPlaceholderText(u"the folder's name"_s);
    name_->setAccessibleName(u"Name of the run"_s);
    problem_->setWordWrap(true);
    problem_->setTextFormat(Qt::PlainText);
    price_->setWordWrap(true);
}

void RecordDialog::layOut() {
    auto* form = new QFormLayout;
    form->setHorizontalSpacing(14);
    form->setVerticalSpacing(9);
    const auto beside = [this](std::initializer_list<std::pair<QString, QWidget*>> fields) {
        auto* line = new QHBoxLayout;
        line->setSpacing(8);
        for (const auto& [text, field] : fields) {
            if (!text.isEmpty()) {
                auto* name = new QLabel(text, this);
                name->setBuddy(field);
                line->addWidget(name);
            }
            line->addWidget(field, field == price_ ? 1000 : 0);
        }
        line->addStretch(1);
        return line;
    };
    form->addRow(u"Checkpoint"_s, checkpoint_);
    form->addRow(fromFile_, textFile_);
    form->addRow(fromPrompt_, prompt_);
    form->addRow(u"Method"_s, beside({{{}, method_}, {u"Device"_s, device_}, {u"Precision"_s, dtype_}}));
    form->addRow(u"Policy"_s, policy_);
    form->addRow(u"Options"_s, more_);
    form->addRow(u"Record"_s, beside({{{}, level_}, {{}, price_}}));
    form->addRow(u"Windows"_s, beside({{{}, context_}, {u"stride"_s, stride_}, {u"batch"_s, batch_}}));
    form->addRow(u"Name"_s, name_);
    form->addRow(u"Trace"_s, trace_);
    form->addRow(u"Command"_s, command_);
    for (QLabel* label : findChildren<QLabel*>()) {
        label->setForegroundRole(QPalette::PlaceholderText);
    }

    auto* buttons = new QDialogButtonBox(this);
    start_ = buttons->addButton(u"Record"_s, QDialogButtonBox::AcceptRole);
    start_->setDefault(true);
    buttons->addButton(QDialogButtonBox::Cancel);
    connect(buttons, &QDialogButtonBox::accepted, this, &QDialog::accept);
    connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
    auto* bottom = make_row(nullptr, {}, -1, {{problem_, 1}, buttons});
    make_column(this, {20, 18, 20, 16}, 16, {form, bottom})->insertStretch(1, 1);
}

void RecordDialog::connectFields() {
    for (PathEdit* path : {checkpoint_, textFile_, trace_}) {
        connect(path, &PathEdit::changed, this, &RecordDialog::check);
    }
    connect(textFile_, &PathEdit::changed, fromFile_, [this] { fromFile_->setChecked(true); });
    connect(prompt_, &QPlainTextEdit::textChanged, this, [this] {
        fromPrompt_->setChecked(true);
        check();
    });
    connect(fromFile_, &QRadioButton::toggled, this, &RecordDialog::check);
    for (QComboBox* box : {method_, policy_, device_, dtype_, level_}) {
        connect(box, &QComboBox::currentTextChanged, this, &RecordDialog::check);
    }
    for (QSpinBox* box : {context_, stride_, batch_}) {
        connect(box, &QSpinBox::valueChanged, this, &RecordDialog::check);
    }
    connect(name_, &QLineEdit::textChanged, this, &RecordDialog::check);
    connect(more_, &QLineEdit::textChanged, this, &RecordDialog::check);
}

/// The request of the last recording, from the settings.
RecordRequest RecordDialog::lastRequest() const {
    RecordRequest last;
    for (const auto& [name, field] : remembered) {
        last.*field = settings_.dialog(QLatin1String(name), last.*field);
    }
    last.more = option_words(settings_.dialog(u"more"_s));
    last.trace = openTrace_.isEmpty() ? suggestedTrace() : openTrace_;
    return last;
}

bool RecordDialog::event(QEvent* event) {
    if (event->type() == QEvent::WindowActivate) {
        check(); // the folder may have changed meanwhile
    }
    return QDialog::event(event);
}

void RecordDialog::offerCheckpoints(const QStringList& folders) {
    checkpoint_->offer(folders);
}

/// Offers each policy kind with suggested numbers. Tooltips explain the kind and its parameters.
void RecordDialog::offerPolicies() {
    policy_->setObjectName(u"policy"_s);
    policy_->addItem(QString());
    policy_->setItemData(0, u"Halting rule of the method"_s, Qt::ToolTipRole);
    for (const PolicyKind& kind : policy_kinds()) {
        if (!kind.causal) {
            continue; // a bound cannot run on a model
        }
        QStringList numbers;
        QString tip = QString::fromStdString(kind.rule);
        for (const PolicyParameter& one : kind.parameters) {
            const QString key = QString::fromStdString(one.key);
            tip += u"\n%1: %2"_s.arg(key, QString::fromStdString(one.meaning));
            if (one.absent == PolicyParameter::Absent::refused) {
                numbers << u"%1=%2"_s.arg(key, suggested_number(one));
            }
        }
        const QString name = QString::fromStdString(kind.name);
        policy_->addItem(numbers.isEmpty() ? name : name + u':' + numbers.join(u','), name);
        policy_->setItemData(policy_->count() - 1, plain_tip(tip), Qt::ToolTipRole);
    }
    const auto say = [this] {
        const int at = policy_->findData(policy_->currentText().trimmed().section(u':', 0, 0));
        policy_->setToolTip(at > 0 ? policy_->itemData(at, Qt::ToolTipRole).toString()
                                   : u"Rule that decides which tokens run another step. Choose full (every "
                                     "step) to replay other policies later"_s);
    };
    connect(policy_, &QComboBox::currentTextChanged, this, say);
    say();
}

QString RecordDialog::suggestedTrace() const {
    QString folder = QStandardPaths::writableLocation(QStandardPaths::DocumentsLocation);
    if (!QFileInfo(folder).isDir()) {
        folder = QDir::homePath();
    }
    for (int number = 1;; ++number) {
        QString path = folder + u"/run-%1.ponder"_s.arg(number);
        if (!QFileInfo::exists(path)) {
            return path;
        }
    }
}

void RecordDialog::setRequest(const RecordRequest& request) {
    checkpoint_->setPath(request.checkpoint);
    textFile_->setPath(request.textFile);
    prompt_->setPlainText(request.prompt);
    (request.fromPrompt ? fromPrompt_ : fromFile_)->setChecked(true);
    method_->setCurrentIndex(std::max(0, method_->findData(request.method)));
    policy_->setCurrentText(request.policy);
    more_->setText(option_line(request.more));
    device_->setCurrentText(request.device);
    dtype_->setCurrentText(request.dtype);
    level_->setCurrentIndex(std::max(0, level_->findData(request.level)));
    name_->setText(request.name);
    context_->setValue(request.context);
    stride_->setValue(request.stride);
    batch_->setValue(request.batch);
    trace_->setPath(request.trace.isEmpty() ? suggestedTrace() : request.trace);
    check();
}

RecordRequest RecordDialog::request() const {
    RecordRequest request;
    request.checkpoint = checkpoint_->path();
    request.fromPrompt = fromPrompt_->isChecked();
    request.textFile = textFile_->path();
    request.prompt = prompt_->toPlainText();
    request.method = method_->currentData().toString();
    request.policy = policy_->currentText().trimmed();
    request.more = option_words(more_->text());
    request.device = device_->currentText().trimmed();
    request.dtype = dtype_->currentText();
    request.level = level_->currentData().toString();
    request.name = name_->text().trimmed();
    request.context = context_->value();
    request.stride = stride_->value();
    request.batch = batch_->value();
    request.trace = trace_->path();
    return request;
}

QString RecordDialog::problem() const {
    return problem_of(request());
}

QString RecordDialog::commandLine() const {
    return command_->shown();
}

void RecordDialog::check() {
    if (start_ == nullptr) {
        return;
    }
    const QString found = problem();
    const bool exists = QFileInfo(trace_->path()).isFile();
    problem_->setText(!found.isEmpty() ? found
                      : exists         ? u"The trace exists. The run is added to it."_s
                                       : QString());
    start_->setEnabled(found.isEmpty());
    price_->setText(level_->currentData(Qt::ToolTipRole).toString());
    const QStringList arguments = record_arguments(request());
    command_->setCommand(shell_command(arguments), shell_command(as_typed(arguments)));
}

void RecordDialog::remember() {
    const RecordRequest now = request();
    for (const auto& [name, field] : remembered) {
        settings_.setDialog(QLatin1String(name), now.*field);
    }
    settings_.setDialog(u"more"_s, more_->text());
}

} // namespace ponderscope
