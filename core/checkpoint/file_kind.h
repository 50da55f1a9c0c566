// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

namespace ponderscope {

/// The kind of a file, by its first bytes and not by its name. For messages about files that are not weights.
enum class FileKind : std::uint8_t {
    empty,
    safetensors, ///< a plausible header length followed by '{'
    lfs_pointer, ///< left by git in place of a file that was not fetched
    pickle, ///< PyTorch's own formats: a bare pickle, or one in a zip archive. Never opened: unpickling runs
            ///< code.
    zip,    ///< another zip archive
    gguf,
    html, ///< an error page saved under the file's name
    hdf5,
    sqlite, ///< a trace, perhaps
    json,
    unknown
};

/// Reads at most the first 4 KiB of \p content. \p file_bytes: the size of the whole file.
FileKind recognise(std::span<const std::byte> content, std::uint64_t file_bytes);
/// The same for a file on disk; unknown when it cannot be read.
FileKind recognise_file(const std::filesystem::path& path);

/// True for the names that PyTorch pickles go by: *.bin, *.pt, *.pth, *.ckpt, *.pkl.
bool has_pickle_name(const std::filesystem::path& path);

/// Throws the InputError that belongs to \p kind: what it is and how to get safetensors from it. Not for
/// FileKind::safetensors.
[[noreturn]] void refuse(const std::filesystem::path& path, FileKind kind,
                         std::span<const std::byte> content = {});

} // namespace ponderscope
