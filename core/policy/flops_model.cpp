// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/policy/flops_model.h"

#include "core/base/json.h"

#include <algorithm>
#include <map>

namespace ponderscope {
namespace {

/// Keys over all layers that a query with so many visible ones reads; layers of one window together.
class VisibleKeys {
public:
    explicit VisibleKeys(std::span<const std::int64_t> windows) {
        std::map<std::int64_t, std::int64_t> counts;
        for (const std::int64_t window : windows) {
            ++counts[window];
        }
        groups_.assign(counts.begin(), counts.end());
    }
    std::int64_t operator()(std::int64_t visible) const {
        std::int64_t sum = 0;
        for (const auto& [window, layers] : groups_) {
            sum += layers * (window > 0 ? std::min(window, visible) : visible);
        }
        return sum;
    }

private:
    std::vector<std::pair<std::int64_t, std::int64_t>> groups_;
};

constexpr const char* names[] = {"per_step", "interleaved", "two_dimensional"};

/// Above this a number cannot be meant, and sums of such numbers stay inside 64 bits.
constexpr std::int64_t most = std::int64_t{1} << 50;
constexpr std::size_t most_entries = 4096;

} // namespace

std::int64_t FlopsModel::max_steps() const {
    return layers_as_steps ? static_cast<std::int64_t>(windows.size()) - 1
                           : static_cast<std::int64_t>(decisions.size());
}

void FlopsModel::count(std::span<const std::int32_t> steps, bool decides_by_head,
                       std::span<std::int64_t> flops) const {
    const auto layers = static_cast<std::int64_t>(windows.size());
    const std::int64_t last = max_steps();
    if (layers_as_steps) {
        // Running sums over the blocks of one token would be O(L) a token: windows are few, so keys of blocks
        // 0..e are counted from groups of equal windows up to e.
        const std::int64_t block = layers > 0 ? slot / layers : 0;
        std::vector<VisibleKeys> below;
        for (std::int64_t e = 0; e < layers; ++e) {
            below.emplace_back(std::span(windows).first(static_cast<std::size_t>(e) + 1));
        }
        for (std::size_t t = 0; t < steps.size(); ++t) {
            const std::int64_t e = std::clamp<std::int64_t>(steps[t], 0, last);
            const std::int64_t heads = decides_by_head ? e + 1 : 1; // the one at e is the output's
            flops[t] = (e + 1) * block +
                       key * below[static_cast<std::size_t>(e)](static_cast<std::int64_t>(t) + 1) +
                       (last - e) * key_value_projections + heads * read_out + once;
        }
        return;
    }
    const VisibleKeys keys(windows);
    // A rule that reads the output runs the head after each step that it is asked at. After the last step the
    // head runs in any case.
    const std::int64_t heads = decides_by_head && !input_reads_out ? read_out : 0;
    std::vector<std::int64_t> asked(static_cast<std::size_t>(last) + 1, 0); // decisions up to a last step
    for (std::int64_t k = 0, sum = 0; k <= last; ++k) {
        sum += k < last ? decisions[static_cast<std::size_t>(k)] : 0; // the refused one is asked too
        asked[static_cast<std::size_t>(k)] = sum;
    }
    std::vector<std::int64_t> seen(static_cast<std::size_t>(last) + 1, 0);
    std::int64_t slots_before = 0;
    for (std::size_t t = 0; t < steps.size(); ++t) {
        const std::int64_t stop = std::clamp<std::int64_t>(steps[t], 0, last);
        std::int64_t attention = 0;
        if (visibility == Visibility::per_step) {
            attention = (stop + 1) * keys(static_cast<std::int64_t>(t) + 1);
        } else {
            std::int64_t below = 0;
            for (std::int64_t k = 0; k <= stop; ++k) {
                below += ++seen[static_cast<std::size_t>(k)];
                attention += keys(visibility == Visibility::interleaved ? slots_before + k + 1 : below);
            }
        }
        slots_before += stop + 1;
        flops[t] = (stop + 1) * slot + key * attention + stop * (input + heads) +
                   asked[static_cast<std::size_t>(stop)] + once + read_out;
    }
}

std::string FlopsModel::to_json() const {
    return nlohmann::json{{"visibility", names[static_cast<std::size_t>(visibility)]},
                          {"slot", slot},
                          {"key", key},
                          {"windows", windows},
                          {"input", input},
                          {"decisions", decisions},
                          {"once", once},
                          {"read_out", read_out},
                          {"input_reads_out", input_reads_out},
                          {"layers_as_steps", layers_as_steps},
                          {"key_value_projections", key_value_projections}}
        .dump();
}

std::optional<FlopsModel> FlopsModel::from_json(const std::string& text) {
    const nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object()) {
        return std::nullopt;
    }
    bool sound = true;
    const auto whole = [&](const nlohmann::json& value) -> std::int64_t {
        if (!value.is_number_integer() || (value.is_number_unsigned() && value.get<std::uint64_t>() > most) ||
            value.get<std::int64_t>() < 0 || value.get<std::int64_t>() > most) {
            sound = false;
            return 0;
        }
        return value.get<std::int64_t>();
    };
    const auto field = [&](const char* key) -> const nlohmann::json& {
        static const nlohmann::json absent;
        const auto found = json.find(key);
        return found == json.end() ? absent : *found;
    };
    const auto list = [&](const char* key) {
        std::vector<std::int64_t> values;
        const nlohmann::json& array = field(key);
        if (!array.is_array() || array.size() > most_entries) {
            sound = false;
            return values;
        }
        for (const nlohmann::json& value : array) {
            values.push_back(whole(value));
        }
        return values;
    };
    const auto flag = [&](const char* key) {
        sound = sound && field(key).is_boolean();
        return sound && field(key).get<bool>();
    };
    FlopsModel model;
    const auto found = std::find(std::begin(names), std::end(names), field("visibility"));
    if (found == std::end(names)) {
        return std::nullopt;
    }
    model.visibility = static_cast<Visibility>(found - std::begin(names));
    model.slot = whole(field("slot"));
    model.key = whole(field("key"));
    model.windows = list("windows");
    model.input = whole(field("input"));
    model.decisions = list("decisions");
    model.once = whole(field("once"));
    model.read_out = whole(field("read_out"));
    model.input_reads_out = flag("input_reads_out");
    model.layers_as_steps = flag("layers_as_steps");
    model.key_value_projections = whole(field("key_value_projections"));
    if (!sound || (model.layers_as_steps && model.windows.empty())) {
        return std::nullopt;
    }
    return model;
}

} // namespace ponderscope
