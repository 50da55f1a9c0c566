// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ponder/methods/recurrent.h"

namespace ponderscope {

MethodEntry parcae_method() {
    return MethodEntry::of<Recurrent>(MethodKind::parcae);
}

} // namespace ponderscope
