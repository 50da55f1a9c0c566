// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/policy/flops_model.h"

#include "core/base/json.h"

#include <algorithm>
#include <type_traits>

namespace ponderscope {
namespace {

/// Counts the keys that a query reads in all layers. Layers with the same sliding window form a group.
class VisibleKeys {
public:
    explicit VisibleKeys(const std::map<std::int64_t, std::int64_t>& layers_by_window)
        : groups_(layers_by_window.begin(), layers_by_window.end()) {}
    std::uint64_t operator()(std::int64_t visible) const {
        return sum(
            [visible](std::int64_t window) { return window > 0 ? std::min(window, visible) : visible; });
    }
    /// \p visible: maps a sliding window to the number of keys that a query sees in such a layer.
    template <typename Visible>
    std::uint64_t sum(const Visible& visible) const {
        std::uint64_t all = 0;
        for (const auto& [window, layers] : groups_) {
            all += static_cast<std::uint64_t>(layers) * static_cast<std::uint64_t>(visible(window));
        }
        return all;
    }

private:
    std::vector<std::pair<std::int64_t, std::int64_t>> groups_;
};

/// sums[k]: the total cost of steps 0..k.
std::vector<std::int64_t> running_sums(std::span<const std::int64_t> costs) {
    std::vector<std::int64_t> sums(costs.begin(), costs.end());
    for (std::size_t k = 1; k < sums.size(); ++k) {
        sums[k] += sums[k - 1];
    }
    return sums;
}

/// Numbers of slots from the beginning of a sequence. A window's number is a difference of two.
class SlotsBefore {
public:
    /// \p by_step: counts the slots of each step separately; false: of all steps together.
    SlotsBefore(std::span<const std::int32_t> last_steps, std::int64_t most_steps, bool by_step) {
        const std::size_t rows = by_step ? static_cast<std::size_t>(most_steps) + 1 : 1;
        counts_.assign(rows, std::vector<std::int64_t>(last_steps.size() + 1, 0));
        for (std::size_t row = 0; row < rows; ++row) {
            for (std::size_t t = 0; t < last_steps.size(); ++t) {
                const std::int64_t stop = std::clamp<std::int64_t>(last_steps[t], 0, most_steps);
                counts_[row][t + 1] =
                    counts_[row][t] + (by_step ? (stop >= static_cast<std::int64_t>(row) ? 1 : 0) : stop + 1);
            }
        }
    }
    /// The number of slots of tokens [begin, end): in \p step if counted by step, else in all steps.
    [[nodiscard]] std::int64_t operator()(std::int64_t begin, std::int64_t end, std::int64_t step = 0) const {
        const std::vector<std::int64_t>& counts = counts_[static_cast<std::size_t>(step)];
        return counts[static_cast<std::size_t>(end)] - counts[static_cast<std::size_t>(begin)];
    }

private:
    std::vector<std::vector<std::int64_t>> counts_;
};

constexpr const char* visibility_names[] = {"per_step", "interleaved", "two_dimensional", "skip"};

/// The largest valid number. Sums of most_entries such numbers fit into 64 bits. Products with keys may wrap.
constexpr std::int64_t most_in_field = std::int64_t{1} << 46;
constexpr std::size_t most_entries = 4096;

template <typename Value>
struct ModelField {
    const char* name;
    Value FlopsModel::*value;
    bool optional = false; ///< left out if it is zero or empty
};

constexpr ModelField<std::int64_t> number_fields[] = {
    {"key", &FlopsModel::key},
    {"input", &FlopsModel::input},
    {"read_out", &FlopsModel::read_out},
    {"prelude", &FlopsModel::prelude, true},
    {"prelude_layers", &FlopsModel::prelude_layers, true},
    {"coda_layers", &FlopsModel::coda_layers, true},
};
constexpr ModelField<std::vector<std::int64_t>> list_fields[] = {
    {"steps", &FlopsModel::steps},
    {"windows", &FlopsModel::windows},
    {"decisions", &FlopsModel::decisions},
    {"exited", &FlopsModel::exited},
    {"prelude_windows", &FlopsModel::prelude_windows, true},
    {"coda_windows", &FlopsModel::coda_windows, true},
};

bool is_number(const nlohmann::json& value) {
    return value.is_number_integer() &&
           (!value.is_number_unsigned() || value.get<std::uint64_t>() <= most_in_field) &&
           value.get<std::int64_t>() >= 0 && value.get<std::int64_t>() <= most_in_field;
}

} // namespace

void FlopsModel::count(std::span<const std::int32_t> last_steps, bool decides_by_head,
                       std::span<const WindowSpan> windows_of_it, std::span<std::int64_t> flops,
                       std::span<const std::int32_t> others) const {
    const std::int64_t last = max_steps();
    const std::vector<std::int64_t> ran = running_sums(steps);
    std::vector<std::int64_t> asked = running_sums(decisions); // includes the decision to stop
    asked.resize(steps.size(), asked.empty() ? 0 : asked.back());
    // A rule that reads the read-out runs the head at each decision. The head always runs after step K.
    const std::int64_t heads = decides_by_head && !input_reads_out ? read_out : 0;
    // With layers as steps, a token that exits at block e attends in blocks 0..e, and has only keys and
    // values in the blocks above.
    std::vector<VisibleKeys> keys_up_to;
    std::vector<std::int64_t> above(steps.size(), 0);
    if (layers_as_steps()) {
        std::map<std::int64_t, std::int64_t> layers;
        for (const std::int64_t window : windows) {
            ++layers[window];
            keys_up_to.emplace_back(layers);
        }
        for (std::size_t e = steps.size() - 1; e-- > 0;) {
            above[e] = above[e + 1] + exited[e + 1];
        }
    }
    const auto keys_of = [](std::int64_t layers, const std::vector<std::int64_t>& own) {
        std::map<std::int64_t, std::int64_t> by_window;
        for (const std::int64_t window : own) {
            ++by_window[window];
        }
        return VisibleKeys(own.empty() ? std::map<std::int64_t, std::int64_t>{{0, layers}} : by_window);
    };
    const VisibleKeys keys = keys_of(0, windows);
    const VisibleKeys prelude_keys = keys_of(prelude_layers, prelude_windows);
    const VisibleKeys coda_keys = keys_of(coda_layers, coda_windows);
    std::optional<SlotsBefore> slots;
    if (visibility != Visibility::per_step) {
        slots.emplace(others.empty() ? last_steps : others, last, visibility != Visibility::interleaved);
    }
    for (const WindowSpan& window : windows_of_it) {
        for (std::int64_t t = window.report_begin; t < window.report_end; ++t) {
            const std::int64_t stop =
                std::clamp<std::int64_t>(last_steps[static_cast<std::size_t>(t)], 0, last);
            const std::int64_t tokens = t - window.begin + 1;
            std::uint64_t attended = 0;
            if (layers_as_steps()) {
                attended = keys_up_to[static_cast<std::size_t>(stop)](tokens);
            } else if (visibility == Visibility::per_step) {
                attended = static_cast<std::uint64_t>(stop + 1) * keys(tokens);
            } else {
                const std::int64_t before =
                    visibility == Visibility::interleaved ? (*slots)(window.begin, t) : 0;
                std::int64_t below = 0;
                for (std::int64_t k = 0; k <= stop; ++k) {
                    if (visibility == Visibility::skip) {
                        attended += keys.sum([&](std::int64_t reach) {
                            const std::int64_t first =
                                reach > 0 ? std::max(window.begin, t - reach + 1) : window.begin;
                            return (*slots)(first, t, k) + 1;
                        });
                        continue;
                    }
                    below += visibility == Visibility::interleaved ? 1 : (*slots)(window.begin, t, k) + 1;
                    attended += keys(before + below);
                }
            }
            const std::int64_t read_outs = 1 + (heads > 0 ? stop : 0);
            attended += prelude_keys(tokens) + static_cast<std::uint64_t>(read_outs) * coda_keys(tokens);
            const auto at = static_cast<std::size_t>(stop);
            const std::int64_t products =
                prelude + ran[at] + stop * (input + heads) + asked[at] + above[at] + read_out;
            flops[static_cast<std::size_t>(t)] = static_cast<std::int64_t>(
                static_cast<std::uint64_t>(products) + static_cast<std::uint64_t>(key) * attended);
        }
    }
}

std::string FlopsModel::to_json() const {
    nlohmann::json json{{"visibility", visibility_names[static_cast<std::size_t>(visibility)]},
                        {"input_reads_out", input_reads_out}};
    const auto write = [&](const auto& fields) {
        for (const auto& [name, value, optional] : fields) {
            if (!optional || this->*value != std::decay_t<decltype(this->*value)>{}) {
                json[name] = this->*value;
            }
        }
    };
    write(number_fields);
    write(list_fields);
    return json.dump();
}

std::optional<FlopsModel> FlopsModel::from_json(const std::string& text) {
    const nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object()) {
        return std::nullopt;
    }
    const auto* const kind = std::find(std::begin(visibility_names), std::end(visibility_names),
                                       json.value("visibility", nlohmann::json()));
    const nlohmann::json flag = json.value("input_reads_out", nlohmann::json());
    if (kind == std::end(visibility_names) || !flag.is_boolean()) {
        return std::nullopt;
    }
    FlopsModel model;
    model.visibility = static_cast<Visibility>(kind - std::begin(visibility_names));
    model.input_reads_out = flag;
    bool sound = true;
    const auto read = [&](const auto& fields, const auto& is_sound) {
        for (const auto& [name, value, optional] : fields) {
            const auto found = json.find(name);
            if (found == json.end() || !is_sound(*found)) {
                sound = sound && optional && found == json.end();
            } else {
                found->get_to(model.*value);
            }
        }
    };
    read(number_fields, is_number);
    read(list_fields, [](const nlohmann::json& list) {
        return list.is_array() && list.size() <= most_entries && std::ranges::all_of(list, is_number);
    });
    for (const auto& [own, layers] : {std::pair{&model.prelude_windows, model.prelude_layers},
                                      {&model.coda_windows, model.coda_layers}}) {
        sound = sound && (own->empty() || static_cast<std::int64_t>(own->size()) == layers);
    }
    constexpr std::int64_t most_layers = std::int64_t{1} << 16;
    sound = sound && model.prelude_layers <= most_layers && model.coda_layers <= most_layers;
    const std::size_t count = model.steps.size();
    sound = sound && count >= 1 &&
            (model.layers_as_steps() ? model.exited.size() == count && model.windows.size() == count &&
                                           model.decisions.empty() && model.visibility == Visibility::per_step
                                     : model.decisions.size() + 1 == count);
    if (!sound) {
        return std::nullopt;
    }
    return model;
}

} // namespace ponderscope
