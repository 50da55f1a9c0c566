// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/dtype.h"
#include "core/base/progress.h"
#include "core/checkpoint/checkpoint.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace ponderscope {

/// One tensor that a model needs: its Hugging Face name, its shape, and how training starts it.
struct TensorSpec {
    enum class Init : std::uint8_t {
        normal,
        constant,
        last,    ///< `value` in the last element, 0 before it: an average that begins as its newest member
        diagonal ///< of a square matrix: 0 on the diagonal, `value` beside it (logits that begin as identity)
    };
    std::string name;
    std::vector<std::int64_t> shape;
    Init init = Init::normal;
    double value = 0.02;                   ///< the normal's standard deviation, or the constant
    std::vector<std::string> aliases = {}; ///< other names in files
    int flexible_axis =
        /// an axis whose size the file decides (`shape` has the size at the start of a training); -1: none
        -1;
    bool multiplies = true; ///< a matrix of a block that products read; counts in FLOPs
    /// Tensors with the same name here have one shape and are in one memory, in the order of the layout.
    std::string stack = {};
    std::string remedy = {}; ///< remedy if it is absent; empty: the usual
};

/// All tensors of a model, in the order in which they are saved, and the pair that may be tied.
struct ParameterLayout {
    std::vector<TensorSpec> tensors;
    std::string embedding;                ///< name of the input table
    std::string head;                     ///< name of the output table, in `tensors` whether tied or not
    bool tied = false;                    ///< the config ties them
    bool first_layers = false;            ///< the file has further layers, which are left out
    std::vector<std::string> prefixes;    ///< of names in files, once or several, that mean nothing
    std::vector<std::string> other_parts; ///< in names of tensors that belong to a part that does not run
    bool strict = false;                  ///< unused tensors are an error: the file is of another model

    /// Bytes of the tensors in a model of that dtype, without the second of two tied tables.
    [[nodiscard]] std::int64_t bytes(at::ScalarType dtype) const;
};

/// The places of a model's weights in the files of a checkpoint.
struct ParameterSources {
    std::vector<const TensorView*> views; ///< one a tensor of the layout; nullptr: a tied head
    bool tied = false;
    std::int64_t bytes = 0;
    std::vector<std::string> notices; ///< notices for the user: unused tensors, broken ties

    /// Reads names, shapes and dtypes; of a table that stands there twice its numbers, too. InputError: a
    /// tensor that is absent, of another shape or of a dtype that is not F32, F16, BF16 or F64.
    static ParameterSources find(const ParameterLayout& layout, const Checkpoint& checkpoint);
};

/// The named weights of a model on a device, in one dtype. Names are Hugging Face's, so that trained models
/// can be saved and loaded again. When the head is tied, `embedding` alone is stored and at(head) gives it.
class Parameters {
public:
    /// Reads every tensor of the layout straight from the mapped files into its place (no second full copy),
    /// converting as it goes. InputError as ParameterSources::find. Cancelled.
    static Parameters load(const ParameterLayout& layout, const Checkpoint& checkpoint, at::Device device,
                           at::ScalarType dtype, const ProgressSink& progress = {},
                           const std::stop_token& stop = {});
    /// Fresh weights for training. The same seed gives the same numbers whatever the device: they are drawn
    /// on the CPU in fp32.
    static Parameters initialise(const ParameterLayout& layout, std::uint64_t seed, at::Device device,
                                 at::ScalarType dtype = at::kFloat);

    [[nodiscard]] const at::Tensor&
    at(const std::string& name) const; ///< std::out_of_range for a name outside the layout
    [[nodiscard]] bool contains(const std::string& name) const;
    /// Undefined when absent: biases that a config switches off.
    [[nodiscard]] at::Tensor find(const std::string& name) const;
    /// All tensors of a TensorSpec::stack, [count, ...]; undefined: of fresh weights, which lie apart.
    [[nodiscard]] at::Tensor stack(const std::string& name) const;
    /// Every stored tensor once, in the order of the layout: what an optimiser steps and a checkpoint saves.
    [[nodiscard]] const std::vector<std::pair<std::string, at::Tensor>>& items() const { return items_; }
    [[nodiscard]] bool tied() const { return tied_; }
    [[nodiscard]] at::Device device() const;
    [[nodiscard]] at::ScalarType dtype() const;
    /// Notices for the user: unused tensors, ties that the file broke.
    [[nodiscard]] const std::vector<std::string>& notices() const { return notices_; }

    /// Lets every stored tensor collect gradients, or not. The tensors stay the same objects.
    void requires_grad(bool on);

private:
    std::vector<std::pair<std::string, at::Tensor>> items_;
    std::map<std::string, std::size_t> index_; ///< name -> place in items_; the tied head's name too
    struct Stack {
        at::Tensor all;
        std::int64_t used = 0;
    };
    /// Fresh memory for a tensor of the layout.
    at::Tensor make_room(const ParameterLayout& layout, const TensorSpec& spec, at::IntArrayRef shape,
                         const at::TensorOptions& options);

    std::map<std::string, Stack> stacks_;
    bool tied_ = false;
    std::vector<std::string> notices_;
};

/// The torch type of a file's element type and back. InputError naming the type when torch has none that
/// models use.
at::ScalarType scalar_type_of(DType dtype);
DType dtype_of(at::ScalarType type);

} // namespace ponderscope
