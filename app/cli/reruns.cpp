// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/reruns.h"
#include "app/cli/numbers.h"

#include "core/base/error.h"
#include "core/checkpoint/method_info.h"
#include "core/policy/rerun_difference.h"
#include "core/ponder/choices/run_plan.h"
#include "core/ponder/halting/policy_halting.h"
#include "core/record/rerun.h"
#include "core/trace/recorded_choices.h"
#include "core/trace/shard.h"
#include "core/trace/writer.h"

#include <algorithm>
#include <optional>

namespace ponderscope::cli {

void RerunOptions::add_to(CLI::App& verb) {
    verb.add_option("--rerun", model.checkpoint,
                    "Also run the model under each policy and compare with the replay. The trace stores the "
                    "reruns and reuses them")
        ->type_name("CHECKPOINT");
    verb.add_option("-o,--output", output, "Trace for the reruns (default: the replayed trace)")
        ->needs("--rerun")
        ->type_name("TRACE.ponder");
    verb.add_option(
            "--kv", kv,
            "Keys and values of a stopped token that later tokens see in reruns, one of per_step, shared, "
            "skip, full (resources/docs/recurrent-depth.md). Default: as in the run; per_step if the exits "
            "of the run only chose the read-out")
        ->needs("--rerun")
        ->type_name("full|per_step|shared|skip");
    add_number(verb, "--batch", batch, "Windows computed together in reruns", 1, 4096);
    verb.add_option("--device", model.device, "Where reruns compute: cpu, cuda, cuda:N, or auto")
        ->capture_default_str();
}

void RerunOptions::check(const TraceReader& reader) const {
    if (!kv.empty() && !kv_policy_from_string(kv)) {
        throw InputError(ErrorId::usage_value,
                         "--kv: expected full, per_step, shared or skip, found '" + kv + "'.");
    }
    const std::filesystem::path where = trace(reader);
    const bool shards = output.empty() ? reader.files() != std::vector{where}
                                       : !std::filesystem::exists(where) && !shards_of(where).empty();
    if (wanted() && (shards || parse_shard_name(where))) {
        throw InputError(ErrorId::usage_conflict, where, "a trace file for the reruns",
                         "a shard, or the name of a set of shards", "name another file with --output");
    }
}

std::vector<RunInfo> RerunOptions::make(const TraceReader& reader, const RunInfo& source,
                                        const ReplayTable& table, const std::vector<PolicySpec>& specs,
                                        ProgressPrinter& printer, const std::stop_token& stop) const {
    const std::filesystem::path where = trace(reader);
    const auto exact_runs = [&] {
        return std::filesystem::exists(where) ? TraceReader::open(where).runs() : std::vector<RunInfo>();
    };
    const auto find = [&](const std::vector<RunInfo>& runs, const PolicySpec& spec) {
        const auto found = std::find_if(runs.rbegin(), runs.rend(), [&](const RunInfo& one) {
            return is_rerun_of(one, source, spec.text(), kv) && one.text_digest == source.text_digest;
        });
        return found == runs.rend() ? nullptr : &*found;
    };
    std::vector<RunInfo> runs = exact_runs();
    std::vector<PolicySpec> missing;
    for (const PolicySpec& spec : specs) {
        if (find(runs, spec) == nullptr) {
            missing.push_back(spec);
        }
    }
    if (!missing.empty()) {
        ModelOptions options = model;
        options.method = options.method.empty() ? source.method : options.method;
        const bool own_rule =
            recorded_choices(source).rule &&
            std::ranges::any_of(missing, [](const PolicySpec& spec) { return spec.kind->name == "learned"; });
        if (own_rule || method_info(options.method) == nullptr) {
            throw InputError(
                ErrorId::run_unsuited,
                "Run \"" + source.name + "\" was recorded by a model of your own (" +
                    (own_rule ? "with its own halting rule" : "method " + source.method) +
                    "), which the engine cannot run; apply the policy in your own code and record that run, "
                    "or leave --rerun out.");
        }
        options.dtype = source.dtype;
        if (const MethodInfo* info = method_info(options.method); info != nullptr && info->any_steps) {
            options.steps = source.max_steps + 1;
        }
        const Checkpoint checkpoint = options.open();
        require_weights_of(source, checkpoint, checkpoint_digest(checkpoint, printer.sink(), stop));
        const std::optional<Tokenizer> tokenizer = open_tokenizer(checkpoint);
        const std::vector<SequenceInput> sequences = recorded_sequences(reader, source, stop);
        Engine engine = options.load(checkpoint, printer, stop);
        if (!kv.empty()) {
            engine.choose(&RunPlan::kv, kv_policy_from_string(kv));
        }
        for (const PolicySpec& spec : missing) {
            if (spec.kind->causal) {
                (void)rule_of(spec, engine); // refuse unsupported policies before a file is created
            }
        }
        for (const PolicySpec& spec : missing) {
            RecordOptions how;
            how.level = RecordLevel::basic;
            how.batch = batch;
            TraceWriter writer(where);
            if (rerun(engine, checkpoint, source, table, sequences, tokenizer ? &*tokenizer : nullptr, spec,
                      writer, how, printer.sink(), stop)
                    .cancelled) {
                throw Cancelled();
            }
        }
        runs = exact_runs();
    }
    std::vector<RunInfo> found;
    for (const PolicySpec& spec : specs) {
        const RunInfo* one = find(runs, spec);
        if (one == nullptr) {
            throw InputError(ErrorId::trace_run, where, "the rerun of " + spec.text() + ", just recorded",
                             "a trace without that run", "write the reruns to another trace with --output");
        }
        found.push_back(*one);
    }
    return found;
}

Notices notices_of_replays(const ReplayTable& table, const RunInfo& run, const Resampling& resampling,
                           bool reran) {
    Notices notices = resampling.notices();
    if (!run.complete) {
        notices.insert(notices.begin(), Notice{NoticeId::run_partial, "the run is partial."});
    }
    if (table.halted) {
        notices.insert(
            notices.begin(),
            Notice{NoticeId::policy_halted,
                   "tokens of this run stopped early, so a replay ends at the last step that ran; record "
                   "with --policy full to replay all steps."});
    }
    notices.push_back({NoticeId::policy_replay,
                       reran
                           ? "a replay assumes that tokens do not affect each other; where it differs from "
                             "the rerun, the rerun is right."
                           : "a replay assumes that tokens do not affect each other; the NLL of a token can "
                             "differ from a rerun by more than a nat (--rerun CHECKPOINT)."});
    return notices;
}

} // namespace ponderscope::cli
