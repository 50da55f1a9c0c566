// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/progress.h"
#include "core/checkpoint/model_config.h"
#include "core/checkpoint/safetensors.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <unordered_map>
#include <vector>

namespace ponderscope {

/// "[2, 3]", for messages.
std::string shape_text(const std::vector<std::int64_t>& shape);

/// All tensors of a checkpoint folder. Includes model.safetensors, or the shards in
/// model.safetensors.index.json, and the config's companion files (their tensor names begin with the file's
/// prefix). open() maps the files and validates every header, but reads no weight. Thread-safe once open.
class Weights {
public:
    /// InputError: missing, truncated or inconsistent files, LFS pointers, pickles, shards outside the
    /// folder, a repeated tensor.
    static Weights open(const std::filesystem::path& folder,
                        const std::vector<ModelConfig::Companion>& companions = {});

    [[nodiscard]] const TensorView* find(const std::string& name) const; ///< nullptr when absent
    [[nodiscard]] std::vector<std::string> names() const;                ///< sorted
    /// Tensors of an unsupported dtype (quantised tensors), with the name of the dtype. find() and names()
    /// omit these tensors.
    [[nodiscard]] const std::map<std::string, std::string>& unreadable() const { return unreadable_; }
    /// Parts that PyTorch's wrappers added to the tensor names ("_orig_mod.", "module."). find() and names()
    /// use the names without these parts.
    [[nodiscard]] const std::vector<std::string>& removed_name_parts() const { return removed_name_parts_; }
    [[nodiscard]] std::vector<std::filesystem::path> files() const;
    [[nodiscard]] std::uint64_t total_bytes() const { return total_bytes_; } ///< of all tensors

private:
    void add(SafetensorsFile file, const std::string& prefix = {});
    void add_shards(const std::filesystem::path& folder);
    /// Removes the wrappers' parts from the names, unless this would make two names equal.
    void unwrap_names();

    struct Place {
        const TensorView* view;
        std::size_t file;
    };
    std::vector<SafetensorsFile> files_;
    std::unordered_map<std::string, Place> tensors_;
    std::map<std::string, std::string> unreadable_;
    std::vector<std::string> removed_name_parts_;
    std::uint64_t total_bytes_ = 0;
};

/// A checkpoint folder in Hugging Face layout, opened and validated. No weight is on a device yet.
struct Checkpoint {
    std::filesystem::path folder;
    ModelConfig config;
    Weights weights;
    /// The tokenizer file: tokenizer.json, or vocab.json with a merges.txt beside it. Empty: the checkpoint
    /// has no tokenizer and takes token ids.
    std::optional<std::filesystem::path> vocabulary;

    /// Opens the folder, or the folder of a file (config.json, model.safetensors). \p method and \p steps:
    /// see read_model_config. Throws InputError.
    static Checkpoint open(const std::filesystem::path& path, std::optional<MethodKind> method = std::nullopt,
                           std::optional<std::int64_t> steps = std::nullopt);
};

/// SHA-256 over config.json, the companion files and the weight files, sorted by name. Each file adds its
/// name, a zero byte, its size as eight little-endian bytes, and its content. Lower-case hex. Throws
/// Cancelled.
std::string checkpoint_digest(const Checkpoint& checkpoint, const ProgressSink& progress = {},
                              const std::stop_token& stop = {});

} // namespace ponderscope
