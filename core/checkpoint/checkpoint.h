// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/dtype.h"
#include "core/base/progress.h"
#include "core/checkpoint/model_config.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

namespace ponderscope {

/// One tensor of a checkpoint, lying in a memory-mapped file. Valid while its Weights lives.
struct TensorView {
    std::string name;
    DType dtype = DType::f32;
    std::vector<std::int64_t> shape;
    std::span<const std::byte> bytes; ///< row-major, little-endian; not necessarily aligned to the element
};

/// "[2, 3]", for messages.
std::string shape_text(const std::vector<std::int64_t>& shape);

/// All tensors of a checkpoint folder: model.safetensors, or the shards of model.safetensors.index.json, and
/// the tensors of the config's companions under their prefixes. Opening validates every header and maps the
/// files; no weight is read. Thread-safe once open.
class Weights {
public:
    /// Throws InputError: missing, truncated or lying files, LFS pointers, pickles, shards outside the
    /// folder, a tensor twice.
    static Weights open(const std::filesystem::path& folder,
                        const std::vector<ModelConfig::Companion>& companions = {});

    Weights(Weights&&) noexcept;
    Weights& operator=(Weights&&) noexcept;
    ~Weights();

    [[nodiscard]] const TensorView* find(const std::string& name) const; ///< nullptr when absent
    [[nodiscard]] std::vector<std::string> names() const;                ///< sorted
    /// Tensors of a dtype that no model here uses (quantised), with the dtype's name; find() and names() are
    /// without them.
    [[nodiscard]] const std::map<std::string, std::string>& unreadable() const;
    /// Parts of the names in the files that wrappers of PyTorch put there ("_orig_mod.", "module."); find()
    /// and names() are without them.
    [[nodiscard]] const std::vector<std::string>& removed_name_parts() const;
    [[nodiscard]] const std::vector<std::filesystem::path>& files() const;
    [[nodiscard]] std::uint64_t total_bytes() const; ///< of the tensors
    /// Hints for a loader: read this tensor ahead in the background; let its pages go again after copying it.
    /// `bytes` may be a part of the tensor's.
    void will_need(const TensorView& tensor) const;
    void done_with(const TensorView& tensor) const;

private:
    struct Impl;
    explicit Weights(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

/// A checkpoint folder in Hugging Face layout, opened and validated but not yet loaded onto a device.
struct Checkpoint {
    std::filesystem::path folder;
    ModelConfig config;
    Weights weights;
    /// The file of the tokenizer: tokenizer.json, or the vocab.json beside a merges.txt. Empty: the
    /// checkpoint runs on ids.
    std::optional<std::filesystem::path> vocabulary;

    /// Throws InputError. Accepts the folder, or a file inside it (config.json, model.safetensors). \p method
    /// and \p steps as read_model_config.
    static Checkpoint open(const std::filesystem::path& path, std::optional<MethodKind> method = std::nullopt,
                           std::optional<std::int64_t> steps = std::nullopt);
};

/// SHA-256 over config.json, the config's companions and the weight files, in the order: for each file sorted
/// by name, its name, a zero byte, its size as eight little-endian bytes, its content. Lower-case hex. Throws
/// Cancelled.
std::string checkpoint_digest(const Checkpoint& checkpoint, const ProgressSink& progress = {},
                              const std::stop_token& stop = {});

} // namespace ponderscope
