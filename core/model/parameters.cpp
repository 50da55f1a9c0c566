// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/parameters.h"

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/utf8.h"
#include "core/base/words.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <unordered_set>

namespace ponderscope {

namespace {

std::filesystem::path file_of(const Checkpoint& checkpoint) {
    const std::vector<std::filesystem::path> files = checkpoint.weights.files();
    return files.size() == 1 ? files.front() : checkpoint.folder;
}

/// The name of a tensor in the files; empty: the files lack the tensor.
std::string stored_name(const Weights& weights, const TensorSpec& spec) {
    if (weights.find(spec.name) != nullptr) {
        return spec.name;
    }
    const auto alias = std::ranges::find_if(
        spec.aliases, [&](const std::string& name) { return weights.find(name) != nullptr; });
    return alias == spec.aliases.end() ? std::string() : *alias;
}

/// Throws a better error for a missing tensor if the files have it in an unsupported dtype or with a prefix.
void explain_absence(const Checkpoint& checkpoint, const TensorSpec& spec) {
    const auto is_it = [&](const std::string& name) {
        return name == spec.name || name.ends_with('.' + spec.name);
    };
    for (const auto& [name, dtype] : checkpoint.weights.unreadable()) {
        if (is_it(name)) {
            throw InputError(ErrorId::checkpoint_quantised, file_of(checkpoint),
                             "F32, F16, BF16 or F64 values in tensor " + name, printable(dtype),
                             "get the unquantised checkpoint");
        }
    }
    for (const std::string& name : checkpoint.weights.names()) {
        if (is_it(name)) {
            const std::string prefix = name.substr(0, name.size() - spec.name.size());
            throw InputError(ErrorId::checkpoint_tensor, file_of(checkpoint), "a tensor " + spec.name,
                             "the tensor with the prefix " + printable(prefix),
                             "save the wrapped model itself, without the prefix");
        }
    }
}

void check_view(const Checkpoint& checkpoint, const TensorSpec& spec, const TensorView* view) {
    const char* const remedy = "config.json belongs to other weights: get both from one source";
    if (view == nullptr) {
        explain_absence(checkpoint, spec);
        throw InputError(ErrorId::checkpoint_tensor, file_of(checkpoint),
                         "a tensor " + spec.name + " of shape " + shape_text(spec.shape), "no such tensor",
                         spec.remedy.empty() ? remedy : spec.remedy);
    }
    std::vector<std::int64_t> expected = spec.shape;
    if (spec.flexible_axis >= 0 && view->shape.size() == expected.size()) {
        const auto axis = static_cast<std::size_t>(spec.flexible_axis);
        expected[axis] = std::max<std::int64_t>(view->shape[axis], 1);
    }
    if (view->shape != expected) {
        throw InputError(ErrorId::checkpoint_tensor, file_of(checkpoint),
                         "the shape " + shape_text(spec.shape) + " for tensor " + view->name,
                         shape_text(view->shape), remedy);
    }
    if (view->dtype != DType::f32 && view->dtype != DType::f16 && view->dtype != DType::bf16 &&
        view->dtype != DType::f64) {
        throw InputError(ErrorId::checkpoint_tensor, file_of(checkpoint),
                         "F32, F16, BF16 or F64 values in tensor " + view->name,
                         std::string(name_of(view->dtype)), "convert the weights to one of these types");
    }
}

/// Copies and converts mapped elements, 16 MiB at a time. The system reads the next part during the copy, and
/// may drop copied pages, so that memory never holds both the file and the weights. Unaligned elements go
/// through a buffer.
void copy_into(at::Tensor& destination, const TensorView& view) {
    constexpr std::size_t piece = std::size_t{16} << 20;
    const at::TensorOptions type(scalar_type_of(view.dtype));
    const std::size_t element = size_of(view.dtype);
    at::Tensor flat = destination.view({-1});
    for (std::size_t at = 0; at < view.bytes.size(); at += piece) {
        const auto part = view.bytes.subspan(at, std::min(piece, view.bytes.size() - at));
        const auto next = view.bytes.subspan(at + part.size());
        MappedFile::will_need(next.first(std::min(piece, next.size())));
        const auto count = static_cast<std::int64_t>(part.size() / element);
        at::Tensor stored;
        if (reinterpret_cast<std::uintptr_t>(part.data()) % element == 0) {
            // from_blob needs a writable pointer; nothing writes through this tensor.
            stored = at::from_blob(const_cast<std::byte*>(part.data()), {count}, type);
        } else {
            stored = at::empty({count}, type);
            std::memcpy(stored.data_ptr(), part.data(), part.size());
        }
        flat.narrow(0, static_cast<std::int64_t>(at / element), count).copy_(stored);
        MappedFile::done_with(part);
    }
}

bool same_values(const TensorView& a, const TensorView& b) {
    if (a.dtype == b.dtype) {
        return a.bytes.size() == b.bytes.size() &&
               std::memcmp(a.bytes.data(), b.bytes.data(), a.bytes.size()) == 0;
    }
    at::Tensor left = at::empty(a.shape, at::kFloat);
    at::Tensor right = at::empty(b.shape, at::kFloat);
    copy_into(left, a);
    copy_into(right, b);
    return at::equal(left, right);
}

/// Whether the tensor is not a weight: a buffer of a class, or a norm in the files of Depth-Attention's
/// authors that their code never applies.
bool is_no_weight(const std::string& name) {
    static constexpr const char* endings[] = {"rotary_emb.inv_freq", "freqs_cis",
                                              ".attn.bias",          "attention.bias",
                                              ".masked_bias",        "lm_head_layernorm.weight"};
    return std::any_of(std::begin(endings), std::end(endings),
                       [&](const char* ending) { return name.ends_with(ending); });
}

/// Throws if the files have further members of a list, such as "model.layers.4." if the model uses 0 to 3.
/// The trained model then has more layers, or gates for more steps, than the config says. Lists of single
/// tensors may be longer.
void refuse_longer_lists(const Checkpoint& checkpoint, const std::unordered_set<std::string>& used,
                         const std::vector<std::string>& unused) {
    for (const std::string& name : unused) {
        for (std::size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', dot + 1)) {
            const std::string list = name.substr(0, dot + 1);
            const std::size_t end = name.find('.', dot + 1);
            const std::int64_t number =
                end == std::string::npos ? -1
                                         : parse_count(std::string_view(name).substr(dot + 1, end - dot - 1));
            const auto used_of = [&](std::int64_t member) {
                return std::ranges::count_if(
                    used, [start = list + std::to_string(member) + '.'](const std::string& other) {
                        return other.starts_with(start);
                    });
            };
            if (number > 0 && used.contains(list + std::to_string(number - 1) + name.substr(end)) &&
                used_of(number) == 0 && used_of(number - 1) > 1) {
                throw InputError(ErrorId::checkpoint_tensor, file_of(checkpoint),
                                 "weights of " + std::to_string(number) + ' ' + name.substr(0, dot) +
                                     ", as config.json says",
                                 "also " + printable(name),
                                 "correct the number in config.json, or use the weights of this config.json");
            }
        }
    }
}

} // namespace

std::int64_t ParameterLayout::bytes(at::ScalarType dtype) const {
    std::int64_t elements = 0;
    for (const TensorSpec& spec : tensors) {
        elements += tied && spec.name == head ? 0 : c10::multiply_integers(spec.shape);
    }
    return elements * static_cast<std::int64_t>(c10::elementSize(dtype));
}

ParameterSources ParameterSources::find(const ParameterLayout& layout, const Checkpoint& checkpoint) {
    ParameterSources result;
    result.tied = layout.tied;
    const Weights& weights = checkpoint.weights;
    std::vector<const TensorView*>& views = result.views;
    std::unordered_set<std::string> used;
    const TensorView* embedding = nullptr;
    const TensorView* head = nullptr;
    for (const TensorSpec& spec : layout.tensors) {
        const std::string name = stored_name(weights, spec);
        const TensorView* view = weights.find(name);
        (spec.name == layout.embedding ? embedding : spec.name == layout.head ? head : view) = view;
        views.push_back(view);
        if (view != nullptr) {
            used.insert(name);
        }
    }
    if (layout.tied && embedding != nullptr && head != nullptr && embedding != head &&
        embedding->shape == head->shape && !same_values(*embedding, *head)) {
        result.tied = false;
        result.notices.push_back({NoticeId::weights_untied,
                                  "config.json ties " + layout.head + " to " + layout.embedding +
                                      ", but the file holds two different tensors: they are used untied."});
    }
    if (layout.tied && embedding == nullptr) {
        embedding = head;
    }
    for (std::size_t i = 0; i < layout.tensors.size(); ++i) {
        const TensorSpec& spec = layout.tensors[i];
        if (spec.name == layout.embedding) {
            views[i] = embedding;
        }
        if (spec.name == layout.head && result.tied) {
            if (views[i] != nullptr) {
                check_view(checkpoint, spec, views[i]);
            }
            views[i] = nullptr;
            continue;
        }
        check_view(checkpoint, spec, views[i]);
        result.bytes += static_cast<std::int64_t>(views[i]->bytes.size());
    }
    if (!weights.removed_name_parts().empty()) {
        result.notices.push_back(
            {NoticeId::weights_renamed, "Tensor names have prefixes of a wrapper (torch.compile, "
                                        "DistributedDataParallel, FSDP), which were removed: " +
                                            joined(weights.removed_name_parts()) + '.'});
    }
    std::vector<std::string> unused;
    for (const auto& [name, dtype] : weights.unreadable()) {
        unused.push_back(name + " (" + printable(dtype) + ')');
    }
    for (const std::string& name : weights.names()) {
        if (!used.contains(name) && !is_no_weight(name)) {
            unused.push_back(name);
        }
    }
    if (layout.first_layers) {
        unused.clear(); // most belong to layers that are left out
    }
    refuse_longer_lists(checkpoint, used, unused);
    const std::size_t others = std::erase_if(unused, [&](const std::string& name) {
        return std::any_of(layout.other_parts.begin(), layout.other_parts.end(),
                           [&](const std::string& part) { return name.find(part) != std::string::npos; });
    });
    if (others > 0) {
        result.notices.push_back({NoticeId::weights_other_parts,
                                  std::to_string(others) + " tensors of other parts of the model (" +
                                      joined(layout.other_parts) + ") are not read."});
    }
    if (!unused.empty() && layout.strict) {
        throw InputError(ErrorId::checkpoint_tensor, file_of(checkpoint), "only tensors of this architecture",
                         unused.front(), "this build cannot run the checkpoint");
    }
    if (!unused.empty()) {
        result.notices.push_back(
            {NoticeId::weights_unused,
             (unused.size() == 1
                  ? "One tensor of the file is not used by this model: "
                  : std::to_string(unused.size()) + " tensors of the file are not used by this model: ") +
                 joined(unused, {}, 4) + "."});
    }
    return result;
}

Parameters Parameters::load(const ParameterLayout& layout, const Checkpoint& checkpoint, at::Device device,
                            at::ScalarType dtype, const ProgressSink& progress, const std::stop_token& stop) {
    // Validate all tensors before the first conversion.
    const ParameterSources sources = ParameterSources::find(layout, checkpoint);
    const std::vector<const TensorView*>& views = sources.views;
    Parameters result;
    result.tied_ = sources.tied;
    result.notices_ = sources.notices;
    std::int64_t done = 0;
    for (std::size_t i = 0; i < layout.tensors.size(); ++i) {
        if (views[i] == nullptr) {
            continue;
        }
        throw_if_stopped(stop);
        at::Tensor tensor = result.make_room(layout, layout.tensors[i], views[i]->shape,
                                             at::TensorOptions(dtype).device(device));
        copy_into(tensor, *views[i]);
        result.index_.emplace(layout.tensors[i].name, result.items_.size());
        result.items_.emplace_back(layout.tensors[i].name, std::move(tensor));
        done += static_cast<std::int64_t>(views[i]->bytes.size());
        report_progress(progress, {"reading weights", done, sources.bytes, "bytes"});
    }
    if (result.tied_) {
        result.index_.emplace(layout.head, result.index_.at(layout.embedding));
    }
    return result;
}

at::Tensor Parameters::make_room(const ParameterLayout& layout, const TensorSpec& spec, at::IntArrayRef shape,
                                 const at::TensorOptions& options) {
    if (spec.stack.empty()) {
        return at::empty(shape, options);
    }
    Stack& stack = stacks_[spec.stack];
    if (!stack.all.defined()) {
        std::vector<std::int64_t> sizes = shape.vec();
        sizes.insert(sizes.begin(), std::count_if(layout.tensors.begin(), layout.tensors.end(),
                                                  [&](const auto& one) { return one.stack == spec.stack; }));
        stack.all = at::empty(sizes, options);
    }
    return stack.all.select(0, stack.used++);
}

at::Tensor Parameters::stack(const std::string& name) const {
    const auto found = stacks_.find(name);
    return found == stacks_.end() ? at::Tensor() : found->second.all;
}

Parameters Parameters::initialise(const ParameterLayout& layout, std::uint64_t seed, at::Device device,
                                  at::ScalarType dtype) {
    Parameters result;
    result.tied_ = layout.tied;
    at::Generator generator = at::detail::createCPUGenerator(seed);
    for (const TensorSpec& spec : layout.tensors) {
        if (result.tied_ && spec.name == layout.head) {
            continue;
        }
        at::Tensor tensor = at::empty(spec.shape, at::kFloat);
        switch (spec.init) {
        case TensorSpec::Init::normal:
            tensor.normal_(0.0, spec.value, generator);
            break;
        case TensorSpec::Init::constant:
            tensor.fill_(spec.value);
            break;
        case TensorSpec::Init::last:
            tensor.zero_().view({-1}).narrow(0, tensor.numel() - 1, 1).fill_(spec.value);
            break;
        case TensorSpec::Init::diagonal:
            tensor.fill_(spec.value).fill_diagonal_(0.0);
            break;
        }
        result.index_.emplace(spec.name, result.items_.size());
        result.items_.emplace_back(spec.name, tensor.to(device, dtype));
    }
    if (result.tied_) {
        result.index_.emplace(layout.head, result.index_.at(layout.embedding));
    }
    return result;
}

const at::Tensor& Parameters::at(const std::string& name) const {
    const auto found = index_.find(name);
    if (found == index_.end()) {
        throw std::out_of_range("no parameter " + name);
    }
    return items_[found->second].second;
}

bool Parameters::contains(const std::string& name) const {
    return index_.contains(name);
}

at::Tensor Parameters::find(const std::string& name) const {
    const auto found = index_.find(name);
    return found == index_.end() ? at::Tensor() : items_[found->second].second;
}

at::Device Parameters::device() const {
    return items_.front().second.device();
}

at::ScalarType Parameters::dtype() const {
    return items_.front().second.scalar_type();
}

void Parameters::requires_grad(bool on) {
    for (auto& [name, tensor] : items_) {
        tensor.set_requires_grad(on);
    }
}

at::ScalarType scalar_type_of(DType dtype) {
    constexpr std::pair<DType, at::ScalarType> types[] = {
        {DType::boolean, at::kBool}, {DType::u8, at::kByte},       {DType::i8, at::kChar},
        {DType::i16, at::kShort},    {DType::i32, at::kInt},       {DType::i64, at::kLong},
        {DType::f16, at::kHalf},     {DType::bf16, at::kBFloat16}, {DType::f32, at::kFloat},
        {DType::f64, at::kDouble}};
    for (const auto& [stored, type] : types) {
        if (stored == dtype) {
            return type;
        }
    }
    throw InputError(ErrorId::checkpoint_tensor, "Tensors of type " + std::string(name_of(dtype)) +
                                                     " cannot be used in a model; convert them to F32.");
}

} // namespace ponderscope
