// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>

namespace ponderscope {

/// Whether a file, a folder or a link has this path, including a link without an existing target.
bool exists_in_any_form(const std::filesystem::path& path);

/// InputError: \p folder is missing, not a folder, unreadable or empty.
void check_checkpoint_folder(const std::filesystem::path& folder);

/// Throws the InputError for a folder with neither model.safetensors nor an index. The message names the
/// files in the folder (pickles, GGUF, safetensors with other names) and the remedy.
[[noreturn]] void refuse_folder_without_weights(const std::filesystem::path& folder);

/// InputError if the folder holds a LoRA adapter and no model. The message says how to merge the adapter into
/// its base model.
void refuse_adapter_folder(const std::filesystem::path& folder);

/// The folder of a checkpoint. \p path is the folder or one of its files. InputError for any other path.
std::filesystem::path checkpoint_folder_of(const std::filesystem::path& path);

} // namespace ponderscope
