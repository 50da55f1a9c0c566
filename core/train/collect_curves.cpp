// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/train/collect_curves.h"

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/words.h"
#include "core/checkpoint/model_config.h"
#include "core/trace/writer.h"
#include "core/train/training_trace.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace ponderscope {

namespace {

/// A log.csv, read by the names of its columns: earlier programs wrote fewer.
struct Log {
    std::vector<TrainingMoment> moments;
    std::vector<std::vector<TrainingValue>> values; ///< one a moment
};

std::vector<std::string_view> fields_of(std::string_view line) {
    std::vector<std::string_view> fields;
    for (;;) {
        const std::size_t comma = line.find(',');
        fields.push_back(line.substr(0, comma));
        if (comma == std::string_view::npos) {
            return fields;
        }
        line.remove_prefix(comma + 1);
    }
}

Log read_log(const std::filesystem::path& path) {
    const std::string text = read_file(path);
    std::vector<std::string_view> header;
    Log log;
    std::size_t number = 0;
    for (std::string_view rest = text; !rest.empty();) {
        const std::size_t end = rest.find('\n');
        const std::string_view line = rest.substr(0, end);
        rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
        ++number;
        const std::vector<std::string_view> fields = fields_of(line);
        const auto wrong = [&](const std::string& expected, std::string_view found) {
            throw InputError(path, expected,
                             '"' + std::string(found.substr(0, 100)) + "\" in line " + std::to_string(number),
                             "take the file from its source again");
        };
        if (header.empty()) {
            header = fields;
            for (const std::string_view needed : {"step", "tokens", "seconds", "loss"}) {
                if (std::find(header.begin(), header.end(), needed) == header.end()) {
                    wrong("a column " + std::string(needed), line);
                }
            }
            continue;
        }
        if (fields.size() != header.size()) {
            wrong(std::to_string(header.size()) + " fields", line);
        }
        TrainingMoment moment;
        std::vector<TrainingValue> values;
        for (std::size_t i = 0; i < fields.size(); ++i) {
            if (header[i] == "step" || header[i] == "tokens") {
                const auto count = parse_number<std::int64_t>(fields[i]);
                if (!count || *count < 0) {
                    wrong("a number of " + std::string(header[i]) + (header[i] == "step" ? "s" : ""),
                          fields[i]);
                }
                (header[i] == "step" ? moment.step : moment.tokens) = *count;
            } else if (!fields[i].empty()) {
                const auto value = parse_number<double>(fields[i]);
                if (!value) {
                    wrong("a number", fields[i]);
                }
                if (header[i] == "seconds") {
                    moment.seconds = *value;
                } else {
                    values.push_back({std::string(header[i]), 0, *value});
                }
            }
        }
        log.moments.push_back(moment);
        log.values.push_back(std::move(values));
    }
    return log;
}

TrainingInfo read_info(const std::filesystem::path& folder) {
    const auto path = folder / "training.json";
    const auto document = read_json_file(path);
    const JsonObject root(document, path);
    const ModelConfig config = read_model_config(folder / "config.json");
    TrainingInfo info;
    info.name = root.required_text("name");
    info.description = root.text("description").value_or("");
    info.architecture = to_string(config.architecture);
    info.method = to_string(config.ponder.method);
    info.depth_mixing = to_string(config.depth.kind);
    info.config = read_file(folder / "config.json");
    info.parameters = root.required_integer("parameters", 0);
    info.max_steps = config.ponder.max_steps;
    std::int64_t tokens_per_step = 0;
    if (const auto recipe = root.object("recipe")) {
        info.recipe = document.at("recipe").dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
        if (const auto training = recipe->object("training")) {
            const auto number = [&](const char* key, std::int64_t most) {
                return training->integer(key, 0, most).value_or(0);
            };
            info.planned_steps = number("steps", std::int64_t{1} << 40);
            constexpr std::int64_t most = 1 << 20; // of each, so that their product cannot overflow
            tokens_per_step = number("batch", most) * number("context", most);
        }
    }
    // "tokens" are those so far, of a finished training all.
    const bool counted = tokens_per_step > 0 &&
                         info.planned_steps <= std::numeric_limits<std::int64_t>::max() / tokens_per_step;
    info.planned_tokens = counted ? info.planned_steps * tokens_per_step : root.required_integer("tokens", 0);
    if (const auto made = root.object("made_with")) {
        info.device = made->text("device").value_or("");
        info.precision = made->text("precision").value_or("");
        info.versions = nlohmann::json{{"torch", made->text("torch").value_or("")}}.dump();
    }
    info.complete = root.boolean("complete").value_or(false);
    return info;
}

} // namespace

void collect_curves(const std::vector<std::filesystem::path>& folders, const std::filesystem::path& output) {
    if (folders.empty()) {
        throw InputError("expected folders of trainings, found none; name at least one.");
    }
    // Everything is read before anything is written.
    std::vector<std::pair<TrainingInfo, Log>> all;
    for (const std::filesystem::path& folder : folders) {
        std::error_code ignored;
        if (!std::filesystem::is_regular_file(folder / "log.csv", ignored)) {
            throw InputError(folder, "a folder that a training left (log.csv, training.json)", "none",
                             "name the folder that was given to ponderscope train -o");
        }
        all.emplace_back(read_info(folder), read_log(folder / "log.csv"));
    }
    TraceWriter writer(output, {.append = false});
    for (auto& [info, log] : all) {
        std::vector<TrainingQuantity> quantities;
        for (TrainingQuantity& one : training_quantities(info.max_steps, false, true, true)) {
            const bool there = std::any_of(log.values.begin(), log.values.end(), [&](const auto& values) {
                return std::any_of(values.begin(), values.end(),
                                   [&](const TrainingValue& value) { return value.quantity == one.name; });
            });
            if (there) {
                quantities.push_back(std::move(one));
            }
        }
        const bool complete = info.complete;
        const std::int64_t id = writer.begin_training(std::move(info), std::move(quantities));
        for (std::size_t i = 0; i < log.moments.size(); ++i) {
            writer.put_points(id, log.moments[i], std::move(log.values[i]));
        }
        writer.end_training(id, complete);
    }
    writer.finish();
}

} // namespace ponderscope
