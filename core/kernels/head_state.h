// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace ponderscope {

/// What is known of one token's softmax after a part of the vocabulary (online softmax: Milakov and
/// Gimelshein, arXiv 1805.02867), with the sums that entropy and divergences need. x: its logits, y: those of
/// the step before; maxima are subtracted.
struct ColumnState {
    static constexpr double nothing = std::numeric_limits<float>::lowest();

    double maximum = nothing;
    double sum = 0;      ///< Σ e^dx, dx = x - maximum
    double weighted = 0; ///< Σ e^dx · dx
    double tempered = 0; ///< Σ e^(dx · rate), the divisor of the expected embedding
    double previous_maximum = nothing;
    double previous_sum = 0; ///< Σ e^dy
    double forward = 0;      ///< Σ e^dx · (dx - dy)
    double backward = 0;     ///< Σ e^dy · (dy - dx)
    std::int64_t larger = 0; ///< logits above the target's

    /// Moves both maxima up. Returns the factor for everything that was weighted with e^(dx · rate).
    double raise(double to, double previous_to, double rate) {
        if (to == maximum && previous_to == previous_maximum) {
            return 1;
        }
        // Maxima of +infinity stay where they are.
        const double up = to == maximum ? 0 : to - maximum;
        const double previous_up = previous_to == previous_maximum ? 0 : previous_to - previous_maximum;
        const double factor = std::exp(-up);
        const double previous_factor = std::exp(-previous_up);
        weighted = factor * (weighted - sum * up);
        forward = moved(forward, factor, sum * (up - previous_up));
        backward = moved(backward, previous_factor, previous_sum * (previous_up - up));
        sum *= factor;
        previous_sum *= previous_factor;
        const double mixing = rate == 1 ? factor : std::exp(-up * rate);
        tempered *= mixing;
        maximum = to;
        previous_maximum = previous_to;
        return mixing;
    }

    void add(const ColumnState& other) {
        sum += other.sum;
        weighted += other.weighted;
        tempered += other.tempered;
        previous_sum += other.previous_sum;
        forward += other.forward;
        backward += other.backward;
        larger += other.larger;
    }

    /// +infinity where a logit is; -infinity where all are.
    [[nodiscard]] double log_sum_exp() const { return maximum + std::log(sum); }
    /// log Σ e^dx. NaN where there is no distribution: a logit is +infinity, or all are -infinity.
    [[nodiscard]] double log_sum() const {
        const bool none = maximum == std::numeric_limits<double>::infinity() || sum == 0;
        return none ? std::numeric_limits<double>::quiet_NaN() : std::log(sum);
    }
    /// Of one logit. Not x - log_sum_exp(): next to a maximum of -1e35 the sum would be lost.
    [[nodiscard]] double log_probability(double x) const { return x - maximum - log_sum(); }
    [[nodiscard]] double entropy() const { return not_negative(log_sum() - weighted / sum); }
    [[nodiscard]] double kl_current_previous() const {
        return not_negative(forward / sum - (std::log(sum) - std::log(previous_sum)));
    }
    [[nodiscard]] double kl_previous_current() const {
        return not_negative(backward / previous_sum - (std::log(previous_sum) - std::log(sum)));
    }

private:
    /// Rounding may fall short of zero. NaN passes.
    static double not_negative(double value) { return value < 0 ? 0 : value; }
    /// A divergence stays infinite once a word is possible in one distribution and not in the
    /// other: factors of 0 leave it so.
    static double moved(double value, double factor, double change) {
        return value == std::numeric_limits<double>::infinity() ? value : factor * (value - change);
    }
};

/// The largest logits of a block of tokens: `length` a token, falling, of equals the lower id first.
struct LargestLogits {
    std::int64_t length = 0;
    std::vector<float> values;     ///< [columns, length], -infinity where nothing was found yet
    std::vector<std::int32_t> ids; ///< [columns, length], -1 likewise

    LargestLogits() = default;
    LargestLogits(std::int64_t columns, std::int64_t wanted)
        : length(wanted),
          values(static_cast<std::size_t>(columns * wanted), -std::numeric_limits<float>::infinity()),
          ids(static_cast<std::size_t>(columns * wanted), -1) {}

    /// Takes in a list of higher ids.
    void merge(const LargestLogits& later);
    /// Words whose logit is -infinity or NaN never enter a list: the lowest ids among them fill it up.
    void complete();
};

} // namespace ponderscope
