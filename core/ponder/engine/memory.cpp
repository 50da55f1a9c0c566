// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/device.h"
#include "core/ponder/engine/engine.h"
#include "core/ponder/engine/engine_impl.h"

#include <algorithm>

namespace ponderscope {

Engine::MemoryAdvice Engine::advise(const Window& window, RecordLevel level) const {
    const auto whole = static_cast<std::int64_t>(window.ids.size());
    for (std::int64_t tokens = whole / 2; tokens >= 2; tokens /= 2) {
        Window beginning = window;
        beginning.ids = window.ids.first(static_cast<std::size_t>(tokens));
        beginning.report_begin = std::min(window.report_begin, tokens - 1);
        beginning.report_end = std::min(window.report_end, tokens);
        for (const at::Device device : impl_->placement.devices()) {
            forget_peak_memory(device);
        }
        try {
            (void)score({&beginning, 1}, level);
        } catch (const MemoryExhausted&) {
            continue;
        }
        MemoryAdvice advice{tokens, 0};
        for (const at::Device device : impl_->placement.devices()) {
            if (const auto memory = device_memory(device)) {
                // Beside the weights, which live on, everything grows with the tokens.
                const double each =
                    static_cast<double>(memory->peak - memory->used) / static_cast<double>(tokens);
                advice.needed += memory->used + static_cast<std::int64_t>(each * static_cast<double>(whole));
            }
        }
        return advice;
    }
    return {};
}

} // namespace ponderscope
