// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernels/head.h"

#include "core/kernels/cuda_library.h"
#include "core/kernels/head_cpu.h"
#include "core/kernels/head_fields.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <limits>
#include <vector>

namespace ponderscope {

namespace {

void check_request(const at::Tensor& h, const HeadWeights& weights, const HeadRequest& request) {
    TORCH_CHECK(h.dim() == 2, "read_out: states are ", h.sizes(), ", expected [n, d]");
    TORCH_CHECK(weights.head.dim() == 2 && weights.head.size(1) == h.size(1) && weights.head.size(0) > 0,
                "read_out: the head is ", weights.head.sizes(), " for states ", h.sizes());
    const auto n = h.size(0);
    const auto vocabulary = weights.head.size(0);
    TORCH_CHECK(vocabulary <= std::numeric_limits<std::int32_t>::max(), "read_out: a vocabulary of ",
                vocabulary, " words");
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

bool has_head_tiles(at::ScalarType type) {
    return type == at::kFloat || type == at::kBFloat16 || type == at::kHalf;
}

/// A request whose rows are worked on some thousands at a time, so that their logits fit into memory.
template <typename ReadOut>
HeadResult by_rows(const at::Tensor& h, const HeadWeights& weights, const HeadRequest& request,
                   const ReadOut& read) {
    const std::int64_t bytes = h.is_cpu() ? std::int64_t{64} << 20 : std::int64_t{1} << 30;
    const auto rows = std::max<std::int64_t>(16, bytes / (4 * weights.head.size(0)));
    if (h.size(0) <= rows) {
        return read(h, weights, request);
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
        parts.push_back(read(h.narrow(0, begin, length), weights, part));
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

} // namespace

HeadResult read_out(const at::Tensor& h, const HeadWeights& weights, const HeadRequest& request) {
    check_request(h, weights, request);
    const c10::NoGradGuard no_grad;
    if (const CudaKernels* cuda = cuda_kernels(h);
        cuda != nullptr && cuda->read_out_fits(h, weights, request)) {
        return by_rows(h, weights, request, cuda->read_out);
    }
    const bool long_list =
        request.mixture && request.top_k > longest_list && request.top_k < weights.head.size(0);
    if (!h.is_cpu() || !has_head_tiles(h.scalar_type()) || !has_head_tiles(weights.head.scalar_type()) ||
        (request.mixture && !has_head_tiles(weights.embedding.scalar_type())) || long_list ||
        request.candidates > longest_list) {
        return by_rows(h, weights, request, read_out_plain);
    }
    HeadResult result = read_out_cpu(h, weights, request);
    if (request.previous_rows.defined()) {
        const at::Tensor alone = request.previous_rows.logical_not();
        for (at::Tensor* kl : {&result.kl_previous_current, &result.kl_current_previous}) {
            kl->masked_fill_(alone, std::numeric_limits<double>::quiet_NaN());
        }
    }
    return result;
}

} // namespace ponderscope
