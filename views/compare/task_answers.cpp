// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/compare/task_answers.h"

#include "core/stats/tasks.h"
#include "views/common/format.h"
#include "views/common/paths.h"

#include <QHeaderView>
#include <QLabel>

#include <optional>
#include <utility>
#include <vector>

using namespace Qt::StringLiterals;

namespace ponderscope {
namespace {

constexpr int sequence_role = Qt::UserRole;
constexpr int token_role = Qt::UserRole + 1;

struct TaskFindings {
    TaskSample sample; ///< run A's documents
    TaskReport report;
    std::optional<TaskReport> other; ///< run B's report
    TaskComparison pair;
};
using AllFindings = std::vector<TaskFindings>;

QString share_text(const Estimate& share) {
    return u"%1 % [%2, %3]"_s.arg(100 * share.value, 0, 'f', 1)
        .arg(100 * share.low, 0, 'f', 1)
        .arg(100 * share.high, 0, 'f', 1);
}

AllFindings find_answers(const std::filesystem::path& trace_a, std::int64_t run_a,
                         const std::filesystem::path& trace_b, std::int64_t run_b,
                         const std::stop_token& stop) {
    const auto samples_of = [&](const std::filesystem::path& trace, std::int64_t id) {
        const TraceReader reader = TraceReader::open(trace);
        for (const RunInfo& run : reader.runs()) {
            if (run.id == id) {
                return read_tasks(reader, run, stop);
            }
        }
        return std::vector<TaskSample>();
    };
    BootstrapOptions options;
    options.replicates = shown_replicates;
    options.stop = stop;
    std::vector<TaskSample> others;
    if (run_b > 0) {
        others = samples_of(trace_b, run_b);
    }
    AllFindings all;
    for (TaskSample& sample : samples_of(trace_a, run_a)) {
        TaskFindings one;
        one.report = report_task(sample, options);
        for (const TaskSample& other : others) {
            if (other.task == sample.task) {
                one.other = report_task(other, options);
                one.pair = compare_task(sample, other, options);
            }
        }
        one.sample = std::move(sample);
        all.push_back(std::move(one));
    }
    return all;
}

} // namespace

TaskAnswers::TaskAnswers(ViewContext context, QWidget* parent)
    : QTreeWidget(parent), data_(context.data), selection_(context.selection), job_(this) {
    note_->setAlignment(Qt::AlignCenter);
    note_->setAttribute(Qt::WA_TransparentForMouseEvents);
    make_column(viewport(), {8, 8, 8, 8}, -1, {note_});
    setColumnCount(2);
    setHeaderLabels({u"Task"_s, u"Accuracy"_s});
    setAccessibleName(u"Answers to tasks"_s);
    header()->setSectionResizeMode(0, QHeaderView::ResizeToContents);
    connect(this, &QTreeWidget::itemClicked, this, [this](QTreeWidgetItem* item) {
        if (item->data(0, sequence_role).isValid()) {
            selection_.setSequence(item->data(0, sequence_role).toLongLong());
            selection_.setToken(item->data(0, token_role).toLongLong());
        }
    });
}

void TaskAnswers::renew() {
    clear();
    note_->clear();
    job_.cancel();
    const RunKey a = selection_.runA();
    const RunKey b = selection_.runB();
    if (data_.run(a) == nullptr) {
        return;
    }
    job_.start(
        [trace_a = path_of(a.trace), run_a = a.run, trace_b = path_of(b.trace),
         run_b = data_.run(b) != nullptr && !(a == b) ? b.run : 0](const std::stop_token& stop) {
            return find_answers(trace_a, run_a, trace_b, run_b, stop);
        },
        [this](const AllFindings& all) {
            if (all.empty()) {
                note_->setText(
                    u"Run A has no tasks. Record tasks with ponderscope score or lm-evaluation-harness."_s);
            }
            const auto documents = [](QTreeWidgetItem* parent, const QString& title, const TaskSample& sample,
                                      const std::vector<std::size_t>& numbers) {
                if (numbers.empty()) {
                    return;
                }
                auto* group = new QTreeWidgetItem(
                    parent, {title, format_count(static_cast<std::int64_t>(numbers.size()))});
                for (const std::size_t number : numbers) {
                    const TaskDocument& document = sample.documents[number];
                    auto* item = new QTreeWidgetItem(group, {QString::fromStdString(document.name)});
                    item->setData(0, sequence_role,
                                  static_cast<qlonglong>(document.options.front().sequence));
                    item->setData(0, token_role, static_cast<qlonglong>(document.options.front().token));
                }
            };
            for (const TaskFindings& one : all) {
                QString accuracy = share_text(one.report.accuracy);
                if (one.other) {
                    accuracy = u"A %1, B %2"_s.arg(accuracy, share_text(one.other->accuracy));
                }
                auto* task = new QTreeWidgetItem(this, {QString::fromStdString(one.report.task), accuracy});
                for (std::size_t k = 0; k < one.report.accuracy_by_step.size(); ++k) {
                    auto* step = new QTreeWidgetItem(
                        task, {u"Read-out at step %1"_s.arg(k), share_text(one.report.accuracy_by_step[k])});
                    documents(step, u"Became right"_s, one.sample, one.report.flips[k].became_right);
                    documents(step, u"Became wrong"_s, one.sample, one.report.flips[k].became_wrong);
                }
                if (one.other) {
                    documents(task, u"Only A right"_s, one.sample, one.pair.only_a);
                    documents(task, u"Only B right"_s, one.sample, one.pair.only_b);
                }
                task->setExpanded(true);
            }
        },
        [this](const QString& sentence) { note_->setText(sentence); });
}

} // namespace ponderscope
