// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trace/tools/summary.h"

#include "core/base/json.h"
#include "core/base/utf8.h"
#include "core/base/words.h"
#include "core/remote/address.h"
#include "core/remote/host.h"
#include "core/trace/recorded_choices.h"
#include "core/trace/rows.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <numbers>

namespace ponderscope {
namespace {

using plain_text::fixed;
using plain_text::human_bytes;
using plain_text::with_separators;

double ratio(double sum, std::int64_t count) {
    return count > 0 ? sum / static_cast<double>(count) : std::numeric_limits<double>::quiet_NaN();
}

std::string plural(std::int64_t count, const std::string& noun) {
    return with_separators(count) + " " + noun + (count == 1 ? "" : "s");
}

/// A text from the file with its control characters made visible.
std::string shown(const std::string& text) {
    return printable(text, 200);
}

std::uintmax_t size_of(const TraceReader& reader) {
    std::error_code error;
    std::uintmax_t bytes = 0;
    for (const std::filesystem::path& file : reader.files()) {
        const std::uintmax_t size =
            remote::is_remote(file) ? remote::look(file).size : std::filesystem::file_size(file, error);
        bytes += error ? 0 : size;
    }
    return bytes;
}

/// "2 states"; --json lists them.
std::string patches_of(const RunInfo& run) {
    const nlohmann::json choices = choices_json(run.choices);
    const auto patches = choices.find("patches");
    return patches == choices.end() || !patches->is_array()
               ? ""
               : plural(static_cast<std::int64_t>(patches->size()), "state");
}

/// "sequence 0 of ponderlm up to token 9, then id 345".
std::string branch_of(const RunInfo& run) {
    const std::optional<Branch> branch = recorded_choices(run).branch;
    return branch ? "sequence " + std::to_string(branch->sequence) + " of " + shown(branch->of) +
                        " up to token " + std::to_string(branch->at) +
                        (branch->forced ? ", then id " + std::to_string(*branch->forced) : "")
                  : "";
}

/// A function that adds a line with a label and a value to \p text, unless the value is empty.
auto line_adder(std::string& text) {
    return [&text](std::string label, const std::string& value) {
        if (!value.empty()) {
            label.resize(13, ' ');
            text += "  " + label + value + "\n";
        }
    };
}

std::string describe_run(const TraceReader& reader, const RunInfo& run) {
    std::string text = "\nRun " + std::to_string(run.id) + ": " + shown(run.name) +
                       (run.complete ? "" : " (partial)") + "\n";
    const auto line = line_adder(text);
    line("checkpoint",
         shown(run.checkpoint) +
             (run.checkpoint_digest.empty() ? "" : "  sha256 " + shown(run.checkpoint_digest).substr(0, 16)));
    line("model", shown(run.architecture) + ", " + plural(run.layers, "layer") + ", vocabulary " +
                      with_separators(run.vocab_size));
    line("method",
         shown(run.method) +
             (run.step_unit == "layer" ? ", exits after blocks 0 to " + std::to_string(run.max_steps)
              : run.max_steps == 0     ? ", one step a token"
                                       : ", up to " + plural(run.max_steps, "step")) +
             (run.depth_mixing.empty() || run.depth_mixing == "none" ? "" : ", " + shown(run.depth_mixing)) +
             (run.policy.empty() || run.max_steps == 0 ? "" : ", policy " + shown(run.policy)) +
             (run.scoring.empty() ? "" : ", " + shown(run.scoring) + " scoring"));
    line("ran",
         shown(run.started) + " on " + shown(run.device) + " in " + shown(run.dtype) + ", " +
             fixed(run.seconds, 1) + " s" +
             (run.seconds > 0 ? ", " + fixed(static_cast<double>(run.tokens) / run.seconds, 0) + " tokens/s"
                              : ""));
    for (const std::string& notice : notices_of(run)) {
        line("notice", printable(notice, 500));
    }
    line("patches", patches_of(run));
    line("continues", branch_of(run));
    line("windows", run.context > 0
                        ? with_separators(run.context) + " tokens, stride " + with_separators(run.stride)
                        : "");
    line("text", shown(run.text_source));
    line("holds", plural(run.sequences, "sequence") + ", " + plural(run.tokens, "token") + ", " +
                      with_separators(run.scored_tokens) + " scored");
    if (run.scored_tokens > 0) {
        line("NLL", fixed(mean_nll(run), 4) + " nats, perplexity " + fixed(perplexity(run), 2) +
                        (run.scored_bytes > 0 ? ", " + fixed(bits_per_byte(run), 4) + " bits per byte" : ""));
        line("steps", fixed(mean_steps(run), 3) + " on average");
    }
    line("FLOPs", run.flops_sum > 0 ? fixed(mean_flops(run) / 1e6, 2) + " M a token"
                  : run.tokens > 0  ? "not known"
                                    : "");
    line("signals", joined(reader.signal_infos(run.id), [](const auto& one) { return shown(one.name); }));
    for (const FaultInfo& fault : reader.faults(run.id)) {
        line("fault", shown(fault.time) + " " + printable(fault.message, 500));
    }
    return text;
}

/// The last value of a curve, with its step if this is not the last step of the training.
std::string last_of(const std::vector<TrainingCurve>& curves, const char* quantity,
                    const TrainingInfo& training) {
    for (const TrainingCurve& curve : curves) {
        if (curve.quantity == quantity && curve.place == 0 && curve.size() > 0) {
            return fixed(curve.value.back(), 4) + (curve.step.back() == training.step
                                                       ? ""
                                                       : " at step " + with_separators(curve.step.back()));
        }
    }
    return {};
}

std::string describe_training(const TraceReader& reader, const TrainingInfo& training) {
    std::string text = "\nTraining " + std::to_string(training.id) + ": " + shown(training.name) +
                       (training.complete        ? ""
                        : training.fault.empty() ? " (not complete)"
                                                 : " (failed)") +
                       "\n";
    const auto line = line_adder(text);
    line("model", shown(training.architecture) + ", " + shown(training.method) +
                      (training.depth_mixing.empty() || training.depth_mixing == "none"
                           ? ""
                           : ", " + shown(training.depth_mixing)) +
                      ", " + plural(training.parameters, "parameter"));
    line("trained", with_separators(training.step) + " of " + plural(training.planned_steps, "step") + ", " +
                        plural(training.tokens, "token") + ", " + fixed(training.seconds, 1) + " s on " +
                        shown(training.device) + " in " + shown(training.precision));
    const std::vector<TrainingCurve> curves = reader.training_curves(training.id);
    line("loss", last_of(curves, training_quantity::loss, training));
    line("held-out NLL", last_of(curves, training_quantity::held_out_nll, training));
    line("mean steps", last_of(curves, training_quantity::held_out_mean_steps, training));
    line("curves",
         joined(reader.training_quantities(training.id), [](const auto& one) { return shown(one.name); }));
    line("fault", printable(training.fault, 500));
    return text;
}

nlohmann::json json_of(const TraceReader& reader, const RunInfo& run) {
    nlohmann::json all = schema::json_of_row(run);
    all.update({{"choices", choices_json(run.choices)},
                {"mean_nll", number_or_null(mean_nll(run))},
                {"perplexity", number_or_null(perplexity(run))},
                {"bits_per_byte", number_or_null(bits_per_byte(run))},
                {"mean_steps", number_or_null(mean_steps(run))},
                {"flops_per_token", number_or_null(mean_flops(run))},
                {"signals", nlohmann::json::array()},
                {"faults", nlohmann::json::array()}});
    for (const SignalInfo& signal : reader.signal_infos(run.id)) {
        all["signals"].push_back(schema::json_of_row(signal));
    }
    for (const FaultInfo& fault : reader.faults(run.id)) {
        all["faults"].push_back(schema::json_of_row(fault));
    }
    return all;
}

nlohmann::json json_of(const TraceReader& reader, const TrainingInfo& training) {
    nlohmann::json all = schema::json_of_row(training);
    all["quantities"] = nlohmann::json::array();
    for (const TrainingQuantity& quantity : reader.training_quantities(training.id)) {
        all["quantities"].push_back(schema::json_of_row(quantity));
    }
    return all;
}

} // namespace

double mean_nll(const TokenTotals& totals) {
    return ratio(totals.nll_sum, totals.scored_tokens);
}

double perplexity(const TokenTotals& totals) {
    return std::exp(mean_nll(totals));
}

double bits_per_byte(const TokenTotals& totals) {
    return ratio(totals.nll_sum / std::numbers::ln2, totals.scored_bytes);
}

double mean_flops(const TokenTotals& totals) {
    return totals.flops_sum > 0 ? ratio(totals.flops_sum, totals.tokens)
                                : std::numeric_limits<double>::quiet_NaN();
}

double mean_steps(const TokenTotals& totals) {
    return ratio(totals.steps_sum, totals.scored_tokens);
}

std::string trace_summary(const TraceReader& reader) {
    const std::vector<RunInfo> runs = reader.runs();
    const std::vector<TrainingInfo> trainings = reader.trainings();
    std::string text =
        reader.path().string() + ": a trace of " +
        (trainings.empty() ? "" : plural(static_cast<std::int64_t>(trainings.size()), "training") + " and ") +
        plural(static_cast<std::int64_t>(runs.size()), "run") + ", " +
        human_bytes(static_cast<double>(size_of(reader))) + "\n";
    for (const Notice& notice : reader.notices()) {
        text += notice.text + "\n";
    }
    for (const TrainingInfo& training : trainings) {
        text += describe_training(reader, training);
    }
    for (const RunInfo& run : runs) {
        text += describe_run(reader, run);
    }
    return text;
}

nlohmann::json trace_summary_json(const TraceReader& reader) {
    nlohmann::json runs = nlohmann::json::array();
    for (const RunInfo& run : reader.runs()) {
        runs.push_back(json_of(reader, run));
    }
    nlohmann::json trainings = nlohmann::json::array();
    for (const TrainingInfo& training : reader.trainings()) {
        trainings.push_back(json_of(reader, training));
    }
    nlohmann::json summary{{"path", valid_utf8(reader.path().string())},
                           {"bytes", size_of(reader)},
                           {"runs", runs},
                           {"trainings", trainings}};
    write_notices(summary, reader.notices());
    return summary;
}

} // namespace ponderscope
