// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <string_view>

namespace ponderscope {

/// "name" or "organisation/name", as models are called on the Hugging Face hub.
bool is_hub_name(std::string_view text);

/// The local folder of a downloaded model. If \p path does not exist and is a hub name, the function searches
/// the hub's local cache (HF_HUB_CACHE, HUGGINGFACE_HUB_CACHE, HF_HOME/hub, XDG_CACHE_HOME/huggingface/hub or
/// ~/.cache/huggingface/hub). \p path may also be a folder of this cache ("models--organisation--name"). Of
/// several snapshots, refs/main wins, else the newest. \p path itself if neither form applies.
std::filesystem::path local_model_folder(const std::filesystem::path& path);

} // namespace ponderscope
