// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef PONDERSCOPE_METHODS_COMPUTE
#include "core/checkpoint/method_info.h"

namespace ponderscope {

MethodInfo vanilla_info() {
    return {.kind = MethodKind::vanilla, .summary = "One slot a token: the plain model"};
}

} // namespace ponderscope

#else
#include "core/ponder/method.h"

namespace ponderscope {

namespace {

/// The plain model: one slot a token.
class Vanilla final : public Method {
public:
    explicit Vanilla(const ModelConfig& config) : Method(config) {}
};

} // namespace

MethodEntry vanilla_method() {
    return MethodEntry::of<Vanilla>(MethodKind::vanilla);
}

} // namespace ponderscope

#endif
