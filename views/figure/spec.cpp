// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/figure/spec.h"

#include "views/figure/spec_fields.h"

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/utf8.h"
#include "core/base/words.h"
#include "core/remote/address.h"
#include "core/trace/reader.h"

#include <algorithm>
#include <iostream>
#include <utility>

namespace ponderscope::figure {

std::span<const KindInfo> figure_kinds() {
    static constexpr KindInfo kinds[] = {
#define PONDERSCOPE_CHART(name, title, shows, runs, keys, make)                                              \
    {FigureKind::name, #name, title, shows, RunUse::runs, keys, true},
#define PONDERSCOPE_PAGE(name, title, shows, runs, keys, gather, draw)                                       \
    {FigureKind::name, #name, title, shows, RunUse::runs, keys},
#include "views/figure/kinds.def"
#undef PONDERSCOPE_CHART
#undef PONDERSCOPE_PAGE
    };
    return kinds;
}

const KindInfo& info_of(FigureKind kind) {
    return figure_kinds()[static_cast<std::size_t>(kind)];
}

bool reads(FigureKind kind, std::string_view key) {
    const std::string keys = "," + std::string(info_of(kind).keys) + ",";
    return keys.find("," + std::string(key) + ",") != std::string::npos;
}

std::size_t most_runs(const FigureSpec& spec) {
    const RunUse use = info_of(spec.kind).runs;
    const bool one_text = spec.kind == FigureKind::token_text && !spec.quantity.minus_b;
    return use == RunUse::one || one_text                               ? 1
           : use == RunUse::pair || spec.kind == FigureKind::token_text ? 2
                                                                        : 1000;
}

const std::string& shown_name(const FigureSpec& spec, const std::string& name) {
    for (const SeriesSpec& one : spec.series) {
        if (one.name == name && !one.as.empty()) {
            return one.as;
        }
    }
    return name;
}

namespace {

void refuse_unknown(const JsonObject& json) {
    std::vector<std::string_view> known{"kind", "trace", "runs", "panels"};
    for (const Field& one : fields()) {
        known.push_back(one.form.key);
    }
    for (const std::string& key : json.keys()) {
        if (std::ranges::find(known, key) == known.end()) {
            throw InputError(ErrorId::json_key, json.source().string() + ": \"" + key +
                                                    "\" is not a key of a figure" +
                                                    did_you_mean_or_list(key, known));
        }
    }
}

std::filesystem::path absolute_trace(const std::filesystem::path& trace,
                                     const std::filesystem::path& source) {
    return trace.empty() || remote::is_remote(trace)
               ? trace
               : (std::filesystem::absolute(source).parent_path() / trace).lexically_normal();
}

std::vector<RunName> read_runs(const JsonObject& json) {
    std::filesystem::path trace;
    if (const auto text = json.text("trace")) {
        trace = absolute_trace(*text, json.source());
    }
    std::vector<RunName> runs;
    if (const nlohmann::json* list = json.array("runs")) {
        for (const nlohmann::json& entry : *list) {
            if (entry.is_number_integer()) {
                runs.push_back({trace, std::to_string(entry.get<std::int64_t>()), true});
            } else if (entry.is_string()) {
                const std::string text = entry.get<std::string>();
                const bool names_trace =
                    text.find('#') != std::string::npos || (trace.empty() && text.ends_with(".ponder"));
                const RunReference named = names_trace ? parse_run_reference(text) : RunReference{{}, text};
                runs.push_back(
                    {named.trace.empty() ? trace : absolute_trace(named.trace, json.source()), named.run});
            } else {
                json.fail("runs",
                          "names of runs, such as [\"ponderlm\", \"vanilla\"] or [\"a.ponder#ponderlm\"]");
            }
            if (runs.back().trace.empty()) {
                json.fail(
                    "runs",
                    "names with their trace, such as \"a.ponder#ponderlm\" (there is no key \"trace\"),");
            }
        }
        if (runs.empty()) {
            json.fail("runs", "at least one run");
        }
    } else if (!trace.empty()) {
        runs.push_back({trace, {}});
    }
    if (runs.empty()) {
        throw InputError(ErrorId::json_value, json.source(), "a key \"trace\"", "no such key",
                         "add \"trace\" with the trace file of the figure");
    }
    return runs;
}

FigureSpec from_json(const nlohmann::json& document, const std::filesystem::path& source);

FigureKind read_kind(const JsonObject& json) {
    std::vector<std::string_view> names;
    for (const KindInfo& info : figure_kinds()) {
        names.push_back(info.name);
    }
    const auto text = json.text("kind");
    if (!text) {
        throw InputError(ErrorId::json_value, json.source(), "a key \"kind\"", "no such key",
                         "add \"kind\" with one of " + joined(names, [](std::string_view name) {
                             return "\"" + std::string(name) + "\"";
                         }));
    }
    const auto found = std::ranges::find(names, *text);
    if (found == names.end()) {
        refuse_value(json, "kind", *text, names);
    }
    return figure_kinds()[static_cast<std::size_t>(found - names.begin())].kind;
}

/// Reads "panels". The other keys of the page are the defaults of every panel.
void read_panels(const JsonObject& json, FigureSpec& spec) {
    constexpr std::size_t most_panels = 26; // letters a to z
    const nlohmann::json* list = json.array("panels");
    if (list == nullptr || list->empty() || list->size() > most_panels) {
        json.fail("panels", "a list of 1 to 26 figures, such as [{\"kind\": \"steps_histogram\"}]");
    }
    for (const nlohmann::json& entry : *list) {
        if (!entry.is_object() || entry.value("kind", nlohmann::json()) == "panels") {
            json.fail("panels", "figures of any kind but \"panels\"");
        }
        nlohmann::json whole = entry;
        for (const char* key : {"trace", "runs", "theme", "font", "font_size", "palette", "colour_map",
                                "attribution", "block", "replicates"}) {
            if (const nlohmann::json* common = json.find(key); common != nullptr && !whole.contains(key)) {
                whole[key] = *common;
            }
        }
        spec.panels.push_back(from_json(whole, json.source()));
    }
    spec.runs = spec.panels.front().runs;
}

FigureSpec from_json(const nlohmann::json& document, const std::filesystem::path& source) {
    const JsonObject json(document, source);
    refuse_unknown(json);
    FigureSpec spec;
    spec.kind = read_kind(json);
    if (spec.kind == FigureKind::panels) {
        read_panels(json, spec);
        spec.width_mm = double_column_mm;
    } else {
        spec.runs = read_runs(json);
    }
    for (const Field& one : fields()) {
        one.read_into(json, spec);
    }
    if (!spec.annotation.empty() && json.has("quantity")) {
        json.fail("annotation", "a figure without \"quantity\"", "remove one of the two keys");
    }
    if (spec.kind == FigureKind::token_text && spec.quantity.minus_b && spec.runs.size() < 2) {
        json.fail("quantity", "a quantity of one run", "add the second run to \"runs\"");
    }
    // All panels have the theme of the page.
    for (FigureSpec& panel : spec.panels) {
        panel.theme = spec.theme;
    }
    return spec;
}

} // namespace

FigureSpec read_figure_spec(const std::filesystem::path& path) {
    if (path == "-") {
        constexpr std::size_t longest = std::size_t{16} << 20;
        std::string json(longest + 1, '\0');
        std::cin.read(json.data(), static_cast<std::streamsize>(json.size()));
        json.resize(static_cast<std::size_t>(std::cin.gcount()));
        if (json.size() > longest) {
            throw InputError(ErrorId::file_size, "standard input", "a figure specification of at most 16 MiB",
                             "a longer input", "give only the JSON of the figure");
        }
        return parse_figure_spec(json, "standard input");
    }
    return from_json(read_json_file(path), path);
}

FigureSpec parse_figure_spec(std::string_view json, const std::filesystem::path& source) {
    return from_json(parse_json(json, source), source);
}

namespace {

nlohmann::ordered_json written(const FigureSpec& spec, const std::filesystem::path& folder) {
    const auto relative = [&](const std::filesystem::path& trace) {
        const std::filesystem::path shorter = trace.lexically_proximate(std::filesystem::absolute(folder));
        return shorter.empty() || *shorter.begin() == ".." ? trace.generic_string()
                                                           : shorter.generic_string();
    };
    nlohmann::ordered_json json;
    json["kind"] = name_of(spec.kind);
    const bool one_trace = std::ranges::all_of(
        spec.runs, [&](const RunName& run) { return run.trace == spec.runs.front().trace; });
    if (spec.kind == FigureKind::panels) {
        json["panels"] = nlohmann::ordered_json::array();
        for (const FigureSpec& panel : spec.panels) {
            nlohmann::ordered_json one = written(panel, folder);
            for (const char* key : {"width_mm", "dpi", "theme"}) {
                one.erase(key); // these keys belong to the page
            }
            json["panels"].push_back(std::move(one));
        }
    } else {
        const bool names = one_trace && std::ranges::none_of(spec.runs, [](const RunName& run) {
                               return run.run.find('#') != std::string::npos;
                           });
        // A run's number refers to the key "trace".
        const auto numbered = std::ranges::find_if(spec.runs, &RunName::numbered);
        if (names || numbered != spec.runs.end()) {
            json["trace"] = relative((names ? spec.runs.begin() : numbered)->trace);
        }
        if (!names || spec.runs.size() > 1 || !spec.runs.front().run.empty()) {
            json["runs"] = nlohmann::ordered_json::array();
            for (const RunName& run : spec.runs) {
                if (run.numbered) {
                    json["runs"].push_back(std::stoll(run.run));
                } else {
                    json["runs"].push_back(names ? run.run : relative(run.trace) + "#" + run.run);
                }
            }
        }
    }
    for (const Field& one : fields()) {
        const bool wanted =
            ((one.writes & Field::changed) == 0 || one.is_changed(spec)) && one.applies(spec.kind);
        if (wanted && (one.form.key != "quantity" || !json.contains("annotation"))) { // write only one
            json[std::string(one.form.key)] = one.value(spec);
        }
    }
    return json;
}

} // namespace

std::string write_figure_spec(const FigureSpec& spec, const std::filesystem::path& folder) {
    return written(spec, folder).dump(2) + "\n";
}

} // namespace ponderscope::figure
