// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ponder/choices/patch.h"

namespace ponderscope {

std::string to_string(const StatePlace& place) {
    return "sequence " + std::to_string(place.sequence) + ", token " + std::to_string(place.token) +
           ", step " + std::to_string(place.step) +
           (place.layer == StatePlace::end_of_step ? "" : ", layer " + std::to_string(place.layer));
}

} // namespace ponderscope
