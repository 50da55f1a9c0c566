// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/dtype.h"
#include "core/checkpoint/checkpoint.h"

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace ponderscope {

/// One validated, memory-mapped safetensors file (format: huggingface/safetensors README). Rules enforced: header length within
/// the file and at most 100,000,000; UTF-8 JSON object; no duplicate keys; known dtype; shape product without overflow equal to the
/// byte length; offsets in order, without holes or overlaps, ending at the end of the file.
class SafetensorsFile {
public:
    static SafetensorsFile open(const std::filesystem::path& path); ///< throws InputError

    SafetensorsFile(SafetensorsFile&&) noexcept;
    SafetensorsFile& operator=(SafetensorsFile&&) noexcept;
    ~SafetensorsFile();

    [[nodiscard]] const std::vector<TensorView>& tensors() const; ///< in file order
    [[nodiscard]] const TensorView* find(const std::string& name) const;
    [[nodiscard]] const std::map<std::string, std::string>& metadata() const;
    [[nodiscard]] const std::filesystem::path& path() const;

private:
    struct Impl;
    explicit SafetensorsFile(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

/// Writes a safetensors file beside \p path and renames it into place, so that a reader never sees half of it. Tensors keep the
/// given order. Throws EnvironmentError.
void write_safetensors(const std::filesystem::path& path, const std::vector<TensorView>& tensors,
                       const std::map<std::string, std::string>& metadata = {});

} // namespace ponderscope
