// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/fused_linear.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/autograd/custom_function.h>

#include <optional>
#include <string_view>

namespace ponderscope::fused {

namespace {

/// FLOPs below which a kernel for a new shape (about half a millisecond) costs more than it brings.
constexpr std::int64_t least_work = 200'000'000;
/// The same where that kernel is made once: what the call itself costs.
constexpr std::int64_t least_recurring_work = 10'000'000;
/// glibc maps larger blocks anew each time, and the pages of a fresh result cost as much as the product.
constexpr std::int64_t largest_result = 28 << 20;

using Scalars = c10::List<std::optional<at::Scalar>>;
using Unary = at::Tensor(const at::Tensor&, const at::Tensor&, const std::optional<at::Tensor>&,
                         std::string_view, Scalars, std::optional<std::string_view>);
using Binary = at::Tensor(const at::Tensor&, const at::Tensor&, const at::Tensor&,
                          const std::optional<at::Tensor>&, std::string_view);

/// The library's operators; nothing where it was built without oneDNN or knows them in another form.
struct Operators {
    std::optional<c10::TypedOperatorHandle<Unary>> unary;
    std::optional<c10::TypedOperatorHandle<Binary>> binary;

    Operators() {
        auto& dispatcher = c10::Dispatcher::singleton();
        const auto one = dispatcher.findSchema({"mkldnn::_linear_pointwise", ""});
        const auto two = dispatcher.findSchema({"mkldnn::_linear_pointwise", "binary"});
        if (!one || !two || !at::globalContext().userEnabledMkldnn()) {
            return;
        }
        try {
            unary.emplace(one->typed<Unary>());
            binary.emplace(two->typed<Binary>());
            // One small product shows whether this processor and build take it.
            const at::Tensor small = at::ones({2, 2});
            (void)unary->call(small, small, std::nullopt, "none", Scalars(), "");
            (void)binary->call(small, small, small, std::nullopt, "add");
        } catch (const c10::Error&) {
            unary.reset();
            binary.reset();
        }
    }
    [[nodiscard]] bool there() const { return unary.has_value() && binary.has_value(); }
};

const Operators& operators() {
    static const Operators all;
    return all;
}

struct Name {
    const char* name = nullptr;
    const char* algorithm = "";
};

Name name_of(Activation activation) {
    switch (activation) {
    case Activation::gelu:
        return {"gelu", "none"};
    case Activation::gelu_tanh:
        return {"gelu", "tanh"};
    case Activation::relu:
        return {"relu", ""};
    case Activation::silu:
        return {"swish", ""};
    case Activation::sigmoid:
        return {"sigmoid", ""};
    case Activation::tanh:
        return {"tanh", ""};
    default:
        return {};
    }
}

std::optional<at::Tensor> optional(const at::Tensor& tensor) {
    return tensor.defined() ? std::optional<at::Tensor>(tensor) : std::nullopt;
}

at::Tensor unary(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, const Name& after) {
    return operators().unary->call(x, weight, optional(bias), after.name, Scalars(), after.algorithm);
}

class Product : public torch::autograd::Function<Product> {
public:
    static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x,
                              const at::Tensor& weight, const std::optional<at::Tensor>& bias) {
        context->save_for_backward({x, weight});
        context->saved_data["bias"] = bias.has_value();
        return unary(x.detach(), weight.detach(), bias ? bias->detach() : at::Tensor(), {"none", ""});
    }
    static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                   const torch::autograd::variable_list& gradients) {
        const auto saved = context->get_saved_variables();
        const at::Tensor gradient = gradients[0].contiguous();
        at::Tensor of_x;
        at::Tensor of_weight;
        at::Tensor of_bias;
        if (context->needs_input_grad(0)) {
            of_x = unary(gradient, saved[1].detach().t(), {}, {"none", ""});
        }
        if (context->needs_input_grad(1)) {
            of_weight = at::mm(gradient.t(), saved[0].detach());
        }
        if (context->saved_data["bias"].toBool() && context->needs_input_grad(2)) {
            of_bias = gradient.sum(0);
        }
        return {of_x, of_weight, of_bias};
    }
};

} // namespace

bool suits(const at::Tensor& x, const at::Tensor& weight, bool recurring) {
    return x.is_cpu() && x.scalar_type() == at::kFloat && weight.scalar_type() == at::kFloat &&
           x.is_contiguous() && weight.is_contiguous() &&
           2 * x.size(0) * weight.numel() >= (recurring ? least_recurring_work : least_work) &&
           x.size(0) * weight.size(0) * 4 <= largest_result && operators().there();
}

bool has(Activation activation) {
    return name_of(activation).name != nullptr;
}

at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
    return unary(x, weight, bias, {"none", ""});
}

at::Tensor linear_with_gradient(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
    return Product::apply(x, weight, optional(bias));
}

at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                  Activation activation) {
    TORCH_CHECK(has(activation), "fused::linear: an activation that cannot be fused");
    return unary(x, weight, bias, name_of(activation));
}

at::Tensor linear_add(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                      const at::Tensor& other) {
    return operators().binary->call(x, other, weight, optional(bias), "add");
}

at::Tensor linear_multiply(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                           const at::Tensor& other) {
    return operators().binary->call(x, other, weight, optional(bias), "mul");
}

} // namespace ponderscope::fused
