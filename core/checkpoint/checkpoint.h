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

/// One tensor of a checkpoint, in a memory-mapped file. Valid while its Weights object lives.
struct TensorView {
    std::string name;
    DType dtype = DType::f32;
    std::vector<std::int64_t> shape;
    std::span<const std::byte> bytes; ///< row-major, little-endian; not necessarily aligned to the element
};

/// "[2, 3]", for messages.
std::string shape_text(const std::vector<std::int64_t>& shape);

/// All tensors of a checkpoint folder: those of model.safetensors, or of the shards in
/// model.safetensors.index.json, and those of the config's companion files under their prefixes. open()
/// validates every header and maps the files, but reads no weight. Thread-safe once open.
class Weights {
public:
    /// InputError: missing, truncated or inconsistent files, LFS pointers, pickles, shards outside the
    /// folder, a repeated tensor.
    static Weights open(const std::filesystem::path& folder,
                        const std::vector<ModelConfig::Companion>& companions = {});

    Weights(Weights&&) noexcept;
    Weights& operator=(Weights&&) noexcept;
    ~Weights();

    [[nodiscard]] const TensorView* find(const std::string& name) const; ///< nullptr when absent
    [[nodiscard]] std::vector<std::string> names() const;                ///< sorted
    /// Tensors whose dtype no model here uses (quantised tensors), with the name of the dtype. find() and
    /// names() leave them out.
    [[nodiscard]] const std::map<std::string, std::string>& unreadable() const;
    /// Parts that PyTorch's wrappers added to the tensor names ("_orig_mod.", "module."). find() and names()
    /// use the names without these parts.
    [[nodiscard]] const std::vector<std::string>& removed_name_parts() const;
    [[nodiscard]] const std::vector<std::filesystem::path>& files() const;
    [[nodiscard]] std::uint64_t total_bytes() const; ///< of the tensors
    /// Hints for a loader: will_need() reads the tensor ahead in the background, done_with() frees its pages
    /// after the copy. `bytes` may be a part of the tensor's bytes.
    void will_need(const TensorView& tensor) const;
    void done_with(const TensorView& tensor) const;

private:
    struct Impl;
    explicit Weights(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

/// A checkpoint folder in Hugging Face layout, opened and validated. No weight is on a device yet.
struct Checkpoint {
    std::filesystem::path folder;
    ModelConfig config;
    Weights weights;
    /// The tokenizer file: tokenizer.json, or vocab.json with a merges.txt beside it. Empty: the checkpoint
    /// has no tokenizer and takes token ids.
    std::optional<std::filesystem::path> vocabulary;

    /// Opens the folder, or the folder of a file (config.json, model.safetensors). \p method and \p steps as
    /// in read_model_config. Throws InputError.
    static Checkpoint open(const std::filesystem::path& path, std::optional<MethodKind> method = std::nullopt,
                           std::optional<std::int64_t> steps = std::nullopt);
};

/// SHA-256 over config.json, the companion files and the weight files, sorted by name. Each file adds its
/// name, a zero byte, its size as eight little-endian bytes, and its content. Lower-case hex. Throws
/// Cancelled.
std::string checkpoint_digest(const Checkpoint& checkpoint, const ProgressSink& progress = {},
                              const std::stop_token& stop = {});

} // namespace ponderscope
