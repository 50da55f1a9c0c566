// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/model/parameters.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace ponderscope {

/// Writes down the tensors of a model in the words of an architecture file.
class LayoutBuilder {
public:
    /// PREFIX.weight [out, in] and, if wanted, PREFIX.bias [out].
    void linear(const std::string& prefix, std::int64_t out, std::int64_t in, bool bias) {
        matrix(prefix + ".weight", out, in);
        if (bias) {
            vector(prefix + ".bias", out, 0.0);
        }
    }
    void norm(const std::string& prefix, std::int64_t size, bool bias) {
        vector(prefix + ".weight", size, 1.0);
        if (bias) {
            vector(prefix + ".bias", size, 0.0);
        }
    }
    void matrix(std::string name, std::int64_t rows, std::int64_t columns,
                std::vector<std::string> aliases = {}) {
        layout_.tensors.push_back(
            {std::move(name), {rows, columns}, TensorSpec::Init::normal, 0.02, std::move(aliases), -1});
    }
    void vector(std::string name, std::int64_t size, double start) {
        layout_.tensors.push_back({std::move(name), {size}, TensorSpec::Init::constant, start, {}, -1});
    }
    void tensor(std::string name, std::vector<std::int64_t> shape, double start) {
        layout_.tensors.push_back(
            {std::move(name), std::move(shape), TensorSpec::Init::constant, start, {}, -1});
    }
    /// Names block l of so many by \p name_of(l).
    template <typename NameOf>
    void blocks(std::int64_t count, const NameOf& name_of) {
        for (std::int64_t l = 0; l < count; ++l) {
            layout_.blocks.push_back(name_of(l));
        }
    }
    /// Names are those of a model with a head; files of the stack alone leave the first word out, and are
    /// read too.
    [[nodiscard]] ParameterLayout finish(std::string embedding, std::string head, bool tied,
                                         std::vector<std::string> ignored) {
        const std::string stack = embedding.substr(0, embedding.find('.') + 1);
        for (TensorSpec& spec : layout_.tensors) {
            if (!stack.empty() && spec.name.starts_with(stack)) {
                spec.aliases.push_back(spec.name.substr(stack.size()));
            }
        }
        layout_.embedding = std::move(embedding);
        layout_.head = std::move(head);
        layout_.tied = tied;
        layout_.ignored = std::move(ignored);
        return std::move(layout_);
    }

private:
    ParameterLayout layout_;
};

} // namespace ponderscope
