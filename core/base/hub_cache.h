// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <string_view>

namespace ponderscope {

/// Whether \p text has the form of a model name on the Hugging Face hub: "name" or "organisation/name".
bool is_hub_name(std::string_view text);

/// The local folder of a downloaded model. If \p path does not exist and is a hub name, the function searches
/// the hub's local cache (HF_HUB_CACHE, HUGGINGFACE_HUB_CACHE, HF_HOME/hub, XDG_CACHE_HOME/huggingface/hub or
/// ~/.cache/huggingface/hub). \p path may also be a folder of this cache ("models--organisation--name"). If
/// the cache has several snapshots, returns the snapshot in refs/main, else the newest. Returns \p path
/// itself if it is neither a name in the cache nor a folder of the cache.
std::filesystem::path local_model_folder(const std::filesystem::path& path);

} // namespace ponderscope
