// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace ponderscope {

/// Which slots a slot may attend to (methods.md section 2).
enum class VisibilityRule : std::uint8_t {
    per_step,        ///< (t,k) sees (t',k') iff t' <= t and k' = min(k, K_t')
    interleaved,     ///< iff t' < t, or t' = t and k' <= k
    two_dimensional, ///< iff t' <= t and k' <= k
};

/// What the slots of later tokens see of a token t' that stopped at K_t', under the per-step rule
/// (methods-released.md section 1). Each is exact in itself, and none of the others gives what `full` does.
enum class KvPolicy : std::uint8_t {
    full,     ///< (t', k): every step runs, exits choose the read-out
    per_step, ///< (t', min(k, K_t'))
    shared,   ///< (t', K_t') at every k; needs finished predecessors
    skip,     ///< (t', k) if K_t' >= k, else nothing of it
};
std::string to_string(KvPolicy policy);
std::optional<KvPolicy> kv_policy_from_string(const std::string& name);

} // namespace ponderscope
