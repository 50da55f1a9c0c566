// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/policy/policy_lab.h"

#include "core/base/error.h"
#include "core/policy/policy_rows.h"
#include "core/policy/replay.h"
#include "core/policy/rerun_difference.h"
#include "views/chart/chart_plot.h"
#include "views/common/controls.h"
#include "views/common/format.h"
#include "views/common/paths.h"
#include "views/figure/figure_panel.h"
#include "views/halting/step_charts.h"
#include "views/policy/front_chart.h"
#include "views/policy/policy_data.h"

#include <QCheckBox>
#include <QGridLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QSignalBlocker>
#include <QSlider>
#include <QToolButton>

#include <algorithm>
#include <cmath>
#include <set>

using namespace Qt::StringLiterals;

namespace ponderscope {
namespace {

QString means_in_words(const QString& what, double steps, double nll, double flops) {
    const QString text = u"<b>%1</b>&ensp; steps&nbsp;%2&ensp; NLL&nbsp;%3&ensp; perplexity&nbsp;%4"_s.arg(
        what, format_nats(steps), format_nats(nll, 3), format_nats(std::exp(nll)));
    return std::isfinite(flops)
               ? text + u"&ensp; FLOPs&nbsp;%1"_s.arg(format_si(flops).replace(u' ', QChar(QChar::Nbsp)))
               : text;
}

} // namespace

PolicyLab::PolicyLab(ViewContext context, QWidget* parent)
    : QWidget(parent),
      context_(context),
      shared_(PolicyData::of(context)),
      policy_(new QComboBox(this)),
      slider_(new QSlider(Qt::Horizontal, this)),
      threshold_(new QLineEdit(this)),
      reset_(flat_button(u"Reset"_s, {}, this)),
      summary_(new QLabel(this)),
      note_(soft_label(this)),
      colour_(new QCheckBox(u"Colour text by replayed steps"_s, this)),
      rerun_(new QPushButton(this)),
      rerunLabel_(new QLabel(this)),
      hint_(soft_label(this)),
      body_(new QWidget(this)),
      histogram_(new ChartPlot(context.theme, this)),
      front_(new FigurePanel(context, front_figure(), this)),
      result_(std::make_unique<ReplayResult>()),
      comparing_(this) {
    policy_->setAccessibleName(u"Policy"_s);
    slider_->setAccessibleName(u"Threshold"_s);
    slider_->setMinimumWidth(80);
    threshold_->setFixedWidth(76);
    threshold_->setAccessibleName(u"Threshold as a number"_s);
    threshold_->setToolTip(u"Type a threshold and press Enter"_s);
    colour_->setChecked(true);
    summary_->setWordWrap(true);
    rerunLabel_->setWordWrap(true);
    rerunLabel_->setTextInteractionFlags(Qt::TextSelectableByMouse);
    hint_->setAlignment(Qt::AlignCenter);
    auto* grid = new QGridLayout;
    grid->setHorizontalSpacing(10);
    grid->setVerticalSpacing(7);
    grid->addWidget(field_label(u"Policy"_s, policy_, body_), 0, 0);
    auto* all = new QPushButton(u"Table…"_s, body_);
    all->setToolTip(u"Export a table of all policies (replay beside rerun) as a figure and CSV"_s);
    grid->addWidget(policy_, 0, 1, 1, 2);
    grid->addWidget(field_label(u"Threshold"_s, slider_, body_), 1, 0);
    grid->addWidget(slider_, 1, 1);
    grid->addLayout(make_row(nullptr, {}, 4, {threshold_, reset_}), 1, 2);
    grid->addWidget(summary_, 2, 0, 1, 3);
    grid->addWidget(rerunLabel_, 3, 0, 1, 3);
    grid->addWidget(colour_, 4, 0, 1, 3);
    auto* buttons = make_row(nullptr, {}, -1, {rerun_, all});
    buttons->addStretch(1);
    grid->addLayout(buttons, 5, 0, 1, 3);
    grid->setRowStretch(6, 1);
    make_row(body_, {}, 18, {{grid, 3}, {histogram_, 2}, {front_, 4}});
    front_->embed();
    front_->setOnScreen(false); // until there are policies
    make_column(this, {14, 10, 14, 8}, 4, {{body_, 1}, note_, {hint_, 1}});

    context_.theme.dress(this, [this] {
        note_->setFont(context_.theme.small());
        threshold_->setFont(context_.theme.mono());
        summary_->setFont(context_.theme.body());
        rerunLabel_->setFont(context_.theme.body());
    });
    connect(policy_, &QComboBox::currentIndexChanged, this, [this] {
        exact_.clear();
        choosePolicy();
    });
    connect(slider_, &QSlider::valueChanged, this, [this] {
        exact_.clear();
        replayNow();
        remember();
    });
    connect(threshold_, &QLineEdit::returnPressed, this, &PolicyLab::takeThreshold);
    connect(threshold_, &QLineEdit::editingFinished, this, [this] {
        if (threshold_->isModified()) {
            takeThreshold();
        }
    });
    connect(reset_, &QToolButton::clicked, this, [this] {
        exact_.clear();
        const auto table = shared_.table();
        if (table && kind_ != nullptr && !values_.empty()) {
            const QSignalBlocker quiet(slider_);
            slider_->setValue(static_cast<int>(starting_place(*kind_, *table, values_)));
        }
        replayNow();
        remember();
    });
    connect(all, &QPushButton::clicked, this, &PolicyLab::figureWanted);
    connect(&shared_, &PolicyData::policyChosen, this, &PolicyLab::setPolicy);
    connect(front_, &FigurePanel::linkChosen, &shared_, &PolicyData::chooseLink);
    connect(colour_, &QCheckBox::toggled, this, &PolicyLab::tellText);
    connect(&shared_, &PolicyData::tableChanged, this, &PolicyLab::renew);
    connect(&context_.selection, &Selection::sequenceChanged, this, &PolicyLab::tellText);
    connect(&shared_, &PolicyData::rerunsChanged, this, &PolicyLab::findRerun);
    connect(&shared_, &PolicyData::rerunsChanged, this, &PolicyLab::drawFront);
    connect(rerun_, &QPushButton::clicked, this, [this] {
        if (rerunProgress_ >= 0) {
            Q_EMIT rerunCancelRequested();
        } else if (!spec_.isEmpty()) {
            Q_EMIT rerunRequested(shared_.run(), spec_);
        }
    });
    renew();
    showRerun();
}

PolicyLab::~PolicyLab() = default;

bool PolicyLab::isBusy() const {
    return onScreen() && (shared_.isBusy() || comparing_.isBusy() || front_->isBusy());
}

QString PolicyLab::rerunText() const {
    return rerunLabel_->text();
}

void PolicyLab::setRerunProgress(int perMille) {
    rerunProgress_ = perMille;
    showRerun();
}

void PolicyLab::remember() {
    if (kind_ != nullptr && !spec_.isEmpty()) {
        followed_[kind_->name] = spec_;
    }
}

void PolicyLab::setPolicy(const QString& policy) {
    const auto table = shared_.table();
    if (!table || policy == spec_) {
        return;
    }
    const PolicySpec spec = PolicySpec::parse(policy.toStdString());
    const int entry = policy_->findData(QString::fromStdString(spec.kind->name));
    if (entry < 0) {
        return;
    }
    exact_ = policy;
    {
        const QSignalBlocker quiet(policy_);
        policy_->setCurrentIndex(entry);
    }
    choosePolicy();
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

void PolicyLab::screenChanged() {
    front_->setOnScreen(onScreen() && !drawn_.empty());
    renew(); // a hidden lab removes its colours from the text
}

void PolicyLab::renew() {
    if (!shared_.table() && onScreen()) {
        shared_.want();
    }
    const auto table = shared_.table();
    body_->setVisible(table != nullptr);
    note_->setVisible(table != nullptr);
    hint_->setVisible(table == nullptr);
    hint_->setText(shared_.sentence());
    if (!table) {
        kind_ = nullptr;
        spec_.clear();
        followed_.clear(); // positions for the previous run
        drawn_.clear();
        front_->setOnScreen(false);
        findRerun();
        tellText();
        return;
    }
    const QString before = policy_->currentData().toString();
    {
        const QSignalBlocker quiet(policy_);
        policy_->clear();
        for (const PolicyKind* kind : table->kinds()) {
            policy_->addItem(QString::fromStdString(title_of(*kind)), QString::fromStdString(kind->name));
            QString tip = u"Stops where %1"_s.arg(QString::fromStdString(kind->rule));
            if (!kind->source.empty()) {
                tip += u" (%1)"_s.arg(QString::fromStdString(kind->source));
            }
            policy_->setItemData(policy_->count() - 1, tip, Qt::ToolTipRole);
        }
        // Start with the model's own rule, else entropy, else a fixed number of steps.
        int start = policy_->findData(before);
        for (const char* preferred : {"learned", "entropy", "fixed"}) {
            start = start >= 0 ? start : policy_->findData(QLatin1String(preferred));
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
    kind_ = find_policy_kind(policy_->currentData().toString().toStdString());
    policy_->setToolTip(policy_->currentData(Qt::ToolTipRole).toString());
    values_ = threshold_values(*kind_, *table, slider_places);
    {
        const QSignalBlocker quiet(slider_);
        slider_->setEnabled(values_.size() > 1);
        slider_->setRange(0, std::max(0, static_cast<int>(values_.size()) - 1));
        // The slider starts at its last position for this policy, else at the policy's default.
        if (const auto known = followed_.find(kind_->name); exact_.isEmpty() && known != followed_.end()) {
            exact_ = known->second;
        }
        std::size_t start = starting_place(*kind_, *table, values_);
        const std::string key = kind_->parameters.empty() ? "" : kind_->parameters.front().key;
        const PolicySpec spec = PolicySpec::parse(exact_.isEmpty() ? "full" : exact_.toStdString());
        if (!key.empty() && spec.has(key) && !values_.empty()) {
            const auto at = std::lower_bound(values_.begin(), values_.end(), spec.number(key));
            start = std::min(static_cast<std::size_t>(at - values_.begin()), values_.size() - 1);
        }
        slider_->setValue(static_cast<int>(start));
        const bool own = kind_->name == "learned" && std::isfinite(table->context.own_threshold);
        reset_->setToolTip(own ? u"The model's own threshold"_s : u"Reset to the start value"_s);
        threshold_->setEnabled(!values_.empty());
        reset_->setEnabled(!values_.empty());
        slider_->setPageStep(std::max(1, static_cast<int>(values_.size()) / 12));
    }
    replayNow();
}

void PolicyLab::takeThreshold() {
    if (kind_ == nullptr || kind_->parameters.empty()) {
        return;
    }
    const PolicyParameter& parameter = kind_->parameters.front();
    const std::optional<double> typed = typed_number(threshold_->text());
    const double value = typed.value_or(0);
    threshold_->setModified(false);
    const double high = parameter.whole ? static_cast<double>(values_.size()) - 1 : parameter.high;
    if (!typed || value < parameter.low || value > high || (parameter.whole && value != std::floor(value))) {
        constexpr double unlimited = 1e300;
        summary_->setText(u"%1 is not a threshold of %2. "_s.arg(threshold_->text(),
                                                                 QString::fromStdString(title_of(*kind_))) +
                          (high < unlimited && parameter.low > -unlimited
                               ? u"Type a number from %1 to %2."_s.arg(parameter.low).arg(high)
                               : u"Type a number."_s));
        return;
    }
    exact_ = QString::fromStdString(policy_at(*kind_, value).text());
    choosePolicy();
    remember();
}

void PolicyLab::replayNow() {
    const auto table = shared_.table();
    if (!table || kind_ == nullptr) {
        return;
    }
    double value = values_.empty() ? 0 : values_[static_cast<std::size_t>(slider_->value())];
    try {
        const PolicySpec spec =
            exact_.isEmpty() ? policy_at(*kind_, value) : PolicySpec::parse(exact_.toStdString());
        if (!kind_->parameters.empty() && spec.has(kind_->parameters.front().key)) {
            value = spec.number(kind_->parameters.front().key);
        }
        replay(*table, spec, *result_);
        spec_ = QString::fromStdString(spec.text());
    } catch (const Error& error) {
        spec_.clear();
        summary_->setText(QString::fromUtf8(error.what()));
        tellText();
        return;
    }
    threshold_->setText(values_.empty() ? QString() : QString::number(value, 'g', 6));
    threshold_->setModified(false);
    summary_->setText(
        means_in_words(u"replay"_s, result_->mean_steps, result_->mean_nll, result_->mean_flops));
    QStringList notes{QString::fromStdString(rule_in_words(*kind_, value))};
    if (!kind_->causal) {
        notes << u"This rule reads the NLL of the next token. No model can run this rule, so the result "
                 "is a bound."_s;
    }
    if (table->halted) {
        notes << u"Tokens of this run halted early, so a replay has only the steps that ran. Record with "
                 "--policy full for all steps."_s;
    }
    notes << u"In a replay, tokens do not affect each other, so a rerun can differ."_s;
    note_->setText(notes.join(u' '));
    const RunInfo* run = context_.data.run(shared_.run());
    Chart steps = steps_chart(result_->histogram, run != nullptr ? run->step_unit : "step");
    steps.title += u" by replay"_s;
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
        // Capture the table, because table() may change before the result arrives.
        comparing_.start(
            [table, run = shared_.run(), info = *info, found, again = *again,
             spec = spec_.toStdString()](const std::stop_token& stop) {
                const auto open = [](const RunKey& key) { return TraceReader::open(path_of(key.trace)); };
                return rerun_difference(*table, replay(*table, PolicySpec::parse(spec)), open(run), info,
                                        open(found), again, stop);
            },
            [this](const RerunDifference& difference) {
                difference_ = std::make_unique<RerunDifference>(difference);
                showRerun();
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
    const bool can_run = kind_ == nullptr || kind_->can_run();
    rerun_->setText(running ? u"Cancel the rerun"_s : u"Rerun exactly"_s);
    rerun_->setEnabled(running || (can_run && !spec_.isEmpty() && !rerunKey_.isValid()));
    rerun_->setToolTip(
        running    ? u"Finished sequences stay in the trace. The run is marked as partial"_s
        : !causal  ? u"This rule knows the next token, so no model can run the rule"_s
        : !can_run ? u"This rule can only be replayed: the engine does not compute its signal"_s
        : rerunKey_.isValid()
            ? u"An open trace already has this rerun"_s
            : u"Runs the checkpoint again on the same tokens with this policy. Stopped tokens then "
              "change the attention of later tokens. The new run is temporary. Command: ponderscope "
              "record --policy %1"_s.arg(spec_));
    QString text;
    if (difference_) {
        const RerunDifference& exact = *difference_;
        text = means_in_words(u"rerun"_s, exact.mean_steps, exact.mean_nll, exact.mean_flops) +
               u"<br>rerun − replay&nbsp;&nbsp; NLL of a token: mean difference %1, largest %2; different "
               "steps at %3 of %4 tokens"_s.arg(
                   format_difference(exact.difference, 4), format_nats(exact.largest, 3),
                   format_count(exact.steps_changed), format_count(exact.tokens));
    } else if (!rerunProblem_.isEmpty()) {
        text = rerunProblem_.toHtmlEscaped();
    } else if (running) {
        text = u"<b>rerun</b>&nbsp;&nbsp; running: %1 %"_s.arg(rerunProgress_ / 10);
    } else if (rerunKey_.isValid()) {
        text = u"<b>rerun</b>&nbsp;&nbsp; comparing…"_s;
    }
    rerunLabel_->setText(text);
    rerunLabel_->setVisible(!text.isEmpty());
}

/// Draws the fronts of the chosen policy and the model's own rule, with the bound and the reruns.
void PolicyLab::drawFront() {
    if (!shared_.table() || spec_.isEmpty()) {
        return;
    }
    figure::FigureSpec spec = front_figure();
    const std::set<std::string> names{kind_->name, "learned", "oracle"};
    for (const PolicyKind* kind : shared_.table()->kinds()) {
        if (names.contains(kind->name)) {
            spec.policies.push_back(kind->name);
        }
    }
    if (spec.policies != drawn_) {
        drawn_ = spec.policies;
        front_->setSpec(std::move(spec));
        front_->setOnScreen(onScreen());
    }
    front_->decorate(
        [now = PolicyPoint{spec_.toStdString(), result_->mean_steps, result_->mean_nll, result_->mean_flops},
         reruns = shared_.rerunPoints(), chosen = QString::fromStdString(title_of(*kind_))](Chart& chart) {
            chart.title = u"Perplexity by replay"_s;
            chart.note.clear(); // note_ shows it
            for (const RunPoint& rerun : reruns) {
                add_run(chart, rerun);
            }
            for (Chart::Series& series : chart.series) { // only tooltips name the runs
                series.listed = series.listed && series.mark != Chart::Mark::point;
            }
            // The chosen policy comes first, because a narrow legend shows only the first entries.
            std::ranges::stable_partition(chart.series,
                                          [&](const auto& one) { return one.name.startsWith(chosen); });
            add_replay(chart, now);
        });
}

void PolicyLab::tellText() {
    const auto table = shared_.table();
    const auto [first, count] = shared_.rowsOf(context_.selection.sequence());
    if (!onScreen() || !colour_->isChecked() || !table || spec_.isEmpty() || first < 0 ||
        first + count > static_cast<qint64>(result_->steps.size())) {
        Q_EMIT replayed({});
        return;
    }
    const auto begin = result_->steps.begin() + first;
    Q_EMIT replayed({context_.selection.runA(),
                     context_.selection.sequence(),
                     spec_,
                     table->columns.max_steps(),
                     {begin, begin + count}});
}

void PolicyLab::fillFigure(figure::FigureSpec& spec) const {
    if (spec.kind == figure::FigureKind::policy_front) {
        spec.bands = true; // as in the Pareto panel
    }
    if (spec.kind != figure::FigureKind::policy_table || !shared_.table()) {
        return;
    }
    spec.policies.clear();
    for (const std::string& start : starting_policies(*shared_.table())) {
        const auto moved = followed_.find(PolicySpec::parse(start).kind->name);
        spec.policies.push_back(moved == followed_.end() ? start : moved->second.toStdString());
    }
    spec.runs.resize(std::min<std::size_t>(spec.runs.size(), 1));
    for (const PolicyRerun& rerun : shared_.storedReruns()) {
        const PolicyKind* kind = PolicySpec::kind_of(rerun.policy);
        if (kind != nullptr && shared_.table()->can(*kind) &&
            std::ranges::find(spec.policies, rerun.policy) == spec.policies.end()) {
            spec.policies.push_back(rerun.policy);
        }
        spec.runs.push_back({rerun.stored.trace, run_name(rerun.stored.run).toStdString()});
    }
}

ViewCommand PolicyLab::viewCommand() const {
    if (spec_.isEmpty() || !why_no_run(context_.data, context_.selection).isEmpty()) {
        return no_command(context_.data, context_.selection, u"Choose a policy first."_s);
    }
    return shell_view(
        {{u"policy"_s, run_a_reference(context_.data, context_.selection), u"--policy="_s + spec_}});
}

} // namespace ponderscope
