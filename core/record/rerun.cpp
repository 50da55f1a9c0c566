// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/record/rerun.h"

#include "core/base/error.h"
#include "core/base/words.h"
#include "core/ponder/halting/halting_rules.h"
#include "core/ponder/halting/policy_halting.h"
#include "core/trace/recorded_choices.h"

#include <cmath>
#include <utility>

namespace ponderscope {

namespace {

/// The refreshes of a run with `scoring` "jacobi:3"; no value for "exact".
std::optional<std::int64_t> refreshes_of(const RunInfo& run) {
    constexpr std::string_view prefix = "jacobi:";
    return run.scoring.starts_with(prefix)
               ? parse_number<std::int64_t>(run.scoring.substr(prefix.size())).value_or(0)
               : std::optional<std::int64_t>();
}

/// The replay's steps by sequence and position.
std::vector<std::vector<std::int32_t>> steps_of(const ReplayTable& table, const ReplayResult& replayed) {
    std::vector<std::vector<std::int32_t>> steps;
    auto next = replayed.steps.begin();
    for (const std::int64_t length : table.sequences) {
        steps.emplace_back(next, next + length);
        next += length;
    }
    return steps;
}

} // namespace

void require_weights_of(const RunInfo& run, const Checkpoint& checkpoint, const std::string& digest) {
    if (const std::string why = why_no_rerun(run); !why.empty()) {
        throw InputError(ErrorId::run_unsuited, why);
    }
    if (!changes_of(run).empty()) {
        throw InputError(
            ErrorId::run_unsuited,
            "Run \"" + run.name +
                "\" was recorded with a changed model, and --rerun does not repeat the change; "
                "record the policy with ponderscope record ... --ablate-source ... --policy SPEC.");
    }
    require_checkpoint_of(run, checkpoint, digest);
}

void require_checkpoint_of(const RunInfo& run, const Checkpoint& checkpoint, const std::string& digest) {
    if (digest != run.checkpoint_digest) {
        throw InputError(ErrorId::resume_differs, checkpoint.folder,
                         "the weights of run \"" + run.name + "\" (" + run.checkpoint + ")",
                         "different weights", "name the checkpoint that the run was recorded from");
    }
}

PolicySpec spelled_out(const PolicySpec& spec, const PolicyContext& context) {
    const PolicyParameter* rate = spec.kind->find("rate");
    return rate != nullptr && !spec.has(rate->key) && !std::isnan(context.learned_rate)
               ? spec.with(rate->key, context.learned_rate)
               : spec;
}

RecordReport rerun(Engine& engine, const Checkpoint& checkpoint, const RunInfo& run, const ReplayTable& table,
                   const std::vector<SequenceInput>& sequences, const Tokenizer* tokenizer,
                   const PolicySpec& spec, TraceWriter& writer, RecordOptions options,
                   const ProgressSink& progress, std::stop_token stop) {
    if (table.layers_as_steps) {
        engine.choose(&RunPlan::layers_are_steps, true);
    }
    const KvPolicy own_kv = kv_policy_from_string(kv_of_rerun(run)).value_or(KvPolicy::per_step);
    if (!engine.kv().empty() && !engine.plan().kv) {
        engine.choose(&RunPlan::kv, own_kv);
    }
    const RecordedChoices chosen = recorded_choices(run);
    if (!chosen.initial_state.empty()) {
        engine.choose(&RunPlan::start_state, chosen.initial_state);
        if (!chosen.initial_state_digest.empty() &&
            engine.start_state_digest() != chosen.initial_state_digest) {
            throw InputError(ErrorId::file_changed, chosen.initial_state,
                             "the start states of run \"" + run.name + "\"", "different states",
                             "restore the original file");
        }
    }
    if (run.max_steps != engine.max_steps()) {
        throw InputError(ErrorId::run_unsuited, "Run \"" + run.name + "\" has " +
                                                    std::to_string(run.max_steps) +
                                                    " further steps, but the model was opened with " +
                                                    std::to_string(engine.max_steps()) +
                                                    "; rerun it with the run's number of steps.");
    }
    if (spec.kind->causal) {
        engine.choose(&RunPlan::rule, rule_of(spec, engine));
    } else {
        engine.choose(&RunPlan::rule, prescribed_halting(spec.text(), steps_of(table, replay(table, spec))));
    }
    // Set refreshes after the rule, because pause tokens accept refreshes only with a rule.
    if (run.scoring != engine.scoring()) {
        engine.choose(&RunPlan::refreshes, refreshes_of(run));
    }
    options.context = run.context;
    options.stride = run.stride;
    options.text_source = run.text_source;
    options.text_digest = run.text_digest;
    options.seed = run.seed;
    options.run_name =
        run.name + " " + spec.text() +
        (!engine.kv().empty() && engine.kv() != to_string(own_kv) ? " kv=" + engine.kv() : std::string());
    return record(engine, checkpoint, sequences, tokenizer, writer, options, progress, std::move(stop));
}

} // namespace ponderscope
