// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/utf8.h"
#include "core/base/words.h"
#include "core/checkpoint/checkpoint.h"
#include "core/checkpoint/checkpoint_folder.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace ponderscope {

std::string shape_text(const std::vector<std::int64_t>& shape) {
    return "[" + joined(shape, [](std::int64_t size) { return std::to_string(size); }) + "]";
}

namespace {

namespace fs = std::filesystem;

const char* const single_name = "model.safetensors";
const char* const index_name = "model.safetensors.index.json";

/// A file name in a downloaded index must not lead out of the folder. Links in the folder are allowed,
/// because its owner made them (the Hugging Face cache consists of links).
void check_shard_name(const fs::path& index, const std::string& name) {
    const fs::path shard(name);
    const bool climbs =
        std::any_of(shard.begin(), shard.end(), [](const fs::path& part) { return part == ".."; });
    if (name.empty() || shard.is_absolute() || climbs || name.find('\0') != std::string::npos) {
        throw InputError(ErrorId::checkpoint_damaged, index, "shards inside the checkpoint's folder",
                         '"' + printable(name) + '"',
                         "correct the index, or use a checkpoint from a source that you trust");
    }
}

/// Tensor name -> shard, from the index.
std::map<std::string, std::string> read_index(const fs::path& path) {
    const nlohmann::json document = read_json_file(path);
    const JsonObject map = JsonObject(document, path).required_object("weight_map");
    std::map<std::string, std::string> shards;
    for (const auto& [tensor, value] : map.value().items()) {
        if (!value.is_string()) {
            map.fail(tensor, "the name of a file");
        }
        const auto& name = value.get_ref<const std::string&>();
        check_shard_name(path, name);
        shards.emplace(tensor, name);
    }
    if (shards.empty()) {
        throw InputError(ErrorId::checkpoint_damaged, path, "tensors in \"weight_map\"", "none",
                         "get the file again");
    }
    return shards;
}

/// Name parts that torch.compile, DistributedDataParallel, FSDP, DeepSpeed and activation checkpointing put
/// before the names of the modules that they wrap.
constexpr std::string_view wrapper_parts[] = {"_orig_mod.", "_fsdp_wrapped_module.",
                                              "_checkpoint_wrapped_module.", "_forward_module."};

/// \p name without these parts. Removes DistributedDataParallel's "module." only at the beginning.
std::string unwrapped(const std::string& name, std::set<std::string>& removed) {
    std::string plain;
    for (std::size_t begin = 0, end = 0; begin < name.size(); begin = end) {
        end = std::min(name.find('.', begin), name.size() - 1) + 1;
        const std::string part = name.substr(begin, end - begin);
        if ((plain.empty() && part == "module.") ||
            std::ranges::find(wrapper_parts, part) != std::end(wrapper_parts)) {
            removed.insert(part);
        } else {
            plain += part;
        }
    }
    return plain;
}

} // namespace

void Weights::unwrap_names() {
    std::set<std::string> removed;
    std::unordered_map<std::string, Place> plain;
    for (const auto& [name, place] : tensors_) {
        plain.emplace(unwrapped(name, removed), place);
    }
    if (!removed.empty() && plain.size() == tensors_.size()) {
        tensors_ = std::move(plain);
        removed_name_parts_.assign(removed.begin(), removed.end());
    }
}

void Weights::add(SafetensorsFile file, const std::string& prefix) {
    for (const TensorView& view : file.tensors()) { // the move below keeps their addresses
        const auto [position, is_new] = tensors_.emplace(prefix + view.name, Place{&view, files_.size()});
        if (!is_new) {
            throw InputError(ErrorId::checkpoint_damaged, file.path(), "each tensor in one file only",
                             '"' + printable(view.name) + "\", which is also in " +
                                 files_[position->second.file].path().filename().string(),
                             "get the checkpoint again");
        }
        total_bytes_ += view.bytes.size();
    }
    for (const auto& [name, dtype] : file.unreadable()) {
        unreadable_.emplace(prefix + name, dtype);
    }
    files_.push_back(std::move(file));
}

void Weights::add_shards(const fs::path& folder) {
    const fs::path index = folder / index_name;
    if (!exists_in_any_form(index)) {
        refuse_folder_without_weights(folder);
    }
    const std::map<std::string, std::string> shard_of = read_index(index);
    std::set<std::string> names;
    for (const auto& [tensor, shard] : shard_of) {
        names.insert(shard);
    }
    for (const std::string& name : names) {
        if (!exists_in_any_form(folder / name)) {
            throw InputError(ErrorId::checkpoint_files, index,
                             "the shard \"" + printable(name) + "\" in the same folder", "no such file",
                             "download the missing shards");
        }
        add(SafetensorsFile::open(folder / name));
    }
    for (const auto& [tensor, shard] : shard_of) {
        const auto position = tensors_.find(tensor);
        const bool is_there = position != tensors_.end()
                                  ? files_[position->second.file].path() == folder / shard
                                  : unreadable_.contains(tensor);
        if (!is_there) {
            throw InputError(ErrorId::checkpoint_damaged, index,
                             "tensor \"" + printable(tensor) + "\" in " + printable(shard),
                             "a file without this tensor", "get the checkpoint again");
        }
    }
}

Weights Weights::open(const fs::path& folder, const std::vector<ModelConfig::Companion>& companions) {
    check_checkpoint_folder(folder);
    Weights weights;
    for (const ModelConfig::Companion& companion : companions) {
        if (!companion.prefix.empty()) {
            weights.add(SafetensorsFile::open(folder / companion.file), companion.prefix);
        }
    }
    if (exists_in_any_form(folder / single_name)) {
        weights.add(SafetensorsFile::open(folder / single_name));
    } else {
        weights.add_shards(folder);
    }
    weights.unwrap_names();
    return weights;
}

const TensorView* Weights::find(const std::string& name) const {
    const auto position = tensors_.find(name);
    return position == tensors_.end() ? nullptr : position->second.view;
}

std::vector<std::string> Weights::names() const {
    std::vector<std::string> names;
    names.reserve(tensors_.size());
    for (const auto& [name, place] : tensors_) {
        names.push_back(name);
    }
    std::sort(names.begin(), names.end());
    return names;
}

std::vector<fs::path> Weights::files() const {
    std::vector<fs::path> paths;
    for (const SafetensorsFile& file : files_) {
        paths.push_back(file.path());
    }
    return paths;
}

} // namespace ponderscope
