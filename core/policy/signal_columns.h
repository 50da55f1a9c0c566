// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ponderscope {

/// The signals that policies read, one number for each token and step (methods.md sections 9 and 10). For
/// other signals of a trace, policy_signal() creates values of this type, from `policy_signals` upwards.
enum class PolicySignal : std::uint16_t {
    nll,     ///< NLL of the read-out; NaN without a target
    entropy, ///< nats
    margin,  ///< p1 - p2
    argmax,  ///< token id; exact in fp32 below 2^24
    kl,      ///< KL(P_{k-1} || P_k)
    cosine,  ///< cosine of h^k and h^{k-1}
    latent,  ///< |h^k - h^{k-1}| / |h^k|
    /// the number that the model's own rule compares with its threshold after step k, such as a gate
    continue_value,
    acceleration, ///< |(h^k - h^{k-1}) - (h^{k-1} - h^{k-2})| / |h^k - h^{k-1}|; 0 at k < 2
};
inline constexpr std::size_t policy_signals = 9;

/// The value for the trace signal \p name. The same name gives the same value until the program ends. This
/// function and name_of() are thread-safe.
PolicySignal policy_signal(std::string_view name);
/// The name of a signal in a trace; empty for continue_value, whose signal depends on the method.
const std::string& name_of(PolicySignal signal);
/// Whether policy_signal() created the value, so that it is not an enumerator.
constexpr bool is_named(PolicySignal signal) {
    return static_cast<std::size_t>(signal) >= policy_signals;
}

/// The position of a token, for random numbers and decaying bounds.
struct TokenPlace {
    std::uint32_t sequence = 0; ///< number in the run
    std::uint32_t position = 0; ///< position in the sequence
    std::uint32_t length = 0;   ///< tokens of the sequence; in a generation, including tokens to come
};

/// Signals of N tokens. Each step of a signal is a contiguous fp32 column, so that a rule compares whole
/// vectors of tokens.
class SignalColumns {
public:
    SignalColumns() = default;
    SignalColumns(std::int64_t max_steps, std::size_t tokens) : max_steps_(max_steps), tokens_(tokens) {}

    [[nodiscard]] std::int64_t max_steps() const { return max_steps_; } ///< K
    [[nodiscard]] std::size_t tokens() const { return tokens_; }
    [[nodiscard]] bool has(PolicySignal signal) const {
        const auto at = static_cast<std::size_t>(signal);
        return at < columns_.size() && columns_[at].there;
    }
    /// Adds K + 1 columns of zeros.
    void add(PolicySignal signal) {
        const auto at = static_cast<std::size_t>(signal);
        columns_.resize(std::max(columns_.size(), at + 1));
        columns_[at] = {true, std::vector<float>(static_cast<std::size_t>(max_steps_ + 1) * tokens_)};
    }
    /// The signal must have been added.
    [[nodiscard]] std::span<float> column(PolicySignal signal, std::int64_t k) {
        return std::span(columns_[static_cast<std::size_t>(signal)].values).subspan(offset(k), tokens_);
    }
    [[nodiscard]] std::span<const float> column(PolicySignal signal, std::int64_t k) const {
        return std::span(columns_[static_cast<std::size_t>(signal)].values).subspan(offset(k), tokens_);
    }

private:
    struct Column {
        bool there = false;
        std::vector<float> values;
    };
    [[nodiscard]] std::size_t offset(std::int64_t k) const { return static_cast<std::size_t>(k) * tokens_; }

    std::int64_t max_steps_ = 0;
    std::size_t tokens_ = 0;
    std::vector<Column> columns_; ///< columns, indexed by signal
};

} // namespace ponderscope
