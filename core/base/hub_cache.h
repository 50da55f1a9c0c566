// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

namespace ponderscope {

/// "name" or "organisation/name", as models are called on the Hugging Face hub.
bool is_hub_name(std::string_view text);

/// The folder of a model that was downloaded before: if \p path does not exist and is a hub name, its
/// snapshot in the hub's local cache (HF_HUB_CACHE, HUGGINGFACE_HUB_CACHE, HF_HOME/hub,
/// XDG_CACHE_HOME/huggingface/hub or ~/.cache/huggingface/hub); where it is a folder of that cache
/// ("models--organisation--name"), the snapshot inside. Of several snapshots, refs/main, else the newest.
/// Nothing: neither.
std::optional<std::filesystem::path> hub_snapshot(const std::filesystem::path& path);

/// hub_snapshot(), or \p path itself.
std::filesystem::path local_model_folder(const std::filesystem::path& path);

} // namespace ponderscope
