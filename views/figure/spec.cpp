// SPDX-License-Identifier: GPL-3.0-or-later
// Before Qt, whose keyword `signals` is a name there.
#include "core/trace/reader.h"

#include "views/figure/spec.h"

#include "core/base/error.h"
#include "core/base/json.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iostream>
#include <span>
#include <utility>

namespace ponderscope::figure {
namespace {

constexpr std::array quantities{
    std::pair{TokenQuantity::nll, std::string_view("nll")},
    std::pair{TokenQuantity::entropy, std::string_view("entropy")},
    std::pair{TokenQuantity::rank, std::string_view("rank")},
    std::pair{TokenQuantity::max_probability, std::string_view("max_probability")},
    std::pair{TokenQuantity::steps, std::string_view("steps")},
    std::pair{TokenQuantity::flops, std::string_view("flops")},
    std::pair{TokenQuantity::nll_difference, std::string_view("nll_difference")}};

constexpr std::array attributions{std::pair{Attribution::predicted, std::string_view("predicted")},
                                  std::pair{Attribution::predicting, std::string_view("predicting")}};

constexpr std::array colour_maps{std::string_view("viridis"), std::string_view("cividis"),
                                 std::string_view("magma"), std::string_view("grey")};
constexpr std::array palettes{std::string_view("default"), std::string_view("okabe_ito"),
                              std::string_view("grey")};
constexpr std::array groupings{std::string_view("class"), std::string_view("type"),
                               std::string_view("position"), std::string_view("difficulty")};
constexpr std::array training_axes{std::string_view("steps"), std::string_view("tokens"),
                                   std::string_view("seconds")};
constexpr std::array costs{std::string_view("compute"), std::string_view("steps"), std::string_view("time")};
constexpr std::array legends{std::string_view("auto"), std::string_view("above"), std::string_view("right"),
                             std::string_view("none")};
constexpr std::array themes{std::string_view("light"), std::string_view("dark")};

constexpr std::array known_keys{
    std::string_view("kind"),       std::string_view("trace"),      std::string_view("runs"),
    std::string_view("sequence"),   std::string_view("tokens"),     std::string_view("quantity"),
    std::string_view("annotation"), std::string_view("signal"),     std::string_view("attribution"),
    std::string_view("width_mm"),   std::string_view("height_mm"),  std::string_view("font_size"),
    std::string_view("dpi"),        std::string_view("range"),      std::string_view("colour_map"),
    std::string_view("theme"),      std::string_view("step_ticks"), std::string_view("scatter"),
    std::string_view("title"),      std::string_view("block"),      std::string_view("replicates"),
    std::string_view("policies"),   std::string_view("by"),         std::string_view("palette"),
    std::string_view("panels"),     std::string_view("columns"),    std::string_view("letters"),
    std::string_view("font"),       std::string_view("curve"),      std::string_view("axis"),
    std::string_view("smoothing"),  std::string_view("cost"),       std::string_view("legend"),
    std::string_view("x_range"),    std::string_view("y_range"),    std::string_view("series")};

/// Levenshtein's distance.
std::size_t distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) {
        row[j] = j;
    }
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::size_t diagonal = std::exchange(row[0], i);
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
            diagonal = row[j];
            row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
        }
    }
    return row.back();
}

std::string quoted(std::span<const std::string_view> names) {
    std::string text;
    for (std::size_t i = 0; i < names.size(); ++i) {
        text += std::string(i == 0                  ? ""
                            : i + 1 == names.size() ? " or "
                                                    : ", ") +
                "\"" + std::string(names[i]) + "\"";
    }
    return text;
}

template <typename Value, std::size_t N>
std::optional<Value> choice(const JsonObject& json, std::string_view key,
                            const std::array<std::pair<Value, std::string_view>, N>& names) {
    const auto text = json.text(key);
    if (!text) {
        return std::nullopt;
    }
    std::vector<std::string_view> possible;
    for (const auto& [value, name] : names) {
        if (name == *text) {
            return value;
        }
        possible.push_back(name);
    }
    json.fail(key, quoted(possible));
}

std::string one_of(const JsonObject& json, std::string_view key, std::span<const std::string_view> names,
                   std::string otherwise) {
    const auto text = json.text(key);
    if (!text) {
        return otherwise;
    }
    if (std::find(names.begin(), names.end(), *text) == names.end()) {
        json.fail(key, quoted(names));
    }
    return *text;
}

double length(const JsonObject& json, std::string_view key, double otherwise, double low, double high,
              const std::string& unit) {
    const double value = json.number(key).value_or(otherwise);
    if (value < low || value > high) {
        json.fail(key, std::to_string(static_cast<int>(low)) + " to " +
                           std::to_string(static_cast<int>(high)) + " " + unit);
    }
    return value;
}

void refuse_unknown(const JsonObject& json) {
    for (const std::string& key : json.keys()) {
        if (std::find(known_keys.begin(), known_keys.end(), key) != known_keys.end()) {
            continue;
        }
        const auto nearest = std::min_element(
            known_keys.begin(), known_keys.end(),
            [&](std::string_view a, std::string_view b) { return distance(key, a) < distance(key, b); });
        throw InputError(json.source(), "keys of a figure", "\"" + key + "\", which is none",
                         "the nearest one is \"" + std::string(*nearest) + "\"");
    }
}

std::filesystem::path absolute_trace(const std::filesystem::path& trace,
                                     const std::filesystem::path& source) {
    return trace.empty() ? trace
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
                runs.push_back({trace, std::to_string(entry.get<std::int64_t>())});
            } else if (entry.is_string()) {
                const std::string text = entry.get<std::string>();
                if (text.find('#') == std::string::npos && !trace.empty()) {
                    runs.push_back({trace, text});
                } else {
                    const bool names_trace = text.find('#') != std::string::npos || text.ends_with(".ponder");
                    const RunReference reference =
                        names_trace ? parse_run_reference(text) : RunReference{{}, text};
                    runs.push_back(
                        {reference.trace.empty() ? trace : absolute_trace(reference.trace, json.source()),
                         reference.run});
                }
            } else {
                json.fail("runs",
                          "names of runs, such as [\"ponderlm\", \"vanilla\"] or [\"a.ponder#ponderlm\"]");
            }
            if (runs.back().trace.empty()) {
                json.fail(
                    "runs",
                    "runs with their trace, such as \"a.ponder#ponderlm\", where there is no key \"trace\"");
            }
        }
        if (runs.empty()) {
            json.fail("runs", "at least one run");
        }
    } else if (!trace.empty()) {
        runs.push_back({trace, {}});
    }
    if (runs.empty()) {
        throw InputError(json.source(), "a key \"trace\"", "none",
                         "name the trace file that the figure is made from");
    }
    return runs;
}

} // namespace

std::string_view name_of(TokenQuantity quantity) {
    return std::find_if(quantities.begin(), quantities.end(),
                        [&](const auto& entry) { return entry.first == quantity; })
        ->second;
}

namespace {

FigureSpec from_json(const nlohmann::json& document, const std::filesystem::path& source);

FigureKind read_kind(const JsonObject& json) {
    std::vector<std::string_view> names;
    for (const KindInfo& info : figure_kinds()) {
        names.push_back(info.name);
    }
    const auto text = json.text("kind");
    if (!text) {
        throw InputError(json.source(), "a key \"kind\"", "none", "say " + quoted(names));
    }
    const auto found = std::find(names.begin(), names.end(), *text);
    if (found == names.end()) {
        json.fail("kind", quoted(names));
    }
    return figure_kinds()[static_cast<std::size_t>(found - names.begin())].kind;
}

std::optional<std::array<double, 2>> read_range(const JsonObject& json, std::string_view key) {
    const nlohmann::json* range = json.array(key);
    if (range == nullptr) {
        return std::nullopt;
    }
    const auto number = [&](std::size_t i) {
        return i < range->size() && (*range)[i].is_number() ? (*range)[i].get<double>() : std::nan("");
    };
    if (range->size() != 2 || !std::isfinite(number(0)) || !std::isfinite(number(1)) ||
        !(number(0) < number(1))) {
        json.fail(key, "[low, high] with low < high");
    }
    return std::array<double, 2>{number(0), number(1)};
}

std::vector<SeriesSpec> read_series(const JsonObject& json) {
    std::vector<SeriesSpec> all;
    const nlohmann::json* list = json.array("series");
    for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
        const nlohmann::json& entry = (*list)[i];
        const auto wrong = [&] {
            json.fail("series", "a list such as [{\"name\": \"uniform\", \"as\": \"at random\"}, "
                                "{\"name\": \"kl\", \"show\": false}]");
        };
        if (!entry.is_object() || !entry.contains("name")) {
            wrong();
        }
        SeriesSpec one;
        for (const auto& [key, value] : entry.items()) {
            if ((key == "name" || key == "as") && value.is_string()) {
                (key == "as" ? one.as : one.name) = value.get<std::string>();
            } else if (key == "show" && value.is_boolean()) {
                one.show = value.get<bool>();
            } else {
                wrong();
            }
        }
        all.push_back(std::move(one));
    }
    return all;
}

/// What stands beside "panels" is what every panel begins with.
void read_panels(const JsonObject& json, FigureSpec& spec) {
    constexpr std::size_t most_panels = 26; // letters
    const nlohmann::json* list = json.array("panels");
    if (list == nullptr || list->empty() || list->size() > most_panels) {
        json.fail("panels", "a list of 1 to 26 figures, such as [{\"kind\": \"steps_histogram\"}]");
    }
    for (const nlohmann::json& entry : *list) {
        if (!entry.is_object() || entry.value("kind", nlohmann::json()) == "panels") {
            json.fail("panels", "figures, none of which is itself of panels");
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
    } else {
        spec.runs = read_runs(json);
    }
    spec.sequence = json.integer("sequence", 0);
    if (const nlohmann::json* tokens = json.array("tokens")) {
        const auto fits = [](const nlohmann::json& value) {
            return value.is_number_integer() && value.get<std::int64_t>() >= 0;
        };
        if (tokens->size() != 2 || !fits((*tokens)[0]) || !fits((*tokens)[1]) ||
            (*tokens)[0].get<std::int64_t>() >= (*tokens)[1].get<std::int64_t>()) {
            json.fail("tokens", "[first, last] with 0 <= first < last; the last is not included");
        }
        spec.tokens = {(*tokens)[0].get<std::int64_t>(), (*tokens)[1].get<std::int64_t>()};
    }
    spec.quantity = choice(json, "quantity", quantities).value_or(spec.quantity);
    spec.annotation = json.text("annotation").value_or(spec.annotation);
    spec.signal = json.text("signal").value_or(spec.signal);
    spec.attribution = choice(json, "attribution", attributions).value_or(spec.attribution);
    spec.width_mm = length(json, "width_mm", spec.width_mm, 40, 1000, "mm (84 for one column, 174 for two)");
    if (json.has("height_mm")) {
        spec.height_mm = length(json, "height_mm", 0, 15, 1000, "mm");
    }
    spec.font = json.text("font").value_or(spec.font);
    spec.font_size = length(json, "font_size", spec.font_size, 4, 24, "points");
    spec.dpi = length(json, "dpi", spec.dpi, 72, 2400, "dots per inch");
    spec.range = read_range(json, "range");
    spec.x_range = read_range(json, "x_range");
    spec.y_range = read_range(json, "y_range");
    spec.legend = one_of(json, "legend", legends, spec.legend);
    spec.series = read_series(json);
    spec.colour_map = one_of(json, "colour_map", colour_maps, spec.colour_map);
    spec.theme = one_of(json, "theme", themes, spec.theme);
    spec.palette = one_of(json, "palette", palettes, spec.palette);
    spec.by = one_of(json, "by", groupings, spec.by);
    spec.columns = json.integer("columns", 1, 6).value_or(spec.columns);
    spec.letters = json.boolean("letters").value_or(spec.letters);
    spec.step_ticks = json.boolean("step_ticks").value_or(spec.step_ticks);
    spec.scatter = json.boolean("scatter").value_or(spec.scatter);
    if (const nlohmann::json* policies = json.array("policies")) {
        for (const nlohmann::json& name : *policies) {
            if (!name.is_string()) {
                json.fail("policies", "names of policies, such as [\"learned\", \"entropy\"]");
            }
            spec.policies.push_back(name.get<std::string>());
        }
    }
    spec.curve = json.text("curve").value_or(spec.curve);
    spec.axis = one_of(json, "axis", training_axes, spec.axis);
    spec.cost = one_of(json, "cost", costs, spec.cost);
    spec.smoothing = json.number("smoothing").value_or(spec.smoothing);
    if (!(spec.smoothing >= 0 && spec.smoothing < 1)) {
        json.fail("smoothing", "a number from 0 to below 1, such as 0.9");
    }
    spec.title = json.text("title").value_or(spec.title);
    spec.block = json.integer("block", 0, 1'000'000).value_or(spec.block);
    spec.replicates = json.integer("replicates", 100, 1'000'000).value_or(spec.replicates);
    if (!spec.annotation.empty() && json.has("quantity")) {
        json.fail("annotation", "either \"quantity\" or \"annotation\"", "remove one of them");
    }
    if (spec.kind == FigureKind::token_text && spec.quantity == TokenQuantity::nll_difference &&
        spec.runs.size() < 2) {
        json.fail("quantity", "two runs for \"nll_difference\"", "name the second one in \"runs\"");
    }
    if (spec.kind == FigureKind::winners && spec.runs.size() < 2) {
        json.fail("runs", "two runs over one text", "name the second one too");
    }
    // Panels are of one page: its theme is theirs.
    for (FigureSpec& panel : spec.panels) {
        panel.theme = spec.theme;
    }
    return spec;
}

} // namespace

FigureSpec read_figure_spec(const std::filesystem::path& path) {
    if (path == "-") {
        constexpr std::size_t longest = std::size_t{16} << 20;
        std::string json;
        for (std::array<char, 4096> piece{}; std::cin.good() && json.size() <= longest;) {
            std::cin.read(piece.data(), piece.size());
            json.append(piece.data(), static_cast<std::size_t>(std::cin.gcount()));
        }
        if (json.size() > longest) {
            throw InputError("standard input", "a figure's specification", "more than 16 MiB",
                             "give its JSON alone");
        }
        return parse_figure_spec(json, "standard input");
    }
    return from_json(read_json_file(path), path);
}

FigureSpec parse_figure_spec(std::string_view json, const std::filesystem::path& source) {
    return from_json(parse_json(json, source), source);
}

namespace {

nlohmann::ordered_json to_json(const FigureSpec& spec, const std::filesystem::path& folder) {
    const auto relative = [&](const std::filesystem::path& trace) {
        const std::filesystem::path shorter = trace.lexically_proximate(std::filesystem::absolute(folder));
        return shorter.empty() || *shorter.begin() == ".." ? trace.generic_string()
                                                           : shorter.generic_string();
    };
    const auto reads = [keys = info_of(spec.kind).keys](std::string_view key) {
        for (std::size_t at = 0; at <= keys.size();) {
            const std::size_t end = std::min(keys.find(',', at), keys.size());
            if (keys.substr(at, end - at) == key) {
                return true;
            }
            at = end + 1;
        }
        return false;
    };
    nlohmann::ordered_json json;
    json["kind"] = name_of(spec.kind);
    const bool one_trace = std::all_of(spec.runs.begin(), spec.runs.end(), [&](const RunName& run) {
        return run.trace == spec.runs.front().trace;
    });
    const bool any_hash = std::any_of(spec.runs.begin(), spec.runs.end(), [](const RunName& run) {
        return run.run.find('#') != std::string::npos;
    });
    if (spec.kind == FigureKind::panels) {
        json["panels"] = nlohmann::ordered_json::array();
        for (const FigureSpec& panel : spec.panels) {
            nlohmann::ordered_json one = to_json(panel, folder);
            for (const char* key : {"width_mm", "dpi", "theme"}) {
                one.erase(key); // the page has them
            }
            json["panels"].push_back(std::move(one));
        }
        json["columns"] = spec.columns;
        json["letters"] = spec.letters;
    } else if (one_trace && !any_hash) {
        json["trace"] = relative(spec.runs.front().trace);
        if (spec.runs.size() > 1 || !spec.runs.front().run.empty()) {
            json["runs"] = nlohmann::ordered_json::array();
            for (const RunName& run : spec.runs) {
                json["runs"].push_back(run.run);
            }
        }
    } else {
        json["runs"] = nlohmann::ordered_json::array();
        for (const RunName& run : spec.runs) {
            json["runs"].push_back(relative(run.trace) + "#" + run.run);
        }
    }
    if (spec.sequence) {
        json["sequence"] = *spec.sequence;
    }
    if (spec.tokens) {
        json["tokens"] = *spec.tokens;
    }
    if (reads("annotation") && !spec.annotation.empty()) {
        json["annotation"] = spec.annotation;
    } else if (reads("quantity")) {
        json["quantity"] = name_of(spec.quantity);
    }
    if (reads("step_ticks")) {
        json["step_ticks"] = spec.step_ticks;
    }
    if (reads("signal")) {
        json["signal"] = spec.signal;
    }
    if (reads("by")) {
        json["by"] = spec.by;
    }
    if (reads("curve")) {
        json["curve"] = spec.curve;
        json["axis"] = spec.axis;
        json["smoothing"] = spec.smoothing;
    }
    if (reads("cost") && spec.cost != "compute") {
        json["cost"] = spec.cost;
    }
    if (reads("scatter")) {
        json["scatter"] = spec.scatter;
    }
    if (reads("block")) {
        json["block"] = spec.block;
        json["replicates"] = spec.replicates;
    }
    if (!spec.policies.empty()) {
        json["policies"] = spec.policies;
    }
    if (is_chart(spec.kind)) {
        if (spec.legend != "auto") {
            json["legend"] = spec.legend;
        }
        if (spec.x_range) {
            json["x_range"] = *spec.x_range;
        }
        if (spec.y_range) {
            json["y_range"] = *spec.y_range;
        }
    }
    for (const SeriesSpec& one : spec.series) {
        nlohmann::ordered_json entry;
        entry["name"] = one.name;
        if (!one.as.empty()) {
            entry["as"] = one.as;
        }
        if (!one.show) {
            entry["show"] = false;
        }
        json["series"].push_back(std::move(entry));
    }
    if (reads("attribution")) {
        json["attribution"] = spec.attribution == Attribution::predicted ? "predicted" : "predicting";
    }
    json["colour_map"] = spec.colour_map;
    json["palette"] = spec.palette;
    if (spec.range) {
        json["range"] = *spec.range;
    }
    json["width_mm"] = spec.width_mm;
    if (spec.height_mm) {
        json["height_mm"] = *spec.height_mm;
    }
    json["font"] = spec.font;
    json["font_size"] = spec.font_size;
    json["dpi"] = spec.dpi;
    json["theme"] = spec.theme;
    if (!spec.title.empty()) {
        json["title"] = spec.title;
    }
    return json;
}

} // namespace

std::string write_figure_spec(const FigureSpec& spec, const std::filesystem::path& folder) {
    return to_json(spec, folder).dump(2) + "\n";
}

} // namespace ponderscope::figure
