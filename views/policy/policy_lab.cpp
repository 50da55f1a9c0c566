// SPDX-License-Identifier: GPL-3.0-or-later
// Before Qt, whose keyword `signals` is a name there.
#include "core/policy/replay.h"
#include "core/policy/rerun_difference.h"

#include "views/figure/figure_command.h"
#include "views/policy/policy_lab.h"

#include "views/common/format.h"
#include "views/figure/chart_view.h"
#include "views/policy/policy_data.h"
#include "views/policy/policy_fronts.h"

#include <QCheckBox>
#include <QComboBox>
#include <QGridLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QRegularExpression>
#include <QSignalBlocker>
#include <QSlider>
#include <QVBoxLayout>

#include <algorithm>
#include <cmath>

namespace ponderscope {

namespace {

constexpr int slider_places = 241;

/// "A token stops when the entropy of the read-out is below 5.66 nats."
QString rule_in_words(const PolicyKind& kind, double value) {
    QString rule = QString::fromStdString(kind.rule);
    if (!kind.parameters.empty()) {
        rule.replace(QRegularExpression(QStringLiteral("\\b%1\\b")
                                            .arg(QRegularExpression::escape(
                                                QString::fromStdString(kind.parameters.front().key)))),
                     QString::number(value, 'g', 4));
    }
    if (rule.startsWith(QLatin1String("at random")) || rule.startsWith(QLatin1String("every token"))) {
        return rule.left(1).toUpper() + rule.mid(1) + u'.'; // a sentence by itself
    }
    return PolicyLab::tr("A token stops when %1.").arg(rule);
}

} // namespace

PolicyLab::PolicyLab(ViewContext context, QWidget* parent)
    : QWidget(parent),
      context_(context),
      shared_(PolicyData::of(context)),
      policy_(new QComboBox(this)),
      slider_(new QSlider(Qt::Horizontal, this)),
      threshold_(new QLabel(this)),
      summary_(new QLabel(this)),
      note_(new QLabel(this)),
      colour_(new QCheckBox(tr("Colour the text by these steps"), this)),
      rerun_(new QPushButton(this)),
      rerunLabel_(new QLabel(this)),
      hint_(new QLabel(this)),
      body_(new QWidget(this)),
      histogram_(new ChartView(context.theme, this)),
      front_(new ChartView(context.theme, this)),
      result_(std::make_unique<ReplayResult>()),
      comparing_(this) {
    policy_->setAccessibleName(tr("Policy"));
    policy_->setMinimumWidth(190);
    slider_->setAccessibleName(tr("Threshold"));
    slider_->setMinimumWidth(120);
    threshold_->setMinimumWidth(64);
    threshold_->setTextInteractionFlags(Qt::TextSelectableByMouse);
    colour_->setChecked(true);
    note_->setWordWrap(true);
    summary_->setWordWrap(true);
    rerunLabel_->setWordWrap(true);
    rerunLabel_->setTextInteractionFlags(Qt::TextSelectableByMouse);
    hint_->setWordWrap(true);
    hint_->setAlignment(Qt::AlignCenter);
    hint_->setTextFormat(Qt::PlainText);
    const auto label = [this](const QString& text, QWidget* buddy) {
        auto* made = new QLabel(text, body_);
        made->setForegroundRole(QPalette::PlaceholderText);
        made->setBuddy(buddy);
        return made;
    };
    auto* grid = new QGridLayout;
    grid->setHorizontalSpacing(10);
    grid->setVerticalSpacing(7);
    grid->addWidget(label(tr("Policy"), policy_), 0, 0);
    grid->addWidget(policy_, 0, 1, 1, 2);
    grid->addWidget(label(tr("Threshold"), slider_), 1, 0);
    grid->addWidget(slider_, 1, 1);
    grid->addWidget(threshold_, 1, 2);
    grid->addWidget(summary_, 2, 0, 1, 3);
    grid->addWidget(rerunLabel_, 3, 0, 1, 3);
    grid->addWidget(colour_, 4, 0, 1, 2);
    grid->addWidget(rerun_, 4, 2);
    grid->addWidget(note_, 5, 0, 1, 3);
    grid->setRowStretch(6, 1);
    auto* row = new QHBoxLayout(body_);
    row->setContentsMargins(0, 0, 0, 0);
    row->setSpacing(18);
    row->addLayout(grid, 3);
    row->addWidget(histogram_, 2);
    row->addWidget(front_, 4);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(14, 10, 14, 8);
    column->addWidget(body_, 1);
    column->addWidget(hint_, 1);

    const auto dress = [this] {
        for (QLabel* soft : {note_, hint_}) {
            QPalette palette = soft->palette();
            palette.setColor(QPalette::WindowText, context_.theme.colours().soft);
            soft->setPalette(palette);
        }
        note_->setFont(context_.theme.small());
        threshold_->setFont(context_.theme.mono());
        summary_->setFont(context_.theme.body());
        rerunLabel_->setFont(context_.theme.body());
    };
    dress();
    connect(&context_.theme, &Theme::changed, this, dress);
    connect(policy_, &QComboBox::currentIndexChanged, this, &PolicyLab::choosePolicy);
    connect(slider_, &QSlider::valueChanged, this, &PolicyLab::replayNow);
    connect(colour_, &QCheckBox::toggled, this, &PolicyLab::tellText);
    connect(&shared_, &PolicyData::tableChanged, this, &PolicyLab::refresh);
    connect(&shared_, &PolicyData::frontsChanged, this, &PolicyLab::drawFront);
    connect(&context_.selection, &Selection::sequenceChanged, this, &PolicyLab::tellText);
    connect(&shared_, &PolicyData::rerunsChanged, this, &PolicyLab::findRerun);
    connect(rerun_, &QPushButton::clicked, this, [this] {
        if (rerunProgress_ >= 0) {
            emit rerunCancelRequested();
        } else if (!spec_.isEmpty()) {
            emit rerunRequested(shared_.run(), spec_);
        }
    });
    refresh();
    showRerun();
}

PolicyLab::~PolicyLab() = default;

bool PolicyLab::isBusy() const {
    return onScreen() && (shared_.isBusy() || comparing_.isBusy());
}

QString PolicyLab::rerunText() const {
    return rerunLabel_->text();
}

void PolicyLab::setRerunProgress(int perMille) {
    rerunProgress_ = perMille;
    showRerun();
}

QString PolicyLab::summary() const {
    return summary_->text();
}

bool PolicyLab::coloursText() const {
    return colour_->isChecked();
}

void PolicyLab::setColoursText(bool on) {
    colour_->setChecked(on);
}

void PolicyLab::setOnScreen(bool on) {
    LiveView::setOnScreen(on);
    refresh();
}

void PolicyLab::refresh() {
    if (!shared_.table() && onScreen()) {
        shared_.want();
    }
    const auto table = shared_.table();
    body_->setVisible(table != nullptr);
    hint_->setVisible(table == nullptr);
    hint_->setText(shared_.sentence());
    if (!table) {
        kind_ = nullptr;
        spec_.clear();
        findRerun();
        tellText();
        return;
    }
    const QString before = policy_->currentText();
    {
        const QSignalBlocker quiet(policy_);
        policy_->clear();
        int number = 0;
        for (const PolicyKind& kind : policy_kinds()) {
            if (table->can(kind)) {
                policy_->addItem(QString::fromStdString(kind.name), number);
                QString tip = tr("Stops where %1").arg(QString::fromStdString(kind.rule));
                if (!kind.source.empty()) {
                    tip += QStringLiteral(" (%1)").arg(QString::fromStdString(kind.source));
                }
                policy_->setItemData(policy_->count() - 1, tip, Qt::ToolTipRole);
            }
            ++number;
        }
        // The model's own rule first; else the one that needs no signal but the read-out.
        int start = policy_->findText(before);
        for (const char* preferred : {"learned", "entropy", "fixed"}) {
            start = start >= 0 ? start : policy_->findText(QLatin1String(preferred));
        }
        policy_->setCurrentIndex(std::max(0, start));
    }
    choosePolicy();
}

void PolicyLab::choosePolicy() {
    const auto table = shared_.table();
    if (!table || policy_->currentIndex() < 0) {
        return;
    }
    kind_ = &policy_kinds()[static_cast<std::size_t>(policy_->currentData().toInt())];
    policy_->setToolTip(policy_->currentData(Qt::ToolTipRole).toString());
    values_ = threshold_values(*kind_, *table, slider_places);
    {
        const QSignalBlocker quiet(slider_);
        slider_->setEnabled(values_.size() > 1);
        slider_->setRange(0, std::max(0, static_cast<int>(values_.size()) - 1));
        // Where the model's own rule stands, or in the middle.
        std::size_t start = values_.size() / 2;
        if (kind_->name == "learned" && std::isfinite(table->context.own_threshold)) {
            start = static_cast<std::size_t>(
                std::lower_bound(values_.begin(), values_.end(), table->context.own_threshold) -
                values_.begin());
        }
        slider_->setValue(static_cast<int>(std::min(start, values_.empty() ? 0 : values_.size() - 1)));
        slider_->setPageStep(std::max(1, static_cast<int>(values_.size()) / 12));
    }
    replayNow();
}

void PolicyLab::replayNow() {
    const auto table = shared_.table();
    if (!table || kind_ == nullptr) {
        return;
    }
    const double value = values_.empty() ? 0 : values_[static_cast<std::size_t>(slider_->value())];
    try {
        const PolicySpec spec = policy_at(*kind_, value);
        replay(*table, spec, *result_);
        spec_ = QString::fromStdString(spec.text());
    } catch (const Error& error) {
        spec_.clear();
        summary_->setText(QString::fromUtf8(error.what()));
        tellText();
        return;
    }
    threshold_->setText(values_.empty() ? QString() : QString::number(value, 'g', 4));
    QString text = tr("<b>replay</b>&nbsp;&nbsp; steps %1&nbsp;&nbsp; NLL %2&nbsp;&nbsp; perplexity %3")
                       .arg(format_nats(result_->mean_steps), format_nats(result_->mean_nll, 3),
                            format_nats(result_->perplexity));
    if (std::isfinite(result_->mean_flops)) {
        text += tr("&nbsp;&nbsp; FLOPs %1").arg(format_si(result_->mean_flops));
    }
    summary_->setText(text);
    QStringList notes{rule_in_words(*kind_, value)};
    if (!kind_->causal) {
        notes << tr("It knows the next token: a bound, no policy.");
    }
    if (table->halted) {
        notes << tr("This run halted, so no token gets more steps than it had; record with --policy full to "
                    "lift that.");
    }
    notes << tr("Replay: as if no token's halting changed another's context.");
    note_->setText(notes.join(u' '));
    figure::Chart steps = steps_chart(result_->histogram, QString());
    steps.title = tr("Steps by replay");
    histogram_->setChart(std::move(steps));
    findRerun();
    drawFront();
    tellText();
}

void PolicyLab::findRerun() {
    const auto table = shared_.table();
    const RunKey found = table && !spec_.isEmpty() ? shared_.rerunOf(spec_) : RunKey();
    if (found == rerunKey_ && spec_ == rerunSpec_) {
        showRerun();
        return;
    }
    comparing_.cancel();
    difference_.reset();
    rerunProblem_.clear();
    rerunKey_ = found;
    rerunSpec_ = spec_;
    const RunInfo* info = context_.data.run(shared_.run());
    const RunInfo* again = context_.data.run(found);
    if (info != nullptr && again != nullptr) {
        // The table that it is of goes along: it may be another one when the answer comes.
        comparing_.start(
            [table, run = shared_.run(), info = *info, found, again = *again,
             spec = spec_.toStdString()](const std::stop_token& stop) {
                const auto open = [](const RunKey& key) {
                    return TraceReader::open(std::filesystem::path(key.trace.toStdU16String()));
                };
                return rerun_difference(*table, replay(*table, PolicySpec::parse(spec)), open(run), info,
                                        open(found), again, stop);
            },
            [this](const RerunDifference& difference) {
                difference_ = std::make_unique<RerunDifference>(difference);
                showRerun();
                drawFront();
            },
            [this](const QString& sentence) {
                rerunProblem_ = sentence;
                showRerun();
            });
    }
    showRerun();
}

void PolicyLab::showRerun() {
    const bool running = rerunProgress_ >= 0;
    const bool causal = kind_ == nullptr || kind_->causal;
    rerun_->setText(running ? tr("Cancel the rerun") : tr("Rerun exactly"));
    rerun_->setEnabled(running || (causal && !spec_.isEmpty() && !rerunKey_.isValid()));
    rerun_->setToolTip(
        running   ? tr("What is finished stays in the trace, marked as partial")
        : !causal ? tr("This rule looks at the next token: no model can run it")
        : rerunKey_.isValid()
            ? tr("The open traces hold this rerun already")
            : tr("Runs the checkpoint on the same tokens with this policy, so that halted tokens change what "
                 "later ones see; the run goes into Scratch: ponderscope record --policy %1")
                  .arg(spec_));
    QString text;
    if (difference_) {
        const RerunDifference& exact = *difference_;
        text = tr("<b>rerun</b>&nbsp;&nbsp; steps %1&nbsp;&nbsp; NLL %2&nbsp;&nbsp; perplexity %3")
                   .arg(format_nats(exact.mean_steps), format_nats(exact.mean_nll, 3),
                        format_nats(std::exp(exact.mean_nll)));
        if (std::isfinite(result_->mean_flops)) {
            text += tr("&nbsp;&nbsp; FLOPs %1").arg(format_si(exact.mean_flops));
        }
        text += tr("<br>rerun − replay&nbsp;&nbsp; NLL %1, of a token at most %2; other steps at %3 of %4 "
                   "tokens")
                    .arg(format_difference(exact.difference, 4), format_nats(exact.largest, 3),
                         format_count(exact.steps_changed), format_count(exact.tokens));
    } else if (!rerunProblem_.isEmpty()) {
        text = rerunProblem_.toHtmlEscaped();
    } else if (running) {
        text = tr("<b>rerun</b>&nbsp;&nbsp; under way: %1 %").arg(rerunProgress_ / 10);
    } else if (rerunKey_.isValid()) {
        text = tr("<b>rerun</b>&nbsp;&nbsp; comparing…");
    }
    rerunLabel_->setText(text);
    rerunLabel_->setVisible(!text.isEmpty());
}

void PolicyLab::drawFront() {
    const auto table = shared_.table();
    if (!table || spec_.isEmpty()) {
        return;
    }
    const auto all = shared_.fronts();
    std::vector<PolicyFront> shown;
    if (all) {
        // The chosen one beside the model's own and the two that know nothing.
        for (const PolicyFront& front : *all) {
            if (front.policy == kind_->name || front.policy == "learned" || front.policy == "uniform" ||
                front.policy == "geometric") {
                shown.push_back(front);
            }
        }
    }
    const PolicyPoint now{spec_.toStdString(), result_->mean_steps, result_->mean_nll, result_->mean_flops};
    std::vector<RunPoint> exact = shared_.reruns(spec_); // the others stay
    if (difference_) {
        exact.push_back({tr("rerun, exact"), figure::Chart::b, difference_->mean_steps, difference_->mean_nll,
                         difference_->mean_flops});
    }
    figure::Chart chart = front_chart(shown, exact, &now);
    chart.title = tr("Perplexity against compute, by replay");
    chart.note.clear(); // it stands beside
    front_->setChart(std::move(chart));
}

void PolicyLab::tellText() {
    const auto table = shared_.table();
    if (!onScreen() || !colour_->isChecked() || !table || spec_.isEmpty()) {
        emit replayed(nullptr);
        return;
    }
    const auto [first, count] = shared_.rowsOf(context_.selection.sequence());
    if (first < 0 || first + count > static_cast<qint64>(result_->steps.size())) {
        emit replayed(nullptr);
        return;
    }
    auto steps = std::make_shared<ReplayedSteps>();
    steps->run = context_.selection.runA();
    steps->sequence = context_.selection.sequence();
    steps->policy = spec_;
    steps->maxSteps = table->columns.max_steps();
    steps->steps.assign(result_->steps.begin() + first, result_->steps.begin() + first + count);
    emit replayed(std::move(steps));
}

ParetoView::ParetoView(ViewContext context, QWidget* parent)
    : QWidget(parent),
      context_(context),
      shared_(PolicyData::of(context)),
      cost_(new QComboBox(this)),
      chart_(new ChartView(context.theme, this)) {
    cost_->setAccessibleName(tr("Cost"));
    cost_->setToolTip(tr("What the perplexity is set against; steps where no FLOPs are known"));
    cost_->addItem(tr("FLOPs"), static_cast<int>(FrontCost::compute));
    cost_->addItem(tr("Steps"), static_cast<int>(FrontCost::steps));
    cost_->addItem(tr("Measured time"), static_cast<int>(FrontCost::time));
    auto* column = new QVBoxLayout;
    column->addWidget(cost_);
    column->addStretch(1);
    auto* row = new QHBoxLayout(this);
    row->setContentsMargins(14, 10, 14, 8);
    row->setSpacing(14);
    row->addWidget(chart_, 1);
    row->addLayout(column);
    connect(cost_, &QComboBox::currentIndexChanged, this, &ParetoView::refresh);
    connect(&shared_, &PolicyData::tableChanged, this, &ParetoView::refresh);
    connect(&shared_, &PolicyData::frontsChanged, this, &ParetoView::refresh);
    connect(&context.selection, &Selection::runsChanged, this, &ParetoView::refresh);
    refresh();
}

bool ParetoView::isBusy() const {
    return onScreen() && shared_.isBusy();
}

void ParetoView::setOnScreen(bool on) {
    LiveView::setOnScreen(on);
    refresh();
}

void ParetoView::refresh() {
    if (!shared_.table() && onScreen()) {
        shared_.want();
    }
    if (!shared_.table()) {
        chart_->setHint(shared_.sentence());
    } else if (!shared_.fronts()) {
        chart_->setHint(tr("Replaying every policy at many thresholds…"));
    } else {
        figure::Chart chart = front_chart(*shared_.fronts(), shared_.runs(), nullptr,
                                          static_cast<FrontCost>(cost_->currentData().toInt()));
        chart.title.clear(); // the panel's heading
        chart_->setChart(std::move(chart));
    }
}

ViewCommand PolicyLab::viewCommand() const {
    if (const QString why = why_no_run(context_.data, context_.selection);
        !why.isEmpty() || spec_.isEmpty()) {
        return no_command(why.isEmpty() ? tr("No policy is replayed; choose one first.") : why);
    }
    return shell_view({{QStringLiteral("policy"), run_a_reference(context_.data, context_.selection),
                        QStringLiteral("--policy=") + spec_}});
}

ViewCommand ParetoView::viewCommand() const {
    figure::FigureSpec spec =
        figure::window_figure(context_.data, context_.selection, figure::FigureKind::policy_front);
    const auto cost = static_cast<FrontCost>(cost_->currentData().toInt());
    spec.cost = cost == FrontCost::steps ? "steps" : cost == FrontCost::time ? "time" : "compute";
    return figure::figure_view(context_.data, context_.selection, spec);
}

} // namespace ponderscope
