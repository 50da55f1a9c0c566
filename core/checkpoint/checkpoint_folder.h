// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>

namespace ponderscope {

/// Throws InputError when \p folder is missing, no folder, unreadable or empty.
void check_checkpoint_folder(const std::filesystem::path& folder);

/// Throws the InputError for a folder with neither model.safetensors nor an index: names the files that are
/// there instead (pickles, GGUF, safetensors under other names) and what to do.
[[noreturn]] void refuse_folder_without_weights(const std::filesystem::path& folder);

/// InputError for a folder that holds a LoRA adapter and no model: what to merge it into, and how.
void refuse_adapter_folder(const std::filesystem::path& folder);

/// The folder of a checkpoint that a user named by the folder or by one of its files. InputError for anything
/// else.
std::filesystem::path checkpoint_folder_of(const std::filesystem::path& path);

} // namespace ponderscope
