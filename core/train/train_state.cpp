// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/train/train_state.h"

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/checkpoint/safetensors.h"
#include "core/model/parameters.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cstring>
#include <map>

namespace ponderscope {

namespace {

constexpr std::string_view state_format = "ponderscope-training-1";

/// Writes all tensors in \p dtype.
void write_tensors(const std::filesystem::path& path, const NamedTensors& tensors, DType dtype,
                   const std::map<std::string, std::string>& metadata) {
    std::vector<at::Tensor> stored; // owns the memory of `views`
    std::vector<TensorView> views;
    for (const auto& [name, tensor] : tensors) {
        const at::Tensor& flat =
            stored.emplace_back(tensor.detach().to(at::kCPU, scalar_type_of(dtype)).contiguous());
        views.push_back({name,
                         dtype,
                         flat.sizes().vec(),
                         {static_cast<const std::byte*>(flat.const_data_ptr()), flat.nbytes()}});
    }
    write_safetensors(path, views, metadata);
}

/// Weights and both moments, with their names in the file.
NamedTensors tensors_of(const NamedTensors& parameters, const AdamW& optimizer) {
    NamedTensors all;
    for (const auto& [group, tensors] : {std::pair{"weights/", &parameters},
                                         {"first/", &optimizer.first_moments()},
                                         {"second/", &optimizer.second_moments()}}) {
        for (const auto& [name, tensor] : *tensors) {
            all.emplace_back(group + name, tensor);
        }
    }
    return all;
}

void load_into(const SafetensorsFile& file, const std::string& name, const at::Tensor& home) {
    const TensorView* view = file.find(name);
    if (view == nullptr || view->dtype != DType::f32 || view->shape != home.sizes().vec()) {
        throw InputError(
            ErrorId::training_state, file.path(), "an F32 tensor " + name + " of the model's shape",
            view == nullptr ? "none" : "a tensor of another shape or type", "start again with --overwrite");
    }
    at::Tensor values = at::empty(home.sizes(), at::kFloat);
    std::memcpy(values.data_ptr(), view->bytes.data(), view->bytes.size());
    const at::NoGradGuard no_grad;
    at::Tensor target = home.detach();
    target.copy_(values);
}

} // namespace

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TrainCounters, step, windows, seconds, loss_sum, penalty_sum, steps_sum,
                                   loss_count, last_loss, last_penalty, last_mean_steps, last_norm, recipe,
                                   corpus)

void save_train_state(const std::filesystem::path& path, const NamedTensors& parameters,
                      const AdamW& optimizer, const TrainCounters& counters) {
    write_tensors(path, tensors_of(parameters, optimizer), DType::f32,
                  {{"format", std::string(state_format)}, {"state", nlohmann::json(counters).dump()}});
}

TrainCounters read_train_counters(const std::filesystem::path& path) {
    const SafetensorsFile file = SafetensorsFile::open(path);
    const auto& metadata = file.metadata();
    const auto kind = metadata.find("format");
    const auto state = metadata.find("state");
    if (kind == metadata.end() || kind->second != state_format || state == metadata.end()) {
        throw InputError(ErrorId::training_state, path,
                         "a training state of this version (" + std::string(state_format) + ")",
                         kind == metadata.end() ? "another kind of file" : "\"" + kind->second + "\"",
                         "start again with --overwrite");
    }
    try {
        return parse_json(state->second, path).get<TrainCounters>();
    } catch (const nlohmann::json::exception& error) {
        throw InputError(ErrorId::training_state, path, "the counters of a training state",
                         "other contents (" + std::string(error.what()) + ")",
                         "start again with --overwrite");
    }
}

void load_train_state(const std::filesystem::path& path, const NamedTensors& parameters, AdamW& optimizer) {
    const SafetensorsFile file = SafetensorsFile::open(path);
    for (const auto& [name, tensor] : tensors_of(parameters, optimizer)) {
        load_into(file, name, tensor);
    }
    optimizer.set_steps(read_train_counters(path).step);
}

void save_tensors(const std::filesystem::path& path, const NamedTensors& tensors, DType dtype) {
    // transformers needs this key.
    write_tensors(path, tensors, dtype, {{"format", "pt"}});
}

} // namespace ponderscope
