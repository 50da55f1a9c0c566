// SPDX-License-Identifier: GPL-3.0-or-later
// Prints the report of `record`.
#include "app/cli/record_verb.h"
#include "core/base/json.h"
#include "core/base/utf8.h"
#include "core/model/local_gpu.h"
#include "core/ponder/engine/no_numbers.h"
#include "core/remote/address.h"

#include <algorithm>
#include <cmath>
#include <iostream>

namespace ponderscope::cli {

std::string RecordVerb::unreached_patches(const TraceReader& reader, const RunInfo& run,
                                          const Engine& engine) const {
    std::int64_t unreached = 0;
    std::string first;
    for (const PlannedPatch& patch : patches) {
        const StatePlace& to = patch.to;
        const TokenColumns token = reader.tokens(run.id, to.sequence, to.token, to.token + 1);
        if (engine.kv() != "full" && token.size() == 1 && token.steps.front() < to.step) {
            first = ++unreached == 1
                        ? to_string(to) + ": the token stopped at step " + std::to_string(token.steps.front())
                        : first;
        }
    }
    return unreached == 0 ? ""
                          : with_separators(unreached) + " of " +
                                with_separators(static_cast<std::int64_t>(patches.size())) +
                                " patches had no effect because their steps did not run (" + first + ").";
}

void RecordVerb::print(const RecordReport& report, const Engine& engine) const {
    const TraceReader reader = TraceReader::open(trace);
    const RunInfo run = run_by_id(reader, report.run);
    if (plain && plain->run != report.run && !json && progress.style != ProgressStyle::json) {
        const RunInfo before = run_by_id(reader, plain->run);
        print_run(before, *plain, engine);
        print_run(run, report, engine);
        std::cout << visible("ponderscope compare " + remote::shell_quoted(run_reference(trace, before)) +
                             " " + remote::shell_quoted(run_reference(trace, run)) + "  # shows what changed")
                  << '\n';
    } else {
        print_run(run, report, engine);
    }
    for (const Notice& notice : engine.notices()) {
        if (notice.id == NoticeId::run_layers_as_steps) {
            std::cerr << notice.text << '\n';
        }
    }
    if (report.cancelled) {
        return; // the patched tokens may not be recorded
    }
    if (const std::string unreached = unreached_patches(reader, run, engine); !unreached.empty()) {
        std::cerr << unreached << '\n';
    }
}

void RecordVerb::print_run(const RunInfo& run, const RecordReport& report, const Engine& engine) const {
    const std::string& run_name = run.name;
    const double mean_nll = run.nll_sum / static_cast<double>(run.scored_tokens);
    const double mean_steps = run.steps_sum / static_cast<double>(run.scored_tokens);
    const double mean_flops =
        run.tokens > 0 ? run.flops_sum / static_cast<double>(run.tokens) : 0; // 0: unknown
    if (json || progress.style == ProgressStyle::json) {
        nlohmann::json result{{"trace", trace.string()},
                              {"run", run_name},
                              {"sequences", run.sequences},
                              {"tokens", run.tokens},
                              {"scored_tokens", run.scored_tokens},
                              {"lost_tokens", report.lost},
                              {"mean_nll", number_or_null(mean_nll)},
                              {"mean_steps", number_or_null(mean_steps)},
                              {"mean_flops", mean_flops > 0 ? nlohmann::json(mean_flops) : nullptr},
                              {"seconds", run.seconds},
                              {"scoring", engine.scoring()},
                              {"policy", engine.policy()},
                              {"complete", !report.cancelled}};
        if (!patches.empty()) {
            const bool is_plain = plain && plain->run == report.run; // cancelled before the patched run
            result["patches"] = is_plain ? 0 : patches.size();
            result["without_patches"] =
                plain && !is_plain ? nlohmann::json(run_by_id(TraceReader::open(trace), plain->run).name)
                                   : nlohmann::json();
        }
        if (const auto peak = peak_gpu_memory()) {
            result["gpu_memory_peak"] = *peak; // bytes
        }
        if (!jsonl.file.empty()) {
            result["lines_left_out"] = lines_left_out;
        }
        std::cout << result.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
        return;
    }
    std::cout << visible(trace.string()) << "#" << visible(run_name) << "  " << with_separators(run.tokens)
              << " tokens";
    if (run.scored_tokens > 0) {
        std::cout << "  NLL " << fixed(mean_nll, 4) << "  perplexity " << fixed(std::exp(mean_nll), 2);
        if (run.max_steps > 0) {
            std::cout << "  " << run.step_unit << "s " << fixed(mean_steps, 2) << " of " << run.max_steps;
        }
    }
    if (mean_flops > 0) {
        std::cout << "  " << human_count(mean_flops) << "FLOP a token";
    }
    if (engine.scoring() != "exact") {
        std::cout << "  " << engine.scoring();
    }
    std::cout << "  "
              << with_separators(std::llround(static_cast<double>(run.tokens) / std::max(run.seconds, 1e-9)))
              << " tokens/s" << (report.found_complete ? "  (complete; there was nothing to resume)" : "")
              << (report.cancelled ? "  (cancelled: the run is partial)" : "") << '\n';
    if (!left_out.empty()) {
        std::cout << left_out << '\n';
    }
    if (report.lost > 0) {
        std::cout << sentence_of_lost(report.lost) << '\n';
    }
}

} // namespace ponderscope::cli
