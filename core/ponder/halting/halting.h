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

/// The location of a run's tokens, independent of window and batch. All int64 [N].
struct TokenPlaces {
    at::Tensor sequence; ///< number of the sequence in the run, from 0
    at::Tensor position; ///< position in the sequence, from 0
    at::Tensor length;   ///< tokens of the sequence; in a generation, including tokens to come
};

/// The data for a halting decision: whether slot (t, k+1) runs after slot (t, k), k < K. Tensors have n rows,
/// in the order of `slots`.
struct HaltingQuestion {
    const Slots& slots;          ///< step, tokens, input, hidden (h^k)
    const Decision& decision;    ///< the method's own decision: its gate `value`, its choice `go_on`
    at::Tensor readout;          ///< [n, d]: the head's input if the token stopped at k
    at::Tensor previous_hidden;  ///< [n, d]: h^{k-1}; undefined at step 0 or without looks_back()
    at::Tensor previous_readout; ///< [n, d]: the read-out of step k-1; undefined like previous_hidden
    at::Tensor carry;            ///< the rule's last `carry`, for the tokens that continued
    const TokenPlaces& places;   ///< places of all N tokens; select rows `slots.tokens` (undefined: all)
    const HeadWeights& head;     ///< weights for read_out (core/kernels/head.h)
};

struct HaltingAnswer {
    at::Tensor go_on; ///< bool [n]; undefined: every token continues
    at::Tensor carry; ///< [n, ...], passed back at the next step; undefined: none
};

/// A rule that replaces the method's own halting rule (methods.md section 9, "Rerun"). Gates and routers
/// still enter the computation: as factors of expected embeddings, key biases and masses.
///
/// The engine's thread calls the rule once for each step before K, for the tokens that still run, in
/// ascending order. Halting is irreversible. Under the interleaved rule the engine repeats the call in every
/// Jacobi pass, so a decision may depend only on the question.
class HaltingRule {
public:
    virtual ~HaltingRule() = default;
    /// The name stored with a run: "full", "fixed:n=2".
    [[nodiscard]] virtual std::string name() const = 0;
    /// False: no token stops before K, so the engine keeps the rows of all tokens at every step.
    [[nodiscard]] virtual bool may_halt() const { return true; }
    /// Whether the rule runs the head over `readout`. FLOPs then include this product.
    [[nodiscard]] virtual bool reads_head() const { return false; }
    /// Whether the rule reads `previous_hidden` or `previous_readout`.
    [[nodiscard]] virtual bool looks_back() const { return false; }
    /// Whether the rule reads `places`, so that equal tokens of two sequences may stop at different steps.
    [[nodiscard]] virtual bool reads_places() const { return true; }
    [[nodiscard]] virtual HaltingAnswer answer(const HaltingQuestion& question) const = 0;
};

/// |move - before| / |move| for each row: the change between two successive updates of the state, relative to
/// the last update (arXiv 2509.23314). \p move: the last update; \p before: the update before it; [n, d]
/// fp32. 0: the updates are equal (or zero). Infinite: only the last update is zero.
at::Tensor acceleration(const at::Tensor& move, const at::Tensor& before);

/// Whether a run of \p method under \p rule (nullptr: the method's own) may read out tokens before K.
inline bool may_halt(const Method& method, const HaltingRule* rule) {
    return method.max_steps() > 0 && (rule != nullptr ? rule->may_halt() : method.halts());
}

} // namespace ponderscope
