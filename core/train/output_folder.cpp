// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/train/trainer_impl.h"

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"

#include <limits>
#include <utility>
#include <vector>

namespace ponderscope {

namespace {

bool is_complete(const std::filesystem::path& provenance) {
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(provenance, ignored)) {
        return false;
    }
    const auto document = read_json_file(provenance);
    return JsonObject(document, provenance).boolean("complete").value_or(false);
}

} // namespace

OutputFolder::OutputFolder(std::filesystem::path path, ExistingOutput existing) : path_(std::move(path)) {
    if (path_.empty()) {
        throw InputError(ErrorId::usage_value, "The folder for the trained model has no name; give one.");
    }
    std::error_code error;
    const auto kind = std::filesystem::status(path_, error).type();
    if (kind == std::filesystem::file_type::not_found) {
        return;
    }
    if (kind != std::filesystem::file_type::directory) {
        throw InputError(ErrorId::file_kind, path_, "a folder or an unused name", "a file",
                         "choose another folder");
    }
    const bool empty = std::filesystem::is_empty(path_, error);
    if (error) {
        throw_file_error(path_, error.value(), "read");
    }
    if (empty || existing == ExistingOutput::overwrite) {
        return;
    }
    if (existing == ExistingOutput::refuse) {
        throw InputError(
            ErrorId::file_exists, path_, "an empty folder or an unused name", "a folder with files in it",
            "choose another folder, continue the training with --resume, or start again with --overwrite");
    }
    if (std::filesystem::is_regular_file(state(), error)) {
        start_ = Start::resumed;
    } else if (is_complete(provenance())) {
        start_ = Start::complete;
    } else if (!has_begun()) {
        throw InputError(ErrorId::training_state, path_,
                         "a training to continue (training_state.safetensors)", "none",
                         "choose another folder, or start a new training with --overwrite");
    }
}

/// Whether a training was interrupted before it saved its first state. Such a training starts again. A
/// training writes first the trace, later the state, then the weights.
bool OutputFolder::has_begun() const {
    std::error_code error;
    return std::filesystem::is_regular_file(trace(), error) && !std::filesystem::exists(weights(), error) &&
           !std::filesystem::exists(provenance(), error);
}

void OutputFolder::prepare() const {
    std::error_code error;
    std::filesystem::create_directories(path_, error);
    if (error) {
        throw_file_error(path_, error.value(), "written");
    }
    if (start_ != Start::fresh) {
        return;
    }
    // Remove the state first: without it, files of an older training cannot be resumed by mistake.
    std::vector<std::filesystem::path> files{state(), provenance(), weights(), config()};
    for (const char* name : tokenizer_file_names) {
        files.push_back(path_ / name);
    }
    for (const char* beside : {"", "-wal", "-shm", "-journal"}) {
        files.emplace_back(trace().string() + beside);
    }
    for (const auto& file : files) {
        std::filesystem::remove(file, error);
        if (error) {
            throw_file_error(file, error.value(), "written");
        }
    }
}

TrainResult read_provenance(const std::filesystem::path& path) {
    const auto document = read_json_file(path);
    const JsonObject root(document, path);
    TrainResult result;
    result.steps = root.required_integer("steps", 0);
    result.tokens = root.required_integer("tokens", 0);
    result.parameters = root.required_integer("parameters", 0);
    result.seconds = root.required_number("seconds");
    result.loss = root.number("loss").value_or(std::numeric_limits<double>::quiet_NaN());
    result.held_out_nll = root.number("held_out_nll").value_or(std::numeric_limits<double>::quiet_NaN());
    result.held_out_tokens = root.required_integer("held_out_tokens", 0);
    return result;
}

} // namespace ponderscope
