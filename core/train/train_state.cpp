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

/// What a file is made of: the tensors are kept alive until it is written.
struct Pending {
    std::vector<at::Tensor> kept;
    std::vector<TensorView> views;

    void add(const std::string& name, const at::Tensor& tensor, at::ScalarType dtype) {
        kept.push_back(tensor.detach().to(at::kCPU, dtype).contiguous());
        const at::Tensor& flat = kept.back();
        TensorView view;
        view.name = name;
        view.dtype = dtype_of(dtype);
        view.shape = flat.sizes().vec();
        view.bytes = {static_cast<const std::byte*>(flat.const_data_ptr()), flat.nbytes()};
        views.push_back(std::move(view));
    }
};

void load_into(const SafetensorsFile& file, const std::string& name, const at::Tensor& home) {
    const TensorView* view = file.find(name);
    if (view == nullptr || view->dtype != DType::f32 || view->shape != home.sizes().vec()) {
        throw InputError(file.path(), "an F32 tensor " + name + " of the model's shape",
                         view == nullptr ? "none" : "one of another shape or type",
                         "start again with --overwrite");
    }
    at::Tensor values = at::empty(home.sizes(), at::kFloat);
    std::memcpy(values.data_ptr(), view->bytes.data(), view->bytes.size());
    const at::NoGradGuard no_grad;
    at::Tensor target = home.detach();
    target.copy_(values);
}

nlohmann::json counters_json(const TrainCounters& counters) {
    return {{"step", counters.step},
            {"windows", counters.windows},
            {"seconds", counters.seconds},
            {"loss_sum", counters.loss_sum},
            {"penalty_sum", counters.penalty_sum},
            {"steps_sum", counters.steps_sum},
            {"loss_count", counters.loss_count},
            {"last_loss", counters.last_loss},
            {"last_penalty", counters.last_penalty},
            {"last_mean_steps", counters.last_mean_steps},
            {"last_norm", counters.last_norm},
            {"recipe", counters.recipe},
            {"corpus", counters.corpus_digest}};
}

TrainCounters counters_from(const nlohmann::json& document, const std::filesystem::path& path) {
    const JsonObject about(document, path, "state");
    TrainCounters counters;
    counters.step = about.required_integer("step", 0);
    counters.windows = about.required_integer("windows", 0);
    counters.seconds = about.required_number("seconds");
    counters.loss_sum = about.required_number("loss_sum");
    counters.penalty_sum = about.required_number("penalty_sum");
    counters.steps_sum = about.required_number("steps_sum");
    counters.loss_count = about.required_integer("loss_count", 0);
    counters.last_loss = about.required_number("last_loss");
    counters.last_penalty = about.required_number("last_penalty");
    counters.last_mean_steps = about.required_number("last_mean_steps");
    counters.last_norm = about.required_number("last_norm");
    counters.recipe = about.required_object("recipe").value();
    counters.corpus_digest = about.required_text("corpus");
    return counters;
}

} // namespace

void save_train_state(const std::filesystem::path& path, const NamedTensors& parameters,
                      const AdamW& optimizer, const TrainCounters& counters) {
    Pending pending;
    for (const auto& [name, tensor] : parameters) {
        pending.add("weights/" + name, tensor, at::kFloat);
    }
    for (const auto& [name, tensor] : optimizer.first_moments()) {
        pending.add("first/" + name, tensor, at::kFloat);
    }
    for (const auto& [name, tensor] : optimizer.second_moments()) {
        pending.add("second/" + name, tensor, at::kFloat);
    }
    write_safetensors(path, pending.views,
                      {{"format", std::string(state_format)}, {"state", counters_json(counters).dump()}});
}

TrainCounters read_train_counters(const std::filesystem::path& path) {
    const SafetensorsFile file = SafetensorsFile::open(path);
    const auto& metadata = file.metadata();
    const auto kind = metadata.find("format");
    const auto state = metadata.find("state");
    if (kind == metadata.end() || kind->second != state_format || state == metadata.end()) {
        throw InputError(path, "a training state of this version (" + std::string(state_format) + ")",
                         kind == metadata.end() ? "another kind of file" : "\"" + kind->second + "\"",
                         "start again with --overwrite");
    }
    return counters_from(parse_json(state->second, path), path);
}

void load_train_state(const std::filesystem::path& path, const NamedTensors& parameters, AdamW& optimizer) {
    const SafetensorsFile file = SafetensorsFile::open(path);
    for (const auto& [name, tensor] : parameters) {
        load_into(file, "weights/" + name, tensor);
    }
    for (const auto& [name, tensor] : optimizer.first_moments()) {
        load_into(file, "first/" + name, tensor);
    }
    for (const auto& [name, tensor] : optimizer.second_moments()) {
        load_into(file, "second/" + name, tensor);
    }
    optimizer.set_steps(read_train_counters(path).step);
}

void save_tensors(const std::filesystem::path& path, const NamedTensors& tensors, DType dtype) {
    Pending pending;
    for (const auto& [name, tensor] : tensors) {
        pending.add(name, tensor, scalar_type_of(dtype));
    }
    // transformers refuses files that do not say which library's layout they have.
    write_safetensors(path, pending.views, {{"format", "pt"}});
}

} // namespace ponderscope
