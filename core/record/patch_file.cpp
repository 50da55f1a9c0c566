// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/record/patch_file.h"

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/record/batches.h"
#include "core/trace/windows.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace ponderscope {

namespace {

constexpr std::int64_t most_patches = 100'000;

/// The place that an object of the file describes. Missing keys: as in \p other.
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
    if (from != nullptr && *from == "zero") {
        return patch;
    }
    if (from == nullptr || !from->is_object()) {
        object.fail("from", "an object with a token, step or layer, or \"zero\"");
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
        throw InputError(ErrorId::patch_place, "--patch: expected a token from 0 to " +
                                                   std::to_string(length - 1) + " in " + sequence.title +
                                                   ", found " + std::to_string(place.token) + ".");
    }
}

using StateKey = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>;
StateKey key_of(const StatePlace& place) {
    return {place.sequence, place.token, place.step, place.layer};
}

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
    std::set<StateKey> seen;
    for (const nlohmann::json& one : list) {
        const std::string name = "patches[" + std::to_string(patches.size()) + "]";
        patches.push_back(patch_of(JsonObject(one, path, name)));
        const StatePlace& to = patches.back().to;
        if (!seen.insert(key_of(to)).second) {
            throw InputError(ErrorId::patch_place, path, "each place once",
                             to_string(to) + " a second time in " + name, "leave one of the two out");
        }
    }
    return patches;
}

nlohmann::json to_json(const std::vector<PlannedPatch>& patches) {
    nlohmann::json list = nlohmann::json::array();
    for (const PlannedPatch& patch : patches) {
        list.push_back({{"to", to_json(patch.to)},
                        {"from", patch.from ? to_json(*patch.from) : nlohmann::json("zero")}});
    }
    return list;
}

void check_places(const Engine& engine, const std::vector<PlannedPatch>& patches,
                  const std::vector<SequenceInput>& sequences) {
    for (const PlannedPatch& patch : patches) {
        require_token(patch.to, sequences);
        engine.check_place(patch.to, true);
        if (patch.from) {
            require_token(*patch.from, sequences);
            engine.check_place(*patch.from, false);
        }
    }
}

std::vector<StatePatch> take_states(const Engine& engine, const std::vector<PlannedPatch>& patches,
                                    const std::vector<SequenceInput>& sequences, const WindowShape& shape,
                                    std::int64_t batch, const ProgressSink& progress,
                                    const std::stop_token& stop) {
    check_places(engine, patches, sequences);
    std::map<StateKey, std::vector<float>> found;                    // empty: the token did not run the step
    std::map<std::pair<std::int64_t, std::int64_t>, Window> windows; // by sequence and first token
    std::vector<StatePlace> places;
    for (const PlannedPatch& patch : patches) {
        if (!patch.from || !found.try_emplace(key_of(*patch.from)).second) {
            continue;
        }
        const StatePlace& place = places.emplace_back(*patch.from);
        const SequenceInput& sequence = sequences[static_cast<std::size_t>(place.sequence)];
        for (const WindowSpan& span : plan_windows(sequence.length(), shape.context, shape.stride)) {
            if (place.token >= span.report_begin && place.token < span.report_end) {
                windows.try_emplace({place.sequence, span.begin}, sequence.window(span, place.sequence));
            }
        }
    }
    std::vector<Window> all;
    for (const auto& [where, window] : windows) {
        all.push_back(window);
    }
    const auto take = [&](std::size_t begin, std::size_t end) {
        return engine.states_at(std::span<const Window>(all).subspan(begin, end - begin), places);
    };
    const auto keep = [&](std::vector<std::vector<float>> taken, std::size_t, std::size_t end) {
        for (std::size_t i = 0; i < places.size(); ++i) {
            if (!taken[i].empty()) {
                found.at(key_of(places[i])) = std::move(taken[i]);
            }
        }
        report_progress(progress, {"taking states", static_cast<std::int64_t>(end),
                                   static_cast<std::int64_t>(all.size()), "windows"});
    };
    run_in_batches(all.size(), static_cast<std::size_t>(std::max<std::int64_t>(batch, 1)), stop, take, keep);
    throw_if_stopped(stop);
    std::vector<StatePatch> states;
    for (const PlannedPatch& patch : patches) {
        StatePatch& one = states.emplace_back(StatePatch{patch.to, {}});
        if (!patch.from) {
            one.state.assign(static_cast<std::size_t>(engine.state_width(patch.to.layer)), 0.0F);
        } else if (one.state = found.at(key_of(*patch.from)); one.state.empty()) {
            throw InputError(ErrorId::patch_place, "--patch: expected a state of " + to_string(*patch.from) +
                                                       ", found that the token stopped before that step; "
                                                       "take an earlier step, or record with --policy full.");
        }
    }
    return states;
}

} // namespace ponderscope
