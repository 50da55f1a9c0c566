// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernels/head_cpu.h"

#include "core/kernels/cpu/aligned.h"
#include "core/kernels/cpu/tile.h"
#include "core/kernels/head_products.h"
#include "core/kernels/head_state.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace ponderscope {

namespace {

using kernels::AlignedArray;

/// The request, with pointers in the place of tensors.
struct Job {
    HeadOperands operands;
    const kernels::TileKernels& k = operands.k;
    HeadTiling tiling;
    std::int64_t tokens = 0, vocabulary = 0;
    at::Tensor states, previous; ///< contiguous fp32
    const std::int64_t* targets = nullptr;
    bool weighted = false;
    bool truncated_mixture = false; ///< over the top_k largest
    float rate = 1;                 ///< 1 / temperature
    std::int64_t list_length = 0;
    std::int64_t groups_per_block = 1;

    [[nodiscard]] std::int64_t width() const { return operands.width(); }
    [[nodiscard]] std::int64_t block_tokens() const { return groups_per_block * width(); }
    [[nodiscard]] std::int64_t blocks() const { return (tokens + block_tokens() - 1) / block_tokens(); }
    [[nodiscard]] std::int64_t chunks() const {
        return (vocabulary + tiling.rows_per_chunk - 1) / tiling.rows_per_chunk;
    }
};

/// What a part of the vocabulary gave for a block.
struct Partial {
    std::vector<ColumnState> states;
    AlignedArray<float> mixtures;
};

/// One thread's work on one block of tokens.
class RowBlock {
public:
    RowBlock(const Job& job, std::int64_t index)
        : job_(job),
          first_(index * job.block_tokens()),
          columns_(std::min(job.block_tokens(), job.tokens - first_)),
          products_(job.operands, columns_),
          states_(products_.pack(job.states, first_)),
          largest(columns_, job.list_length) {
        const auto tile_size = static_cast<std::size_t>(job_.tiling.rows_per_tile * job_.width());
        tile_ = AlignedArray<float>(tile_size);
        if (job_.previous.defined()) {
            previous_ = products_.pack(job_.previous, first_);
            previous_tile_ = AlignedArray<float>(tile_size);
        }
        const auto padded = static_cast<std::size_t>(products_.groups() * job_.width());
        thresholds_ = AlignedArray<float>(padded, -std::numeric_limits<float>::infinity());
        if (job_.targets != nullptr) {
            pivots_ = AlignedArray<float>(padded, std::numeric_limits<float>::infinity());
            products_.logits_of(states_, job_.targets + first_, pivots_.data());
        }
    }

    /// One part of the vocabulary, by itself.
    void run(std::int64_t chunk, Partial& part) {
        clear(part);
        const auto begin = chunk * job_.tiling.rows_per_chunk;
        const auto end = std::min(begin + job_.tiling.rows_per_chunk, job_.vocabulary);
        for (auto row = begin; row < end; row += job_.tiling.rows_per_tile) {
            products_.take(row, std::min(job_.tiling.rows_per_tile, end - row));
            for (std::int64_t group = 0; group < products_.groups(); ++group) {
                run_group(group, row, std::min(job_.tiling.rows_per_tile, end - row), part);
            }
        }
    }

    /// total += part, both relative to the larger maxima of the two.
    void fold(Partial& total, Partial& part) const {
        AlignedArray<float> total_factor(static_cast<std::size_t>(job_.width()), 1.0F);
        AlignedArray<float> part_factor(static_cast<std::size_t>(job_.width()), 1.0F);
        for (std::int64_t group = 0; group < products_.groups(); ++group) {
            for (std::int64_t j = 0; j < products_.columns(group); ++j) {
                auto& a = total.states[static_cast<std::size_t>(group * job_.width() + j)];
                auto& b = part.states[static_cast<std::size_t>(group * job_.width() + j)];
                const double maximum = std::max(a.maximum, b.maximum);
                const double previous = std::max(a.previous_maximum, b.previous_maximum);
                total_factor[static_cast<std::size_t>(j)] =
                    static_cast<float>(a.raise(maximum, previous, job_.rate));
                part_factor[static_cast<std::size_t>(j)] =
                    static_cast<float>(b.raise(maximum, previous, job_.rate));
                a.add(b);
            }
            if (job_.operands.mixture) {
                products_.rescale(group, total_factor.data(), total.mixtures.data());
                products_.rescale(group, part_factor.data(), part.mixtures.data());
                products_.add(group, part.mixtures.data(), total.mixtures.data());
            }
        }
    }

    [[nodiscard]] Partial empty() const {
        Partial part;
        clear(part);
        return part;
    }

    void finish(const Partial& total, const HeadRequest& request, HeadResult& result);

private:
    void clear(Partial& part) const {
        part.states.assign(static_cast<std::size_t>(columns_), {});
        if (job_.operands.mixture) {
            products_.clear_mixtures(part.mixtures);
        }
    }
    void run_group(std::int64_t group, std::int64_t row, std::int64_t rows, Partial& part);

    const Job& job_;
    std::int64_t first_;
    std::int64_t columns_;
    HeadProducts products_;
    PackedStates states_, previous_;
    AlignedArray<float> tile_, previous_tile_, pivots_, thresholds_;

public:
    LargestLogits largest;
};

/// Numbers of one tile, a column each.
struct TileSums {
    static constexpr int most = 64; ///< columns of the widest group
    alignas(64) float maximum[most];
    alignas(64) float previous_maximum[most];
    alignas(64) float factor[most];
    alignas(64) float sum[most];
    alignas(64) float weighted[most];
    alignas(64) float tempered[most];
    alignas(64) float previous_sum[most];
    alignas(64) float forward[most];
    alignas(64) float backward[most];
    alignas(64) std::int32_t larger[most];
};

constexpr float positive_infinity = std::numeric_limits<float>::infinity();

/// How many of a column's elements are +infinity; NaN if one of them is NaN.
float infinities(const float* column, std::int64_t rows, std::int64_t stride) {
    float count = 0;
    for (std::int64_t r = 0; r < rows; ++r) {
        const float x = column[r * stride];
        count += x == positive_infinity ? 1 : x != x ? x : 0;
    }
    return count;
}

void RowBlock::run_group(std::int64_t group, std::int64_t row, std::int64_t rows, Partial& part) {
    const auto& k = job_.k;
    const bool compares = job_.previous.defined();
    const bool mixture = job_.operands.mixture;
    const int n = products_.vectors(group);
    const auto columns = products_.columns(group);
    const auto first = static_cast<std::size_t>(group * job_.width());
    ColumnState* states = part.states.data() + first;
    TileSums sums;

    products_.logits(states_, group, tile_.data());
    if (compares) {
        products_.logits(previous_, group, previous_tile_.data());
    }
    std::fill_n(sums.maximum, TileSums::most, std::numeric_limits<float>::lowest());
    std::fill_n(sums.previous_maximum, TileSums::most, std::numeric_limits<float>::lowest());
    std::fill_n(sums.larger, TileSums::most, 0);
    for (std::int64_t j = 0; j < columns; ++j) {
        sums.maximum[j] = static_cast<float>(states[j].maximum);
        sums.previous_maximum[j] = static_cast<float>(states[j].previous_maximum);
    }
    k.scan(tile_.data(), rows, n, sums.maximum, job_.targets != nullptr ? pivots_.data() + first : nullptr,
           sums.larger);
    if (compares) {
        k.scan(previous_tile_.data(), rows, n, sums.previous_maximum, nullptr, nullptr);
    }
    bool rescaled = false;
    std::fill_n(sums.factor, TileSums::most, 1.0F);
    for (std::int64_t j = 0; j < columns; ++j) {
        sums.factor[j] =
            static_cast<float>(states[j].raise(sums.maximum[j], sums.previous_maximum[j], job_.rate));
        rescaled = rescaled || sums.factor[j] != 1;
    }
    if (job_.list_length > 0) {
        const auto at = static_cast<std::ptrdiff_t>(first) * job_.list_length;
        k.keep_largest(tile_.data(), rows, n, static_cast<int>(columns), static_cast<std::int32_t>(row),
                       job_.list_length, largest.values.data() + at, largest.ids.data() + at,
                       thresholds_.data() + first);
    }
    if (compares) {
        k.divergence(tile_.data(), previous_tile_.data(), rows, n, sums.maximum, sums.previous_maximum,
                     sums.previous_sum, sums.forward, sums.backward);
    }
    const bool shared = mixture && job_.rate == 1;
    // +infinity above its own maximum is NaN to the loops: such columns are counted by hand, before.
    float infinite[TileSums::most];
    for (std::int64_t j = 0; j < columns; ++j) {
        infinite[j] =
            sums.maximum[j] == positive_infinity ? infinities(tile_.data() + j, rows, n * k.lanes) : 0;
    }
    k.exponentials(tile_.data(), rows, n, sums.maximum, 1, shared, sums.sum,
                   job_.weighted ? sums.weighted : nullptr);
    if (mixture) {
        if (!shared) {
            // The tile still holds logits: the distribution and the mixture have different exponentials.
            k.exponentials(tile_.data(), rows, n, sums.maximum, job_.rate, true, sums.tempered, nullptr);
        }
        if (rescaled) {
            products_.rescale(group, sums.factor, part.mixtures.data());
        }
        products_.mix(group, tile_.data(), part.mixtures.data());
    }
    for (std::int64_t j = 0; j < columns; ++j) {
        auto& state = states[j];
        state.sum += sums.maximum[j] == positive_infinity ? infinite[j] : sums.sum[j];
        state.larger += sums.larger[j];
        if (job_.weighted) {
            state.weighted += sums.weighted[j];
        }
        if (mixture) {
            state.tempered += shared ? sums.sum[j] : sums.tempered[j];
        }
        if (compares) {
            state.previous_sum += sums.previous_sum[j];
            state.forward += sums.forward[j];
            state.backward += sums.backward[j];
        }
    }
}

template <typename T>
void put(const at::Tensor& tensor, std::int64_t at, double value) {
    if (tensor.defined()) {
        tensor.data_ptr<T>()[at] = static_cast<T>(value);
    }
}

void RowBlock::finish(const Partial& total, const HeadRequest& request, HeadResult& result) {
    largest.complete();
    AlignedArray<float> scratch;
    for (std::int64_t column = 0; column < columns_; ++column) {
        const auto token = first_ + column;
        const auto& state = total.states[static_cast<std::size_t>(column)];
        put<float>(result.log_sum_exp, token, state.log_sum_exp());
        if (job_.targets != nullptr) {
            const bool has_target = job_.targets[token] >= 0;
            const double logit = pivots_[static_cast<std::size_t>(column)];
            put<float>(result.nll, token,
                       has_target ? -state.log_probability(logit) : std::numeric_limits<double>::quiet_NaN());
            result.rank.data_ptr<std::int64_t>()[token] = has_target ? state.larger + 1 : 0;
        }
        put<float>(result.entropy, token, state.entropy());
        const float* values = largest.values.data() + column * job_.list_length;
        const std::int32_t* ids = largest.ids.data() + column * job_.list_length;
        if (request.distribution) {
            const double best = std::exp(state.log_probability(values[0]));
            const double second = job_.vocabulary > 1 ? std::exp(state.log_probability(values[1])) : 0;
            put<float>(result.max_probability, token, best);
            put<float>(result.margin, token, best - second);
            result.argmax.data_ptr<std::int64_t>()[token] = ids[0];
        }
        for (std::int64_t i = 0; i < request.candidates; ++i) {
            result.candidate_ids.data_ptr<std::int64_t>()[token * request.candidates + i] = ids[i];
            put<float>(result.candidate_probabilities, token * request.candidates + i,
                       std::exp(state.log_probability(values[i])));
        }
        if (request.previous.defined()) {
            put<float>(result.kl_previous_current, token, state.kl_previous_current());
            put<float>(result.kl_current_previous, token, state.kl_current_previous());
        }
        if (!request.mixture) {
            continue;
        }
        const auto depth = job_.operands.depth;
        float* mixture = result.mixture.data_ptr<float>() + token * depth;
        if (job_.truncated_mixture) {
            // A NaN is in no list.
            double divisor = std::isnan(state.sum) ? state.sum : 0;
            for (std::int64_t i = 0; i < request.top_k; ++i) {
                divisor += std::exp((static_cast<double>(values[i]) - values[0]) * job_.rate);
            }
            std::fill_n(mixture, depth, 0.0F);
            for (std::int64_t i = 0; i < request.top_k; ++i) {
                const double weight =
                    std::exp((static_cast<double>(values[i]) - values[0]) * job_.rate) / divisor;
                std::ptrdiff_t stride = 0;
                job_.k.accumulate(job_.operands.embedding.rows(job_.k, ids[i], 1, scratch, stride), depth,
                                  static_cast<float>(weight), mixture);
            }
        } else {
            products_.read(column, total.mixtures.data(), state.tempered, mixture);
        }
    }
}

/// The blocks that two threads shared, to be put together when both are done.
struct Piece {
    std::int64_t block = 0;
    std::int64_t first_chunk = 0;
    std::vector<Partial> parts;
    LargestLogits largest;
};

/// Every thread takes its share of (block, chunk) pairs. Sums are always folded chunk by chunk in rising
/// order, so that it makes no difference to the result where a share ends.
void run(const Job& job, const std::vector<std::int64_t>& ends, const HeadRequest& request,
         HeadResult& result) {
    const auto shares = static_cast<std::int64_t>(ends.size());
    std::vector<std::vector<Piece>> pieces(static_cast<std::size_t>(shares));
    at::parallel_for(0, shares, 1, [&](std::int64_t from, std::int64_t to) {
        for (auto share = from; share < to; ++share) {
            const auto end = ends[static_cast<std::size_t>(share)];
            for (auto task = share == 0 ? 0 : ends[static_cast<std::size_t>(share - 1)]; task < end;) {
                const auto index = task / job.chunks();
                const auto first_chunk = task % job.chunks();
                const auto last_chunk = std::min(job.chunks(), first_chunk + end - task);
                const bool whole = first_chunk == 0 && last_chunk == job.chunks();
                RowBlock block(job, index);
                Partial total = block.empty();
                Partial part;
                Piece piece{index, first_chunk, {}, {}};
                for (auto chunk = first_chunk; chunk < last_chunk; ++chunk) {
                    // From the first chunk on sums are folded at once: the order is the same.
                    block.run(chunk, first_chunk == 0 ? part : piece.parts.emplace_back());
                    if (first_chunk == 0) {
                        block.fold(total, part);
                    }
                }
                if (whole) {
                    block.finish(total, request, result);
                } else {
                    if (first_chunk == 0) {
                        piece.parts.push_back(std::move(total));
                    }
                    piece.largest = std::move(block.largest);
                    pieces[static_cast<std::size_t>(share)].push_back(std::move(piece));
                }
                task += last_chunk - first_chunk;
            }
        }
    });
    std::vector<Piece> shared;
    for (auto& list : pieces) {
        std::move(list.begin(), list.end(), std::back_inserter(shared));
    }
    for (std::size_t i = 0; i < shared.size();) {
        RowBlock block(job, shared[i].block);
        Partial total = block.empty();
        const auto index = shared[i].block;
        for (; i < shared.size() && shared[i].block == index; ++i) {
            for (auto& part : shared[i].parts) {
                block.fold(total, part);
            }
            block.largest.merge(shared[i].largest);
        }
        block.finish(total, request, result);
    }
}

HeadResult empty_result(std::int64_t n, std::int64_t depth, const HeadRequest& request) {
    const auto floats = at::TensorOptions().dtype(at::kFloat);
    const auto integers = at::TensorOptions().dtype(at::kLong);
    HeadResult result;
    result.log_sum_exp = at::empty({n}, floats);
    if (request.targets.defined()) {
        result.nll = at::empty({n}, floats);
        result.rank = at::empty({n}, integers);
    }
    if (request.distribution) {
        result.entropy = at::empty({n}, floats);
        result.max_probability = at::empty({n}, floats);
        result.margin = at::empty({n}, floats);
        result.argmax = at::empty({n}, integers);
    }
    if (request.candidates > 0) {
        result.candidate_ids = at::empty({n, request.candidates}, integers);
        result.candidate_probabilities = at::empty({n, request.candidates}, floats);
    }
    if (request.previous.defined()) {
        result.kl_previous_current = at::empty({n}, floats);
        result.kl_current_previous = at::empty({n}, floats);
    }
    if (request.mixture) {
        result.mixture = at::empty({n, depth}, floats);
    }
    return result;
}

} // namespace

HeadResult read_out_cpu(const at::Tensor& h, const HeadWeights& weights, const HeadRequest& request,
                        const HeadTiling& tiling) {
    Job job;
    auto& operands = job.operands;
    job.tokens = h.size(0);
    operands.depth = h.size(1);
    job.vocabulary = weights.head.size(0);
    auto result = empty_result(job.tokens, operands.depth, request);
    if (job.tokens == 0) {
        return result;
    }
    job.tiling = tiling;
    operands.head = HeadTable(weights.head);
    job.states = h.to(at::kFloat).contiguous();
    if (request.previous.defined()) {
        job.previous = request.previous.to(at::kFloat).contiguous();
    }
    if (weights.head_bias.defined()) {
        const auto bias = weights.head_bias.to(at::kFloat).contiguous();
        operands.bias = AlignedArray<float>(static_cast<std::size_t>(job.vocabulary));
        std::copy_n(bias.const_data_ptr<float>(), job.vocabulary, operands.bias.data());
    }
    operands.softcap = static_cast<float>(weights.softcap);
    operands.scale = static_cast<float>(weights.scale);
    at::Tensor targets;
    if (request.targets.defined()) {
        targets = request.targets.contiguous();
        job.targets = targets.const_data_ptr<std::int64_t>();
    }
    job.weighted = request.distribution;
    job.truncated_mixture = request.mixture && request.top_k > 0 && request.top_k < job.vocabulary;
    operands.mixture = request.mixture && !job.truncated_mixture;
    job.rate = static_cast<float>(1.0 / request.temperature);
    job.list_length =
        std::max(request.candidates, request.distribution ? std::min<std::int64_t>(2, job.vocabulary) : 0);
    if (request.mixture) {
        operands.embedding = HeadTable(weights.embedding);
    }
    if (job.truncated_mixture) {
        job.list_length = std::max(job.list_length, request.top_k);
    }
    // Packed states, and those of the step before, and the mixture, of all groups of a block shall stay in
    // the cache.
    const auto group_bytes = 4 * operands.depth * job.width() *
                             (1 + (job.previous.defined() ? 1 : 0) + (operands.mixture ? 1 : 0));
    job.groups_per_block = std::clamp<std::int64_t>(job.tiling.block_bytes / group_bytes, 1, 8);
    // Neighbouring (block, chunk) pairs, as many for each thread.
    const std::int64_t threads = at::get_num_threads();
    std::vector<std::int64_t> ends;
    for (std::int64_t thread = 1; thread <= threads; ++thread) {
        ends.push_back(job.blocks() * job.chunks() * thread / threads);
    }
    run(job, ends, request, result);
    return result;
}

} // namespace ponderscope
