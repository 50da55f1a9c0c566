// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/dtype.h"
#include "core/base/files.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ponderscope {

/// One tensor of a checkpoint, in a memory-mapped file. Valid while the file is mapped.
struct TensorView {
    std::string name;
    DType dtype = DType::f32;
    std::vector<std::int64_t> shape;
    std::span<const std::byte> bytes; ///< row-major, little-endian; possibly not aligned for the dtype
};

/// The format's limit on the JSON header, in bytes.
constexpr std::uint64_t max_safetensors_header = 100'000'000;

/// One validated, memory-mapped safetensors file (format: huggingface/safetensors README). The header length
/// fits into the file and is at most 100,000,000. The header is a UTF-8 JSON object without duplicate keys.
/// The product of each shape does not overflow and, for known dtypes, matches the byte length. Offsets are in
/// order, without holes or overlaps, and end at the end of the file.
class SafetensorsFile {
public:
    static SafetensorsFile open(const std::filesystem::path& path); ///< throws InputError

    [[nodiscard]] const std::vector<TensorView>& tensors() const { return tensors_; } ///< in file order
    [[nodiscard]] const TensorView* find(const std::string& name) const;
    /// Tensors whose dtype is not in DType, with the dtype's name. tensors() omits these tensors.
    [[nodiscard]] const std::map<std::string, std::string>& unreadable() const { return unreadable_; }
    [[nodiscard]] const std::map<std::string, std::string>& metadata() const { return metadata_; }
    [[nodiscard]] const std::filesystem::path& path() const { return file_.path(); }

private:
    explicit SafetensorsFile(MappedFile file) : file_(std::move(file)) {}

    MappedFile file_;
    std::vector<TensorView> tensors_; ///< a move of this object keeps the addresses of the tensors
    std::unordered_map<std::string, std::size_t> by_name_;
    std::map<std::string, std::string> unreadable_;
    std::map<std::string, std::string> metadata_;
};

/// Writes a safetensors file atomically. For alignment, tensors with wider elements come first. Tensors of
/// equal width keep their order. Throws the errors of AtomicFile. std::invalid_argument: a view's bytes do
/// not fit its shape, or two tensors share a name. nlohmann::json::exception: a text is not UTF-8.
void write_safetensors(const std::filesystem::path& path, const std::vector<TensorView>& tensors,
                       const std::map<std::string, std::string>& metadata = {});

} // namespace ponderscope
