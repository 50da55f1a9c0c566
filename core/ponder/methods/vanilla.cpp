// SPDX-License-Identifier: GPL-3.0-or-later
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
