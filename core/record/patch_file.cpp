// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/record/patch_file.h"

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/record/batches.h"
#include "core/trace/windows.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

namespace ponderscope {

namespace {

constexpr std::int64_t most_patches = 100'000;

/// What an object of the file says of a place; what it leaves out is as in \p other.
StatePlace place_of(const JsonObject& object, const StatePlace& other) {
    StatePlace place = other;
    place.sequence = object.integer("sequence", 0).value_or(other.sequence);
    place.token = object.integer("token", 0).value_or(other.token);
    place.step = object.integer("step", 0).value_or(other.step);
    const auto layer = object.value().find("layer");
    if (layer != object.value().end()) { // null: the end of the step
        place.layer = object.integer("layer", 0).value_or(StatePlace::end_of_step);
    }
    return place;
}

PlannedPatch patch_of(const JsonObject& object) {
    object.allow_only({"to", "from"});
    PlannedPatch patch;
    const JsonObject to = object.required_object("to");
    to.allow_only({"sequence", "token", "step", "layer"});
    (void)to.required_integer("token", 0);
    (void)to.required_integer("step", 0);
    patch.to = place_of(to, {});
    const nlohmann::json* from = object.find("from");
    if (from != nullptr && from->is_string() && (*from == "zero" || *from == "mean")) {
        patch.source = *from == "zero" ? PlannedPatch::Source::zero : PlannedPatch::Source::mean;
        return patch;
    }
    if (from == nullptr || !from->is_object()) {
        object.fail("from", "an object with a token, step or layer, \"zero\" or \"mean\"");
    }
    const JsonObject source = object.required_object("from");
    source.allow_only({"sequence", "token", "step", "layer"});
    patch.from = place_of(source, patch.to);
    return patch;
}

nlohmann::json to_json(const StatePlace& place) {
    return {
        {"sequence", place.sequence},
        {"token", place.token},
        {"step", place.step},
        {"layer", place.layer == StatePlace::end_of_step ? nlohmann::json() : nlohmann::json(place.layer)}};
}

/// The tokens of a window, as the recording computes them.
Window window_of(const SequenceInput& sequence, std::int64_t number, const WindowSpan& span) {
    const std::span<const std::int32_t> ids(sequence.ids);
    return {
        ids.subspan(static_cast<std::size_t>(span.begin), static_cast<std::size_t>(span.end - span.begin)),
        span.report_begin - span.begin,
        span.report_end - span.begin,
        number,
        span.begin,
        sequence.length_for_rules()};
}

void require_token(const StatePlace& place, const std::vector<SequenceInput>& sequences) {
    const auto count = static_cast<std::int64_t>(sequences.size());
    if (place.sequence >= count) {
        throw InputError(ErrorId::patch_place, "--patch: expected a sequence from 0 to " +
                                                   std::to_string(count - 1) + ", found " +
                                                   std::to_string(place.sequence) + ".");
    }
    const SequenceInput& sequence = sequences[static_cast<std::size_t>(place.sequence)];
    const auto length = static_cast<std::int64_t>(sequence.ids.size());
    if (place.token >= length) {
        throw InputError(ErrorId::patch_place, "--patch: " + sequence.title + " has " +
                                                   std::to_string(length) + " tokens, counted from 0, and " +
                                                   std::to_string(place.token) +
                                                   " is none of them; name one of them in \"token\".");
    }
}

/// States of runs of the same texts without patches.
class ComputedStates {
public:
    ComputedStates(const std::vector<PlannedPatch>& patches, const std::vector<SequenceInput>& sequences,
                   const WindowShape& shape) {
        std::map<std::pair<std::int64_t, std::int64_t>, Window> windows; // by sequence and first token
        for (const PlannedPatch& patch : patches) {
            const std::optional<StatePlace> place = place_for(patch);
            if (!place || !sums_.try_emplace(key_of(*place)).second) {
                continue; // many tokens may be given the same mean
            }
            places_.push_back(*place);
            const SequenceInput& sequence = sequences[static_cast<std::size_t>(place->sequence)];
            for (const WindowSpan& span :
                 plan_windows(static_cast<std::int64_t>(sequence.ids.size()), shape.context, shape.stride)) {
                if (is_within(*place, place->sequence, span.report_begin, span.report_end)) {
                    windows.try_emplace({place->sequence, span.begin},
                                        window_of(sequence, place->sequence, span));
                }
            }
        }
        for (const auto& [where, window] : windows) {
            windows_.push_back(window);
        }
    }

    void compute(const Engine& engine, std::int64_t batch, const ProgressSink& progress,
                 const std::stop_token& stop) {
        const auto take = [&](std::size_t begin, std::size_t end) {
            const auto some = std::span<const Window>(windows_).subspan(begin, end - begin);
            std::vector<StatePlace> here;
            std::copy_if(places_.begin(), places_.end(), std::back_inserter(here), [&](const auto& place) {
                return std::any_of(some.begin(), some.end(), [&](const Window& window) {
                    return is_within(place, window.sequence, window.first + window.report_begin,
                                     window.first + window.report_end);
                });
            });
            return std::pair(here, engine.states_at(some, here));
        };
        const auto keep = [&](std::pair<std::vector<StatePlace>, std::vector<StateSum>> taken, std::size_t,
                              std::size_t end) {
            for (std::size_t i = 0; i < taken.first.size(); ++i) {
                StateSum& sum = sums_.at(key_of(taken.first[i]));
                const StateSum& more = taken.second[i];
                if (more.tokens == 0) {
                    continue;
                }
                sum.sum.resize(more.sum.size(), 0.0F);
                std::transform(sum.sum.begin(), sum.sum.end(), more.sum.begin(), sum.sum.begin(),
                               std::plus<>());
                sum.tokens += more.tokens;
            }
            if (progress) {
                progress({"taking states", static_cast<std::int64_t>(end),
                          static_cast<std::int64_t>(windows_.size()), "windows"});
            }
        };
        run_in_batches(windows_.size(), static_cast<std::size_t>(std::max<std::int64_t>(batch, 1)), stop,
                       take, keep);
        if (stop.stop_requested()) {
            throw Cancelled();
        }
    }

    /// Empty: \p patch takes none of these.
    [[nodiscard]] std::vector<float> state_for(const PlannedPatch& patch) const {
        const std::optional<StatePlace> place = place_for(patch);
        if (!place) {
            return {};
        }
        const StateSum& sum = sums_.at(key_of(*place));
        if (sum.tokens == 0) {
            throw InputError(ErrorId::patch_place,
                             "--patch: expected a state of " + to_string(*place) + ", found that " +
                                 (place->token == StatePlace::all_tokens
                                      ? "no token ran that step"
                                      : "the token stopped before that step") +
                                 "; take an earlier step, or record with --policy full.");
        }
        return sum.mean();
    }

private:
    using Key = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>;
    static Key key_of(const StatePlace& place) {
        return {place.sequence, place.token, place.step, place.layer};
    }
    static bool is_within(const StatePlace& place, std::int64_t sequence, std::int64_t begin,
                          std::int64_t end) {
        return place.sequence == sequence &&
               (place.token == StatePlace::all_tokens || (place.token >= begin && place.token < end));
    }
    static std::optional<StatePlace> place_for(const PlannedPatch& patch) {
        if (patch.source == PlannedPatch::Source::same_run) {
            return patch.from;
        }
        if (patch.source != PlannedPatch::Source::mean) {
            return std::nullopt;
        }
        StatePlace place = patch.to;
        place.token = StatePlace::all_tokens;
        return place;
    }

    std::vector<StatePlace> places_; ///< once each
    std::vector<Window> windows_;
    std::map<Key, StateSum> sums_;
};

} // namespace

std::vector<PlannedPatch> read_patch_file(const std::filesystem::path& path) {
    const nlohmann::json json = read_json_file(path);
    const JsonObject object(json, path);
    object.allow_only({"patches"});
    const nlohmann::json& list = object.required_array("patches");
    if (list.empty() || list.size() > most_patches) {
        object.fail("patches", "a list of 1 to " + std::to_string(most_patches) + " patches");
    }
    std::vector<PlannedPatch> patches;
    std::set<std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>> seen;
    for (const nlohmann::json& one : list) {
        const std::string name = "patches[" + std::to_string(patches.size()) + "]";
        patches.push_back(patch_of(JsonObject(one, path, name)));
        const StatePlace& to = patches.back().to;
        if (!seen.insert({to.sequence, to.token, to.step, to.layer}).second) {
            throw InputError(ErrorId::patch_place, path, "every place once",
                             name + " with " + to_string(to) + " again", "leave one of them out");
        }
    }
    return patches;
}

nlohmann::json to_json(const std::vector<PlannedPatch>& patches) {
    nlohmann::json list = nlohmann::json::array();
    for (const PlannedPatch& patch : patches) {
        nlohmann::json from;
        switch (patch.source) {
        case PlannedPatch::Source::zero:
            from = "zero";
            break;
        case PlannedPatch::Source::mean:
            from = "mean";
            break;
        case PlannedPatch::Source::same_run:
            from = to_json(patch.from);
            break;
        }
        list.push_back({{"to", to_json(patch.to)}, {"from", std::move(from)}});
    }
    return list;
}

void check_places(const Engine& engine, const std::vector<PlannedPatch>& patches,
                  const std::vector<SequenceInput>& sequences) {
    for (const PlannedPatch& patch : patches) {
        require_token(patch.to, sequences);
        engine.check_place(patch.to, true);
        if (patch.source == PlannedPatch::Source::same_run) {
            require_token(patch.from, sequences);
            engine.check_place(patch.from, false);
        }
    }
}

std::vector<StatePatch> take_states(const Engine& engine, const std::vector<PlannedPatch>& patches,
                                    const std::vector<SequenceInput>& sequences, const WindowShape& shape,
                                    std::int64_t batch, const ProgressSink& progress,
                                    const std::stop_token& stop) {
    check_places(engine, patches, sequences);
    ComputedStates computed(patches, sequences, shape);
    computed.compute(engine, batch, progress, stop);
    std::vector<StatePatch> states;
    for (const PlannedPatch& patch : patches) {
        StatePatch one{patch.to, computed.state_for(patch)};
        if (patch.source == PlannedPatch::Source::zero) {
            one.state.assign(static_cast<std::size_t>(engine.state_width(patch.to.layer)), 0.0F);
        }
        states.push_back(std::move(one));
    }
    return states;
}

} // namespace ponderscope
