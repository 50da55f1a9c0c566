// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/utf8.h"
#include "core/base/words.h"
#include "core/checkpoint/checkpoint.h"
#include "core/checkpoint/checkpoint_folder.h"
#include "core/checkpoint/file_kind.h"
#include "core/checkpoint/safetensors.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

namespace ponderscope {

std::string shape_text(const std::vector<std::int64_t>& shape) {
    return "[" + joined(shape, [](std::int64_t size) { return std::to_string(size); }) + "]";
}

namespace {

namespace fs = std::filesystem;

const char* const single_name = "model.safetensors";
const char* const index_name = "model.safetensors.index.json";

bool exists_in_any_form(const fs::path& path) {
    std::error_code error;
    return fs::exists(fs::symlink_status(path, error));
}

/// A file name from an index must stay inside the folder. Links that the owner of the folder made are theirs
/// to make (the Hugging Face cache consists of them); what a downloaded index says is not.
void check_shard_name(const fs::path& index, const std::string& name) {
    const fs::path shard(name);
    const bool climbs =
        std::any_of(shard.begin(), shard.end(), [](const fs::path& part) { return part == ".."; });
    if (name.empty() || shard.is_absolute() || climbs || name.find('\0') != std::string::npos) {
        throw InputError(index, "shards inside the checkpoint's folder", '"' + printable(name) + '"',
                         "do not use this checkpoint unless you know why");
    }
}

/// Tensor name -> shard, as the index says.
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
        throw InputError(path, "tensors in \"weight_map\"", "none", "get the file again");
    }
    return shards;
}

} // namespace

namespace {

/// Name parts that torch.compile, DistributedDataParallel, FSDP, DeepSpeed and activation checkpointing put
/// before the names of the modules that they wrap.
constexpr std::string_view wrapper_parts[] = {"_orig_mod.", "_fsdp_wrapped_module.",
                                              "_checkpoint_wrapped_module.", "_forward_module."};

/// \p name without them; DistributedDataParallel's "module." only in front.
std::string unwrapped(std::string_view name, std::set<std::string>& removed) {
    std::string plain(name);
    for (bool again = true; again;) {
        again = false;
        for (const std::string_view part : wrapper_parts) {
            for (std::size_t at = plain.find(part); at != std::string::npos; at = plain.find(part, at)) {
                if (at > 0 && plain[at - 1] != '.') {
                    ++at;
                    continue;
                }
                plain.erase(at, part.size());
                removed.emplace(part);
                again = true;
            }
        }
        if (plain.starts_with("module.")) {
            plain.erase(0, 7);
            removed.emplace("module.");
            again = true;
        }
    }
    return plain;
}

} // namespace

struct Weights::Impl {
    std::vector<SafetensorsFile> shards;
    std::vector<fs::path> paths;
    struct Place {
        const TensorView* view;
        std::size_t shard;
    };
    std::unordered_map<std::string, Place> tensors;
    std::map<std::string, std::string> unreadable;
    std::vector<std::string> removed_name_parts;
    std::uint64_t total_bytes = 0;

    /// Takes what wrappers added out of the names; where two names would become one, they stay.
    void unwrap_names() {
        std::set<std::string> removed;
        std::unordered_map<std::string, Place> plain;
        for (const auto& [name, place] : tensors) {
            plain.emplace(unwrapped(name, removed), place);
        }
        if (!removed.empty() && plain.size() == tensors.size()) {
            tensors = std::move(plain);
            removed_name_parts.assign(removed.begin(), removed.end());
        }
    }

    [[nodiscard]] const SafetensorsFile* shard_of(const TensorView& tensor) const {
        for (const SafetensorsFile& shard : shards) {
            if (shard.holds(tensor)) {
                return &shard;
            }
        }
        return nullptr;
    }

    void add(SafetensorsFile file, const std::string& prefix = {}) {
        const std::size_t shard = shards.size();
        paths.push_back(file.path());
        shards.push_back(std::move(file)); // its views stay where they are
        for (const TensorView& view : shards.back().tensors()) {
            const auto [position, is_new] = tensors.emplace(prefix + view.name, Place{&view, shard});
            if (!is_new) {
                throw InputError(paths.back(), "every tensor in one file",
                                 '"' + printable(view.name) + "\", which " +
                                     paths[position->second.shard].filename().string() + " has too",
                                 "get the checkpoint again");
            }
            total_bytes += view.bytes.size();
        }
        for (const auto& [name, dtype] : shards.back().unreadable()) {
            unreadable.emplace(prefix + name, dtype);
        }
    }
};

Weights::Weights(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Weights::Weights(Weights&&) noexcept = default;
Weights& Weights::operator=(Weights&&) noexcept = default;
Weights::~Weights() = default;

Weights Weights::open(const fs::path& folder, const std::vector<ModelConfig::Companion>& companions) {
    check_checkpoint_folder(folder);
    auto impl = std::make_unique<Impl>();
    for (const ModelConfig::Companion& companion : companions) {
        if (!companion.prefix.empty()) {
            impl->add(SafetensorsFile::open(folder / companion.file), companion.prefix);
        }
    }
    if (exists_in_any_form(folder / single_name)) {
        impl->add(SafetensorsFile::open(folder / single_name));
        impl->unwrap_names();
        return Weights(std::move(impl));
    }
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
            throw InputError(index, "the shard \"" + printable(name) + "\" beside it", "no such file",
                             "download the missing shards");
        }
        impl->add(SafetensorsFile::open(folder / name));
    }
    for (const auto& [tensor, shard] : shard_of) {
        const auto position = impl->tensors.find(tensor);
        const bool is_there = position != impl->tensors.end()
                                  ? impl->paths[position->second.shard] == folder / shard
                                  : impl->unreadable.contains(tensor);
        if (!is_there) {
            throw InputError(index, "tensor \"" + printable(tensor) + "\" in " + printable(shard),
                             "no such tensor there", "get the checkpoint again");
        }
    }
    impl->unwrap_names();
    return Weights(std::move(impl));
}

const TensorView* Weights::find(const std::string& name) const {
    const auto position = impl_->tensors.find(name);
    return position == impl_->tensors.end() ? nullptr : position->second.view;
}

std::vector<std::string> Weights::names() const {
    std::vector<std::string> names;
    names.reserve(impl_->tensors.size());
    for (const auto& [name, place] : impl_->tensors) {
        names.push_back(name);
    }
    std::sort(names.begin(), names.end());
    return names;
}

const std::vector<fs::path>& Weights::files() const {
    return impl_->paths;
}

std::uint64_t Weights::total_bytes() const {
    return impl_->total_bytes;
}

const std::map<std::string, std::string>& Weights::unreadable() const {
    return impl_->unreadable;
}

const std::vector<std::string>& Weights::removed_name_parts() const {
    return impl_->removed_name_parts;
}

void Weights::will_need(const TensorView& tensor) const {
    if (const SafetensorsFile* shard = impl_->shard_of(tensor)) {
        shard->will_need(tensor);
    }
}

void Weights::done_with(const TensorView& tensor) const {
    if (const SafetensorsFile* shard = impl_->shard_of(tensor)) {
        shard->done_with(tensor);
    }
}

} // namespace ponderscope
