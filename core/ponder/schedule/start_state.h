// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/checkpoint/model_config.h"
#include "core/ponder/choices/request.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace ponderscope {

/// The start state of a recurrent stack (methods-released.md section 3). Random states are counter-based:
/// element j of the state at position t in sequence q is a function of the seed and (q, t, j) alone. Batch,
/// window and decoding have no effect.
class StartState {
public:
    StartState() = default; ///< random, seed 0
    /// Parses "random", "random:SEED", "zero" or a file name, as in RunPlan::start_state.
    static StartState parse(const std::string& spec, const std::filesystem::path& folder,
                            const ModelConfig& config);

    /// The states of all tokens of the windows, fp32 [N, d], on the CPU. InputError: the file has no row for
    /// a token.
    [[nodiscard]] at::Tensor states(std::span<const Window> windows, const ModelConfig& config) const;
    /// Whether all start states are zero.
    [[nodiscard]] bool is_zero(const ModelConfig& config) const;
    [[nodiscard]] std::string text(const ModelConfig& config) const; ///< "random:0", "zero", the file's path
    /// Digest of a file's states; empty without a file.
    [[nodiscard]] const std::string& digest() const { return digest_; }

private:
    enum class Kind : std::uint8_t { random, zero, file };
    Kind kind_ = Kind::random;
    std::uint64_t seed_ = 0;
    std::filesystem::path path_;
    at::Tensor rows_; ///< fp32 [B, T, d] from a file
    std::string digest_;
};

} // namespace ponderscope
