// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trace/shard.h"

#include "core/base/error.h"
#include "core/base/words.h"
#include "core/remote/host.h"
#include "core/trace/recorded_choices.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <glob.h>
#include <map>

namespace ponderscope {
namespace {

std::string four_digits(std::int64_t number) {
    const std::string text = std::to_string(number);
    return std::string(4 - std::min<std::size_t>(text.size(), 4), '0') + text;
}

std::optional<std::int64_t> number_of(std::string_view text) {
    return text.starts_with('-') ? std::nullopt : parse_number<std::int64_t>(text);
}

/// "cuda" for "cuda:1 NVIDIA H100": the GPUs of a run compute alike, a CPU does not.
std::string kind_of_device(const std::string& device) {
    return device.substr(0, device.find_first_of(": "));
}

std::vector<std::filesystem::path> shards_in(const std::filesystem::path& folder) {
    std::vector<std::filesystem::path> shards;
    const auto add = [&shards](const std::filesystem::path& file) {
        if (parse_shard_name(file)) {
            shards.push_back(file);
        }
    };
    if (remote::is_remote(folder)) {
        for (const std::string& name : remote::list(folder)) {
            add(folder / name);
        }
    } else {
        std::error_code error;
        for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
            add(entry.path());
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
    const bool elsewhere = remote::is_remote(path);
    const remote::Kind kind = elsewhere ? remote::look(path).kind : remote::Kind::none;
    const bool folder = elsewhere ? kind >= remote::Kind::folder && kind != remote::Kind::trace
                                  : fs::is_directory(path, error);
    if (folder) {
        std::vector<fs::path> shards = shards_in(path);
        if (shards.empty() && !elsewhere && fs::exists(path / "config.json", error)) {
            throw InputError(ErrorId::file_kind, path, "a trace", "the folder of a checkpoint",
                             "record the model first: ponderscope record FOLDER --text FILE -o NAME.ponder");
        }
        if (shards.empty()) {
            throw InputError(
                ErrorId::shard_missing, path,
                "a folder with the shards of a trace (NAME.r0000-of-0002.ponder)", "a folder without shards",
                "choose a .ponder file that ponderscope record made, or the folder of its shards");
        }
        return shards;
    }
    if (elsewhere ? kind != remote::Kind::none : fs::exists(fs::symlink_status(path, error))) {
        return {};
    }
    if (!elsewhere && path.string().find_first_of("*?[") != std::string::npos) {
        std::vector<fs::path> shards;
        glob_t found{};
        if (::glob(path.c_str(), 0, nullptr, &found) == 0) {
            shards.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
        }
        ::globfree(&found);
        if (shards.empty()) {
            throw InputError(ErrorId::shard_missing, path, "shards whose names match the pattern", "none",
                             "check the pattern");
        }
        return shards;
    }
    return shards_of(path);
}

std::vector<std::filesystem::path> shards_of(const std::filesystem::path& trace) {
    std::vector<std::filesystem::path> shards =
        shards_in(trace.has_parent_path() ? trace.parent_path() : std::filesystem::path("."));
    std::erase_if(shards, [&](const std::filesystem::path& shard) {
        return parse_shard_name(shard)->trace.filename() != trace.filename();
    });
    return shards;
}

namespace {

constexpr const char* texts_digest = "the texts' digest";

/// Keys in RunInfo::choices, with their command-line options.
constexpr std::pair<const char*, const char*> option_of_choice[] = {
    {"kv", "--kv"},
    {"initial_state", "--initial-state"},
    {"patches", "--patch"},
    {"bos", "--bos"},
    {"parse_special", "--parse-special"},
    {"group_field", "--group-field"},
    {"label_field", "--label-field"},
};
/// The same for options that choose texts. They explain a difference of the texts' digests.
constexpr std::pair<const char*, const char*> option_of_texts[] = {
    {"limit_tokens", "--limit-tokens"},
    {"text_field", "--text-field"},
};

nlohmann::json choices_of_run(const RunInfo& run) {
    const nlohmann::json choices = choices_json(run.choices);
    return choices.is_null() ? nlohmann::json::object() : choices;
}

std::string in_text(const nlohmann::json& value) {
    return value.is_string()      ? value.get<std::string>()
           : value == false       ? std::string("given") // a flag that turns something off
           : value.is_discarded() ? std::string()
                                  : value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string take(nlohmann::json& choices, const char* key) {
    const auto found = choices.find(key);
    if (found == choices.end()) {
        return {};
    }
    std::string value = in_text(*found);
    choices.erase(found);
    return value;
}

std::string in_words(const std::string& what, const std::string& one, const std::string& other) {
    const auto shown = [&](const std::string& value) {
        constexpr std::size_t most = 60;
        return what + " " + (value.empty() ? "none" : value.substr(0, most));
    };
    return shown(one) + ", and " + shown(other);
}

/// All values on which the numbers of a run depend, with their names for messages.
std::vector<std::pair<std::string, std::string>> marks_of_run(const RunInfo& run) {
    const std::string changes = changes_of(run);
    nlohmann::json choices = choices_of_run(run);
    // These follow from the config and the texts, and earlier builds did not store all of them.
    for (const char* known : {"exit_step", "planned_lengths", "limit_tokens", "text_field"}) {
        choices.erase(known);
    }
    // Options first: a different option explains more than its consequences.
    std::vector<std::pair<std::string, std::string>> marks;
    for (const auto& [key, option] : option_of_choice) {
        marks.emplace_back(option, take(choices, key));
    }
    marks.insert(marks.end(),
                 {{"--policy", run.policy},
                  {"scoring", run.scoring},
                  {"--dtype", run.dtype},
                  {"--record", run.record_level},
                  {"--context", std::to_string(run.context)},
                  {"--stride", std::to_string(run.stride)},
                  {"--seed", std::to_string(run.seed)},
                  {"method", run.method},
                  {"max_steps", std::to_string(run.max_steps)},
                  {texts_digest, run.text_digest},
                  {"the checkpoint's digest", run.checkpoint_digest},
                  {"the tokenizer's digest", run.tokenizer_digest},
                  {"versions", run.versions},
                  {"choices", choices.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)},
                  {"steps that are a", run.step_unit},
                  {"depth mixing", run.depth_mixing},
                  {"config.json", run.config},
                  {"device", kind_of_device(run.device)},
                  {"changes", changes.substr(std::min(changes.size(), changes.find_first_not_of('\n')))}});
    return marks;
}

std::string difference_of_runs(const RunInfo& one, const RunInfo& other) {
    const auto ours = marks_of_run(one);
    const auto theirs = marks_of_run(other);
    for (std::size_t i = 0; i < ours.size(); ++i) {
        const auto& [what, value] = ours[i];
        if (value == theirs[i].second) {
            continue;
        }
        if (what == texts_digest) {
            nlohmann::json here = choices_of_run(one);
            nlohmann::json there = choices_of_run(other);
            for (const auto& [key, option] : option_of_texts) {
                const std::string a = take(here, key);
                if (const std::string b = take(there, key); a != b) {
                    return in_words(option, a, b);
                }
            }
        }
        return in_words(what, value, theirs[i].second);
    }
    return {};
}

std::string difference_of_signals(const std::vector<SignalInfo>& one, const std::vector<SignalInfo>& other) {
    std::map<std::string, const SignalInfo*> there;
    for (const SignalInfo& info : one) {
        there.emplace(info.name, &info);
    }
    for (const SignalInfo& info : other) {
        const auto found = there.find(info.name);
        if (found == there.end()) {
            return "signal " + info.name + " only in the second";
        }
        // The description contains the recorded layers, heads or tokens.
        if (found->second->axes != info.axes || found->second->description != info.description) {
            return "signal " + info.name + ": " + found->second->description + ", and: " + info.description;
        }
        there.erase(found);
    }
    return there.empty() ? "" : "signal " + there.begin()->first + " only in the first";
}

} // namespace

std::string difference_of_recordings(const Recording& one, const Recording& other) {
    std::string difference = difference_of_runs(one.run, other.run);
    if (difference.empty() && one.batch > 0 && other.batch > 0 && one.batch != other.batch) {
        difference = in_words("--batch", std::to_string(one.batch), std::to_string(other.batch));
    }
    return difference.empty() ? difference_of_signals(one.signals, other.signals) : difference;
}

} // namespace ponderscope
