// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ponder/schedule/run_patches.h"

#include "core/model/device.h"

#include <ATen/ATen.h>

namespace ponderscope {

RunPatches::RunPatches(std::span<const StatePatch> patches, std::span<const Window> windows,
                       at::Device device) {
    // A token may be in several windows. It is patched in each of them.
    std::map<Where, std::map<std::int64_t, const StatePatch*>> found;
    std::int64_t first = 0;
    for (std::size_t i = 0; i < windows.size(); ++i) {
        const Window& window = windows[i];
        const auto length = static_cast<std::int64_t>(window.ids.size());
        const std::int64_t sequence = window.sequence >= 0 ? window.sequence : static_cast<std::int64_t>(i);
        for (const StatePatch& patch : patches) {
            const std::int64_t place = patch.to.token - window.first;
            if (patch.to.sequence == sequence && place >= 0 && place < length) {
                found[{patch.to.layer, patch.to.step}][first + place] = &patch;
            }
        }
        first += length;
    }
    for (const auto& [where, members] : found) {
        Group& group = groups_[where];
        std::vector<std::int64_t> numbers;
        std::vector<at::Tensor> states;
        for (const auto& [token, patch] : members) {
            numbers.push_back(token);
            states.push_back(at::tensor(patch->state));
        }
        group.tokens = send(numbers, device);
        group.states = at::stack(states).to(device);
    }
}

namespace {

/// Replaces the rows of \p states whose key is in \p wanted (int64 [m]) by \p others. \p keys: int64 [n],
/// ascending, the keys of the rows.
at::Tensor replaced(const at::Tensor& states, const at::Tensor& keys, const at::Tensor& wanted,
                    const at::Tensor& others) {
    const at::Tensor place = at::searchsorted(keys, wanted).clamp_max(keys.size(0) - 1);
    const at::Tensor there = at::nonzero(keys.index_select(0, place).eq(wanted)).view(-1);
    return states.index_copy(0, place.index_select(0, there),
                             others.index_select(0, there).to(states.scalar_type()));
}

} // namespace

at::Tensor RunPatches::apply(const at::Tensor& states, const at::Tensor& tokens, std::int64_t step,
                             std::int64_t layer) const {
    const auto group = groups_.find({layer, step});
    if (group == groups_.end() || states.size(0) == 0) {
        return states;
    }
    const auto& [wanted, others] = group->second;
    return tokens.defined() ? replaced(states, tokens.contiguous(), wanted, others)
                            : states.index_copy(0, wanted, others.to(states.scalar_type()));
}

at::Tensor RunPatches::apply_to_slots(at::Tensor states, const at::Tensor& tokens, const at::Tensor& steps,
                                      std::int64_t layer) const {
    for (auto group = groups_.lower_bound({layer, 0}); group != groups_.end() && group->first.first == layer;
         ++group) {
        // A key in the order of the slots: by token, then step.
        constexpr std::int64_t more_than_steps = std::int64_t{1} << 20;
        const at::Tensor wanted = group->second.tokens * more_than_steps + group->first.second;
        states = replaced(states, tokens * more_than_steps + steps, wanted, group->second.states);
    }
    return states;
}

} // namespace ponderscope
