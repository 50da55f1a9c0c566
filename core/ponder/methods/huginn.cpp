// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ponder/methods/recurrent.h"

namespace ponderscope {

MethodEntry huginn_method() {
    return MethodEntry::of<Recurrent>(MethodKind::huginn);
}

} // namespace ponderscope
