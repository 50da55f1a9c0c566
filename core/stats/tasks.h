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

/// Sums over the predicted tokens of a context or an option.
struct TaskPart {
    double steps = 0;
    double flops = 0;
    std::int64_t tokens = 0;
};

/// One option of a document: a sequence whose last part is labelled "right N" or "wrong N".
struct TaskOption {
    std::int64_t sequence = 0; ///< number in the run
    std::int64_t token = 0;    ///< first token of the option in the sequence
    bool right = false;
    double nll = 0;                   ///< sum over the option's tokens, nats
    double characters = 0;            ///< characters of the option, without leading white space
    bool greedy = true;               ///< every token of the option was the model's most likely token
    std::vector<double> nll_by_step;  ///< NLL if all tokens are read out at step k; empty: not recorded
    std::vector<bool> greedy_by_step; ///< `greedy` if all tokens are read out at step k
    TaskPart part;
};

/// A document of a task: the sequences of one group, "TASK/DOCUMENT".
struct TaskDocument {
    std::string name;
    std::vector<TaskOption> options;
    TaskPart context; ///< context of the first option, counted once for all options

    /// Whether the most likely option is right. For a single option: whether greedy decoding produces it. \p
    /// by_length: compare NLL per character. \p step: read out at this step; negative: at the steps that the
    /// run chose.
    [[nodiscard]] bool is_right(std::int64_t step = -1, bool by_length = false) const;
};

struct TaskSample {
    std::string task;
    std::int64_t max_steps = -1; ///< the last step at which every option has an NLL; -1: no NLL by step
    std::vector<TaskDocument> documents;
    [[nodiscard]] bool has_options() const; ///< whether a document has more than one option
};

/// The tasks of a run, in the order of their first documents. Empty: no sequence is an option of a task.
/// Throws Cancelled on \p stop.
std::vector<TaskSample> read_tasks(const TraceReader& trace, const RunInfo& run,
                                   const std::stop_token& stop = {});

/// Documents (indices in TaskSample::documents) whose answer became right or wrong at a step.
struct StepFlips {
    std::vector<std::size_t> became_right, became_wrong;
};

/// Accuracy and cost of a task, with intervals over documents.
struct TaskReport {
    std::string task;
    std::int64_t documents = 0;
    Estimate accuracy;      ///< share of documents
    Estimate accuracy_norm; ///< accuracy by NLL per character; NaN if documents have one option
    Estimate perplexity;    ///< per token of right options; if documents have one option, per option
    Estimate context_steps, right_steps, wrong_steps; ///< mean over tokens; NaN without tokens
    Estimate steps;                                   ///< mean over all tokens
    Estimate flops;                                   ///< per document
    std::vector<Estimate> accuracy_by_step;
    std::vector<StepFlips> flips; ///< [step k]; the entry of step 0 is empty
};

/// InputError: fewer than two documents.
TaskReport report_task(const TaskSample& sample, const BootstrapOptions& options = {});

/// Two runs on their common documents. Flips::tokens is the number of these documents.
struct TaskComparison {
    std::string task;
    Flips flips;
    std::vector<std::size_t> only_a, only_b; ///< answered right by one run only; indices in documents of \p a
};
/// InputError: fewer than two documents in common.
TaskComparison compare_task(const TaskSample& a, const TaskSample& b, const BootstrapOptions& options = {});

} // namespace ponderscope
