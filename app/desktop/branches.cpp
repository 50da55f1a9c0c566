// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/branches.h"

#include "core/base/not_a_number.h"
#include "core/trace/reader.h"
#include "core/trace/tools/summary.h"
#include "views/common/controls.h"
#include "views/common/format.h"
#include "views/inspector/token_report.h"

#include <QHeaderView>
#include <QKeyEvent>
#include <QPushButton>

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <tuple>

using namespace Qt::StringLiterals;

namespace ponderscope {
namespace {

constexpr int node_role = Qt::UserRole;

QString word_of(TraceData& data, const RunKey& run, int id) {
    const QString label = data.tokenLabel(run, id);
    return label.isEmpty() ? u"#%1"_s.arg(id) : label;
}

/// One row of a signal of run A; empty: none.
std::optional<SignalChunk> row_of_signal(TraceData& data, const Selection& selection, const char* name,
                                         qint64 row) {
    const auto chunk = data.signalAt(selection.runA(), selection.sequence(), QString::fromLatin1(name), row);
    return chunk ? std::optional(row_of(*chunk, row)) : std::nullopt;
}

} // namespace

std::vector<BranchNode> branch_tree(const TraceData& data, const RunKey& run) {
    struct Known {
        RunKey key;
        const RunInfo* info;
        std::optional<Branch> branch;
        int parent = -1, node = -1;
        std::size_t root = 0;
    };
    QStringList traces = data.traces();
    if (const qsizetype own = traces.indexOf(run.trace); own > 0) {
        traces.move(own, 0);
    }
    std::vector<Known> all;
    // A copy of a run has the start and duration of its original.
    std::map<std::tuple<std::string_view, double, std::string_view>, QString> originals;
    for (const QString& trace : traces) {
        for (const RunInfo& info : data.runs(trace)) {
            const RunKey key{trace, info.id};
            const RunInfo* kept = data.run(key);
            const auto& original =
                originals.try_emplace({kept->started, kept->seconds, kept->text_digest}, trace).first->second;
            if (original == trace) {
                // Few of thousands of runs are branches, and only their choices are parsed.
                const bool branch = kept->choices.find("\"branch\"") != std::string::npos;
                all.push_back({key, kept, branch ? recorded_choices(*kept).branch : std::nullopt});
            }
        }
    }
    // Sorted by start: a parent is older than its children, so there is no cycle.
    std::ranges::stable_sort(
        all, [](const Known& a, const Known& b) { return a.info->started < b.info->started; });
    for (std::size_t i = 0; i < all.size(); ++i) {
        Known& child = all[i];
        child.root = i;
        for (std::size_t j = 0; child.branch && j < i; ++j) {
            // The parent has the branch's text and checkpoint. Of several: the recorded name, or the first.
            const bool fits = all[j].info->text_digest == child.branch->text_digest &&
                              all[j].info->checkpoint_digest == child.info->checkpoint_digest;
            if (fits && (child.parent < 0 || all[j].info->name == child.branch->of)) {
                child.parent = static_cast<int>(j);
                child.root = all[j].root;
            }
        }
    }
    const auto self = std::ranges::find_if(all, [&](const Known& one) { return one.key == run; });
    std::vector<BranchNode> nodes;
    for (Known& one : all) {
        if (self != all.end() && one.root == self->root) {
            one.node = static_cast<int>(nodes.size());
            const int parent = one.parent < 0 ? -1 : all[static_cast<std::size_t>(one.parent)].node;
            nodes.push_back({one.key, parent, one.branch});
        }
    }
    return nodes;
}

std::vector<BranchCandidate> branch_candidates(TraceData& data, const Selection& selection, qint64 row) {
    const auto block = data.sequence(selection.runA(), selection.sequence());
    if (!block || row < 0 || row >= static_cast<qint64>(block->tokens.size())) {
        return {};
    }
    std::vector<BranchCandidate> found;
    const auto add = [&](const char* ids_name, const char* before_name, const char* after_name,
                         std::size_t axes) {
        const auto ids = row_of_signal(data, selection, ids_name, row);
        const auto before = row_of_signal(data, selection, before_name, row);
        if (!ids || !before || ids->shape.size() != axes || before->shape != ids->shape) {
            return;
        }
        const auto after =
            after_name == nullptr ? std::nullopt : row_of_signal(data, selection, after_name, row);
        const std::vector<std::int64_t> id = to_integers(*ids);
        const std::vector<float> likely = to_floats(*before);
        const std::vector<float> sampled = after ? to_floats(*after) : std::vector<float>();
        const auto width = static_cast<std::size_t>(ids->shape.back());
        const std::size_t step =
            axes == 2 ? 0 : static_cast<std::size_t>(block->tokens.steps[static_cast<std::size_t>(row)]);
        for (std::size_t i = step * width; i < std::min((step + 1) * width, id.size()); ++i) {
            if (id[i] >= 0 && !std::isnan(likely[i])) {
                found.push_back({static_cast<int>(id[i]), static_cast<double>(likely[i]),
                                 i < sampled.size() ? static_cast<double>(sampled[i]) : not_a_number});
            }
        }
    };
    add(signal::sampling_ids, signal::sampling_before, signal::sampling_after, 2);
    if (found.empty()) {
        add(signal::candidate_ids, signal::candidate_probabilities, nullptr, 3);
    }
    return found;
}

Branches::Branches(const ViewContext& context, QWidget* parent)
    : QWidget(parent), context_(context), save_(new QPushButton(u"Save Tree…"_s, this)) {
    about_->setTextFormat(Qt::PlainText);
    about_->setForegroundRole(QPalette::PlaceholderText);
    about_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
    const auto prepare = [this](QTreeWidget* list, const QString& name, const QStringList& columns,
                                const QString& tip) {
        list->setAccessibleName(name);
        list->setToolTip(tip);
        list->setHeaderLabels(columns);
        list->setUniformRowHeights(true);
        list->header()->setStretchLastSection(false);
        list->header()->setSectionResizeMode(QHeaderView::ResizeToContents);
        list->header()->setSectionResizeMode(0, QHeaderView::Stretch);
        list->setMinimumSize(60, 40);
        list->installEventFilter(this);
    };
    prepare(candidates_, u"Candidates"_s, {u"Candidate"_s, u"Model"_s, u"Sampled"_s},
            u"Click or press Enter to replace the selected token and continue.\nModel: probability "
            "from the model. Sampled: probability after temperature, top-k and top-p"_s);
    candidates_->setRootIsDecorated(false);
    prepare(tree_, u"Branches"_s, {u"Branch"_s, u"NLL"_s, u"Steps"_s},
            u"Click or press Enter to show this run as A. Ctrl+click or press B to compare A with this "
            "run"_s);
    save_->setToolTip(u"Copy the temporary runs of all branches to a trace"_s);
    auto* left = make_column(nullptr, {}, -1, {about_, {candidates_, 1}});
    auto* right = make_column(nullptr, {}, -1, {{tree_, 1}, {save_, 0, Qt::AlignRight}});
    make_row(this, {0, 4, 0, 0}, -1, {{left, 1}, {right, 1}});
    connect(candidates_, &QTreeWidget::itemClicked, this, &Branches::force);
    connect(tree_, &QTreeWidget::itemClicked, this, [this](const QTreeWidgetItem* item) {
        choose(item, QGuiApplication::keyboardModifiers().testFlag(Qt::ControlModifier));
    });
    connect(save_, &QPushButton::clicked, this, [this] {
        std::vector<RunKey> runs;
        for (const BranchNode& node : nodes_) {
            if (context_.data.isScratch(node.run.trace)) {
                runs.push_back(node.run);
            }
        }
        Q_EMIT saveRequested(runs);
    });
    refresh();
}

void Branches::setRunning(bool running) {
    running_ = running;
    refresh();
}

void Branches::refresh() {
    refreshCandidates();
    if (!context_.data.isLive(context_.selection.runA().trace)) {
        showTree(); // a live run joins the tree when it is recorded
    }
}

void Branches::refreshCandidates() {
    const Selection& selection = context_.selection;
    const qint64 row = selection.token() < 0 ? -1 : selection.rowOf(selection.token());
    at_ = row + 1;
    const auto block = context_.data.sequence(selection.runA(), selection.sequence());
    const int chosen = block && row >= 0 && at_ < static_cast<qint64>(block->tokens.size())
                           ? block->tokens.id[static_cast<std::size_t>(at_)]
                           : -1;
    const std::vector<BranchCandidate> found = branch_candidates(context_.data, selection, row);
    candidates_->clear();
    for (const BranchCandidate& one : found) {
        auto* item = new QTreeWidgetItem(
            candidates_,
            {word_of(context_.data, selection.runA(), one.id), format_probability(one.before),
             std::isnan(one.after) ? QString::fromUtf16(no_value) : format_probability(one.after)});
        item->setData(0, node_role, one.id);
        QFont font = item->font(0);
        font.setBold(one.id == chosen);
        item->setFont(0, font);
    }
    candidates_->setEnabled(!running_);
    about_->setText(row < 0 ? u"Choose a word to see its candidates."_s
                    : found.empty()
                        ? u"This token has no candidates."_s
                        : u"Click a candidate to replace token %1 with it and continue"_s.arg(at_));
}

void Branches::showTree() {
    TraceData& traces = context_.data;
    nodes_ = branch_tree(traces, context_.selection.runA());
    tree_->clear();
    std::vector<QTreeWidgetItem*> items;
    for (const BranchNode& node : nodes_) {
        const RunInfo& info = *traces.run(node.run);
        QString name = QString::fromStdString(info.name);
        if (node.branch && node.parent >= 0) {
            name = node.branch->forced
                       ? u"%1: %2"_s.arg(node.branch->at).arg(word_of(traces, node.run, *node.branch->forced))
                       : u"%1: continued"_s.arg(node.branch->at);
        }
        const QStringList texts{name, format_nats(mean_nll(info)), format_number(mean_steps(info), 3)};
        auto* item = node.parent < 0
                         ? new QTreeWidgetItem(tree_, texts)
                         : new QTreeWidgetItem(items[static_cast<std::size_t>(node.parent)], texts);
        item->setData(0, node_role, static_cast<int>(items.size()));
        item->setToolTip(0, plain_tip(QString::fromStdString(info.name)));
        items.push_back(item);
        if (node.run == context_.selection.runA()) {
            tree_->setCurrentItem(item);
        }
        if (node.run == context_.selection.runB()) {
            item->setText(0, name + u" (B)"_s);
        }
    }
    tree_->expandAll();
    save_->setEnabled(std::ranges::any_of(
        nodes_, [&traces](const BranchNode& node) { return traces.isScratch(node.run.trace); }));
}

void Branches::force(const QTreeWidgetItem* item) {
    if (item != nullptr && !running_) {
        Q_EMIT branchRequested(at_, item->data(0, node_role).toInt());
    }
}

void Branches::choose(const QTreeWidgetItem* item, bool asB) {
    if (item == nullptr) {
        return;
    }
    const RunKey run = nodes_.at(item->data(0, node_role).toUInt()).run; // a copy: signals rebuild nodes_
    if (asB) {
        context_.selection.setRunB(run);
    } else {
        context_.selection.setRunA(run);
    }
}

bool Branches::eventFilter(QObject* watched, QEvent* event) {
    if (event->type() != QEvent::KeyPress) {
        return QWidget::eventFilter(watched, event);
    }
    const int key = static_cast<QKeyEvent*>(event)->key();
    const bool enter = key == Qt::Key_Return || key == Qt::Key_Enter;
    if (watched == candidates_ && enter) {
        force(candidates_->currentItem());
    } else if (watched == tree_ && (enter || key == Qt::Key_B)) {
        choose(tree_->currentItem(), key == Qt::Key_B);
    } else {
        return QWidget::eventFilter(watched, event);
    }
    return true;
}

} // namespace ponderscope
