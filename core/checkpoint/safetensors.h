// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/dtype.h"
#include "core/base/files.h"
#include "core/checkpoint/checkpoint.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ponderscope {

/// The format's limit on the JSON header, in bytes.
constexpr std::uint64_t max_safetensors_header = 100'000'000;

/// One validated, memory-mapped safetensors file (format: huggingface/safetensors README). Rules enforced:
/// header length within the file and at most 100,000,000; UTF-8 JSON object; no duplicate keys; shape product
/// without overflow equal to the byte length (of known dtypes); offsets in order, without holes or overlaps,
/// ending at the end of the file.
class SafetensorsFile {
public:
    static SafetensorsFile open(const std::filesystem::path& path); ///< throws InputError

    [[nodiscard]] const std::vector<TensorView>& tensors() const { return tensors_; } ///< in file order
    [[nodiscard]] const TensorView* find(const std::string& name) const;
    [[nodiscard]] bool holds(const TensorView& tensor) const; ///< its bytes lie in this file
    /// Tensors of other dtypes than DType has, and these dtypes; tensors() is without them.
    [[nodiscard]] const std::map<std::string, std::string>& unreadable() const { return unreadable_; }
    [[nodiscard]] const std::map<std::string, std::string>& metadata() const { return metadata_; }
    [[nodiscard]] const std::filesystem::path& path() const { return file_.path(); }

    /// Hints for a loader that copies one tensor after the other: read this one ahead; let its pages go
    /// again. What is read does not change.
    void will_need(const TensorView& tensor) const { file_.will_need(tensor.bytes); }
    void done_with(const TensorView& tensor) const { file_.done_with(tensor.bytes); }

private:
    explicit SafetensorsFile(MappedFile file) : file_(std::move(file)) {}

    MappedFile file_;
    std::vector<TensorView> tensors_; ///< their addresses survive a move of this object
    std::unordered_map<std::string, std::size_t> by_name_;
    std::map<std::string, std::string> unreadable_;
    std::map<std::string, std::string> metadata_;
};

/// Writes a safetensors file beside \p path and renames it into place, so that a reader never sees half of
/// it. Tensors with wider elements come first, so that all are aligned; otherwise the order stays. Errors as
/// AtomicFile; std::invalid_argument when a view contradicts itself or a name comes twice.
void write_safetensors(const std::filesystem::path& path, const std::vector<TensorView>& tensors,
                       const std::map<std::string, std::string>& metadata = {});

} // namespace ponderscope
