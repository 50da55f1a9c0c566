// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ponder/method.h"

namespace ponderscope {

/// The plain model: one step for each token.
MethodEntry vanilla_method() {
    return MethodEntry::of<Method>(MethodKind::vanilla);
}

} // namespace ponderscope
