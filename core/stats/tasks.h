// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/stats/bootstrap.h"
#include "core/stats/significance.h"
#include "core/trace/reader.h"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace ponderscope {

/// Sums over the tokens that a part of a document's requests predicted.
struct TaskPart {
    double steps = 0;
    double flops = 0;
    std::int64_t tokens = 0;
};

/// One option of a document: a sequence whose last part has the label "right N" or "wrong N".
struct TaskOption {
    std::int64_t sequence = 0; ///< number in the run
    std::int64_t token = 0;    ///< of the sequence: the first of the option
    bool right = false;
    double nll = 0;                   ///< of the option's tokens, nats
    double characters = 0;            ///< of the option without white space before it
    bool greedy = true;               ///< every token of it was the likeliest
    std::vector<double> nll_by_step;  ///< had every token been read out at step k; empty: not recorded
    std::vector<bool> greedy_by_step; ///< likewise
    TaskPart part;
};

/// A document of a task: the sequences of one group, "TASK/DOCUMENT".
struct TaskDocument {
    std::string name;
    std::vector<TaskOption> options;
    TaskPart context; ///< of the first option: options that share a context share its computation

    /// Whether the likeliest option is a right one; of a single option, whether greedy decoding gives it. \p
    /// by_length: NLL a character. \p step: at that step; negative: as computed.
    [[nodiscard]] bool is_right(std::int64_t step = -1, bool by_length = false) const;
};

struct TaskSample {
    std::string task;
    std::int64_t max_steps = -1; ///< last step of which every option has an NLL; -1: none was recorded
    std::vector<TaskDocument> documents;
    [[nodiscard]] bool has_options() const; ///< more than one a document
};

/// The tasks of a run, in the order of their first documents; empty: no sequence is an option of a task.
/// Cancelled by \p stop.
std::vector<TaskSample> read_tasks(const TraceReader& trace, const RunInfo& run,
                                   const std::stop_token& stop = {});

/// Documents whose answer at step k differs from step k - 1; numbers in TaskSample::documents.
struct StepFlips {
    std::vector<std::size_t> became_right, became_wrong;
};

/// Accuracy and cost of a task, intervals over documents.
struct TaskReport {
    std::string task;
    std::int64_t documents = 0;
    Estimate accuracy;      ///< share of documents
    Estimate accuracy_norm; ///< the same by NLL a character; NaN if documents have one option
    Estimate perplexity;    ///< of the right options' tokens; of single options, of each as a whole
    Estimate context_steps, right_steps, wrong_steps; ///< mean over tokens; NaN: there are none
    Estimate steps;                                   ///< mean over all tokens
    Estimate flops;                                   ///< a document
    std::vector<Estimate> accuracy_by_step;
    std::vector<StepFlips> flips; ///< of step k; the first is empty
};

/// InputError: fewer than two documents.
TaskReport report_task(const TaskSample& sample, const BootstrapOptions& options = {});

/// Two runs on the documents that both have: Flips::tokens are documents. Numbers are of \p a.
struct TaskComparison {
    std::string task;
    Flips flips;
    std::vector<std::size_t> only_a, only_b; ///< documents that only this run answers right
};
/// InputError: fewer than two documents in common.
TaskComparison compare_task(const TaskSample& a, const TaskSample& b, const BootstrapOptions& options = {});

} // namespace ponderscope
