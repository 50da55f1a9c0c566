// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/ponder/halting/halting_rules.h"
#include "core/ponder/method.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ponderscope {

/// The origin of a run's tokens, independent of window and batch. All int64 [N].
struct TokenPlaces {
    at::Tensor sequence; ///< number of the sequence in the run, from 0
    at::Tensor position; ///< of the token in its sequence, from 0
    at::Tensor length;   ///< tokens of that sequence; of a generation: prompt and most new tokens
};

/// The data for the decision which of the slots (t, k), k < K, are followed by (t, k+1). n rows, in the
/// order of `slots`.
struct HaltingQuestion {
    const Slots& slots;         ///< step, tokens, input, hidden (h^k)
    const Decision& decision;   ///< the method's own answer: `value` is its gate, `go_on` what it would do
    at::Tensor readout;         ///< [n, d]: the head's input if the token stopped at k
    at::Tensor previous_hidden; ///< [n, d]: h^{k-1}; undefined at step 0, or when the rule does not look back
    at::Tensor previous_readout; ///< [n, d]: the read-out of step k-1; likewise
    at::Tensor carry;            ///< the last answer of this rule: rows of the tokens that continued
    const TokenPlaces& places;   ///< of all N tokens: pick by `slots.tokens` (undefined: all)
    const HeadWeights& head;     ///< for read_out (core/kernels/head.h)
};

struct HaltingAnswer {
    at::Tensor go_on; ///< bool [n]; undefined: every token continues
    at::Tensor carry; ///< [n, ...], given back at the next step; undefined: nothing
};

/// A rule in the place of the method's own (methods.md section 9, "Rerun"). Gates and routers still enter the
/// arithmetic (s in E, log w on keys, masses): only the decision which tokens continue is replaced, on the
/// signals of this run.
///
/// How a policy plugs in: derive from this class in core/policy, answer from `readout` (through read_out) and
/// `slots.hidden`, and give it to RunPlan::rule before the first score. The engine asks once a step for the
/// tokens that are still running, in ascending order; under the interleaved rule it asks again in every
/// Jacobi pass, so an answer may depend on the question alone: `carry` has the data of a token that a rule
/// must remember. Stopped tokens are not decided again (halting is irreversible), and there is no decision at
/// K. Called from the thread that drives the engine.
class HaltingRule {
public:
    virtual ~HaltingRule() = default;
    /// As stored with a run: "full", "fixed:n=2".
    [[nodiscard]] virtual std::string name() const = 0;
    /// False: no token stops before K, and no rows need to be gathered.
    [[nodiscard]] virtual bool may_halt() const { return true; }
    /// Whether it runs the head over `readout`, which then counts in FLOPs.
    [[nodiscard]] virtual bool reads_head() const { return false; }
    /// Whether it reads `previous_hidden` or `previous_readout`.
    [[nodiscard]] virtual bool looks_back() const { return false; }
    /// Whether it reads `places`, so that equal tokens of two sequences may stop at different steps.
    [[nodiscard]] virtual bool reads_places() const { return true; }
    [[nodiscard]] virtual HaltingAnswer answer(const HaltingQuestion& question) const = 0;
};

/// Whether a run of \p method under \p rule (nullptr: its own) may read tokens out before K.
inline bool may_halt(const Method& method, const HaltingRule* rule) {
    return method.max_steps() > 0 && (rule != nullptr ? rule->may_halt() : method.halts());
}
} // namespace ponderscope
