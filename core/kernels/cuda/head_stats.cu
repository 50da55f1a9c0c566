// SPDX-License-Identifier: GPL-3.0-or-later
// One block a row of logits, or one warp where they come in tiles. Counters of words are unsigned: the last
// step of a loop may lead past 2³¹.
#include "core/kernels/cuda/head_stats.h"

#include "core/kernels/cpu/online_sums.h"
#include "core/kernels/cuda/device_elements.cuh"
#include "core/kernels/cuda/launch.cuh"

#include <cuda_runtime.h>

namespace ponderscope::kernels {
namespace {

constexpr int threads = 256;
constexpr int warps = threads / 32;
constexpr int collected_most = 1024; // candidates that shared memory holds
static_assert(longest_cuda_list <= threads, "each thread's maximum is one logit of the list's bound");

/// In lane 0.
template <typename T>
__device__ T warp_sum(T value) {
    for (unsigned step = 16; step > 0; step /= 2) {
        value += __shfl_down_sync(all_lanes, value, step);
    }
    return value;
}

template <typename T>
__device__ T block_sum(T value, T* scratch) {
    value = warp_sum(value);
    __syncthreads();
    if (threadIdx.x % 32 == 0) {
        scratch[threadIdx.x / 32] = value;
    }
    __syncthreads();
    T total = scratch[0];
    for (int warp = 1; warp < warps; ++warp) {
        total += scratch[warp];
    }
    return total;
}

/// In lane 0.
__device__ OnlineSums warp_merge(OnlineSums own) {
    for (unsigned step = 16; step > 0; step /= 2) {
        OnlineSums other;
        other.maximum = __shfl_down_sync(all_lanes, own.maximum, step);
        other.sum = __shfl_down_sync(all_lanes, own.sum, step);
        other.weighted = __shfl_down_sync(all_lanes, own.weighted, step);
        own.merge(other);
    }
    return own;
}

/// In lane 0.
__device__ OnlineDivergence warp_merge(OnlineDivergence own) {
    for (unsigned step = 16; step > 0; step /= 2) {
        OnlineDivergence other;
        for (int i = 0; i < OnlineDivergence::numbers; ++i) {
            other.number(i) = __shfl_down_sync(all_lanes, own.number(i), step);
        }
        own.merge(other);
    }
    return own;
}

/// Once in a kernel: nobody waits for an earlier use of scratch.
__device__ OnlineSums block_merge(OnlineSums own, OnlineSums* scratch) {
    own = warp_merge(own);
    if (threadIdx.x % 32 == 0) {
        scratch[threadIdx.x / 32] = own;
    }
    __syncthreads();
    OnlineSums total = scratch[0];
    for (int warp = 1; warp < warps; ++warp) {
        total.merge(scratch[warp]);
    }
    return total;
}

struct Candidate {
    float value;
    std::int32_t id;
};

/// The first in order of `comes_before` among all threads' candidates; id -1 is none.
__device__ Candidate block_first(Candidate own, Candidate* scratch) {
    const auto better = [](Candidate a, Candidate b) {
        return b.id < 0 || (a.id >= 0 && comes_before(a.value, a.id, b.value, b.id)) ? a : b;
    };
    for (unsigned step = 16; step > 0; step /= 2) {
        Candidate other;
        other.value = __shfl_down_sync(all_lanes, own.value, step);
        other.id = __shfl_down_sync(all_lanes, own.id, step);
        own = better(own, other);
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0) {
        scratch[threadIdx.x / 32] = own;
    }
    __syncthreads();
    Candidate first = scratch[0];
    for (int warp = 1; warp < warps; ++warp) {
        first = better(first, scratch[warp]);
    }
    return first;
}

/// The list when many logits are equal or hardly any is finite: one pass over the row for each place.
__device__ void select_slowly(const float* row, unsigned vocabulary, int length, float* values,
                              std::int64_t* ids) {
    __shared__ Candidate scratch[warps];
    Candidate last{INFINITY, -1};
    int place = 0;
    for (; place < length; ++place) {
        Candidate own{-INFINITY, -1};
        for (unsigned v = threadIdx.x; v < vocabulary; v += threads) {
            const float x = row[v];
            const auto id = static_cast<std::int32_t>(v);
            const bool after = place == 0 || comes_before(last.value, last.id, x, id);
            if (x == x && after && (own.id < 0 || comes_before(x, id, own.value, own.id))) {
                own = {x, id};
            }
        }
        const Candidate found = block_first(own, scratch);
        if (found.id < 0) {
            break;
        }
        last = found;
        if (threadIdx.x == 0) {
            values[place] = found.value;
            ids[place] = found.id;
        }
    }
    // Only NaN are left: they follow by id.
    if (threadIdx.x == 0) {
        for (unsigned v = 0; place < length && v < vocabulary; ++v) {
            if (row[v] != row[v]) {
                values[place] = row[v];
                ids[place] = v;
                ++place;
            }
        }
    }
}

__device__ bool has_target(const HeadRows& a, std::int64_t target) {
    return target >= 0 && target < a.vocabulary;
}

/// By one thread: what is said of a row but for its list.
__device__ void tell(const HeadRows& a, std::int64_t index, std::int64_t target, OnlineSums total,
                     float pivot, int larger) {
    if (a.log_sum_exp != nullptr) {
        a.log_sum_exp[index] = total.log_sum_exp();
    }
    if (a.log_sum != nullptr) {
        a.maximum[index] = total.maximum;
        a.log_sum[index] = total.log_sum();
    }
    if (a.nll != nullptr) {
        a.nll[index] = has_target(a, target) ? total.log_sum() - (pivot - total.maximum) : NAN;
    }
    if (a.rank != nullptr) {
        a.rank[index] = has_target(a, target) ? larger + 1 : 0;
    }
    if (a.entropy != nullptr) {
        a.entropy[index] = total.entropy();
    }
}

__global__ void __launch_bounds__(threads) head_rows_kernel(HeadRows a) {
    __shared__ OnlineSums merge_scratch[warps];
    __shared__ int count_scratch[warps];
    __shared__ float maxima[threads];
    __shared__ float bound;
    __shared__ int collected;
    __shared__ Candidate found[collected_most];

    const std::int64_t index = blockIdx.x;
    const auto vocabulary = static_cast<unsigned>(a.vocabulary);
    const float* row = a.logits + index * a.vocabulary;
    const std::int64_t target = a.targets != nullptr ? a.targets[index] : -1;
    const float pivot = has_target(a, target) ? row[target] : INFINITY;

    OnlineSums own;
    int larger = 0;
    float highest = -INFINITY;
    for (unsigned v = threadIdx.x; v < vocabulary; v += threads) {
        const float x = row[v];
        own.push(x);
        larger += x > pivot ? 1 : 0;
        highest = x > highest ? x : highest;
    }
    const OnlineSums total = block_merge(own, merge_scratch);
    const int all_larger = block_sum(larger, count_scratch);
    if (threadIdx.x == 0) {
        tell(a, index, target, total, pivot, all_larger);
    }
    const int length = static_cast<int>(a.list_length);
    if (length == 0) {
        return;
    }
    float* values = a.list_values + index * length;
    std::int64_t* ids = a.list_ids + index * length;

    // The threads' maxima are logits of different words: the length-th largest of them bounds the list from
    // below.
    maxima[threadIdx.x] = highest;
    if (threadIdx.x == 0) {
        collected = 0;
    }
    __syncthreads();
    int before = 0;
    for (int other = 0; other < threads; ++other) {
        before += comes_before(maxima[other], other, highest, static_cast<std::int32_t>(threadIdx.x)) ? 1 : 0;
    }
    if (before == length - 1) {
        bound = highest;
    }
    __syncthreads();
    for (unsigned v = threadIdx.x; v < vocabulary; v += threads) {
        const float x = row[v];
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
        select_slowly(row, vocabulary, length, values, ids);
        return;
    }
    // In whatever order the atomics let them in, a candidate's place is the number of those before it.
    for (int i = static_cast<int>(threadIdx.x); i < count; i += threads) {
        int place = 0;
        for (int j = 0; j < count; ++j) {
            place += comes_before(found[j].value, found[j].id, found[i].value, found[i].id) ? 1 : 0;
        }
        if (place < length) {
            values[place] = found[i].value;
            ids[place] = found[i].id;
        }
    }
}

__device__ Candidate of_lane(Candidate own, int lane) {
    return {__shfl_sync(all_lanes, own.value, lane), __shfl_sync(all_lanes, own.id, lane)};
}

/// Order of a list: NaN follow the numbers, by id, and no candidate follows all.
__device__ bool precedes(Candidate a, Candidate b) {
    if (a.id < 0 || b.id < 0) {
        return b.id < 0 && a.id >= 0;
    }
    const bool a_is_nan = a.value != a.value;
    const bool b_is_nan = b.value != b.value;
    return a_is_nan || b_is_nan ? b_is_nan && (!a_is_nan || a.id < b.id)
                                : comes_before(a.value, a.id, b.value, b.id);
}

/// Lane j holds the list's j-th candidate. Words join it as they come: of a vocabulary a few dozen do. Pairs:
/// there is a `before`.
template <bool Pairs>
__global__ void __launch_bounds__(threads) head_tile_kernel(HeadTile t) {
    const HeadRows& a = t.of;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const std::int64_t index = static_cast<std::int64_t>(blockIdx.x) * warps + threadIdx.x / 32;
    if (index >= a.rows) {
        return; // the whole warp
    }
    const float* row = a.logits + index * t.words;
    const auto words = static_cast<unsigned>(t.words);
    const std::int64_t target = a.targets != nullptr ? a.targets[index] : -1;
    const float pivot = has_target(a, target) ? t.pivots[index] : INFINITY;
    const int length = static_cast<int>(a.list_length);
    const std::int64_t place = index * length + lane;

    // Lane 0 alone reads what it will write.
    HeadSoFar so_far;
    if (t.word > 0 && lane == 0) {
        so_far = t.so_far[index];
    }
    Candidate kept{0, -1};
    if (t.word > 0 && lane < length) {
        kept = {a.list_values[place], static_cast<std::int32_t>(a.list_ids[place])};
    }
    OnlineSums own = so_far.sums;
    OnlineDivergence apart = so_far.divergence;
    int larger = so_far.larger;
    float found = __shfl_sync(all_lanes, so_far.target, 0);
    Candidate last = of_lane(kept, length > 0 ? length - 1 : 0);
    for (unsigned begin = 0; begin < words; begin += 32) {
        const unsigned v = begin + static_cast<unsigned>(lane);
        Candidate word{0, -1};
        if (v < words) {
            word = {row[v], static_cast<std::int32_t>(t.word + v)};
            own.push(word.value);
            if constexpr (Pairs) {
                apart.push(word.value, t.before[index * t.words + v]);
            }
            larger += word.value > pivot && word.id != target ? 1 : 0;
            found = word.id == target ? word.value : found;
        }
        if (length == 0) {
            continue;
        }
        unsigned joining = __ballot_sync(all_lanes, precedes(word, last));
        while (joining != 0) {
            const Candidate next = of_lane(word, __ffs(static_cast<int>(joining)) - 1);
            const int before = __popc(__ballot_sync(all_lanes, lane < length && precedes(kept, next)));
            const Candidate above{__shfl_up_sync(all_lanes, kept.value, 1),
                                  __shfl_up_sync(all_lanes, kept.id, 1)};
            kept = lane < before ? kept : lane == before ? next : above;
            last = of_lane(kept, length - 1);
            joining &= joining - 1;
            joining &= __ballot_sync(all_lanes, precedes(word, last));
        }
    }
    if (lane < length) {
        a.list_values[place] = kept.value;
        a.list_ids[place] = kept.id;
    }
    so_far.sums = warp_merge(own);
    if constexpr (Pairs) {
        so_far.divergence = warp_merge(apart);
    }
    so_far.larger = warp_sum(larger);
    so_far.target = target >= t.word && target < t.word + t.words
                        ? __shfl_sync(all_lanes, found, static_cast<int>((target - t.word) % 32))
                        : found;
    if (lane != 0) {
        return;
    }
    if (t.word + t.words == a.vocabulary) {
        tell(a, index, target, so_far.sums, so_far.target, so_far.larger);
        if constexpr (Pairs) {
            t.forward[index] = so_far.divergence.forward();
            t.backward[index] = so_far.divergence.backward();
        }
    } else {
        t.so_far[index] = so_far;
    }
}

__global__ void __launch_bounds__(threads) divergence_kernel(DivergenceRows a) {
    __shared__ double scratch[warps];
    const std::int64_t index = blockIdx.x;
    const float* p = a.p + index * a.vocabulary;
    const float* q = a.q + index * a.vocabulary;
    const float p_maximum = a.p_maximum[index];
    const float p_log_sum = a.p_log_sum[index];
    const float q_maximum = a.q_maximum[index];
    const float q_log_sum = a.q_log_sum[index];
    // Sums of a thread are short (a 256th of the row): fp32 is enough; the block's are added up in double.
    float forward = 0;
    float backward = 0;
    for (std::int64_t v = threadIdx.x; v < a.vocabulary; v += threads) {
        const float x = p[v];
        const float y = q[v];
        // Finite, so that 0 · it is 0.
        const float log_p = fmaxf(x - p_maximum - p_log_sum, -3.0e38F);
        const float log_q = fmaxf(y - q_maximum - q_log_sum, -3.0e38F);
        forward += y == -INFINITY && x != -INFINITY ? INFINITY : expf(log_p) * (log_p - log_q);
        backward += x == -INFINITY && y != -INFINITY ? INFINITY : expf(log_q) * (log_q - log_p);
    }
    const double all_forward = block_sum(static_cast<double>(forward), scratch);
    const double all_backward = block_sum(static_cast<double>(backward), scratch);
    if (threadIdx.x == 0) {
        const auto divergence = [&](double value) {
            // fmaxf above drops NaN: it is in the sums.
            if (p_log_sum != p_log_sum || q_log_sum != q_log_sum) {
                return NAN;
            }
            return value < 0 ? 0.0F : static_cast<float>(value);
        };
        a.forward[index] = divergence(all_forward);
        a.backward[index] = divergence(all_backward);
    }
}

constexpr const char* too_many = "more rows or words than the kernel takes";

} // namespace

const char* head_rows_cuda(const HeadRows& arguments, void* stream) {
    if (arguments.rows == 0) {
        return nullptr;
    }
    if (arguments.rows > most_cuda_rows || arguments.vocabulary > most_cuda_rows) {
        return too_many;
    }
    if (arguments.list_length > longest_cuda_list || arguments.list_length > arguments.vocabulary) {
        return "the list of candidates is too long";
    }
    launch_kernel(head_rows_kernel, static_cast<unsigned>(arguments.rows), threads, 0,
                  static_cast<cudaStream_t>(stream), arguments);
    return launch_error();
}

const char* head_tile_cuda(const HeadTile& arguments, void* stream) {
    const HeadRows& of = arguments.of;
    if (of.rows == 0 || arguments.words == 0) {
        return nullptr;
    }
    if (of.rows > most_cuda_rows || of.vocabulary > most_cuda_rows) {
        return too_many;
    }
    if (of.list_length > longest_tile_list || of.list_length > of.vocabulary) {
        return "the list of candidates is too long";
    }
    launch_kernel(arguments.before != nullptr ? head_tile_kernel<true> : head_tile_kernel<false>,
                  static_cast<unsigned>((of.rows + warps - 1) / warps), threads, 0,
                  static_cast<cudaStream_t>(stream), arguments);
    return launch_error();
}

const char* divergence_rows_cuda(const DivergenceRows& arguments, void* stream) {
    if (arguments.rows == 0) {
        return nullptr;
    }
    if (arguments.rows > most_cuda_rows) {
        return too_many;
    }
    launch_kernel(divergence_kernel, static_cast<unsigned>(arguments.rows), threads, 0,
                  static_cast<cudaStream_t>(stream), arguments);
    return launch_error();
}

} // namespace ponderscope::kernels
