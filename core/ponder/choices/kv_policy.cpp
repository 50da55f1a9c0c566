// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ponder/choices/kv_policy.h"

#include <iterator>

namespace ponderscope {

namespace {

constexpr const char* kv_names[] = {"full", "per_step", "shared", "skip"};

} // namespace

std::string to_string(KvPolicy policy) {
    return kv_names[static_cast<std::size_t>(policy)];
}

std::optional<KvPolicy> kv_policy_from_string(const std::string& name) {
    for (std::size_t i = 0; i < std::size(kv_names); ++i) {
        if (name == kv_names[i]) {
            return static_cast<KvPolicy>(i);
        }
    }
    return std::nullopt;
}

} // namespace ponderscope
