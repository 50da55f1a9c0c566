// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace ponderscope {

/// The kind of a file by its first bytes, not by its name. Used in messages about files that are not weights.
enum class FileKind : std::uint8_t {
    empty,
    safetensors, ///< a plausible header length followed by '{'
    lfs_pointer, ///< text in place of a file that git did not fetch
    pickle, ///< PyTorch's own formats: a bare pickle, or a pickle in a zip archive. The program never opens
            ///< them, because unpickling runs code.
    zip,    ///< another zip archive
    gguf,
    html, ///< an error page saved under the file's name
    hdf5,
    sqlite, ///< possibly a trace
    json,
    unknown
};

/// Reads at most the first 4 KiB of \p content.
FileKind recognise(std::string_view content);
/// The kind of a file on disk; unknown if the file cannot be read.
FileKind recognise_file(const std::filesystem::path& path);

/// Whether the name is usual for PyTorch pickles: *.bin, *.pt, *.pth, *.ckpt, *.pkl.
bool has_pickle_name(const std::filesystem::path& path);

/// Throws the InputError for \p kind. The message names the kind of file and explains how to get safetensors.
/// Do not call this for FileKind::safetensors.
[[noreturn]] void refuse(const std::filesystem::path& path, FileKind kind);

} // namespace ponderscope
