// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ponder/choices/patch.h"

#include <algorithm>
#include <cstddef>

namespace ponderscope {

std::string to_string(const StatePlace& place) {
    return "sequence " + std::to_string(place.sequence) +
           (place.token == StatePlace::all_tokens ? "" : ", token " + std::to_string(place.token)) +
           ", step " + std::to_string(place.step) +
           (place.layer == StatePlace::end_of_step ? "" : ", layer " + std::to_string(place.layer));
}

std::vector<float> StateSum::mean() const {
    std::vector<float> mean(tokens > 0 ? sum.size() : 0);
    std::transform(sum.begin(), sum.begin() + static_cast<std::ptrdiff_t>(mean.size()), mean.begin(),
                   [this](float value) { return value / static_cast<float>(tokens); });
    return mean;
}

} // namespace ponderscope
