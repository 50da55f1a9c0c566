// SPDX-License-Identifier: GPL-3.0-or-later
// Before Qt, whose keyword `signals` is a name there.
#include "core/trace/reader.h"

#include "views/figure/spec.h"

#include "core/base/error.h"
#include "core/base/json.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

namespace ponderscope::figure {
namespace {

constexpr std::array kinds{std::pair{FigureKind::token_text, std::string_view("token_text")},
                           std::pair{FigureKind::step_heatmap, std::string_view("step_heatmap")},
                           std::pair{FigureKind::nll_comparison, std::string_view("nll_comparison")},
                           std::pair{FigureKind::steps_histogram, std::string_view("steps_histogram")},
                           std::pair{FigureKind::nll_by_halt_step, std::string_view("nll_by_halt_step")},
                           std::pair{FigureKind::gate_curves, std::string_view("gate_curves")},
                           std::pair{FigureKind::steps_entropy, std::string_view("steps_entropy")},
                           std::pair{FigureKind::policy_front, std::string_view("policy_front")}};

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

constexpr std::array colour_maps{std::string_view("viridis"), std::string_view("cividis")};
constexpr std::array themes{std::string_view("light"), std::string_view("dark")};

constexpr std::array known_keys{
    std::string_view("kind"),       std::string_view("trace"),       std::string_view("runs"),
    std::string_view("sequence"),   std::string_view("tokens"),      std::string_view("quantity"),
    std::string_view("signal"),     std::string_view("attribution"), std::string_view("width_mm"),
    std::string_view("height_mm"),  std::string_view("font_size"),   std::string_view("dpi"),
    std::string_view("range"),      std::string_view("colour_map"),  std::string_view("theme"),
    std::string_view("step_ticks"), std::string_view("scatter"),     std::string_view("title"),
    std::string_view("block"),      std::string_view("replicates"),  std::string_view("policies")};

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

std::string_view name_of(FigureKind kind) {
    return std::find_if(kinds.begin(), kinds.end(), [&](const auto& entry) { return entry.first == kind; })
        ->second;
}

std::string_view name_of(TokenQuantity quantity) {
    return std::find_if(quantities.begin(), quantities.end(),
                        [&](const auto& entry) { return entry.first == quantity; })
        ->second;
}

namespace {

FigureSpec from_json(const nlohmann::json& document, const std::filesystem::path& source) {
    const JsonObject json(document, source);
    refuse_unknown(json);
    FigureSpec spec;
    const auto kind = choice(json, "kind", kinds);
    if (!kind) {
        std::vector<std::string_view> names;
        for (const auto& [value, name] : kinds) {
            names.push_back(name);
        }
        throw InputError(source, "a key \"kind\"", "none", "say " + quoted(names));
    }
    spec.kind = *kind;
    spec.runs = read_runs(json);
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
    spec.signal = json.text("signal").value_or(spec.signal);
    spec.attribution = choice(json, "attribution", attributions).value_or(spec.attribution);
    spec.width_mm = length(json, "width_mm", spec.width_mm, 40, 1000, "mm (84 for one column, 174 for two)");
    if (json.has("height_mm")) {
        spec.height_mm = length(json, "height_mm", 0, 15, 1000, "mm");
    }
    spec.font_size = length(json, "font_size", spec.font_size, 4, 24, "points");
    spec.dpi = length(json, "dpi", spec.dpi, 72, 2400, "dots per inch");
    if (const nlohmann::json* range = json.array("range")) {
        if (range->size() != 2 || !(*range)[0].is_number() || !(*range)[1].is_number() ||
            !((*range)[0].get<double>() < (*range)[1].get<double>()) ||
            !std::isfinite((*range)[0].get<double>()) || !std::isfinite((*range)[1].get<double>())) {
            json.fail("range", "[low, high] with low < high");
        }
        spec.range = {(*range)[0].get<double>(), (*range)[1].get<double>()};
    }
    spec.colour_map = one_of(json, "colour_map", colour_maps, spec.colour_map);
    spec.theme = one_of(json, "theme", themes, spec.theme);
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
    spec.title = json.text("title").value_or(spec.title);
    spec.block = json.integer("block", 1, 1'000'000).value_or(spec.block);
    spec.replicates = json.integer("replicates", 100, 1'000'000).value_or(spec.replicates);
    if (spec.kind == FigureKind::token_text && spec.quantity == TokenQuantity::nll_difference &&
        spec.runs.size() < 2) {
        json.fail("quantity", "two runs for \"nll_difference\"", "name the second one in \"runs\"");
    }
    return spec;
}

} // namespace

FigureSpec read_figure_spec(const std::filesystem::path& path) {
    return from_json(read_json_file(path), path);
}

FigureSpec parse_figure_spec(std::string_view json, const std::filesystem::path& source) {
    return from_json(parse_json(json, source), source);
}

std::string write_figure_spec(const FigureSpec& spec, const std::filesystem::path& folder) {
    const auto relative = [&](const std::filesystem::path& trace) {
        const std::filesystem::path shorter = trace.lexically_proximate(std::filesystem::absolute(folder));
        return shorter.empty() || *shorter.begin() == ".." ? trace.generic_string()
                                                           : shorter.generic_string();
    };
    nlohmann::ordered_json json;
    json["kind"] = name_of(spec.kind);
    const bool one_trace = std::all_of(spec.runs.begin(), spec.runs.end(), [&](const RunName& run) {
        return run.trace == spec.runs.front().trace;
    });
    const bool any_hash = std::any_of(spec.runs.begin(), spec.runs.end(), [](const RunName& run) {
        return run.run.find('#') != std::string::npos;
    });
    if (one_trace && !any_hash) {
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
    switch (spec.kind) {
    case FigureKind::token_text:
        json["quantity"] = name_of(spec.quantity);
        json["step_ticks"] = spec.step_ticks;
        break;
    case FigureKind::step_heatmap:
        json["signal"] = spec.signal;
        json["colour_map"] = spec.colour_map;
        break;
    case FigureKind::nll_comparison:
        json["scatter"] = spec.scatter;
        json["block"] = spec.block;
        json["replicates"] = spec.replicates;
        break;
    case FigureKind::policy_front:
        if (!spec.policies.empty()) {
            json["policies"] = spec.policies;
        }
        break;
    case FigureKind::steps_histogram:
    case FigureKind::nll_by_halt_step:
    case FigureKind::gate_curves:
    case FigureKind::steps_entropy:
        break;
    }
    if (spec.kind == FigureKind::token_text || spec.kind == FigureKind::step_heatmap) {
        json["attribution"] = spec.attribution == Attribution::predicted ? "predicted" : "predicting";
    }
    if (spec.range) {
        json["range"] = *spec.range;
    }
    json["width_mm"] = spec.width_mm;
    if (spec.height_mm) {
        json["height_mm"] = *spec.height_mm;
    }
    json["font_size"] = spec.font_size;
    json["dpi"] = spec.dpi;
    json["theme"] = spec.theme;
    if (!spec.title.empty()) {
        json["title"] = spec.title;
    }
    return json.dump(2) + "\n";
}

} // namespace ponderscope::figure
