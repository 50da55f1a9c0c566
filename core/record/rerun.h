// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/policy/replay.h"
#include "core/record/recorded_sequences.h"

#include <string>
#include <vector>

namespace ponderscope {

/// InputError: \p checkpoint has other weights than \p run. \p digest: checkpoint_digest of it.
void require_weights_of(const RunInfo& run, const Checkpoint& checkpoint, const std::string& digest);

/// Computes a policy exactly, on what a run recorded: the same tokens, windows, schedule and weights, with
/// the policy in place of the model's own rule, on signals of the rerun itself (methods.md section 9). The
/// oracle, which knows the next token, runs to the steps of its replay. The rerun is a run of its own, named
/// "RUN POLICY", whose `policy` is the spec's text. \p sequences: recorded_sequences of the run. \p table: of
/// the run. Only level, batch and dtype of \p options count. Errors as record().
RecordReport rerun(Engine& engine, const Checkpoint& checkpoint, const RunInfo& run, const ReplayTable& table,
                   const std::vector<SequenceInput>& sequences, const Tokenizer* tokenizer,
                   const PolicySpec& spec, TraceWriter& writer, RecordOptions options,
                   const ProgressSink& progress = {}, std::stop_token stop = {});

/// The spec with the run's defaults written out, so that it means the same on any run: random pruning at the
/// learned rate.
PolicySpec spelled_out(const PolicySpec& spec, const PolicyContext& context);

} // namespace ponderscope
