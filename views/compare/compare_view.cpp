// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/compare/compare_view.h"

#include "views/common/controls.h"
#include "views/common/format.h"
#include "views/common/paths.h"
#include "views/common/same_runs.h"
#include "views/common/tables.h"
#include "views/compare/task_answers.h"
#include "views/figure/figure_command.h"
#include "views/figure/figure_panel.h"

#include <QGraphicsOpacityEffect>
#include <QHeaderView>
#include <QLabel>
#include <QProgressBar>
#include <QPushButton>
#include <QSplitter>
#include <QStackedWidget>
#include <QTableView>

#include <algorithm>
#include <cmath>

using namespace Qt::StringLiterals;

namespace ponderscope {

namespace {

/// Delay after growth: a recording reports more often than a comparison is worth.
constexpr int grown_ms = 1000;

} // namespace

CompareView::CompareView(ViewContext context, QWidget* parent)
    : QWidget(parent),
      data_(context.data),
      selection_(context.selection),
      theme_(context.theme),
      model_(new DataTableModel(this)),
      table_(new QTableView(this)),
      pairs_(new FigurePanel(context, figure_of(figure::FigureKind::token_pairs), this)),
      winners_(new FigurePanel(context, figure_of(figure::FigureKind::winners), this)),
      detail_(new QComboBox(this)),
      tasks_(new TaskAnswers(context, this)),
      beside_(new QStackedWidget(this)),
      choosing_(this),
      message_(soft_label(this)),
      progress_(new QProgressBar(this)),
      cancel_(new QPushButton(u"Cancel"_s, this)),
      job_(this),
      chip_(new SubsetChip(context.theme, this)) {
    model_->setTable(table_of(RunComparison{}));
    table_->setModel(model_);
    table_->setAccessibleName(u"Runs over the same text"_s);
    furnish_table(*table_, context.theme);
    table_->setSelectionMode(QAbstractItemView::NoSelection);
    table_->setItemDelegateForColumn(0, dot_delegate(table_));
    table_->setColumnHidden(model_->columnOf("tokens"), true); // equal in all rows; message_ shows it
    table_->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents); // no cut numbers
    progress_->setRange(0, 1000);
    progress_->setTextVisible(false);
    progress_->setFixedHeight(6);
    progress_->setAccessibleName(u"Comparing"_s);
    progress_->hide();
    cancel_->hide();

    auto* left = new QWidget(this);
    auto* below = make_row(nullptr, {}, -1, {{message_, 1}, {progress_, 1}, cancel_});
    make_column(left, {14, 8, 6, 8}, -1, {chip_, {table_, 1}, below});
    connect(chip_, &SubsetChip::released, this, [this] { setSubset({}); });
    auto* splitter = new QSplitter(Qt::Horizontal, this);
    splitter->addWidget(left);
    detail_->setAccessibleName(u"View of A and B"_s);
    detail_->setToolTip(u"Figure of A and B, or answers to tasks"_s);
    const std::pair<QString, QWidget*> details[] = {
        {u"Token against token"_s, pairs_}, {u"Who wins where"_s, winners_}, {u"Tasks: answers"_s, tasks_}};
    for (const auto& [name, widget] : details) {
        detail_->addItem(name);
        beside_->addWidget(widget);
    }
    pairs_->embed();
    winners_->embed();
    beside_->setMinimumWidth(210); // wide enough for an axis title
    screenChanged();
    auto* right = new QWidget(this);
    make_column(right, {6, 8, 14, 6}, 4, {{detail_, 0, Qt::AlignLeft}, {beside_, 1}});
    connect(detail_, &QComboBox::currentIndexChanged, this, &CompareView::showDetail);
    splitter->addWidget(right);
    splitter->setStretchFactor(0, 1);
    splitter->setStretchFactor(1, 1);
    splitter->setSizes({760, 280});
    splitter->setChildrenCollapsible(false);
    make_column(this, {}, -1, {splitter});

    model_->setColours([this](int row) { return theme_.runColour(key(row), selection_); });
    model_->setTips([this](int row, int of) { return tip(row, of); });
    theme_.dress(this, [this] {
        message_->setFont(theme_.small());
        table_->setFont(theme_.small());
        model_->coloursChanged();
    });
    connect(cancel_, &QPushButton::clicked, this, &CompareView::cancel);
    pending_.setSingleShot(true);
    connect(&pending_, &QTimer::timeout, this, &CompareView::begin);
    connect(&data_, &TraceData::traceOpened, this, [this] { cancelled_ = false; });
    follow(*this, context, Follows::all);
    renew();
}

CompareView::~CompareView() {
    table_->setModel(nullptr); // a closing window would measure columns and ask for colours of closed runs
}

bool CompareView::isBusy() const {
    return job_.isBusy() || pending_.isActive() || choosing_.isBusy() || tasks_->isBusy() ||
           pairs_->isBusy() || winners_->isBusy();
}

std::pair<ComparisonRequest, std::vector<RunKey>> CompareView::request() const {
    ComparisonRequest wanted;
    std::vector<RunKey> keys;
    const RunInfo* a = data_.run(selection_.runA());
    if (!a) {
        return {};
    }
    const RunInfo first = *a;
    const auto add = [&](const RunKey& key, const RunInfo& info) {
        const std::filesystem::path trace = path_of(key.trace);
        const bool known = std::ranges::any_of(wanted.runs, [&](const ComparisonRequest::Run& run) {
            return run.trace == trace && run.run == info.name;
        });
        if (!known && info.scored_tokens > 0 && same_text(first, info)) {
            wanted.runs.push_back({trace, info.name});
            keys.push_back(key);
        }
    };
    add(selection_.runA(), first);
    if (const RunInfo* b = data_.run(selection_.runB())) {
        add(selection_.runB(), *b);
    }
    for (const QString& trace : data_.traces()) {
        for (const RunInfo& info : data_.runs(trace)) {
            if (info.complete) {
                add({trace, info.id}, info);
            }
        }
    }
    return {std::move(wanted), std::move(keys)};
}

void CompareView::renew() {
    constexpr int chosen_ms = 150; // users choose A and B one after the other
    std::vector<RunKey> keys = request().second;
    QString stamp;
    for (const RunKey& key : keys) {
        stamp += run_stamp(*data_.run(key)) + u'\n';
    }
    const bool others = keys != wanted_ || (!cancelled_ && stamp_.isEmpty() && !stamp.isEmpty());
    if (!others && (cancelled_ || stamp == stamp_)) {
        return;
    }
    cancelled_ = false;
    wanted_ = std::move(keys);
    stamp_ = stamp;
    if (wanted_.empty()) {
        clear(u"Open a trace with two runs of the same text to compare them."_s);
    } else if (others) {
        job_.cancel();
        setCurrent(false);
        pending_.start(chosen_ms);
        setBusy(true);
    } else if (job_.isBusy()) {
        again_ = true; // restart when the running comparison has ended
    } else if (!pending_.isActive()) {
        pending_.start(grown_ms);
    }
}

void CompareView::begin() {
    again_ = false;
    screenChanged();
    auto [wanted, keys] = request();
    job_.start(
        [this, wanted = std::move(wanted)](const std::stop_token& stop, const Task::Tell& tell) {
            const auto progress = [this, &tell](const Progress& now) {
                const auto share = static_cast<int>(now.total > 0 ? now.done * 1000 / now.total : 0);
                tell([this, share] { progress_->setValue(share); });
            };
            return std::make_shared<const RunComparison>(compare_runs(wanted, progress, stop));
        },
        [this, keys = std::move(keys)](std::shared_ptr<const RunComparison> comparison) {
            keys_ = keys;
            all_ = std::move(comparison);
            setCurrent(true);
            showComparison();
            setBusy(false);
            if (again_) {
                pending_.start(grown_ms);
            }
        },
        [this](const QString& sentence) { clear(sentence); });
    progress_->setValue(0);
    setBusy(true);
}

void CompareView::cancel() {
    pending_.stop();
    job_.cancel();
    pairs_->cancel();
    winners_->cancel();
    setBusy(false);
    message_->setText(u"Cancelled. To compare, choose another run or open the trace again."_s);
    cancelled_ = true;
    stamp_.clear();
}

void CompareView::clear(const QString& why) {
    pending_.stop();
    job_.cancel();
    choosing_.cancel();
    shown_.reset();
    all_.reset();
    model_->setTable(table_of(RunComparison{}));
    setCurrent(true);
    message_->setText(why);
    setBusy(false);
}

void CompareView::setCurrent(bool current) {
    QGraphicsOpacityEffect* veil = nullptr;
    if (!current) { // dims also the dots, which already have the colours of the new A and B
        veil = new QGraphicsOpacityEffect(table_);
        veil->setOpacity(0.35);
    }
    table_->viewport()->setGraphicsEffect(veil);
    table_->setEnabled(current);
}

void CompareView::setSubset(const TokenSubset& subset) {
    subset_ = subset;
    if (all_) {
        showComparison();
    } else {
        chip_->show(subset_);
    }
}

void CompareView::showComparison() {
    const RunInfo* of = data_.run(subset_.run);
    if (!subset_.isEmpty() && (of == nullptr || !same_text(*of, all_->runs.front().info))) {
        subset_ = {}; // the subset has other tokens
    }
    chip_->show(subset_);
    choosing_.cancel();
    if (subset_.isEmpty()) {
        present(all_);
        return;
    }
    choosing_.start(
        [all = all_, rows = subset_.rows](const std::stop_token&) {
            std::vector<RunComparison::Place> places;
            for (const auto& [sequence, own] : rows) {
                for (const std::int64_t row : own) {
                    places.push_back({static_cast<std::int32_t>(sequence), static_cast<std::int32_t>(row)});
                }
            }
            return std::make_shared<const RunComparison>(only_places(*all, places));
        },
        [this](const std::shared_ptr<const RunComparison>& part) { present(part); },
        [this](const QString& sentence) { message_->setText(sentence); });
}

RunKey CompareView::key(int row) const {
    return row >= 0 && static_cast<std::size_t>(row) < keys_.size() ? keys_[static_cast<std::size_t>(row)]
                                                                    : RunKey{};
}

QString CompareView::tip(int row, int column) const {
    const DataTable& table = model_->table();
    const auto& cells = table.rows[static_cast<std::size_t>(row)];
    if (column == 0) {
        const RunInfo& info = shown_->runs[static_cast<std::size_t>(row)].info;
        QString all = u"%1, %2, policy %3, %4 %5"_s.arg(
            QString::fromStdString(info.method), QString::fromStdString(info.architecture),
            QString::fromStdString(info.policy), QString::fromStdString(info.device),
            QString::fromStdString(info.dtype));
        for (std::size_t c = 1; c < cells.size(); ++c) {
            all += u"\n%1: %2"_s.arg(QString::fromStdString(table.columns[c].title),
                                     window_text(cells[c], table.columns[c]));
        }
        return all;
    }
    const auto* estimate = std::get_if<Estimate>(&cells[static_cast<std::size_t>(column)]);
    if (estimate == nullptr || std::isnan(estimate->low)) {
        return {};
    }
    const QString drawn = QString::fromStdString(shown_->resampling.words());
    const QString ends =
        u"95 % interval %1 to %2: "_s.arg(format_nats(estimate->low, 4), format_nats(estimate->high, 4));
    return ends +
           (shown_->replicates == 0
                ? u"Student's t over clusters or blocks (%1)"_s.arg(drawn)
                : u"paired bootstrap, %1 replicates, %2"_s.arg(format_count(shown_->replicates), drawn));
}

void CompareView::present(const std::shared_ptr<const RunComparison>& comparison) {
    shown_ = comparison;
    model_->setTable(table_of(*shown_));
    showDetail();
    QString text;
    if (shown_->runs.size() < 2) {
        text = u"Only one run of this text is open. Open or record another run to compare."_s;
    } else {
        text = (subset_.isEmpty()
                    ? u"A − run: NLL of A minus NLL of the run, over %1 common tokens. 95 % intervals: "
                      "paired bootstrap."_s
                    : u"A − run: NLL of A minus NLL of the run, over the %1 found tokens. 95 % intervals: "
                      "Student's t over clusters or blocks."_s)
                   .arg(format_count(static_cast<std::int64_t>(shown_->places.size())));
    }
    // Show two notices, and all in the tooltip, so that the table keeps its room.
    constexpr std::size_t most_shown = 2;
    QStringList all{text};
    for (std::size_t i = 0; i < shown_->notices.size(); ++i) {
        all << QString::fromStdString(shown_->notices[i].text);
        if (i < most_shown) {
            text += u' ' + all.back();
        }
    }
    if (shown_->notices.size() > most_shown) {
        text += u' ' + u"(%1 more: hover here)"_s.arg(shown_->notices.size() - most_shown);
    }
    message_->setText(text);
    message_->setToolTip(plain_tip(shown_->notices.empty() ? QString() : all.join(u'\n')));
}

void CompareView::showDetail() {
    beside_->setCurrentIndex(detail_->currentIndex());
    screenChanged();
    if (beside_->currentWidget() == tasks_) {
        tasks_->renew();
    }
}

/// Only the figure in front counts as on the screen.
void CompareView::screenChanged() {
    for (FigurePanel* panel : {pairs_, winners_}) {
        panel->setOnScreen(onScreen() && !cancelled_ && beside_->currentWidget() == panel);
    }
}

void CompareView::setBusy(bool busy) {
    progress_->setVisible(busy);
    cancel_->setVisible(busy);
    message_->setVisible(!busy);
    Q_EMIT busyChanged(busy);
}

ViewCommand CompareView::viewCommand() const {
    if (const QString why = why_no_run(data_, selection_); !why.isEmpty()) {
        return no_command(why);
    }
    const bool tasks = beside_->currentWidget() == tasks_;
    QStringList line{tasks ? u"tasks"_s : u"compare"_s};
    for (const RunKey& key : request().second) {
        line << run_reference(key, *data_.run(key));
    }
    using figure::FigureKind;
    const RunInfo* b = data_.run(selection_.runB());
    const bool both = b != nullptr && same_text(*data_.run(selection_.runA()), *b);
    figure::FigureSpec spec = both && beside_->currentWidget() == winners_
                                  ? winners_->spec()
                                  : figure::window_figure(data_, selection_,
                                                          tasks  ? FigureKind::task_accuracy
                                                          : both ? FigureKind::nll_comparison
                                                                 : FigureKind::perplexity_table);
    spec.sequence.reset(); // all sequences
    // A single run has no difference, so only the figure's command.
    return {ViewCommand::Kind::shell,
            (line.size() > 2 ? shell_view({line}).text : QString()) + figure::figure_command(spec)};
}

} // namespace ponderscope
