// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/checkpoint_folder.h"

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/hub_cache.h"
#include "core/base/utf8.h"
#include "core/base/words.h"
#include "core/checkpoint/file_kind.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace ponderscope {
namespace {

namespace fs = std::filesystem;

/// The files in a folder, without folders. Sorted, so that the message is the same everywhere.
std::vector<fs::path> files_in(const fs::path& folder) {
    std::vector<fs::path> files;
    std::error_code error;
    for (fs::directory_iterator next(folder, error), end; !error && next != end; next.increment(error)) {
        std::error_code ignored;
        if (!next->is_directory(ignored)) {
            files.push_back(next->path());
        }
    }
    if (error) {
        throw_file_error(folder, error.value(), "read");
    }
    std::sort(files.begin(), files.end());
    return files;
}

std::string listed(const std::vector<fs::path>& files) {
    return joined(
        files, [](const fs::path& file) { return printable(file.filename().string()); }, 4);
}

} // namespace

bool exists_in_any_form(const fs::path& path) {
    std::error_code error;
    return fs::exists(fs::symlink_status(path, error));
}

void check_checkpoint_folder(const fs::path& folder) {
    if (folder.native().starts_with("ssh://")) {
        throw InputError(ErrorId::trace_remote, folder, "a checkpoint folder on this machine",
                         "a name on another machine, from which only traces can be read",
                         "run ponderscope on that machine, or copy the folder to this one");
    }
    std::error_code error;
    const fs::file_status status = fs::status(folder, error);
    if (!fs::exists(status)) {
        if (error && error != std::errc::no_such_file_or_directory && error != std::errc::not_a_directory) {
            throw_file_error(folder, error.value(), "read");
        }
        const bool is_name = is_hub_name(folder.native());
        if (is_name && folder.has_parent_path()) {
            throw InputError(
                ErrorId::file_missing, folder, "a checkpoint folder, or a model in the Hugging Face cache",
                "no such folder or model",
                "download it: hf download " + folder.string() + " --local-dir " + folder.filename().string());
        }
        throw InputError(ErrorId::file_missing, folder, "a checkpoint folder", "nothing at this path",
                         is_name
                             ? "check the path; models of the Hugging Face hub are called ORGANISATION/NAME"
                             : "check the path");
    }
    if (!fs::is_directory(status)) {
        throw InputError(ErrorId::file_kind, folder, "a checkpoint folder", "a file",
                         "give the folder that holds config.json");
    }
    const bool empty = fs::is_empty(folder, error);
    if (error) {
        throw_file_error(folder, error.value(), "read");
    }
    if (empty) {
        throw InputError(ErrorId::checkpoint_files, folder, "a checkpoint folder", "an empty folder",
                         "put config.json and model.safetensors into it");
    }
}

void refuse_folder_without_weights(const fs::path& folder) {
    std::vector<fs::path> safetensors;
    for (const fs::path& file : files_in(folder)) {
        const bool weights_by_name = has_pickle_name(file) || file.extension() == ".safetensors" ||
                                     file.extension() == ".gguf" || file.extension() == ".h5";
        if (!weights_by_name) {
            continue;
        }
        if (file.extension() == ".safetensors") {
            safetensors.push_back(file);
            continue;
        }
        const FileKind kind = recognise_file(file);
        if (kind == FileKind::pickle || kind == FileKind::gguf || kind == FileKind::hdf5 ||
            (kind == FileKind::lfs_pointer && safetensors.empty())) {
            refuse(file, kind);
        }
    }
    const std::string expected = "model.safetensors or model.safetensors.index.json";
    if (safetensors.size() == 1) {
        throw InputError(ErrorId::checkpoint_files, folder, expected, listed(safetensors),
                         "rename the file to model.safetensors if it holds the whole model");
    }
    if (!safetensors.empty()) {
        throw InputError(ErrorId::checkpoint_files, folder, expected,
                         listed(safetensors) + " without an index",
                         "get model.safetensors.index.json, which lists the tensors of each file");
    }
    throw InputError(ErrorId::checkpoint_files, folder, expected, "no weights",
                     "give the folder that holds config.json and the weights");
}

void refuse_adapter_folder(const fs::path& folder) {
    const auto has = [&](const char* name) { return exists_in_any_form(folder / name); };
    if (!has("adapter_config.json") || has("model.safetensors") || has("model.safetensors.index.json")) {
        return;
    }
    throw InputError(ErrorId::checkpoint_files, folder, "a whole model",
                     "a LoRA adapter, which changes the weights of another model",
                     "merge it into that model: python3 -c \"from peft import AutoPeftModelForCausalLM as M; "
                     "M.from_pretrained('" +
                         folder.string() + "').merge_and_unload().save_pretrained('" + folder.string() +
                         "-merged')\"");
}

fs::path checkpoint_folder_of(const fs::path& path) {
    std::error_code error;
    if (!fs::is_regular_file(path, error)) {
        return local_model_folder(path);
    }
    constexpr std::array<std::string_view, 4> parts{"config.json", "model.safetensors",
                                                    "model.safetensors.index.json", "tokenizer.json"};
    const std::string name = path.filename().string();
    if (std::find(parts.begin(), parts.end(), name) != parts.end()) {
        return path.has_parent_path() ? path.parent_path() : fs::path(".");
    }
    const FileKind kind = recognise_file(path);
    if (kind == FileKind::sqlite) {
        throw InputError(ErrorId::file_kind, path, "a checkpoint folder", "a trace",
                         "give the folder of a model; ponderscope inspect shows what a trace holds");
    }
    if (kind != FileKind::safetensors && kind != FileKind::unknown && kind != FileKind::json) {
        refuse(path, kind);
    }
    throw InputError(ErrorId::file_kind, path, "a checkpoint folder", "a file",
                     "give the folder that holds config.json");
}

} // namespace ponderscope
