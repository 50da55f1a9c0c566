// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernels/head.h"

#include "core/kernels/cuda_library.h"

#include <ATen/ATen.h>
#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace ponderscope {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

void check_request(const at::Tensor& h, const HeadWeights& weights, const HeadRequest& request) {
    TORCH_CHECK(h.dim() == 2, "read_out: states are ", h.sizes(), ", expected [n, d]");
    TORCH_CHECK(weights.head.dim() == 2 && weights.head.size(1) == h.size(1) && weights.head.size(0) > 0,
                "read_out: the head is ", weights.head.sizes(), " for states ", h.sizes());
    const auto n = h.size(0);
    const auto vocabulary = weights.head.size(0);
    TORCH_CHECK(weights.head.device() == h.device(), "read_out: states and head are on different devices");
    TORCH_CHECK(!weights.head_bias.defined() || weights.head_bias.sizes() == at::IntArrayRef({vocabulary}),
                "read_out: the bias is ", weights.head_bias.sizes());
    TORCH_CHECK(!request.targets.defined() ||
                    (request.targets.sizes() == at::IntArrayRef({n}) &&
                     request.targets.scalar_type() == at::kLong && request.targets.device() == h.device()),
                "read_out: targets must be int64 [", n, "] on the states' device");
    TORCH_CHECK(request.candidates >= 0 && request.candidates <= vocabulary, "read_out: ", request.candidates,
                " candidates of ", vocabulary, " words");
    TORCH_CHECK(!request.previous.defined() || request.previous.sizes() == h.sizes(),
                "read_out: states of the step before are ", request.previous.sizes(), ", states ", h.sizes());
    TORCH_CHECK(!request.previous_rows.defined() ||
                    (request.previous.defined() && request.previous_rows.sizes() == at::IntArrayRef({n}) &&
                     request.previous_rows.scalar_type() == at::kBool),
                "read_out: previous_rows must be bool [", n, "] beside `previous`");
    if (request.mixture) {
        TORCH_CHECK(weights.embedding.sizes() == weights.head.sizes(), "read_out: the embedding is ",
                    weights.embedding.sizes(), ", the head ", weights.head.sizes());
        TORCH_CHECK(request.temperature > 0, "read_out: temperature ", request.temperature);
        TORCH_CHECK(request.top_k >= 0, "read_out: top_k ", request.top_k);
    }
    if (request.targets.defined() && h.is_cpu() && n > 0) {
        TORCH_CHECK(request.targets.max().item<std::int64_t>() < vocabulary,
                    "read_out: a target lies outside of the vocabulary");
    }
}

/// A CPU widens this many rows of a half-precision table at a time, because the whole table is large.
constexpr std::int64_t words_at_once = 4096;

bool multiplies_as_it_lies(const at::Tensor& rows, const at::Tensor& table) {
    return !rows.is_cpu() && table.scalar_type() != at::kFloat && table.scalar_type() != at::kDouble;
}

/// rows [n, d] · table [V, d]^T, in the rows' type. A GPU multiplies in half precision and sums in fp32.
at::Tensor times_words(const at::Tensor& rows, const at::Tensor& table) {
    if (multiplies_as_it_lies(rows, table)) {
        return at::mm(rows.to(table.scalar_type()), table.t(), at::kFloat);
    }
    if (rows.scalar_type() == table.scalar_type()) {
        return at::mm(rows, table.t());
    }
    at::Tensor out = at::empty({rows.size(0), table.size(0)}, rows.options());
    for (std::int64_t word = 0; word < table.size(0); word += words_at_once) {
        const at::Tensor some = table.narrow(0, word, std::min(words_at_once, table.size(0) - word));
        at::Tensor part = out.narrow(1, word, some.size(0));
        at::mm_out(part, rows, some.to(rows.scalar_type()).t());
    }
    return out;
}

/// The factor on shares before they are rounded to fp16. fp16 has no numbers below 6e-8, so small shares of a
/// large vocabulary would become 0. A power of two changes no digits.
double lift_of(at::ScalarType type) {
    return type == at::kHalf ? 0x1p15 : 1.0;
}

/// shares [n, V] · table [V, d], with the same precision.
at::Tensor mix_words(const at::Tensor& shares, const at::Tensor& table) {
    const auto type = table.scalar_type();
    if (multiplies_as_it_lies(shares, table)) {
        const double lift = lift_of(type);
        at::Tensor lifted = at::empty(shares.sizes(), shares.options().dtype(type));
        at::mul_out(lifted, shares, at::scalar_tensor(lift)); // multiplies and rounds in one kernel
        return at::mm(lifted, table, at::kFloat).div_(lift);
    }
    if (shares.scalar_type() == type) {
        return at::mm(shares, table);
    }
    at::Tensor out = at::zeros({shares.size(0), table.size(1)}, shares.options());
    for (std::int64_t word = 0; word < table.size(0); word += words_at_once) {
        const std::int64_t count = std::min(words_at_once, table.size(0) - word);
        out.addmm_(shares.narrow(1, word, count), table.narrow(0, word, count).to(shares.scalar_type()));
    }
    return out;
}

at::Tensor logits_of(const at::Tensor& h, const HeadWeights& weights) {
    const auto compute = h.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    at::Tensor logits = times_words(h.to(compute), weights.head);
    if (weights.head_bias.defined()) {
        logits.add_(weights.head_bias.to(compute));
    }
    if (weights.scale != 1.0) {
        logits.mul_(weights.scale);
    }
    if (weights.softcap > 0) {
        logits.div_(weights.softcap).tanh_().mul_(weights.softcap);
    }
    return logits;
}

/// The largest logits of a row in falling order, equal logits by id. NaN comes after all numbers.
template <typename T>
void list_largest(const T* logits, std::int64_t vocabulary, std::int64_t length, T* values,
                  std::int64_t* ids) {
    std::int64_t found = 0;
    for (std::int64_t word = 0; word < vocabulary; ++word) {
        const T logit = logits[word];
        if (found == length && !(logit > values[length - 1])) {
            continue;
        }
        found = std::min(found + 1, length);
        const T value = logit == logit ? logit : -std::numeric_limits<T>::infinity();
        std::int64_t at = found - 1;
        for (; at > 0 && values[at - 1] < value; --at) {
            values[at] = values[at - 1];
            ids[at] = ids[at - 1];
        }
        values[at] = value;
        ids[at] = word;
    }
}

/// Values and ids [n, length] of the largest logits. On a GPU, LibTorch decides which of several equal logits
/// end the list.
std::pair<at::Tensor, at::Tensor> largest(const at::Tensor& logits, std::int64_t length) {
    if (!logits.is_cpu()) {
        const auto [values, ids] = at::topk(logits, length, 1);
        const auto [rising, order] = at::sort(ids, 1);
        const auto [falling, places] =
            at::sort(values.gather(1, order), /*stable=*/true, 1, /*descending=*/true);
        return {falling, rising.gather(1, places)};
    }
    const std::int64_t n = logits.size(0);
    const std::int64_t vocabulary = logits.size(1);
    at::Tensor values = at::empty({n, length}, logits.options());
    at::Tensor ids = at::empty({n, length}, logits.options().dtype(at::kLong));
    AT_DISPATCH_FLOATING_TYPES(logits.scalar_type(), "largest", [&] {
        const auto* from = logits.const_data_ptr<scalar_t>();
        auto* to = values.mutable_data_ptr<scalar_t>();
        auto* to_ids = ids.mutable_data_ptr<std::int64_t>();
        at::parallel_for(0, n, 1, [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t row = begin; row < end; ++row) {
                list_largest(from + row * vocabulary, vocabulary, length, to + row * length,
                             to_ids + row * length);
            }
        });
    });
    return {values, ids};
}

/// The softmax of rows of logits. Overwrites the logits. log p(v) = (logit - maximum) - log_sum, so a maximum
/// of -1e35 loses no digits. NaN if a logit is NaN or +infinity, or if all are -infinity.
struct Softmax {
    /// The distance of an impossible token. Finite, so that 0 times the distance is 0.
    static constexpr double lowest = -3e38;

    at::Tensor maximum;      ///< [n, 1]
    at::Tensor distances;    ///< [n, V]: logit - maximum, not below `lowest`
    at::Tensor exponentials; ///< [n, V]: e^distance
    at::Tensor sum, log_sum; ///< [n, 1], of the exponentials

    explicit Softmax(at::Tensor logits)
        : maximum(logits.amax(1, /*keepdim=*/true)),
          distances(logits.sub_(maximum).clamp_min_(lowest)),
          exponentials(distances.exp()),
          sum(exponentials.sum(1, /*keepdim=*/true)),
          log_sum(sum.log()) {}

    [[nodiscard]] at::Tensor log_probabilities(const at::Tensor& logits) const {
        return (logits - maximum).sub_(log_sum);
    }
    /// The mean of \p numbers under p, [n, 1].
    [[nodiscard]] at::Tensor mean(const at::Tensor& numbers) const {
        return (exponentials * numbers).sum(1, /*keepdim=*/true).div_(sum);
    }
};

/// A column [n, 1] as a result. Clamped, because rounding may have made a number negative.
at::Tensor not_negative(const at::Tensor& column) {
    return column.clamp_min(0).squeeze(1).to(at::kFloat);
}

/// KL(P || Q) = Σ p (log p - log q). \p apart: log p - log q without the terms log_sum. Infinite if a token
/// is impossible in Q only, however small its p.
at::Tensor divergence(const Softmax& p, const Softmax& q, const at::Tensor& apart) {
    const at::Tensor impossible = apart.amax(1, /*keepdim=*/true).gt(-0.9 * Softmax::lowest);
    return not_negative((p.mean(apart) - p.log_sum + q.log_sum).masked_fill_(impossible, infinity));
}

/// The mixture over the tokens of the list, with renormalised probabilities. Runs a few rows at a time,
/// because it copies the embeddings of their lists.
at::Tensor mix_list(const at::Tensor& values, const at::Tensor& ids, const at::Tensor& log_sum,
                    const HeadWeights& weights, double temperature) {
    const auto d = weights.embedding.size(1);
    // Add 0 · log_sum: a NaN logit makes log_sum NaN, but is in no list.
    const auto p = at::softmax(values / temperature, 1).add_(log_sum.mul(0));
    auto mixture = at::empty({values.size(0), d}, values.options());
    const auto rows = std::max<std::int64_t>(1, (std::int64_t{256} << 20) / (4 * ids.size(1) * d));
    for (std::int64_t begin = 0; begin < values.size(0); begin += rows) {
        const auto length = std::min(rows, values.size(0) - begin);
        const auto words = weights.embedding.index_select(0, ids.narrow(0, begin, length).flatten())
                               .to(p.scalar_type())
                               .view({length, ids.size(1), d});
        mixture.narrow(0, begin, length)
            .copy_(at::bmm(p.narrow(0, begin, length).unsqueeze(1), words).squeeze(1));
    }
    return mixture;
}

/// Rows of logits with their statistics, by a GPU's kernels or by plain operations.
class LogitRows {
public:
    /// \p cuda: null for plain operations. \p length: the length of the list of largest logits.
    LogitRows(const CudaKernels* cuda, at::Tensor logits, const at::Tensor& targets, bool entropy,
              std::int64_t length)
        : cuda_(cuda) {
        if (cuda != nullptr) {
            logits_ = std::move(logits);
            found_ = cuda->head_statistics(logits_, targets, entropy, length);
        } else {
            read_plain(std::move(logits), targets, entropy, length);
        }
    }

    [[nodiscard]] const HeadStatistics& found() const { return found_; }
    [[nodiscard]] at::Tensor log_sum() const { return found_.sum.log(); }
    [[nodiscard]] at::Tensor probabilities(const at::Tensor& logits) const {
        return (logits - found_.maximum).sub_(log_sum()).exp_().to(at::kFloat);
    }
    /// KL(this || before) and KL(before || this).
    [[nodiscard]] std::pair<at::Tensor, at::Tensor> divergences(const LogitRows& before) const {
        if (cuda_ != nullptr) {
            return cuda_->head_divergences(logits_, found_, before.logits_, before.found_);
        }
        at::Tensor apart = plain_->distances - before.plain_->distances;
        at::Tensor forward = divergence(*plain_, *before.plain_, apart);
        return {std::move(forward), divergence(*before.plain_, *plain_, apart.neg_())};
    }
    /// Σ_v softmax(logits / temperature)_v · table_v, [n, d]. Overwrites the logits.
    [[nodiscard]] at::Tensor mixture(const at::Tensor& table, double temperature) {
        if (temperature != 1) {
            const at::Tensor distances = plain_ ? plain_->distances : logits_.sub_(found_.maximum);
            return mix_words(at::softmax(distances / temperature, 1), table);
        }
        if (plain_) {
            return mix_words(plain_->exponentials, table).div_(found_.sum);
        }
        const auto type = multiplies_as_it_lies(logits_, table) ? table.scalar_type() : at::kFloat;
        const double lift = lift_of(type);
        const at::Tensor shares = cuda_->head_exponentials(logits_, found_.maximum, lift, type);
        return (type == at::kFloat ? at::mm(shares, table) : at::mm(shares, table, at::kFloat))
            .div_(found_.sum * lift);
    }

private:
    void read_plain(at::Tensor logits, const at::Tensor& targets, bool entropy, std::int64_t length) {
        if (length > 0) {
            std::tie(found_.values, found_.ids) = largest(logits, length);
        }
        at::Tensor has_target, target_logits;
        if (targets.defined()) {
            has_target = targets.ge(0);
            target_logits = logits.gather(1, targets.clamp_min(0).unsqueeze(1));
            at::Tensor larger = at::empty_like(logits);
            at::gt_out(larger, logits, target_logits);
            found_.rank = larger.sum(1).to(at::kLong).add_(1).mul_(has_target);
        }
        const Softmax& now = plain_.emplace(std::move(logits));
        found_.maximum = now.maximum;
        found_.sum = now.sum;
        if (targets.defined()) {
            found_.nll = now.log_probabilities(target_logits)
                             .neg_()
                             .squeeze(1)
                             .masked_fill_(has_target.logical_not(), std::numeric_limits<double>::quiet_NaN())
                             .to(at::kFloat);
        }
        if (entropy) {
            found_.entropy = not_negative(now.log_sum - now.mean(now.distances));
        }
    }

    const CudaKernels* cuda_;
    at::Tensor logits_; ///< only with cuda_
    HeadStatistics found_;
    std::optional<Softmax> plain_;
};

HeadResult read_rows(const at::Tensor& h, const HeadWeights& weights, const HeadRequest& request) {
    const std::int64_t vocabulary = weights.head.size(0);
    const bool truncated = request.mixture && request.top_k > 0 && request.top_k < vocabulary;
    const std::int64_t length =
        std::max({request.candidates, request.distribution ? std::min<std::int64_t>(2, vocabulary) : 0,
                  truncated ? request.top_k : 0});
    at::Tensor logits = logits_of(h, weights);
    const CudaKernels* cuda = cuda_kernels(logits);
    if (cuda != nullptr && !cuda->head_fits(logits, length)) {
        cuda = nullptr;
    }
    LogitRows now(cuda, std::move(logits), request.targets, request.distribution, length);
    const at::Tensor values = now.found().values, ids = now.found().ids;
    HeadResult result;
    result.nll = now.found().nll;
    result.rank = now.found().rank;
    if (request.distribution) {
        result.entropy = now.found().entropy;
        const at::Tensor best = now.probabilities(values.narrow(1, 0, std::min<std::int64_t>(2, vocabulary)));
        result.max_probability = best.select(1, 0).contiguous();
        result.margin =
            vocabulary > 1 ? best.select(1, 0) - best.select(1, 1) : result.max_probability.clone();
        result.argmax = ids.select(1, 0).contiguous();
    }
    if (request.candidates > 0) {
        result.candidate_ids = ids.narrow(1, 0, request.candidates).contiguous();
        result.candidate_probabilities = now.probabilities(values.narrow(1, 0, request.candidates));
    }
    if (request.previous.defined()) {
        const LogitRows before(cuda, logits_of(request.previous, weights), {}, false, 0);
        std::tie(result.kl_current_previous, result.kl_previous_current) = now.divergences(before);
        if (request.previous_rows.defined()) {
            const at::Tensor absent = request.previous_rows.logical_not();
            result.kl_current_previous.masked_fill_(absent, std::numeric_limits<double>::quiet_NaN());
            result.kl_previous_current.masked_fill_(absent, std::numeric_limits<double>::quiet_NaN());
        }
    }
    if (request.mixture) {
        result.mixture = truncated
                             ? mix_list(values.narrow(1, 0, request.top_k), ids.narrow(1, 0, request.top_k),
                                        now.log_sum(), weights, request.temperature)
                             : now.mixture(weights.embedding, request.temperature);
        result.mixture = result.mixture.to(at::kFloat);
    }
    return result;
}

} // namespace

HeadResult read_out(const at::Tensor& h, const HeadWeights& weights, const HeadRequest& request) {
    check_request(h, weights, request);
    const c10::NoGradGuard no_grad;
    // Run some rows at a time: few enough for the cache of a CPU, but enough for an efficient product.
    const std::int64_t bytes = std::int64_t{h.is_cpu() ? 2 : 256} << 20;
    const auto rows = std::max<std::int64_t>(128, bytes / (4 * weights.head.size(0)));
    if (h.size(0) <= rows) {
        return read_rows(h, weights, request);
    }
    std::vector<HeadResult> parts;
    for (std::int64_t begin = 0; begin < h.size(0); begin += rows) {
        const auto length = std::min(rows, h.size(0) - begin);
        HeadRequest part = request;
        for (const auto field :
             {&HeadRequest::targets, &HeadRequest::previous, &HeadRequest::previous_rows}) {
            part.*field =
                (request.*field).defined() ? (request.*field).narrow(0, begin, length) : at::Tensor();
        }
        parts.push_back(read_rows(h.narrow(0, begin, length), weights, part));
    }
    HeadResult result;
    for (const auto field : head_result_fields) {
        std::vector<at::Tensor> pieces;
        for (const auto& part : parts) {
            if ((part.*field).defined()) {
                pieces.push_back(part.*field);
            }
        }
        result.*field = pieces.empty() ? at::Tensor() : at::cat(pieces);
    }
    return result;
}

at::Tensor full_logits(const at::Tensor& h, const HeadWeights& weights) {
    const c10::NoGradGuard no_grad;
    return logits_of(h, weights).to(at::kFloat);
}

} // namespace ponderscope
