// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Arithmetic that CUDA kernels and their tests on the host share. No pointers.

#include <cmath>
#include <cstdint>

#if defined(__CUDACC__)
#define PONDERSCOPE_HOST_DEVICE __host__ __device__
#else
#define PONDERSCOPE_HOST_DEVICE
#endif

namespace ponderscope::kernels {

/// Online softmax sums of some logits x: maximum, Σ e^(x - maximum), Σ e^(x - maximum) · (x - maximum).
struct OnlineSums {
    float maximum = -3.4028234e38F; ///< finite, so that x = -infinity gives e^-infinity = 0
    float sum = 0;
    float weighted = 0;

    PONDERSCOPE_HOST_DEVICE void push(float x) {
        if (x > maximum) {
            raise(x);
        }
        float difference = x == maximum ? 0 : x - maximum;          // of +infinity too
        difference = difference < -3.0e38F ? -3.0e38F : difference; // 0 · it is 0
        const float e = expf(difference);
        sum += e;
        weighted += e * difference;
    }

    PONDERSCOPE_HOST_DEVICE void merge(OnlineSums other) {
        if (other.maximum > maximum) {
            raise(other.maximum);
        } else {
            other.raise(maximum);
        }
        sum += other.sum;
        weighted += other.weighted;
    }

    /// +infinity where a logit is; -infinity where all are.
    PONDERSCOPE_HOST_DEVICE float log_sum_exp() const { return maximum + logf(sum); }
    /// log Σ e^(x - maximum). NaN where there is no distribution: a logit is +infinity, or all are -infinity.
    PONDERSCOPE_HOST_DEVICE float log_sum() const {
        return maximum == INFINITY || sum == 0 ? NAN : logf(sum);
    }
    PONDERSCOPE_HOST_DEVICE float entropy() const {
        const float value = log_sum() - weighted / sum;
        return value < 0 ? 0 : value;
    }

private:
    PONDERSCOPE_HOST_DEVICE void raise(float to) {
        const float up = to == maximum ? 0 : to - maximum;
        const float factor = expf(-up);
        // If factor is 0, `up` may be so large that its product is infinite.
        weighted = factor == 0 ? 0 : factor * (weighted - sum * up);
        sum *= factor;
        maximum = to;
    }
};

/// Online divergences of two rows of logits x, y of the same words, P = softmax(x) and Q = softmax(y).
/// Differences of log-probabilities are kept against both maxima so far, so that rows far from each other
/// lose no digits.
class OnlineDivergence {
public:
    PONDERSCOPE_HOST_DEVICE void push(float x, float y) {
        raise(x > p_.maximum ? x : p_.maximum, y > q_.maximum ? y : q_.maximum);
        const float a = below(x, p_.maximum);
        const float b = below(y, q_.maximum);
        p_.push(a, b);
        q_.push(b, a);
    }

    PONDERSCOPE_HOST_DEVICE void merge(OnlineDivergence other) {
        const float p = other.p_.maximum > p_.maximum ? other.p_.maximum : p_.maximum;
        const float q = other.q_.maximum > q_.maximum ? other.q_.maximum : q_.maximum;
        raise(p, q);
        other.raise(p, q);
        p_.merge(other.p_);
        q_.merge(other.q_);
    }

    /// KL(P || Q) and KL(Q || P): infinite where a word is impossible (-infinity) in the second alone; NaN
    /// where one of the two is no distribution.
    PONDERSCOPE_HOST_DEVICE float forward() const { return of(p_, q_); }
    PONDERSCOPE_HOST_DEVICE float backward() const { return of(q_, p_); }

    /// The members as numbers, for exchange between lanes.
    static constexpr int numbers = 6;
    PONDERSCOPE_HOST_DEVICE float& number(int i) {
        Side& side = i < 3 ? p_ : q_;
        return i % 3 == 0 ? side.maximum : i % 3 == 1 ? side.sum : side.apart;
    }

private:
    /// A vocabulary's differences, each up to 3e38, have a sum in fp32.
    static constexpr float unit = 0x1p-32F;

    struct Side {
        float maximum = -3.4028234e38F; ///< finite
        float sum = 0;                  ///< Σ e^a, a relative to the own maximum
        float apart = 0;                ///< Σ e^a (a - b) · unit, b as far below the other side's
        PONDERSCOPE_HOST_DEVICE void push(float own, float other) {
            const float e = expf(own);
            sum += e;
            apart += other == -INFINITY && own != -INFINITY ? INFINITY
                     : e == 0                               ? 0
                                                            : e * ((own - other) * unit);
        }
        PONDERSCOPE_HOST_DEVICE void merge(const Side& other) {
            sum += other.sum;
            apart += other.apart;
        }
    };

    /// x minus a maximum: -infinity only for an impossible word.
    PONDERSCOPE_HOST_DEVICE static float below(float x, float maximum) {
        const float difference = x - maximum;
        return difference < -3.0e38F && x != -INFINITY ? -3.0e38F : difference;
    }
    PONDERSCOPE_HOST_DEVICE void raise(float p, float q) {
        raise(p_, q_, p);
        raise(q_, p_, q);
    }
    PONDERSCOPE_HOST_DEVICE static void raise(Side& side, Side& other, float to) {
        if (to == side.maximum) {
            return;
        }
        const float up = to * unit - side.maximum * unit;
        const float factor = expf(side.maximum - to);
        if (side.apart != INFINITY) {
            side.apart = factor == 0 ? 0 : factor * (side.apart - side.sum * up);
        }
        side.sum *= factor;
        other.apart += other.sum == 0 ? 0 : other.sum * up;
        side.maximum = to;
    }
    /// If a row is not a distribution, a sum is NaN or 0.
    PONDERSCOPE_HOST_DEVICE static float of(const Side& p, const Side& q) {
        const float value = p.apart / p.sum / unit - logf(p.sum) + logf(q.sum);
        return value < 0 ? 0 : value;
    }

    Side p_, q_;
};

/// The rows of a query's ranges that are inside a sliding window; call it for the ranges in order. `hidden`
/// starts as the number of visible rows beyond the window (0 without one): this many rows are left out at the
/// beginning.
struct RangeTrim {
    std::int64_t hidden = 0;

    PONDERSCOPE_HOST_DEVICE static RangeTrim of(std::int64_t visible, std::int64_t window) {
        RangeTrim trim;
        trim.hidden = window > 0 && visible > window ? visible - window : 0;
        return trim;
    }
    /// Where the range [begin, end) now begins.
    PONDERSCOPE_HOST_DEVICE std::int32_t first(std::int32_t begin, std::int32_t end) {
        if (end <= begin) {
            return begin;
        }
        const std::int64_t length = end - begin;
        const std::int64_t here = hidden < length ? hidden : length;
        hidden -= here;
        return begin + static_cast<std::int32_t>(here);
    }
};

/// Order of candidates: the larger logit, of equals the lower id.
PONDERSCOPE_HOST_DEVICE inline bool comes_before(float a, std::int32_t a_id, float b, std::int32_t b_id) {
    return a > b || (a == b && a_id < b_id);
}

} // namespace ponderscope::kernels
