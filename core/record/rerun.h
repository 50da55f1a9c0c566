// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/policy/replay.h"
#include "core/record/recorded_sequences.h"

#include <string>
#include <vector>

namespace ponderscope {

/// InputError: \p run was recorded with other weights. \p digest: digest of \p checkpoint.
void require_checkpoint_of(const RunInfo& run, const Checkpoint& checkpoint, const std::string& digest);
/// require_checkpoint_of(). Also InputError if states or depth sources of \p run were changed, because reruns
/// do not repeat these changes.
void require_weights_of(const RunInfo& run, const Checkpoint& checkpoint, const std::string& digest);

/// Computes a policy exactly on the sequences of a run: the same tokens, windows, schedule and weights. The
/// policy replaces the model's own rule and reads signals of the rerun itself (methods.md section 9). The
/// oracle needs the next token, so its rerun takes the steps of its replay. The rerun is a new run, named
/// "RUN POLICY", whose `policy` is the spec's text. \p sequences: recorded_sequences of the run. \p table:
/// the run's table. Replaces context, stride, run_name, text_source, text_digest and seed of \p options by
/// values for the rerun. Throws the errors of record().
RecordReport rerun(Engine& engine, const Checkpoint& checkpoint, const RunInfo& run, const ReplayTable& table,
                   const std::vector<SequenceInput>& sequences, const Tokenizer* tokenizer,
                   const PolicySpec& spec, TraceWriter& writer, RecordOptions options,
                   const ProgressSink& progress = {}, std::stop_token stop = {});

/// The spec with the run's values written out, so that the spec means the same on any run. Example: random
/// pruning at the learned rate.
PolicySpec spelled_out(const PolicySpec& spec, const PolicyContext& context);

} // namespace ponderscope
