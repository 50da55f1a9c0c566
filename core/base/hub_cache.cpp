// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/hub_cache.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>

namespace ponderscope {

namespace fs = std::filesystem;

namespace {

std::optional<fs::path> from_environment(const char* name, const char* below) {
    const char* const value = std::getenv(name);
    if (value == nullptr || *value == '\0') {
        return std::nullopt;
    }
    return *below == '\0' ? fs::path(value) : fs::path(value) / below;
}

std::optional<fs::path> cache_folder() {
    for (const auto& [name, below] :
         {std::pair{"HF_HUB_CACHE", ""}, std::pair{"HUGGINGFACE_HUB_CACHE", ""}, std::pair{"HF_HOME", "hub"},
          std::pair{"XDG_CACHE_HOME", "huggingface/hub"}, std::pair{"HOME", ".cache/huggingface/hub"}}) {
        if (auto folder = from_environment(name, below)) {
            return folder;
        }
    }
    return std::nullopt;
}

std::optional<fs::path> snapshot_in(const fs::path& model) {
    std::error_code error;
    std::string revision;
    std::ifstream(model / "refs" / "main") >> revision;
    const fs::path snapshots = model / "snapshots";
    if (!revision.empty() && revision.find('/') == std::string::npos &&
        fs::is_directory(snapshots / revision, error)) {
        return snapshots / revision;
    }
    std::optional<fs::path> newest;
    fs::file_time_type time;
    for (fs::directory_iterator next(snapshots, error), end; !error && next != end; next.increment(error)) {
        std::error_code ignored;
        const fs::file_time_type written = fs::last_write_time(next->path(), ignored);
        if (next->is_directory(ignored) && (!newest || written > time)) {
            newest = next->path();
            time = written;
        }
    }
    return newest;
}

} // namespace

bool is_hub_name(std::string_view text) {
    constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./";
    const auto slash = text.find('/');
    const auto is_part = [](std::string_view part) {
        return !part.empty() && part.front() != '.' && part.front() != '-';
    };
    return text.size() <= 200 && text.find_first_not_of(letters) == std::string_view::npos &&
           std::count(text.begin(), text.end(), '/') <= 1 && is_part(text.substr(0, slash)) &&
           (slash == std::string_view::npos || is_part(text.substr(slash + 1)));
}

fs::path local_model_folder(const fs::path& path) {
    std::error_code error;
    if (fs::exists(path, error)) {
        const bool is_cached =
            fs::is_directory(path / "snapshots", error) && !fs::exists(path / "config.json", error);
        return is_cached ? snapshot_in(path).value_or(path) : path;
    }
    const std::optional<fs::path> cache = cache_folder();
    if (!cache || !is_hub_name(path.native())) {
        return path;
    }
    std::string folder = "models--" + path.native();
    if (const std::size_t slash = folder.find('/'); slash != std::string::npos) {
        folder.replace(slash, 1, "--");
    }
    return snapshot_in(*cache / folder).value_or(path);
}

} // namespace ponderscope
