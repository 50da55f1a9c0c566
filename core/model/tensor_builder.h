// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/model/blocks.h"
#include "core/model/parameters.h"

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace ponderscope {

/// Declares the tensors of a model and returns them. The same declarations serve the layout (no parameters;
/// tensors are undefined) and the model.
class TensorBuilder {
public:
    explicit TensorBuilder(const ModelConfig& config, const Parameters* parameters = nullptr)
        : config_(config), parameters_(parameters) {}

    /// The input and output tables, [V, width of embeddings].
    at::Tensor embedding(const std::string& name, std::vector<std::string> aliases = {}) {
        layout_.embedding = name;
        return matrix(name, config_.vocab_size, config_.embed_dim, std::move(aliases));
    }
    at::Tensor head(const std::string& name, std::vector<std::string> aliases = {}) {
        layout_.head = name;
        return matrix(name, config_.vocab_size, config_.embed_dim, std::move(aliases));
    }
    /// PREFIX.weight [out, in] and, with \p bias, PREFIX.bias [out].
    blocks::Linear linear(const std::string& prefix, std::int64_t out, std::int64_t in, bool bias = false) {
        const at::Tensor weight = matrix(prefix + ".weight", out, in);
        return {weight, bias ? vector(prefix + ".bias", out, 0.0) : at::Tensor()};
    }
    /// A norm of the config's kind over \p size elements.
    blocks::Norm norm(const std::string& prefix, std::int64_t size, bool bias = false) {
        const bool one_plus = config_.norm_weight == NormWeight::one_plus;
        blocks::Norm norm{config_.norm, {}, {}, config_.norm_eps, one_plus};
        if (config_.norm_weight != NormWeight::none) {
            norm.weight = vector(prefix + ".weight", size, one_plus ? 0.0 : 1.0);
            norm.bias = bias ? vector(prefix + ".bias", size, 0.0) : at::Tensor();
        }
        return norm;
    }
    at::Tensor matrix(const std::string& name, std::int64_t rows, std::int64_t columns,
                      std::vector<std::string> aliases = {}) {
        return add({name, {rows, columns}, TensorSpec::Init::normal, 0.02, std::move(aliases), -1});
    }
    at::Tensor vector(const std::string& name, std::int64_t size, double start) {
        return tensor(name, {size}, start);
    }
    at::Tensor tensor(const std::string& name, std::vector<std::int64_t> shape, double start) {
        return add({name, std::move(shape), TensorSpec::Init::constant, start, {}, -1});
    }
    at::Tensor add(TensorSpec spec) {
        const std::string name = spec.name;
        layout_.tensors.push_back(std::move(spec));
        return parameters_ != nullptr ? parameters_->find(name) : at::Tensor();
    }
    /// The shape of a declared tensor.
    [[nodiscard]] std::vector<std::int64_t> shape(const std::string& name) const {
        for (const TensorSpec& spec : layout_.tensors) {
            if (spec.name == name) {
                return spec.shape;
            }
        }
        return {};
    }
    /// All tensors of a TensorSpec::stack, [count, ...]. Undefined if they do not share memory.
    [[nodiscard]] at::Tensor stack(const std::string& name) const {
        return parameters_ != nullptr ? parameters_->stack(name) : at::Tensor();
    }
    /// Sets the blocks' prefixes of tensor names: name_of(0), name_of(1), ...
    const std::vector<std::string>& blocks(const std::function<std::string(std::int64_t)>& name_of) {
        for (std::int64_t l = 0; l < config_.layers; ++l) {
            blocks_.push_back(name_of(l));
        }
        return blocks_;
    }
    /// PREFIX0., PREFIX1., ...
    const std::vector<std::string>& blocks(const std::string& prefix) {
        return blocks([&](std::int64_t l) { return prefix + std::to_string(l) + "."; });
    }
    [[nodiscard]] const std::vector<std::string>& blocks() const { return blocks_; }
    /// The layout so far. A family sets the layout's other members through this reference.
    [[nodiscard]] ParameterLayout& layout() { return layout_; }
    /// Completes the layout. Names are those of a model with a head. Files of a model without a head omit the
    /// first word of each name. Both forms are accepted, with or without the layout's prefixes.
    [[nodiscard]] ParameterLayout finish() {
        const std::string stack = layout_.embedding.substr(0, layout_.embedding.find('.') + 1);
        for (TensorSpec& spec : layout_.tensors) {
            if (!stack.empty() && spec.name.starts_with(stack)) {
                spec.aliases.push_back(spec.name.substr(stack.size()));
            }
            std::vector<std::string> names = spec.aliases;
            names.push_back(spec.name);
            for (const std::string& prefix : layout_.prefixes) {
                for (const std::string& name : names) {
                    spec.aliases.push_back(prefix + name);
                }
            }
        }
        layout_.tied = config_.tied_embeddings;
        return std::move(layout_);
    }

private:
    const ModelConfig& config_;
    const Parameters* parameters_;
    ParameterLayout layout_;
    std::vector<std::string> blocks_;
};

} // namespace ponderscope
