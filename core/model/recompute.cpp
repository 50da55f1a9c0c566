// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/recompute.h"

#include "core/model/autocast.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <memory>

namespace ponderscope {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

class Recomputed : public torch::autograd::Function<Recomputed> {
public:
    static at::Tensor forward(AutogradContext* context, const std::shared_ptr<PureFunction>& function,
                              at::TensorList inputs) {
        const auto device = inputs.front().device().type();
        context->save_for_backward(inputs.vec());
        context->saved_data["autocast"] = at::autocast::is_autocast_enabled(device);
        context->saved_data["type"] = static_cast<std::int64_t>(at::autocast::get_autocast_dtype(device));
        context->saved_data["function"] = c10::IValue::make_capsule(c10::make_intrusive<Holder>(function));
        std::vector<at::Tensor> plain;
        for (const at::Tensor& input : inputs) {
            plain.push_back(input.detach());
        }
        return (*function)(plain);
    }

    static variable_list backward(AutogradContext* context, const variable_list& gradients) {
        const auto saved = context->get_saved_variables();
        const auto holder = context->saved_data["function"].toCapsule();
        const auto& function = *static_cast<Holder&>(*holder).function;
        variable_list leaves;
        variable_list wanted;
        for (std::size_t i = 0; i < saved.size(); ++i) {
            leaves.push_back(saved[i].detach());
            if (context->needs_input_grad(i)) {
                wanted.push_back(leaves.back().requires_grad_(true));
            }
        }
        variable_list found;
        {
            const at::AutoGradMode graph(true);
            const Autocast autocast(saved.front().device().type(), context->saved_data["autocast"].toBool(),
                                    static_cast<at::ScalarType>(context->saved_data["type"].toInt()));
            const at::Tensor out = function(leaves);
            found = torch::autograd::grad({out}, wanted, {gradients[0].to(out.scalar_type())});
        }
        variable_list result{at::Tensor()}; // of the function
        for (std::size_t i = 0, next = 0; i < saved.size(); ++i) {
            result.push_back(context->needs_input_grad(i) ? found[next++] : at::Tensor());
        }
        return result;
    }

private:
    struct Holder : torch::CustomClassHolder {
        explicit Holder(std::shared_ptr<PureFunction> given) : function(std::move(given)) {}
        std::shared_ptr<PureFunction> function;
    };
};

} // namespace

at::Tensor recomputed(const PureFunction& function, const std::vector<at::Tensor>& inputs) {
    return Recomputed::apply(std::make_shared<PureFunction>(function), at::TensorList(inputs));
}

} // namespace ponderscope
