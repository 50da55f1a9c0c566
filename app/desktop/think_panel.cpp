// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/think_panel.h"

#include "app/desktop/branches.h"
#include "app/desktop/path_edit.h"
#include "views/common/format.h"

#include <QFileDialog>
#include <QGridLayout>
#include <QKeyEvent>
#include <QLabel>
#include <QTabWidget>
#include <QToolButton>

#include <algorithm>
#include <iterator>

using namespace Qt::StringLiterals;

namespace ponderscope {

ThinkPanel::ThinkPanel(const ViewContext& context, QWidget* parent)
    : QWidget(parent), context_(context), branches_(new Branches(context, this)), status_(soft_label(this)) {
    const auto name = [](QWidget* widget, const QString& text, const QString& tip) {
        widget->setAccessibleName(text);
        widget->setToolTip(tip);
    };
    name(checkpoint_, u"Checkpoint"_s, u"Model"_s);
    checkpoint_->setMinimumContentsLength(12);
    checkpoint_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    name(prompt_, u"Prompt"_s, u"Prompt (Ctrl+Enter starts)"_s);
    prompt_->setPlaceholderText(u"Type a prompt; Ctrl+Enter generates."_s);
    prompt_->setTabChangesFocus(true);
    prompt_->installEventFilter(this);
    prompt_->setMinimumHeight(40);
    tokens_->setRange(0, 4096);
    tokens_->setValue(40);
    name(tokens_, u"New tokens"_s,
         u"Maximum number of new tokens. 0 reads the prompt and generates nothing"_s);
    temperature_->setRange(0, 5);
    temperature_->setSingleStep(0.1);
    temperature_->setSpecialValueText(u"greedy"_s);
    name(temperature_, u"Temperature"_s, u"Sampling temperature. 0 always takes the most probable token"_s);
    topK_->setRange(0, 1'000'000);
    topK_->setSpecialValueText(u"all"_s);
    name(topK_, u"Top k"_s, u"Top-k: sample from the k most probable tokens. 0 samples from all tokens"_s);
    topP_->setRange(0.01, 1);
    topP_->setSingleStep(0.05);
    topP_->setValue(1);
    name(topP_, u"Top p"_s,
         u"Top-p: sample from the most probable of the top-k tokens, up to this total probability. 1 "
         "keeps all top-k tokens"_s);
    seed_->setRange(0, 1'000'000'000);
    name(seed_, u"Seed"_s, u"Seed of sampling: the same seed draws the same tokens"_s);
    policy_->addItem(u"its own"_s, QString());
    policy_->addItem(u"every step"_s, u"full"_s);
    policy_->addItem(u"no step"_s, u"fixed:n=0"_s);
    policy_->addItem(u"one step"_s, u"fixed:n=1"_s);
    name(policy_, u"Halting"_s, u"Policy that decides when a token stops"_s);
    name(think_, u"Think"_s, u"Generate from the prompt, token by token (Ctrl+Enter)"_s);
    name(stop_, u"Stop"_s, u"Stop and record the generated tokens"_s);
    stop_->setEnabled(false);

    // Options in rows of two, so that they fit beside the prompt in a narrow window.
    auto* options = new QGridLayout;
    options->setHorizontalSpacing(8);
    options->setVerticalSpacing(4);
    const auto pair = [this](QWidget* first, QWidget* second, int share) {
        auto* both = new QWidget(this);
        make_row(both, {}, 4, {{first, 1}, {second, share}});
        both->setFocusProxy(first);
        return both;
    };
    const QString choosing = u"Choose a checkpoint folder"_s;
    auto* choose = new QToolButton(this);
    choose->setText(u"…"_s);
    name(choose, choosing, choosing);
    connect(choose, &QToolButton::clicked, this, [this, choosing] {
        ThinkRequest wanted = request();
        wanted.checkpoint = QFileDialog::getExistingDirectory(this, choosing);
        setRequest(wanted);
    });
    QWidget* model = pair(checkpoint_, choose, 0);
    QWidget* cut = pair(topK_, topP_, 1); // both limit the tokens to sample from
    const std::pair<QString, QWidget*> fields[] = {
        {u"Model"_s, model},        {u"Halting"_s, policy_},
        {u"New tokens"_s, tokens_}, {u"Temperature"_s, temperature_},
        {u"Top k, p"_s, cut},       {u"Seed"_s, seed_}};
    for (int i = 0; i < static_cast<int>(std::size(fields)); ++i) {
        const auto& [text, field] = fields[i];
        options->addWidget(field_label(text, field, this), i / 2, i % 2 * 2);
        options->addWidget(field, i / 2, i % 2 * 2 + 1);
    }
    name(more_, u"Options"_s, about_options());
    more_->setObjectName(u"more"_s);
    more_->setPlaceholderText(u"--steps=4 --kv=skip"_s);
    options->addWidget(field_label(u"Options"_s, more_, this), 3, 0);
    options->addWidget(more_, 3, 1, 1, 3);
    for (QWidget* field : {static_cast<QWidget*>(topK_), static_cast<QWidget*>(topP_)}) {
        field->setMinimumWidth(74); // readable in the narrowest window
    }
    auto* buttons = make_column(nullptr, {}, 4, {think_, stop_});
    buttons->addStretch(1);
    auto* typing = new QWidget(this);
    make_row(typing, {0, 4, 0, 0}, 12, {{prompt_, 1}, options});
    auto* pages = new QTabWidget(this);
    pages->setAccessibleName(u"Prompt and branches"_s);
    pages->setDocumentMode(true);
    pages->addTab(typing, u"Prompt"_s);
    pages->addTab(branches_, u"Branches"_s); // as wide as the prompt and its options
    // At least as high as the fields need. The prompt's preferred height has no effect.
    pages->setMinimumHeight(pages->minimumSizeHint().height());
    pages->setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Ignored);
    auto* row = make_row(nullptr, {}, 12, {{pages, 1}, buttons});
    make_column(this, {14, 4, 14, 8}, 7, {{row, 1}, status_});

    connect(think_, &QPushButton::clicked, this, &ThinkPanel::start);
    connect(stop_, &QPushButton::clicked, this, &ThinkPanel::stopRequested);
    connect(checkpoint_, &QComboBox::activated, this, [this] { chosen_ = true; });
    connect(temperature_, &QDoubleSpinBox::valueChanged, this, [this](double value) {
        topK_->setEnabled(value > 0);
        topP_->setEnabled(value > 0);
        seed_->setEnabled(value > 0);
    });
    topK_->setEnabled(false);
    topP_->setEnabled(false);
    seed_->setEnabled(false);
    connect(&context_.selection, &Selection::runsChanged, this, &ThinkPanel::pinNewest);
    connect(&context_.data, &TraceData::sequenceReady, this, &ThinkPanel::pinNewest);
    connect(&context_.selection, &Selection::tokenChanged, this, [this](qint64 token) {
        follows_ = token < 0 || newest() < 0 ? follows_ : token == newest(); // follow the newest token?
    });
    follow(*this, context_, Follows::all);
    const auto renewed = seen(&ThinkPanel::renewCandidates);
    connect(&context_.selection, &Selection::tokenChanged, this, renewed);
    connect(&context_.data, &TraceData::tokenLabelsReady, this, seen(&ThinkPanel::renew));
    followSequence(*this, context_, renewed, [](const QString& signal) {
        return signal.startsWith(u"sampling_"_s) || signal.startsWith(u"candidate_"_s);
    });
    setCheckpoints({});
    setStatus(u"The model reads the prompt and continues. Text, steps, gates and candidates appear as they "
              "are computed."_s);
}

void ThinkPanel::setCheckpoints(const QStringList& folders, const QString& suggested) {
    const QString wanted = chosen_ || suggested.isEmpty() ? checkpoint_->currentData().toString() : suggested;
    offer(folders + QStringList(wanted), wanted);
}

void ThinkPanel::offer(QStringList folders, const QString& wanted) {
    folders.removeAll(QString());
    folders.removeDuplicates();
    const QStringList names = distinct_names(folders);
    std::vector<ChooserEntry> entries;
    for (qsizetype i = 0; i < folders.size(); ++i) {
        entries.push_back({names[i], folders[i], folders[i]});
    }
    fill_chooser(*checkpoint_, entries, wanted.isEmpty() ? folders.value(0) : wanted);
}

void ThinkPanel::setRequest(const ThinkRequest& request) {
    if (!request.checkpoint.isEmpty()) {
        chosen_ = chosen_ || request.checkpoint != checkpoint_->currentData().toString();
        QStringList folders;
        for (int i = 0; i < checkpoint_->count(); ++i) {
            folders << checkpoint_->itemData(i).toString();
        }
        offer(folders << request.checkpoint, request.checkpoint);
    }
    if (!request.prompt.isEmpty()) {
        prompt_->setPlainText(request.prompt);
    }
    tokens_->setValue(request.tokens);
    temperature_->setValue(request.temperature);
    topK_->setValue(request.topK);
    topP_->setValue(request.topP);
    seed_->setValue(request.seed);
    policy_->setCurrentIndex(std::max(0, policy_->findData(request.policy)));
    more_->setText(option_line(request.more));
}

ThinkRequest ThinkPanel::request() const {
    ThinkRequest request;
    request.checkpoint = checkpoint_->currentData().toString();
    request.prompt = prompt_->toPlainText();
    request.tokens = tokens_->value();
    request.temperature = temperature_->value();
    request.topK = topK_->value();
    request.topP = topP_->value();
    request.seed = seed_->value();
    request.policy = policy_->currentData().toString();
    request.more = option_words(more_->text());
    return request;
}

void ThinkPanel::start() {
    if (!running_) {
        Q_EMIT thinkRequested(request());
    }
}

void ThinkPanel::setRunning(bool running) {
    running_ = running;
    branches_->setRunning(running);
    think_->setEnabled(!running);
    stop_->setEnabled(running);
    follows_ = true;
}

void ThinkPanel::renew() {
    branches_->refresh();
}

void ThinkPanel::renewCandidates() {
    branches_->refreshCandidates();
}

void ThinkPanel::setStatus(const QString& text) {
    status_->setText(text);
    status_->setAccessibleName(text);
}

QString ThinkPanel::status() const {
    return status_->text();
}

void ThinkPanel::focusPrompt() {
    findChild<QTabWidget*>()->setCurrentIndex(0);
    prompt_->setFocus();
}

qint64 ThinkPanel::newest() const {
    const RunKey a = context_.selection.runA();
    const auto block = running_ && context_.data.isLive(a.trace)
                           ? context_.data.sequence(a, context_.selection.sequence())
                           : nullptr;
    return block ? static_cast<qint64>(block->tokens.size()) - 1 : -1;
}

void ThinkPanel::pinNewest() {
    if (follows_ && newest() >= 0) {
        context_.selection.setToken(newest());
    }
}

bool ThinkPanel::eventFilter(QObject* watched, QEvent* event) {
    if (watched == prompt_ && event->type() == QEvent::KeyPress) {
        const auto* key = static_cast<QKeyEvent*>(event);
        if ((key->key() == Qt::Key_Return || key->key() == Qt::Key_Enter) &&
            (key->modifiers() & Qt::ControlModifier) != 0) {
            start();
            return true;
        }
    }
    return QWidget::eventFilter(watched, event);
}

ViewCommand ThinkPanel::viewCommand() const {
    ThinkRequest wanted = request();
    if (const QString problem = problem_of(wanted); !problem.isEmpty()) {
        return no_command(problem);
    }
    wanted.trace = u"thinking.ponder"_s;
    return shell_view({as_typed(generate_arguments(wanted))});
}

} // namespace ponderscope
