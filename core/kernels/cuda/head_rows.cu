// SPDX-License-Identifier: GPL-3.0-or-later
// One block reads one row of logits. Token ids are unsigned, because the last step of a loop may exceed 2³¹.
#include "core/kernels/cuda/head_rows.h"

#include "core/kernels/cuda/device_elements.cuh"
#include "core/kernels/cuda/launch.cuh"

#include <cuda_runtime.h>

namespace ponderscope::kernels {
namespace {

constexpr unsigned threads = 512;
constexpr unsigned warps = threads / 32;
constexpr unsigned at_once = 4;          // overlapping loads of a thread
constexpr int groups = 128;              // of four threads each
constexpr int collected_most = 1024;     // candidates that fit into shared memory
constexpr float lowest = -3.4028234e38F; // finite, so that differences of maxima are numbers
static_assert(groups * 4 == threads && longest_head_list <= groups);

/// logit - maximum, but at least -1e30, so that 0 times the result is 0. NaN stays NaN.
__device__ __forceinline__ float distance(float logit, float maximum) {
    const float d = logit - maximum;
    return d < -1e30F ? -1e30F : d;
}

/// The sums of a softmax so far, relative to the maximum so far.
struct Sums {
    float maximum = lowest;
    float sum = 0;
    float weighted = 0; ///< sum of e^distance · distance

    __device__ __forceinline__ void raise(float to) {
        const float shift = distance(maximum, to);
        const float factor = expf(shift);
        weighted = (weighted + sum * shift) * factor;
        sum *= factor;
        maximum = to;
    }
    __device__ __forceinline__ void merge(Sums other) {
        const float highest = fmaxf(maximum, other.maximum);
        raise(highest);
        other.raise(highest);
        sum += other.sum;
        weighted += other.weighted;
    }
};

template <typename T>
__device__ T warp_sum(T value) {
#pragma unroll
    for (int step = 16; step > 0; step /= 2) {
        value += __shfl_xor_sync(all_lanes, value, step);
    }
    return value;
}

/// The sum over the block, for every thread.
template <typename T>
__device__ T block_sum(T value, T* scratch) {
    value = warp_sum(value);
    __syncthreads();
    if (threadIdx.x % 32 == 0) {
        scratch[threadIdx.x / 32] = value;
    }
    __syncthreads();
    T total = scratch[0];
    for (unsigned warp = 1; warp < warps; ++warp) {
        total += scratch[warp];
    }
    return total;
}

/// The sums of all threads, for every thread. Call it once in a kernel: it does not wait for an earlier use
/// of \p scratch.
__device__ Sums block_merge(Sums own, Sums* scratch) {
#pragma unroll
    for (int step = 16; step > 0; step /= 2) {
        Sums other;
        other.maximum = __shfl_xor_sync(all_lanes, own.maximum, step);
        other.sum = __shfl_xor_sync(all_lanes, own.sum, step);
        other.weighted = __shfl_xor_sync(all_lanes, own.weighted, step);
        own.merge(other);
    }
    if (threadIdx.x % 32 == 0) {
        scratch[threadIdx.x / 32] = own;
    }
    __syncthreads();
    Sums total = scratch[0];
    for (unsigned warp = 1; warp < warps; ++warp) {
        total.merge(scratch[warp]);
    }
    return total;
}

struct Candidate {
    float value;
    std::int32_t id; ///< -1: none
};

/// The order of a list: larger values first, equal values by id.
__device__ __forceinline__ bool precedes(Candidate a, Candidate b) {
    return a.value > b.value || (a.value == b.value && a.id < b.id);
}

__device__ Candidate block_first(Candidate own, Candidate* scratch) {
    const auto better = [](Candidate a, Candidate b) {
        return b.id < 0 || (a.id >= 0 && precedes(a, b)) ? a : b;
    };
    for (int step = 16; step > 0; step /= 2) {
        Candidate other{};
        other.value = __shfl_xor_sync(all_lanes, own.value, step);
        other.id = __shfl_xor_sync(all_lanes, own.id, step);
        own = better(own, other);
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0) {
        scratch[threadIdx.x / 32] = own;
    }
    __syncthreads();
    Candidate first = scratch[0];
    for (unsigned warp = 1; warp < warps; ++warp) {
        first = better(first, scratch[warp]);
    }
    return first;
}

/// Finds the list with one pass over the row for each entry. Used if many logits are equal or few are finite.
__device__ void select_slowly(const float* row, unsigned vocabulary, int length, float* values,
                              std::int64_t* ids, Candidate* scratch) {
    Candidate last{INFINITY, -1};
    int place = 0;
    for (; place < length; ++place) {
        Candidate own{-INFINITY, -1};
        for (unsigned v = threadIdx.x; v < vocabulary; v += threads) {
            const Candidate word{row[v], static_cast<std::int32_t>(v)};
            if (word.value == word.value && (place == 0 || precedes(last, word)) &&
                (own.id < 0 || precedes(word, own))) {
                own = word;
            }
        }
        last = block_first(own, scratch);
        if (last.id < 0) {
            break;
        }
        if (threadIdx.x == 0) {
            values[place] = last.value;
            ids[place] = last.id;
        }
    }
    // The rest are NaN. List them by id.
    for (unsigned v = 0; threadIdx.x == 0 && place < length && v < vocabulary; ++v) {
        if (row[v] != row[v]) {
            values[place] = row[v];
            ids[place] = v;
            ++place;
        }
    }
}

/// Writes the row's list. \p own: the largest logit that this thread has seen.
__device__ void write_list(const HeadRows& a, const float* row, float own) {
    __shared__ float maxima[groups];
    __shared__ float bound;
    __shared__ unsigned having[threads];
    __shared__ int having_count;
    __shared__ int collected;
    __shared__ Candidate found[collected_most];
    __shared__ Candidate scratch[warps];
    const auto vocabulary = static_cast<unsigned>(a.vocabulary);
    const int length = static_cast<int>(a.list_length);
    float* values = a.list_values + blockIdx.x * a.list_length;
    std::int64_t* ids = a.list_ids + blockIdx.x * a.list_length;

    // The maxima of the groups are logits of different tokens. So the length-th largest maximum is a lower
    // bound for the list.
    float highest = own;
    for (int step = 1; step < 4; step *= 2) {
        highest = fmaxf(highest, __shfl_xor_sync(all_lanes, highest, step));
    }
    if (threadIdx.x % 4 == 0) {
        maxima[threadIdx.x / 4] = highest;
    }
    if (threadIdx.x == 0) {
        having_count = 0;
        collected = 0;
    }
    __syncthreads();
    if (threadIdx.x < groups) {
        const auto self = static_cast<int>(threadIdx.x);
        int before = 0;
        for (int other = 0; other < groups; ++other) {
            before += precedes({maxima[other], other}, {maxima[self], self}) ? 1 : 0;
        }
        if (before == length - 1) {
            bound = maxima[self];
        }
    }
    __syncthreads();
    // Only threads whose largest logit reaches the bound have tokens of the list. Read their tokens again.
    if (own >= bound) {
        having[atomicAdd(&having_count, 1)] = threadIdx.x;
    }
    __syncthreads();
    const unsigned words = (vocabulary + threads - 1) / threads; // tokens of a thread
    const unsigned all = words * static_cast<unsigned>(having_count);
    for (unsigned i = threadIdx.x; i < all; i += threads) {
        const unsigned v = having[i / words] + i % words * threads;
        const float x = v < vocabulary ? row[v] : -INFINITY;
        if (x >= bound) {
            const int place = atomicAdd(&collected, 1);
            if (place < collected_most) {
                found[place] = {x, static_cast<std::int32_t>(v)};
            }
        }
    }
    __syncthreads();
    const int count = collected;
    if (count > collected_most || count < length) {
        select_slowly(row, vocabulary, length, values, ids, scratch);
        return;
    }
    // A candidate's place is the number of candidates before it, whatever their order in `found`.
    for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(threads)) {
        int place = 0;
        for (int j = 0; j < count; ++j) {
            place += precedes(found[j], found[i]) ? 1 : 0;
        }
        if (place < length) {
            values[place] = found[i].value;
            ids[place] = found[i].id;
        }
    }
}

__global__ void __launch_bounds__(threads) head_rows_kernel(HeadRows a) {
    __shared__ Sums sums_scratch[warps];
    __shared__ int count_scratch[warps];
    const std::int64_t index = blockIdx.x;
    const auto vocabulary = static_cast<unsigned>(a.vocabulary);
    const float* row = a.logits + index * a.vocabulary;
    const std::int64_t target = a.targets != nullptr ? a.targets[index] : -1;
    const bool has_target = target >= 0 && target < a.vocabulary;
    const float pivot = has_target ? row[target] : INFINITY;

    Sums own;
    int larger = 0;
    for (unsigned begin = threadIdx.x; begin < vocabulary; begin += threads * at_once) {
        float x[at_once];
        float highest = own.maximum;
#pragma unroll
        for (unsigned i = 0; i < at_once; ++i) {
            x[i] = begin + i * threads < vocabulary ? row[begin + i * threads] : -INFINITY;
        }
#pragma unroll
        for (unsigned i = 0; i < at_once; ++i) {
            highest = fmaxf(highest, x[i]);
        }
        if (highest > own.maximum) {
            own.raise(highest);
        }
#pragma unroll
        for (unsigned i = 0; i < at_once; ++i) {
            const float d = distance(x[i], own.maximum);
            const float e = expf(d);
            own.sum += e;
            own.weighted += e * d;
            larger += x[i] > pivot ? 1 : 0;
        }
    }
    const Sums total = block_merge(own, sums_scratch);
    const int all_larger = block_sum(larger, count_scratch);
    if (threadIdx.x == 0) {
        const float sum = total.sum > 0 || total.sum != total.sum ? total.sum : NAN; // 0: all -infinity
        const float log_sum = logf(sum);
        a.maximum[index] = total.maximum;
        a.sum[index] = sum;
        if (a.nll != nullptr) {
            a.nll[index] = has_target ? log_sum - (pivot - total.maximum) : NAN;
            a.rank[index] = has_target ? all_larger + 1 : 0;
        }
        if (a.entropy != nullptr) {
            const float entropy = log_sum - total.weighted / sum;
            a.entropy[index] = entropy < 0 ? 0 : entropy;
        }
    }
    if (a.list_length > 0) {
        write_list(a, row, own.maximum);
    }
}

template <typename T>
__global__ void __launch_bounds__(threads) head_exponentials_kernel(HeadExponentials a) {
    const std::int64_t index = blockIdx.x;
    const auto vocabulary = static_cast<unsigned>(a.vocabulary);
    const float* row = a.logits + index * a.vocabulary;
    T* out = static_cast<T*>(a.out) + index * a.vocabulary;
    const float maximum = a.maximum[index];
    for (unsigned begin = threadIdx.x; begin < vocabulary; begin += threads * at_once) {
        float x[at_once];
#pragma unroll
        for (unsigned i = 0; i < at_once; ++i) {
            x[i] = begin + i * threads < vocabulary ? row[begin + i * threads] : 0;
        }
#pragma unroll
        for (unsigned i = 0; i < at_once; ++i) {
            if (begin + i * threads < vocabulary) {
                narrow(expf(x[i] - maximum) * a.factor, out + begin + i * threads);
            }
        }
    }
}

__global__ void __launch_bounds__(threads) head_divergences_kernel(HeadDivergences a) {
    __shared__ double scratch[warps];
    const std::int64_t index = blockIdx.x;
    const auto vocabulary = static_cast<unsigned>(a.vocabulary);
    const float* p = a.p + index * a.vocabulary;
    const float* q = a.q + index * a.vocabulary;
    const float p_maximum = a.p_maximum[index];
    const float q_maximum = a.q_maximum[index];
    const float p_log_sum = logf(a.p_sum[index]);
    const float q_log_sum = logf(a.q_sum[index]);
    // A thread's sums are short, so fp32 is enough. The sums of the block are added in double.
    float forward = 0;
    float backward = 0;
    for (unsigned begin = threadIdx.x; begin < vocabulary; begin += threads * at_once) {
        float x[at_once];
        float y[at_once];
#pragma unroll
        for (unsigned i = 0; i < at_once; ++i) {
            const bool inside = begin + i * threads < vocabulary;
            x[i] = inside ? p[begin + i * threads] : -INFINITY;
            y[i] = inside ? q[begin + i * threads] : -INFINITY;
        }
#pragma unroll
        for (unsigned i = 0; i < at_once; ++i) {
            const float log_p = distance(x[i], p_maximum) - p_log_sum;
            const float log_q = distance(y[i], q_maximum) - q_log_sum;
            forward += y[i] == -INFINITY && x[i] != -INFINITY ? INFINITY : expf(log_p) * (log_p - log_q);
            backward += x[i] == -INFINITY && y[i] != -INFINITY ? INFINITY : expf(log_q) * (log_q - log_p);
        }
    }
    const double all_forward = block_sum(static_cast<double>(forward), scratch);
    const double all_backward = block_sum(static_cast<double>(backward), scratch);
    if (threadIdx.x == 0) {
        a.forward[index] = all_forward < 0 ? 0.0F : static_cast<float>(all_forward);
        a.backward[index] = all_backward < 0 ? 0.0F : static_cast<float>(all_backward);
    }
}

/// Runs a kernel with one block for each row. Returns null or an error message.
template <typename Arguments>
const char* over_rows(void (*kernel)(Arguments), const Arguments& arguments, void* stream) {
    constexpr std::int64_t most = 0x7fffffff;
    if (arguments.rows == 0) {
        return nullptr;
    }
    if (arguments.rows > most || arguments.vocabulary > most) {
        return "more rows or words than the kernel takes";
    }
    launch_kernel(kernel, dim3(static_cast<unsigned>(arguments.rows)), dim3(threads), 0,
                  static_cast<cudaStream_t>(stream), arguments);
    return launch_error();
}

} // namespace

const char* head_rows_cuda(const HeadRows& arguments, void* stream) {
    if (arguments.list_length > longest_head_list || arguments.list_length > arguments.vocabulary) {
        return "the list of candidates is too long";
    }
    return over_rows(head_rows_kernel, arguments, stream);
}

const char* head_exponentials_cuda(const HeadExponentials& arguments, void* stream) {
    const char* error = nullptr;
    with_element(arguments.element, [&](auto element) {
        error = over_rows(head_exponentials_kernel<decltype(element)>, arguments, stream);
    });
    return error;
}

const char* head_divergences_cuda(const HeadDivergences& arguments, void* stream) {
    return over_rows(head_divergences_kernel, arguments, stream);
}

} // namespace ponderscope::kernels
