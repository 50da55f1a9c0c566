// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/dtype.h"
#include "core/base/notice.h"
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

/// One tensor of a model: its Hugging Face name, its shape, and its initialisation in training.
struct TensorSpec {
    enum class Init : std::uint8_t {
        normal,
        constant,
        last,    ///< `value` in the last element, 0 in all others (weights of an average)
        diagonal ///< square: 0 on the diagonal, `value` elsewhere; with -8, its exp is nearly the identity
    };
    std::string name;
    std::vector<std::int64_t> shape;
    Init init = Init::normal;
    double value = 0.02;                   ///< the normal's standard deviation, or the constant
    std::vector<std::string> aliases = {}; ///< other names in checkpoint files
    /// Index of an axis whose size comes from the file (for a new model, from `shape`); -1: none.
    int flexible_axis = -1;
    bool multiplies = true; ///< a factor of a block's matrix products, so FLOPs include it
    /// Tensors with the same `stack` have one shape and share one memory block, in the order of the layout.
    std::string stack = {};
    std::string remedy = {}; ///< remedy in the error for a missing tensor; empty: the usual remedy
};

/// All tensors of a model in the order of saving, and the two tables that may be tied.
struct ParameterLayout {
    std::vector<TensorSpec> tensors;
    std::string embedding;             ///< name of the input table
    std::string head;                  ///< name of the output table, which `tensors` has even if it is tied
    bool tied = false;                 ///< the config ties embedding and head
    bool first_layers = false;         ///< the file has more layers, which are not read (--layers)
    std::vector<std::string> prefixes; ///< possible prefixes of names in files
    std::vector<std::string> other_parts; ///< parts of tensor names that mark an unused part of the model
    bool strict = false;                  ///< unused tensors are an error

    /// Bytes of all tensors in this dtype. Counts a tied pair once.
    [[nodiscard]] std::int64_t bytes(at::ScalarType dtype) const;
};

/// The locations of a model's weights in the files of a checkpoint.
struct ParameterSources {
    std::vector<const TensorView*> views; ///< one for each tensor of the layout; nullptr: a tied head
    bool tied = false;
    std::int64_t bytes = 0;
    Notices notices; ///< notices for the user: unused tensors, broken ties

    /// Reads names, shapes and dtypes. If both tables of a tied pair are stored, also compares their numbers.
    /// InputError: a tensor is absent, has another shape, or has a dtype other than F32, F16, BF16 or F64.
    static ParameterSources find(const ParameterLayout& layout, const Checkpoint& checkpoint);
};

/// The named weights of a model on a device, in one dtype. The names are those of Hugging Face, so that
/// trained models can be saved and loaded again. If the head is tied, only `embedding` is stored, and
/// at(head) returns it.
class Parameters {
public:
    /// Reads every tensor of the layout from the mapped files directly into its memory (no second full copy),
    /// and converts it. Throws the InputErrors of ParameterSources::find, and Cancelled.
    static Parameters load(const ParameterLayout& layout, const Checkpoint& checkpoint, at::Device device,
                           at::ScalarType dtype, const ProgressSink& progress = {},
                           const std::stop_token& stop = {});
    /// New weights for training. The same seed gives the same numbers on every device, because the CPU draws
    /// them in fp32.
    static Parameters initialise(const ParameterLayout& layout, std::uint64_t seed, at::Device device,
                                 at::ScalarType dtype = at::kFloat);

    /// std::out_of_range: a name outside the layout.
    [[nodiscard]] const at::Tensor& at(const std::string& name) const;
    [[nodiscard]] bool contains(const std::string& name) const;
    /// Undefined for an absent tensor, for example a bias that the config switches off.
    [[nodiscard]] at::Tensor find(const std::string& name) const;
    /// All tensors of a TensorSpec::stack, [count, ...]. Undefined for new weights, which do not share
    /// memory.
    [[nodiscard]] at::Tensor stack(const std::string& name) const;
    /// Every stored tensor once, in the order of the layout: the optimiser updates them, a checkpoint saves
    /// them.
    [[nodiscard]] const std::vector<std::pair<std::string, at::Tensor>>& items() const { return items_; }
    [[nodiscard]] bool tied() const { return tied_; }
    [[nodiscard]] at::Device device() const;
    [[nodiscard]] at::ScalarType dtype() const;
    /// Notices for the user: unused tensors, and tied tables that differ in the file.
    [[nodiscard]] const Notices& notices() const { return notices_; }

    /// Switches gradients of every stored tensor on or off. The tensor objects stay the same.
    void requires_grad(bool on);

private:
    std::vector<std::pair<std::string, at::Tensor>> items_;
    std::map<std::string, std::size_t> index_; ///< name -> index in items_; includes the name of a tied head
    struct Stack {
        at::Tensor all;
        std::int64_t used = 0;
    };
    /// Allocates memory for a tensor of the layout.
    at::Tensor make_room(const ParameterLayout& layout, const TensorSpec& spec, at::IntArrayRef shape,
                         const at::TensorOptions& options);

    std::map<std::string, Stack> stacks_;
    bool tied_ = false;
    Notices notices_;
};

/// The torch type of a file's elements. InputError, which names the type: torch lacks it.
at::ScalarType scalar_type_of(DType dtype);

} // namespace ponderscope
