// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/stats/expert_use.h"

#include "core/base/error.h"
#include "core/base/words.h"
#include "core/trace/column_labels.h"
#include "core/trace/tools/step_columns.h"

#include <algorithm>
#include <functional>
#include <limits>

namespace ponderscope {

namespace {

constexpr std::int64_t rows_of_a_page = 1 << 12;

double share_of(std::int64_t part, std::int64_t all) {
    return all > 0 ? static_cast<double>(part) / static_cast<double>(all)
                   : std::numeric_limits<double>::quiet_NaN();
}

SignalInfo require_experts(const TraceReader& reader, const RunInfo& run) {
    const std::optional<SignalInfo> info = experts_signal(reader.signal_infos(run.id));
    if (!info) {
        throw InputError(ErrorId::run_unsuited, reader.path(), "a run with chosen experts",
                         "run \"" + run.name + "\" without chosen experts",
                         "record a mixture of experts with --record steps,experts");
    }
    return *info;
}

/// Calls visit(first, rows) for pages of all recorded tokens of a sequence. \c first: position of row 0.
void each_page(const TraceReader& reader, const RunInfo& run, const SequenceInfo& sequence,
               const SignalInfo& info, const std::stop_token& stop,
               const std::function<void(std::int64_t first, const ExpertRows&)>& visit) {
    for (std::int64_t begin = 0; begin < sequence.tokens; begin += rows_of_a_page) {
        throw_if_stopped(stop);
        const auto chunk = reader.signal(run.id, sequence.number, info.name, begin,
                                         std::min(begin + rows_of_a_page, sequence.tokens));
        if (!chunk) {
            return;
        }
        visit(begin, ExpertRows::from(*chunk, info));
    }
}

} // namespace

std::optional<SignalInfo> experts_signal(const std::vector<SignalInfo>& infos) {
    const auto found = std::find_if(infos.begin(), infos.end(), [](const SignalInfo& info) {
        return info.name == signal::router_experts && info.axes.size() >= 3 && info.axes.back() == "choice" &&
               info.axes[info.axes.size() - 2] == "layer";
    });
    return found == infos.end() ? std::nullopt : std::optional(*found);
}

std::int64_t number_of_experts(const SignalInfo& info) {
    constexpr std::string_view before = "Experts: ";
    const std::size_t at = info.description.rfind(before);
    if (at == std::string::npos) {
        return 0;
    }
    const std::string_view rest = std::string_view(info.description).substr(at + before.size());
    return parse_number<std::int64_t>(rest.substr(0, rest.find('.'))).value_or(0);
}

ExpertRows ExpertRows::from(const SignalChunk& chunk, const SignalInfo& info) {
    const bool by_step = info.axes.size() == 4 && info.axes[1] == "step";
    if (!experts_signal({info}) || chunk.shape.size() != info.axes.size() ||
        (info.axes.size() != 3 && !by_step)) {
        throw InputError(ErrorId::trace_damaged,
                         "Signal " + info.name +
                             " has other axes than token, step, layer and choice; record the run again.");
    }
    ExpertRows rows;
    rows.tokens = chunk.shape.front();
    rows.steps = by_step ? chunk.shape[1] : 1;
    rows.layers = chunk.shape[chunk.shape.size() - 2];
    rows.chosen = chunk.shape.back();
    rows.ids = to_integers(chunk);
    return rows;
}

std::vector<std::int64_t> ExpertRows::set_at(std::int64_t token, std::int64_t step,
                                             std::int64_t layer) const {
    const auto begin = ids.begin() + ((token * steps + step) * layers + layer) * chosen;
    if (chosen == 0 || *begin < 0) {
        return {};
    }
    std::vector<std::int64_t> set(begin, begin + chosen);
    std::sort(set.begin(), set.end());
    return set;
}

double LayerExperts::share(std::size_t expert) const {
    return share_of(load[expert], choices);
}

double LayerExperts::repeat_share() const {
    return share_of(repeats, pairs);
}

std::optional<ExpertUse> expert_use(const TraceReader& reader, const RunInfo& run,
                                    const std::stop_token& stop) {
    const std::optional<SignalInfo> info = experts_signal(reader.signal_infos(run.id));
    if (!info) {
        return std::nullopt;
    }
    ExpertUse use;
    use.experts = number_of_experts(*info);
    for (const SequenceInfo& sequence : reader.sequences(run.id)) {
        std::vector<std::vector<std::int64_t>> before; // the last token's experts, by step and layer
        each_page(reader, run, sequence, *info, stop, [&](std::int64_t, const ExpertRows& rows) {
            use.chosen = rows.chosen;
            use.layers.resize(static_cast<std::size_t>(rows.layers));
            before.resize(static_cast<std::size_t>(rows.steps * rows.layers));
            for (std::int64_t place = 0; place < rows.tokens * rows.steps * rows.layers; ++place) {
                const std::int64_t layer = place % rows.layers;
                const std::int64_t slot = place % (rows.steps * rows.layers);
                LayerExperts& of_layer = use.layers[static_cast<std::size_t>(layer)];
                std::vector<std::int64_t> set =
                    rows.set_at(place / (rows.steps * rows.layers), slot / rows.layers, layer);
                std::vector<std::int64_t>& last = before[static_cast<std::size_t>(slot)];
                if (!set.empty()) {
                    use.experts = std::max(use.experts, set.back() + 1);
                    of_layer.load.resize(
                        std::max(of_layer.load.size(), static_cast<std::size_t>(use.experts)));
                    for (const std::int64_t expert : set) {
                        ++of_layer.load[static_cast<std::size_t>(expert)];
                    }
                    ++of_layer.choices;
                    of_layer.pairs += last.empty() ? 0 : 1;
                    of_layer.repeats += last == set ? 1 : 0;
                }
                last = std::move(set);
            }
        });
    }
    const std::vector<std::string> labels = column_labels(info->description, use.layers.size());
    for (std::size_t l = 0; l < use.layers.size(); ++l) {
        use.layers[l].layer = labels[l];
        use.layers[l].load.resize(static_cast<std::size_t>(use.experts));
    }
    return use;
}

std::vector<ExpertAgreement> expert_agreement(const TraceReader& a, const RunInfo& run_a,
                                              const TraceReader& b, const RunInfo& run_b,
                                              const std::stop_token& stop) {
    const SignalInfo info_a = require_experts(a, run_a);
    const SignalInfo info_b = require_experts(b, run_b);
    require_same_tokens(a, run_a, b, run_b);
    if (number_of_experts(info_a) != number_of_experts(info_b)) {
        throw InputError(ErrorId::run_unsuited, b.path(),
                         std::to_string(number_of_experts(info_a)) + " experts, as in run A",
                         std::to_string(number_of_experts(info_b)), "compare runs of one model family");
    }
    std::vector<ExpertAgreement> layers;
    for (const SequenceInfo& sequence : a.sequences(run_a.id)) {
        each_page(a, run_a, sequence, info_a, stop, [&](std::int64_t first, const ExpertRows& rows) {
            const auto chunk = b.signal(run_b.id, sequence.number, info_b.name, first, first + rows.tokens);
            if (!chunk) {
                return;
            }
            const ExpertRows other = ExpertRows::from(*chunk, info_b);
            if (other.layers != rows.layers || other.tokens != rows.tokens) {
                throw InputError(ErrorId::run_unsuited, b.path(),
                                 "as many layers with experts as in run A, " + std::to_string(rows.layers) +
                                     ",",
                                 std::to_string(other.layers), "compare runs of one model family");
            }
            layers.resize(static_cast<std::size_t>(rows.layers));
            const std::int64_t steps = std::min(rows.steps, other.steps);
            for (std::int64_t place = 0; place < rows.tokens * steps * rows.layers; ++place) {
                const std::int64_t layer = place % rows.layers;
                const std::int64_t step = place / rows.layers % steps;
                const std::int64_t token = place / (rows.layers * steps);
                const std::vector<std::int64_t> ours = rows.set_at(token, step, layer);
                const std::vector<std::int64_t> theirs = other.set_at(token, step, layer);
                if (ours.empty() || theirs.empty()) {
                    continue;
                }
                std::vector<std::int64_t> both;
                std::set_intersection(ours.begin(), ours.end(), theirs.begin(), theirs.end(),
                                      std::back_inserter(both));
                ExpertAgreement& one = layers[static_cast<std::size_t>(layer)];
                ++one.tokens;
                one.common += static_cast<double>(both.size()) /
                              static_cast<double>(std::max(ours.size(), theirs.size()));
                one.same += ours == theirs ? 1 : 0;
            }
        });
    }
    const std::vector<std::string> labels = column_labels(info_a.description, layers.size());
    for (std::size_t l = 0; l < layers.size(); ++l) {
        layers[l].layer = labels[l];
        const auto tokens = static_cast<double>(layers[l].tokens);
        layers[l].common /= tokens; // NaN without tokens
        layers[l].same /= tokens;
    }
    return layers;
}

} // namespace ponderscope
