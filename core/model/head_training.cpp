// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/head.h"

#include "core/model/gradient.h"
#include "core/model/head_cpu.h"
#include "core/model/kernels/tile.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/autocast_mode.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <optional>
#include <vector>

namespace ponderscope {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

/// Rows of logits that exist at a time, in bytes; on a GPU, where kernels want to be long, more.
std::int64_t tile_rows(const at::Tensor& h, std::int64_t vocabulary) {
    const std::int64_t bytes = h.is_cpu() ? std::int64_t{64} << 20 : std::int64_t{1} << 30;
    return std::clamp<std::int64_t>(bytes / (4 * vocabulary), 16, std::max<std::int64_t>(16, h.size(0)));
}

/// Probabilities of that many elements are kept for the backward pass instead of being computed again.
bool worth_keeping(const at::Tensor& h, std::int64_t vocabulary) {
    return h.size(0) * vocabulary * 4 <= (h.is_cpu() ? std::int64_t{128} << 20 : std::int64_t{4} << 30);
}

at::ScalarType compute_type(const at::Tensor& h) {
    return h.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

/// A table as it is multiplied: under autocast on a device whose products of halves have sums in fp32, in
/// autocast's dtype; logits, probabilities and the table's gradient stay in fp32.
at::Tensor multiplied(const at::Tensor& table) {
    const auto device = table.device().type();
    return table.is_cpu() || !at::autocast::is_autocast_enabled(device)
               ? table
               : table.to(at::autocast::get_autocast_dtype(device));
}

/// Row loops of our own take fp32 on the CPU.
bool own_loops(const at::Tensor& tile) {
    return tile.is_cpu() && tile.scalar_type() == at::kFloat && tile.stride(1) == 1;
}

/// Logits of some rows in the compute type, in a buffer that is used again.
class LogitTile {
public:
    LogitTile(const at::Tensor& head, const at::Tensor& bias, at::ScalarType compute)
        : head_(head), bias_(bias), compute_(compute) {}

    at::Tensor operator()(const at::Tensor& h) {
        at::Tensor logits;
        if (head_.scalar_type() == compute_) {
            if (!buffer_.defined() || buffer_.size(0) < h.size(0)) {
                buffer_ = at::empty({h.size(0), head_.size(0)}, h.options().dtype(compute_));
            }
            logits = buffer_.narrow(0, 0, h.size(0));
            at::mm_out(logits, h, head_.t());
        } else if (!h.is_cpu()) {
            logits = at::mm(h.to(head_.scalar_type()), head_.t(), compute_);
        } else {
            logits = at::mm(h, head_.t()).to(compute_);
        }
        return bias_.defined() ? logits.add_(bias_) : logits;
    }

private:
    at::Tensor head_, bias_;
    at::ScalarType compute_;
    at::Tensor buffer_;
};

/// logits becomes softmax(logits · rate); returns log Σ exp, one a row.
at::Tensor softmax_in_place(const at::Tensor& logits, double rate) {
    if (own_loops(logits)) {
        auto log_sum_exp = at::empty({logits.size(0)}, logits.options());
        float* out = log_sum_exp.data_ptr<float>();
        const auto& kernels = kernels::tile_kernels();
        at::parallel_for(0, logits.size(0), 4, [&](std::int64_t begin, std::int64_t end) {
            for (auto row = begin; row < end; ++row) {
                out[row] = kernels.softmax_row(logits.data_ptr<float>() + row * logits.stride(0),
                                               logits.size(1), static_cast<float>(rate));
            }
        });
        return log_sum_exp;
    }
    logits.mul_(rate);
    const auto log_sum_exp = at::logsumexp(logits, {1}, /*keepdim=*/true);
    logits.sub_(log_sum_exp).exp_();
    return log_sum_exp.squeeze(1);
}

/// d becomes the gradient with respect to the logits, given p = softmax(logits · rate) and d with respect to
/// p. mean: Σ p · d, one a row.
void softmax_gradient_in_place(const at::Tensor& p, const at::Tensor& d, const at::Tensor& mean,
                               double rate) {
    if (own_loops(p) && own_loops(d) && mean.scalar_type() == at::kFloat) {
        const auto means = mean.contiguous();
        const auto& kernels = kernels::tile_kernels();
        at::parallel_for(0, p.size(0), 4, [&](std::int64_t begin, std::int64_t end) {
            for (auto row = begin; row < end; ++row) {
                kernels.softmax_gradient_row(p.const_data_ptr<float>() + row * p.stride(0), p.size(1),
                                             means.const_data_ptr<float>()[row], static_cast<float>(rate),
                                             d.data_ptr<float>() + row * d.stride(0));
            }
        });
        return;
    }
    d.sub_(mean.unsqueeze(1)).mul_(p).mul_(rate);
}

at::Tensor zeros_for(const at::Tensor& tensor, bool wanted, at::ScalarType compute) {
    return wanted ? at::zeros(tensor.sizes(), tensor.options().dtype(compute)) : at::Tensor();
}

/// Σ rows: sum += a^T b in the compute type.
void add_product(const at::Tensor& sum, const at::Tensor& a, const at::Tensor& b) {
    if (b.scalar_type() == sum.scalar_type()) {
        sum.addmm_(a.t(), b);
    } else if (!sum.is_cpu()) {
        sum.add_(at::mm(a.to(b.scalar_type()).t(), b, sum.scalar_type()));
    } else {
        sum.add_(at::mm(a.to(b.scalar_type()).t(), b));
    }
}

/// a b in the compute type.
at::Tensor mixed_product(const at::Tensor& a, const at::Tensor& b) {
    if (!a.is_cpu() && a.scalar_type() != b.scalar_type()) {
        return at::mm(a.to(b.scalar_type()), b, a.scalar_type());
    }
    return at::mm(a.to(b.scalar_type()), b).to(a.scalar_type());
}

struct Wanted {
    bool states = false, head = false, bias = false, embedding = false;
};

/// Mean cross-entropy. The gradient is computed with the loss, tile by tile: the logits are made once and
/// never kept (the idea of fused linear cross-entropy kernels), and backward only scales it.
class CrossEntropy : public Function<CrossEntropy> {
public:
    static at::Tensor forward(AutogradContext* context, const at::Tensor& h, const at::Tensor& given_head,
                              const std::optional<at::Tensor>& maybe_bias, const at::Tensor& targets,
                              Wanted wanted) {
        const auto head = multiplied(given_head);
        const auto bias = maybe_bias.value_or(at::Tensor());
        const auto compute = compute_type(h);
        const auto count = targets.ge(0).sum().to(compute);
        auto sum = at::zeros({}, h.options().dtype(compute));
        const bool gradient = wanted.states || wanted.head || wanted.bias;
        auto of_states = wanted.states ? at::empty(h.sizes(), h.options().dtype(compute)) : at::Tensor();
        const auto of_head = zeros_for(head, wanted.head, compute);
        const auto of_bias = wanted.bias ? zeros_for(bias, true, compute) : at::Tensor();
        LogitTile logits_of(head, bias, compute);
        const auto rows = tile_rows(h, head.size(0));
        for (std::int64_t begin = 0; begin < h.size(0); begin += rows) {
            const auto length = std::min(rows, h.size(0) - begin);
            const auto states = h.narrow(0, begin, length);
            const auto target = targets.narrow(0, begin, length);
            const auto valid = target.ge(0).to(compute);
            const auto index = target.clamp_min(0).unsqueeze(1);
            auto p = logits_of(states);
            const auto logit = p.gather(1, index).squeeze(1);
            const auto log_sum_exp = softmax_in_place(p, 1);
            // A row without a target counts for nothing even when it holds no finite number.
            sum.add_(at::where(target.ge(0), log_sum_exp - logit, at::zeros_like(logit)).sum());
            if (!gradient) {
                continue;
            }
            p.scatter_add_(1, index, valid.neg().unsqueeze(1));
            if (!h.is_cpu() || target.min().item<std::int64_t>() < 0) {
                p.masked_fill_(target.lt(0).unsqueeze(1), 0);
            }
            if (wanted.states) {
                of_states.narrow(0, begin, length).copy_(mixed_product(p, head));
            }
            if (wanted.head) {
                add_product(of_head, p, states.to(head.scalar_type()));
            }
            if (wanted.bias) {
                of_bias.add_(p.sum(0));
            }
        }
        if (gradient) {
            context->save_for_backward({of_states, of_head, of_bias, count, h, given_head, bias});
        }
        return sum / count;
    }

    static variable_list backward(AutogradContext* context, const variable_list& gradients) {
        const auto saved = context->get_saved_variables();
        const auto factor = gradients[0] / saved[3];
        const auto scaled = [&](std::size_t i, std::size_t like) {
            return saved[i].defined() ? (saved[i] * factor).to(saved[like].scalar_type()) : at::Tensor();
        };
        return {scaled(0, 4), scaled(1, 5), scaled(2, 6), at::Tensor(), at::Tensor()};
    }
};

/// y = softmax(head(h) · rate) · embedding.
class ExpectedEmbedding : public Function<ExpectedEmbedding> {
public:
    static at::Tensor forward(AutogradContext* context, const at::Tensor& h, const at::Tensor& given_head,
                              const std::optional<at::Tensor>& maybe_bias, const at::Tensor& given_embedding,
                              double rate, Wanted wanted) {
        const auto head = multiplied(given_head);
        const auto embedding = given_embedding.is_same(given_head) ? head : multiplied(given_embedding);
        const auto bias = maybe_bias.value_or(at::Tensor());
        const auto compute = compute_type(h);
        const bool gradient = wanted.states || wanted.head || wanted.bias || wanted.embedding;
        const bool keep = gradient && worth_keeping(h, head.size(0));
        at::Tensor mixture;
        at::Tensor kept;
        if (keep || !h.is_cpu() || compute != at::kFloat) {
            LogitTile logits_of(head, bias, compute);
            const auto rows = keep ? std::max<std::int64_t>(1, h.size(0)) : tile_rows(h, head.size(0));
            mixture = at::empty({h.size(0), embedding.size(1)}, h.options().dtype(compute));
            for (std::int64_t begin = 0; begin < h.size(0); begin += rows) {
                const auto length = std::min(rows, h.size(0) - begin);
                auto p = logits_of(h.narrow(0, begin, length));
                softmax_in_place(p, rate);
                mixture.narrow(0, begin, length).copy_(mixed_product(p, embedding));
                kept = keep ? p : at::Tensor();
            }
        } else {
            HeadWeights weights{head, bias, embedding};
            HeadRequest request;
            request.mixture = true;
            request.temperature = 1 / rate;
            mixture = read_out(h, weights, request).mixture;
        }
        const auto result = mixture.to(given_embedding.scalar_type());
        if (gradient) {
            context->save_for_backward({h, given_head, bias, given_embedding, result, kept, head, embedding});
            context->saved_data["rate"] = rate;
            context->saved_data["wanted"] =
                std::vector<std::int64_t>{wanted.states, wanted.head, wanted.bias, wanted.embedding};
        }
        return result;
    }

    static variable_list backward(AutogradContext* context, const variable_list& gradients) {
        const auto saved = context->get_saved_variables();
        const auto& h = saved[0];
        const auto& bias = saved[2];
        const auto& kept = saved[5];
        const auto& head = saved[6]; // as they were multiplied
        const auto& embedding = saved[7];
        const auto compute = compute_type(h);
        const double rate = context->saved_data["rate"].toDouble();
        const auto flags = context->saved_data["wanted"].toIntVector();
        const auto g = gradients[0].to(embedding.scalar_type()).contiguous();
        const auto mean = (g.to(compute) * saved[4].to(compute)).sum(1);
        const bool logits_matter = flags[0] != 0 || flags[1] != 0 || flags[2] != 0;
        auto of_states = flags[0] != 0 ? at::empty(h.sizes(), h.options().dtype(compute)) : at::Tensor();
        const auto of_head = zeros_for(head, flags[1] != 0, compute);
        const auto of_bias = flags[2] != 0 ? zeros_for(bias, true, compute) : at::Tensor();
        const auto of_embedding = zeros_for(embedding, flags[3] != 0, compute);
        LogitTile logits_of(head, bias, compute);
        LogitTile gradients_of(embedding, {}, compute);
        const auto rows = kept.defined() ? std::max<std::int64_t>(1, h.size(0)) : tile_rows(h, head.size(0));
        for (std::int64_t begin = 0; begin < h.size(0); begin += rows) {
            const auto length = std::min(rows, h.size(0) - begin);
            const auto states = h.narrow(0, begin, length);
            const auto part = g.narrow(0, begin, length);
            at::Tensor p = kept;
            if (!p.defined()) {
                p = logits_of(states);
                softmax_in_place(p, rate);
            }
            if (of_embedding.defined()) {
                add_product(of_embedding, p, part);
            }
            if (!logits_matter) {
                continue;
            }
            const auto d = gradients_of(part);
            softmax_gradient_in_place(p, d, mean.narrow(0, begin, length), rate);
            if (of_states.defined()) {
                of_states.narrow(0, begin, length).copy_(mixed_product(d, head));
            }
            if (of_head.defined()) {
                add_product(of_head, d, states.to(head.scalar_type()));
            }
            if (of_bias.defined()) {
                of_bias.add_(d.sum(0));
            }
        }
        const auto as = [](const at::Tensor& tensor, const at::Tensor& like) {
            return tensor.defined() ? tensor.to(like.scalar_type()) : tensor;
        };
        return {as(of_states, h),           as(of_head, saved[1]), as(of_bias, bias),
                as(of_embedding, saved[3]), at::Tensor(),          at::Tensor()};
    }
};

/// The same over the words of \p ids [n, k] alone. Their rows are gathered a few tokens at a time, and again
/// for the backward pass.
class TruncatedEmbedding : public Function<TruncatedEmbedding> {
public:
    static at::Tensor forward(AutogradContext* context, const at::Tensor& h, const at::Tensor& head,
                              const std::optional<at::Tensor>& maybe_bias, const at::Tensor& embedding,
                              const at::Tensor& ids, double rate) {
        const auto bias = maybe_bias.value_or(at::Tensor());
        const auto result = at::empty({h.size(0), embedding.size(1)}, embedding.options());
        for_tiles(h, ids, [&](std::int64_t begin, std::int64_t length) {
            const auto part = gather(h, head, bias, embedding, ids, rate, begin, length);
            result.narrow(0, begin, length).copy_(at::bmm(part.p.unsqueeze(1), part.values).squeeze(1));
        });
        context->save_for_backward({h, head, bias, embedding, ids});
        context->saved_data["rate"] = rate;
        return result;
    }

    static variable_list backward(AutogradContext* context, const variable_list& gradients) {
        const auto saved = context->get_saved_variables();
        const auto& h = saved[0];
        const auto& ids = saved[4];
        const double rate = context->saved_data["rate"].toDouble();
        const auto compute = compute_type(h);
        const auto of_states = at::empty(h.sizes(), h.options().dtype(compute));
        const auto of_head = at::zeros(saved[1].sizes(), h.options().dtype(compute));
        const auto of_bias = zeros_for(saved[2], saved[2].defined(), compute);
        const auto of_embedding = at::zeros(saved[3].sizes(), h.options().dtype(compute));
        for_tiles(h, ids, [&](std::int64_t begin, std::int64_t length) {
            const auto part = gather(h, saved[1], saved[2], saved[3], ids, rate, begin, length);
            const auto g = gradients[0].narrow(0, begin, length).to(compute);
            const auto index = ids.narrow(0, begin, length).flatten();
            const auto to_words = [&](const at::Tensor& weight, const at::Tensor& vector) {
                return (weight.unsqueeze(2) * vector.unsqueeze(1)).flatten(0, 1);
            };
            of_embedding.index_add_(0, index, to_words(part.p, g));
            const auto d_p = at::bmm(part.values, g.unsqueeze(2)).squeeze(2);
            const auto d = part.p * (d_p - (part.p * d_p).sum(1, true)) * rate;
            of_states.narrow(0, begin, length).copy_(at::bmm(d.unsqueeze(1), part.keys).squeeze(1));
            of_head.index_add_(0, index, to_words(d, h.narrow(0, begin, length).to(compute)));
            if (of_bias.defined()) {
                of_bias.index_add_(0, index, d.flatten());
            }
        });
        return {of_states.to(h.scalar_type()),
                of_head.to(saved[1].scalar_type()),
                of_bias.defined() ? of_bias.to(saved[2].scalar_type()) : of_bias,
                of_embedding.to(saved[3].scalar_type()),
                at::Tensor(),
                at::Tensor()};
    }

private:
    struct Gathered {
        at::Tensor keys, values, p; ///< [tokens, k, d], [tokens, k, d], [tokens, k]
    };

    template <typename Work>
    static void for_tiles(const at::Tensor& h, const at::Tensor& ids, const Work& work) {
        const std::int64_t bytes = h.is_cpu() ? std::int64_t{8} << 20 : std::int64_t{256} << 20;
        const auto rows = std::max<std::int64_t>(1, bytes / (4 * ids.size(1) * h.size(1)));
        for (std::int64_t begin = 0; begin < h.size(0); begin += rows) {
            work(begin, std::min(rows, h.size(0) - begin));
        }
    }

    static Gathered gather(const at::Tensor& h, const at::Tensor& head, const at::Tensor& bias,
                           const at::Tensor& embedding, const at::Tensor& ids, double rate,
                           std::int64_t begin, std::int64_t length) {
        const auto compute = compute_type(h);
        const auto part = ids.narrow(0, begin, length);
        const auto index = part.flatten();
        Gathered gathered;
        gathered.keys = head.index_select(0, index).to(compute).view({length, ids.size(1), head.size(1)});
        gathered.values =
            embedding.index_select(0, index).to(compute).view({length, ids.size(1), embedding.size(1)});
        auto logits = at::bmm(gathered.keys, h.narrow(0, begin, length).to(compute).unsqueeze(2)).squeeze(2);
        if (bias.defined()) {
            logits = logits + bias.to(compute).index_select(0, index).view_as(logits);
        }
        gathered.p = at::softmax(logits * rate, 1);
        return gathered;
    }
};

/// The top_k largest logits of every row; of equals the lower id.
at::Tensor largest_ids(const at::Tensor& h, const HeadWeights& weights, std::int64_t top_k) {
    const c10::NoGradGuard no_grad;
    HeadRequest request;
    request.candidates = top_k;
    return read_out(h.detach(), {weights.head, weights.head_bias, weights.embedding}, request).candidate_ids;
}

/// The CPU multiplies states in the table's fp32; autocast may have left them in bf16. The scale of logits is
/// applied to the states.
at::Tensor prepared(const at::Tensor& h, const HeadWeights& weights) {
    const at::Tensor wide = h.is_cpu() && weights.head.scalar_type() == at::kFloat ? h.to(at::kFloat) : h;
    return weights.scale == 1.0 ? wide : wide * weights.scale;
}

/// An undefined tensor cannot be an argument of a Function.
std::optional<at::Tensor> optional(const at::Tensor& tensor) {
    return tensor.defined() ? std::optional(tensor) : std::nullopt;
}

} // namespace

at::Tensor expected_embedding(const at::Tensor& states, const HeadWeights& weights, double temperature,
                              std::int64_t top_k) {
    TORCH_CHECK(temperature > 0, "expected_embedding: temperature ", temperature);
    TORCH_CHECK(weights.softcap == 0, "expected_embedding: capped logits have no gradient here");
    const at::Tensor h = prepared(states, weights);
    if (top_k > 0 && top_k < weights.head.size(0)) {
        return TruncatedEmbedding::apply(h, weights.head, optional(weights.head_bias), weights.embedding,
                                         largest_ids(h, weights, top_k), 1 / temperature);
    }
    const Wanted wanted{wants_gradient(h), wants_gradient(weights.head), wants_gradient(weights.head_bias),
                        wants_gradient(weights.embedding)};
    return ExpectedEmbedding::apply(h, weights.head, optional(weights.head_bias), weights.embedding,
                                    1 / temperature, wanted);
}

at::Tensor cross_entropy(const at::Tensor& states, const HeadWeights& weights, const at::Tensor& targets) {
    TORCH_CHECK(targets.sizes() == at::IntArrayRef({states.size(0)}), "cross_entropy: targets are ",
                targets.sizes(), " for states ", states.sizes());
    TORCH_CHECK(weights.softcap == 0, "cross_entropy: capped logits have no gradient here");
    const at::Tensor h = prepared(states, weights);
    const Wanted wanted{wants_gradient(h), wants_gradient(weights.head), wants_gradient(weights.head_bias),
                        false};
    return CrossEntropy::apply(h, weights.head, optional(weights.head_bias), targets, wanted);
}

} // namespace ponderscope
