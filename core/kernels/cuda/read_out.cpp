// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernels/cuda/head_stats.h"
#include "core/kernels/cuda/kernels.h"

#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <algorithm>
#include <limits>

namespace ponderscope {

namespace {

bool fits(at::ScalarType type) {
    return type == at::kFloat || type == at::kBFloat16 || type == at::kHalf;
}

std::int64_t list_length(const HeadRequest& request, std::int64_t vocabulary) {
    auto length =
        std::max(request.candidates, request.distribution ? std::min<std::int64_t>(2, vocabulary) : 0);
    if (request.mixture && request.top_k > 0 && request.top_k < vocabulary) {
        length = std::max(length, request.top_k);
    }
    return length;
}

void check_queued(const char* error, const at::Tensor& where) {
    TORCH_CHECK(error == nullptr, "read_out on ", where.device(), ": ", error);
}

/// Σ over the words of the list, renormalised. A few tokens at a time: their words' embeddings exist side by
/// side.
at::Tensor mix_list(const at::Tensor& values, const at::Tensor& ids, const at::Tensor& log_sum,
                    const HeadWeights& weights, double temperature) {
    const auto d = weights.embedding.size(1);
    // A NaN is in no list, but in the sum.
    const auto p = at::softmax(values / temperature, 1).add_(log_sum.mul(0).unsqueeze(1));
    auto mixture = at::empty({values.size(0), d}, values.options());
    const auto rows = std::max<std::int64_t>(1, (std::int64_t{256} << 20) / (4 * ids.size(1) * d));
    for (std::int64_t begin = 0; begin < values.size(0); begin += rows) {
        const auto length = std::min(rows, values.size(0) - begin);
        const auto words = weights.embedding.index_select(0, ids.narrow(0, begin, length).flatten())
                               .to(at::kFloat)
                               .view({length, ids.size(1), d});
        mixture.narrow(0, begin, length)
            .copy_(at::bmm(p.narrow(0, begin, length).unsqueeze(1), words).squeeze(1));
    }
    return mixture;
}

/// Of full rows of logits; consumes them.
at::Tensor mix_all(const at::Tensor& logits, const HeadWeights& weights, double temperature) {
    if (temperature != 1) {
        logits.div_(temperature);
    }
    const auto type = weights.embedding.scalar_type();
    const auto p = at::softmax(logits, 1);
    if (type == at::kFloat) {
        return at::mm(p, weights.embedding);
    }
    // fp16 has nothing below 6e-8: in it, a large vocabulary's small probabilities would be 0. A power of two
    // changes no digit of the others.
    const double lift = type == at::kHalf ? 0x1p15 : 1.0;
    return at::mm(p.mul(lift).to(type), weights.embedding, at::kFloat).div_(lift);
}

void logits_into(at::Tensor& out, const at::Tensor& h, const HeadWeights& weights) {
    if (weights.head.scalar_type() == at::kFloat) {
        at::mm_out(out, h, weights.head.t());
    } else {
        at::mm_out(out, h, weights.head.t(), at::kFloat);
    }
    if (weights.head_bias.defined()) {
        out.add_(weights.head_bias);
    }
    cap_logits(out, weights);
}

/// The logits of the targets by themselves, rounded as they may be.
at::Tensor pivots_of(const at::Tensor& h, const at::Tensor& targets, const HeadWeights& weights) {
    const auto words = targets.clamp(0, weights.head.size(0) - 1);
    auto logits = weights.head.index_select(0, words).to(at::kFloat).mul_(h).sum(1);
    if (weights.head_bias.defined()) {
        logits.add_(weights.head_bias.index_select(0, words));
    }
    cap_logits(logits, weights);
    return logits;
}

/// Bytes of a tile of logits: they are to stay in the cache (50 MB on a Hopper GPU, 40 on an Ampere one)
/// beside the weights that make them.
constexpr std::int64_t tile_bytes = std::int64_t{16} << 20;

/// Whether rows are many, and what is asked of them fits into one pass over tiles of words. In fp32 a rank
/// shall not depend on how the target's logit was rounded.
bool fits_tiles(const at::Tensor& h, const HeadWeights& weights, const HeadRequest& request) {
    const auto vocabulary = weights.head.size(0);
    const bool mixes_all = request.mixture && (request.top_k == 0 || request.top_k >= vocabulary);
    return weights.head.scalar_type() != at::kFloat && !mixes_all &&
           list_length(request, vocabulary) <= kernels::longest_tile_list &&
           4 * h.size(0) * vocabulary >= 4 * tile_bytes;
}

/// Divergences from another state of each row, fp32 [n].
struct Divergences {
    at::Tensor before, forward, backward; ///< the state [n, d]; KL(now || before), KL(before || now)
};

/// The statistics that \p rows wants, whose logits exist a tile at a time.
void queue_tiles(const kernels::HeadRows& rows, const at::Tensor& states, const HeadWeights& weights,
                 const at::Tensor& targets, const Divergences& from, void* stream) {
    const auto type = weights.head.scalar_type();
    const auto n = states.size(0);
    const auto vocabulary = weights.head.size(0);
    const auto h = states.to(type);
    const auto before = from.before.defined() ? from.before.to(type) : at::Tensor();
    const std::int64_t tiles = before.defined() ? 2 : 1;
    const auto words = std::max<std::int64_t>(256, tile_bytes / (4 * n * tiles) / 64 * 64);
    const auto memory = at::empty({tiles, n * words}, h.options().dtype(at::kFloat));
    const auto so_far =
        at::empty({n * static_cast<std::int64_t>(sizeof(kernels::HeadSoFar))}, h.options().dtype(at::kByte));
    const auto pivots = targets.defined() ? pivots_of(h, targets, weights) : at::Tensor();
    kernels::HeadTile arguments;
    arguments.of = rows;
    arguments.of.logits = memory.const_data_ptr<float>();
    arguments.pivots = targets.defined() ? pivots.const_data_ptr<float>() : nullptr;
    arguments.so_far = static_cast<kernels::HeadSoFar*>(so_far.data_ptr());
    if (before.defined()) {
        arguments.before = memory.const_data_ptr<float>() + n * words;
        arguments.forward = from.forward.data_ptr<float>();
        arguments.backward = from.backward.data_ptr<float>();
    }
    for (std::int64_t word = 0; word < vocabulary; word += words) {
        arguments.word = word;
        arguments.words = std::min(words, vocabulary - word);
        HeadWeights part = weights;
        part.head = weights.head.narrow(0, word, arguments.words);
        if (weights.head_bias.defined()) {
            part.head_bias = weights.head_bias.narrow(0, word, arguments.words);
        }
        for (std::int64_t i = 0; i < tiles; ++i) {
            auto logits = memory.select(0, i).narrow(0, 0, n * arguments.words).view({n, arguments.words});
            logits_into(logits, i == 0 ? h : before, part);
        }
        check_queued(kernels::head_tile_cuda(arguments, stream), h);
    }
}

/// Of rows whose logits and sums are there.
void queue_divergences(const kernels::HeadRows& rows, const Divergences& from, const HeadWeights& weights,
                       void* stream) {
    const auto logits = logits_cuda(from.before, weights);
    const auto maximum = at::empty_like(from.forward);
    const auto log_sum = at::empty_like(from.forward);
    kernels::HeadRows plain;
    plain.logits = logits.const_data_ptr<float>();
    plain.rows = rows.rows;
    plain.vocabulary = rows.vocabulary;
    plain.maximum = maximum.data_ptr<float>();
    plain.log_sum = log_sum.data_ptr<float>();
    check_queued(kernels::head_rows_cuda(plain, stream), logits);
    kernels::DivergenceRows pair;
    pair.p = rows.logits;
    pair.q = plain.logits;
    pair.p_maximum = rows.maximum;
    pair.p_log_sum = rows.log_sum;
    pair.q_maximum = plain.maximum;
    pair.q_log_sum = plain.log_sum;
    pair.rows = rows.rows;
    pair.vocabulary = rows.vocabulary;
    pair.forward = from.forward.data_ptr<float>();
    pair.backward = from.backward.data_ptr<float>();
    check_queued(kernels::divergence_rows_cuda(pair, stream), logits);
}

HeadResult read_out_rows(const at::Tensor& h, const HeadWeights& weights, const HeadRequest& request) {
    const auto n = h.size(0);
    const auto vocabulary = weights.head.size(0);
    const auto floats = h.options().dtype(at::kFloat);
    const auto integers = h.options().dtype(at::kLong);
    void* stream = c10::cuda::getCurrentCUDAStream(h.device().index()).stream();
    const bool in_tiles = fits_tiles(h, weights, request);
    const auto logits = in_tiles ? at::Tensor() : logits_cuda(h, weights);
    HeadResult result;
    kernels::HeadRows rows;
    rows.logits = in_tiles ? nullptr : logits.const_data_ptr<float>();
    rows.rows = n;
    rows.vocabulary = vocabulary;
    result.log_sum_exp = at::empty({n}, floats);
    rows.log_sum_exp = result.log_sum_exp.data_ptr<float>();
    const auto maximum = at::empty({n}, floats);
    const auto log_sum = at::empty({n}, floats);
    rows.maximum = maximum.data_ptr<float>();
    rows.log_sum = log_sum.data_ptr<float>();
    const auto targets = request.targets.defined() ? request.targets.contiguous() : at::Tensor();
    if (targets.defined()) {
        result.nll = at::empty({n}, floats);
        result.rank = at::empty({n}, integers);
        rows.targets = targets.const_data_ptr<std::int64_t>();
        rows.nll = result.nll.data_ptr<float>();
        rows.rank = result.rank.data_ptr<std::int64_t>();
    }
    if (request.distribution) {
        result.entropy = at::empty({n}, floats);
        rows.entropy = result.entropy.data_ptr<float>();
    }
    rows.list_length = list_length(request, vocabulary);
    const auto values = at::empty({n, rows.list_length}, floats);
    const auto ids = at::empty({n, rows.list_length}, integers);
    rows.list_values = values.data_ptr<float>();
    rows.list_ids = ids.data_ptr<std::int64_t>();
    Divergences from;
    if (request.previous.defined()) {
        from = {request.previous, at::empty({n}, floats), at::empty({n}, floats)};
    }
    if (in_tiles) {
        queue_tiles(rows, h, weights, targets, from, stream);
    } else {
        check_queued(kernels::head_rows_cuda(rows, stream), h);
        if (from.before.defined()) {
            queue_divergences(rows, from, weights, stream);
        }
    }

    const auto probabilities = [&](std::int64_t count) {
        return (values.narrow(1, 0, count) - maximum.unsqueeze(1)).sub_(log_sum.unsqueeze(1)).exp_();
    };
    if (request.distribution) {
        const auto p = probabilities(std::min<std::int64_t>(2, vocabulary));
        result.max_probability = p.select(1, 0).contiguous();
        result.margin = vocabulary > 1 ? p.select(1, 0) - p.select(1, 1) : result.max_probability.clone();
        result.argmax = ids.select(1, 0).contiguous();
    }
    if (request.candidates > 0) {
        result.candidate_ids = ids.narrow(1, 0, request.candidates).contiguous();
        result.candidate_probabilities = probabilities(request.candidates);
    }
    if (from.before.defined()) {
        result.kl_current_previous = from.forward;
        result.kl_previous_current = from.backward;
        if (request.previous_rows.defined()) {
            const auto absent = request.previous_rows.logical_not();
            result.kl_current_previous.masked_fill_(absent, std::numeric_limits<double>::quiet_NaN());
            result.kl_previous_current.masked_fill_(absent, std::numeric_limits<double>::quiet_NaN());
        }
    }
    if (request.mixture) {
        const bool truncated = request.top_k > 0 && request.top_k < vocabulary;
        result.mixture = truncated
                             ? mix_list(values.narrow(1, 0, request.top_k), ids.narrow(1, 0, request.top_k),
                                        log_sum, weights, request.temperature)
                             : mix_all(logits, weights, request.temperature);
    }
    return result;
}

} // namespace

at::Tensor logits_cuda(const at::Tensor& h, const HeadWeights& weights) {
    const auto type = weights.head.scalar_type();
    auto logits = at::empty({h.size(0), weights.head.size(0)}, h.options().dtype(at::kFloat));
    logits_into(logits, h.to(type), weights);
    return logits;
}

bool read_out_cuda_fits(const at::Tensor& h, const HeadWeights& weights, const HeadRequest& request) {
    return !h.is_cpu() && fits(h.scalar_type()) && fits(weights.head.scalar_type()) &&
           (!request.mixture || fits(weights.embedding.scalar_type())) &&
           list_length(request, weights.head.size(0)) <= kernels::longest_cuda_list;
}

HeadResult read_out_cuda(const at::Tensor& h, const HeadWeights& weights, const HeadRequest& request) {
    const c10::DeviceGuard guard(h.device());
    return read_out_rows(h, weights, request);
}

} // namespace ponderscope
