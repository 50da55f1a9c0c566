// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trace/shard.h"

#include "core/base/error.h"

#include <algorithm>
#include <charconv>
#include <glob.h>

namespace ponderscope {
namespace {

std::string four_digits(std::int64_t number) {
    const std::string text = std::to_string(number);
    return std::string(4 - std::min<std::size_t>(text.size(), 4), '0') + text;
}

std::optional<std::int64_t> number_of(std::string_view text) {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const bool digits =
        !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
    return digits && error == std::errc() ? std::optional(number) : std::nullopt;
}

/// "cuda:1 NVIDIA H100" and "cuda:0 NVIDIA H100" compute alike, a CPU does not.
std::string kind_of_device(const std::string& device) {
    return device.substr(0, device.find_first_of(": "));
}

std::vector<std::filesystem::path> shards_in(const std::filesystem::path& folder) {
    std::vector<std::filesystem::path> shards;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
        if (parse_shard_name(entry.path())) {
            shards.push_back(entry.path());
        }
    }
    std::sort(shards.begin(), shards.end());
    return shards;
}

} // namespace

std::filesystem::path shard_path(const std::filesystem::path& trace, std::int64_t rank, std::int64_t world) {
    std::filesystem::path path = trace;
    path.replace_filename(trace.stem().string() + ".r" + four_digits(rank) + "-of-" + four_digits(world) +
                          trace.extension().string());
    return path;
}

std::optional<ShardName> parse_shard_name(const std::filesystem::path& file) {
    if (file.extension() != ".ponder") {
        return std::nullopt;
    }
    const std::string stem = file.stem().string(); // NAME.r0003-of-0016
    const std::size_t place = stem.rfind(".r");
    const std::size_t of = stem.rfind("-of-");
    if (place == std::string::npos || of == std::string::npos || place == 0 || of < place + 2) {
        return std::nullopt;
    }
    const auto rank = number_of(std::string_view(stem).substr(place + 2, of - place - 2));
    const auto world = number_of(std::string_view(stem).substr(of + 4));
    if (!rank || !world || *rank >= *world) {
        return std::nullopt;
    }
    ShardName name{file, *rank, *world};
    name.trace.replace_filename(stem.substr(0, place) + ".ponder");
    return name;
}

std::vector<std::filesystem::path> find_shards(const std::filesystem::path& path) {
    namespace fs = std::filesystem;
    std::error_code error;
    if (fs::is_directory(path, error)) {
        std::vector<fs::path> shards = shards_in(path);
        if (shards.empty()) {
            throw InputError(
                path, "shards of a trace, NAME.r0000-of-0002.ponder", "a folder without any",
                "choose a .ponder file that ponderscope record made, or the folder of its shards");
        }
        return shards;
    }
    if (fs::exists(fs::symlink_status(path, error))) {
        return {};
    }
    if (path.native().find_first_of("*?[") != std::string::npos) {
        glob_t found{};
        std::vector<fs::path> shards;
        if (::glob(path.c_str(), 0, nullptr, &found) == 0) {
            shards.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
        }
        ::globfree(&found);
        if (shards.empty()) {
            throw InputError(path, "shards of a trace of such names", "none", "check the pattern");
        }
        return shards;
    }
    std::vector<fs::path> shards = shards_in(path.has_parent_path() ? path.parent_path() : fs::path("."));
    std::erase_if(shards, [&](const fs::path& shard) {
        return parse_shard_name(shard)->trace.filename() != path.filename();
    });
    return shards;
}

std::string difference_of_runs(const RunInfo& one, const RunInfo& other) {
    const auto differ = [](const char* what, const std::string& a, const std::string& b) {
        constexpr std::size_t most = 60;
        return std::string(what) + " " + (a.empty() ? "none" : a.substr(0, most)) + ", and " + what + " " +
               (b.empty() ? "none" : b.substr(0, most));
    };
    const struct {
        const char* what;
        const std::string& one;
        const std::string& other;
    } texts[] = {
        {"the texts' digest", one.text_digest, other.text_digest},
        {"the checkpoint's digest", one.checkpoint_digest, other.checkpoint_digest},
        {"the tokenizer's digest", one.tokenizer_digest, other.tokenizer_digest},
        {"versions", one.versions, other.versions},
        {"policy", one.policy, other.policy},
        {"scoring", one.scoring, other.scoring},
        {"dtype", one.dtype, other.dtype},
        {"--record", one.record_level, other.record_level},
        {"choices", one.choices, other.choices},
        {"steps that are a", one.step_unit, other.step_unit},
        {"method", one.method, other.method},
        {"depth mixing", one.depth_mixing, other.depth_mixing},
        {"config.json", one.config, other.config},
    };
    for (const auto& text : texts) {
        if (text.one != text.other) {
            return differ(text.what, text.one, text.other);
        }
    }
    if (kind_of_device(one.device) != kind_of_device(other.device)) {
        return differ("device", one.device, other.device);
    }
    const struct {
        const char* what;
        std::int64_t one;
        std::int64_t other;
    } numbers[] = {
        {"--context", one.context, other.context},
        {"--stride", one.stride, other.stride},
        {"--seed", static_cast<std::int64_t>(one.seed), static_cast<std::int64_t>(other.seed)},
        {"max_steps", one.max_steps, other.max_steps},
    };
    for (const auto& number : numbers) {
        if (number.one != number.other) {
            return differ(number.what, std::to_string(number.one), std::to_string(number.other));
        }
    }
    return {};
}

} // namespace ponderscope
