// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// What CUDA kernels and their tests on the host share: arithmetic of a few numbers, no pointers.

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
        // Where nothing is left of the sums, `up` may be so large that its product is infinite.
        weighted = factor == 0 ? 0 : factor * (weighted - sum * up);
        sum *= factor;
        maximum = to;
    }
};

/// Rows of one of a query's ranges that a sliding window leaves, the ranges being walked in order. `hidden`
/// starts as the number of visible rows beyond the window (0 without one): the first so many are left out.
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
