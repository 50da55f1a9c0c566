// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/figure/spec.h"

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/utf8.h"
#include "core/base/words.h"
#include "core/remote/address.h"
#include "core/trace/reader.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <iostream>
#include <limits>
#include <type_traits>
#include <utility>

namespace ponderscope::figure {

/// For nlohmann::json, which looks for this name.
static void to_json(nlohmann::ordered_json& json, const SeriesSpec& series) {
    json = {{"name", series.name}};
    if (!series.as.empty()) {
        json["as"] = series.as;
    }
    if (!series.show) {
        json["show"] = false;
    }
}

namespace {

constexpr auto token_colours = [] {
    std::array<std::pair<TokenColour, std::string_view>, 2 * std::size(token_quantities)> names{};
    for (std::size_t i = 0; i < std::size(token_quantities); ++i) {
        names[i] = {TokenColour(token_quantities[i].quantity), token_quantities[i].column};
        names[std::size(token_quantities) + i] = {TokenColour(token_quantities[i].quantity, true),
                                                  token_quantities[i].difference};
    }
    return names;
}();

constexpr std::array attributions{std::pair{Attribution::predicted, std::string_view("predicted")},
                                  std::pair{Attribution::predicting, std::string_view("predicting")}};

[[noreturn]] void refuse_value(const JsonObject& json, std::string_view key, const std::string& value,
                               const std::vector<std::string_view>& known) {
    throw InputError(json.source().string() + ": \"" + json.name_of(key) + "\": \"" + printable(value, 60) +
                     "\" is not one of its values" + did_you_mean_or_list(value, known));
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
    refuse_value(json, key, *text, possible);
}

/// One key of a specification that is a member of its own: how it is read, when it is written, and whether it
/// is of looks alone.
struct Field {
    enum Writes : unsigned {
        always = 0,
        changed = 1, ///< where it is not what it is by itself
        read = 2,    ///< by kinds that read the key
        charts = 4   ///< by charts
    };
    std::string_view key;
    unsigned writes;
    bool look;
    std::function<void(const JsonObject&, FigureSpec&)> read_into;
    std::function<nlohmann::ordered_json(const FigureSpec&)> value;
    std::function<bool(const FigureSpec&)> is_changed;
    std::function<void(FigureSpec&)> reset;
};

std::string_view name_of(Attribution attribution) {
    return attributions[attribution == Attribution::predicted ? 0 : 1].second;
}

template <typename T>
nlohmann::ordered_json json_of(const T& value) {
    if constexpr (requires { value.has_value(); }) {
        return *value;
    } else if constexpr (std::is_enum_v<T> || std::is_same_v<T, TokenColour>) {
        return name_of(value);
    } else {
        return value;
    }
}

/// \p reads answers nothing where the key is absent.
template <typename T, typename Reads>
Field field(std::string_view key, T FigureSpec::*member, unsigned writes, bool look, const Reads& reads) {
    return {key,
            writes,
            look,
            [=](const JsonObject& json, FigureSpec& spec) {
                if (const auto value = reads(json, key)) {
                    spec.*member = *value;
                }
            },
            [=](const FigureSpec& spec) { return json_of(spec.*member); },
            [=](const FigureSpec& spec) { return spec.*member != FigureSpec().*member; },
            [=](FigureSpec& spec) { spec.*member = FigureSpec().*member; }};
}

const auto any_text = [](const JsonObject& json, std::string_view key) { return json.text(key); };
const auto boolean = [](const JsonObject& json, std::string_view key) { return json.boolean(key); };

auto integer(std::int64_t low, std::int64_t high) {
    return [=](const JsonObject& json, std::string_view key) { return json.integer(key, low, high); };
}

auto one_of(std::vector<std::string_view> names) {
    return [names = std::move(names)](const JsonObject& json, std::string_view key) {
        auto chosen = json.text(key);
        if (chosen && std::find(names.begin(), names.end(), *chosen) == names.end()) {
            refuse_value(json, key, *chosen, names);
        }
        return chosen;
    };
}

template <typename Names>
auto named(const Names& names) {
    return [&names](const JsonObject& json, std::string_view key) { return choice(json, key, names); };
}

auto length(double low, double high, const char* unit) {
    return [=](const JsonObject& json, std::string_view key) {
        const auto value = json.number(key);
        if (value && !(*value >= low && *value <= high)) {
            json.fail(key, shortest(low) + " to " + shortest(high) + " " + unit);
        }
        return value;
    };
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

std::optional<std::vector<SeriesSpec>> read_series(const JsonObject& json, std::string_view key) {
    const nlohmann::json* list = json.array(key);
    if (list == nullptr) {
        return std::nullopt;
    }
    std::vector<SeriesSpec> all;
    for (const nlohmann::json& entry : *list) {
        const auto wrong = [&] {
            json.fail(key, "a list such as [{\"name\": \"uniform\", \"as\": \"at random\"}, "
                           "{\"name\": \"kl\", \"show\": false}]");
        };
        if (!entry.is_object() || !entry.contains("name")) {
            wrong();
        }
        SeriesSpec one;
        for (const auto& [part, value] : entry.items()) {
            if ((part == "name" || part == "as") && value.is_string()) {
                (part == "as" ? one.as : one.name) = value.get<std::string>();
            } else if (part == "show" && value.is_boolean()) {
                one.show = value.get<bool>();
            } else {
                wrong();
            }
        }
        all.push_back(std::move(one));
    }
    return all;
}

std::optional<std::array<std::int64_t, 2>> read_tokens(const JsonObject& json, std::string_view key) {
    const nlohmann::json* tokens = json.array(key);
    if (tokens == nullptr) {
        return std::nullopt;
    }
    const auto fits = [](const nlohmann::json& value) {
        return value.is_number_integer() && value.get<std::int64_t>() >= 0;
    };
    if (tokens->size() != 2 || !fits((*tokens)[0]) || !fits((*tokens)[1]) ||
        (*tokens)[0].get<std::int64_t>() >= (*tokens)[1].get<std::int64_t>()) {
        json.fail(key, "[first, last] with 0 <= first < last; the last is not included");
    }
    return tokens->get<std::array<std::int64_t, 2>>();
}

std::optional<std::vector<std::int64_t>> read_colours(const JsonObject& json, std::string_view key) {
    const nlohmann::json* colours = json.array(key);
    if (colours == nullptr) {
        return std::nullopt;
    }
    if (!std::all_of(colours->begin(), colours->end(), [](const nlohmann::json& one) {
            return one.is_number_integer() && one.get<std::int64_t>() >= 0 && one.get<std::int64_t>() < 100;
        })) {
        json.fail(key, "numbers from 0 to 99, one a run, such as [2, 0]: 0 is A's, 1 B's");
    }
    return colours->get<std::vector<std::int64_t>>();
}

std::optional<std::vector<std::string>> read_policies(const JsonObject& json, std::string_view key) {
    const nlohmann::json* policies = json.array(key);
    if (policies == nullptr) {
        return std::nullopt;
    }
    if (!std::all_of(policies->begin(), policies->end(), [](const auto& name) { return name.is_string(); })) {
        json.fail(key, "names of policies, such as [\"learned\", \"entropy\"]");
    }
    return policies->get<std::vector<std::string>>();
}

std::optional<double> read_smoothing(const JsonObject& json, std::string_view key) {
    const auto smoothing = json.number(key);
    if (smoothing && !(*smoothing >= 0 && *smoothing < 1)) {
        json.fail(key, "a number from 0 to below 1, such as 0.9");
    }
    return smoothing;
}

/// In the order in which they are written.
const std::vector<Field>& fields() {
    using S = FigureSpec;
    static const std::vector<Field> all{
        field("columns", &S::columns, Field::read, true, integer(1, 6)),
        field("letters", &S::letters, Field::read, true, boolean),
        field("sequence", &S::sequence, Field::changed, false,
              integer(0, std::numeric_limits<std::int64_t>::max())),
        field("tokens", &S::tokens, Field::changed, false, read_tokens),
        field("annotation", &S::annotation, Field::read | Field::changed, false, any_text),
        field("quantity", &S::quantity, Field::read, false, named(token_colours)),
        field("step_ticks", &S::step_ticks, Field::read, true, boolean),
        field("signal", &S::signal, Field::read, false, any_text),
        field("by", &S::by, Field::read, false, one_of({"class", "type", "position", "difficulty"})),
        field("task", &S::task, Field::read | Field::changed, false, any_text),
        field("curve", &S::curve, Field::read, false, any_text),
        field("axis", &S::axis, Field::read, false, one_of({"steps", "tokens", "seconds"})),
        field("smoothing", &S::smoothing, Field::read, false, read_smoothing),
        field("cost", &S::cost, Field::read | Field::changed, false, one_of({"compute", "steps", "time"})),
        field("bands", &S::bands, Field::read | Field::changed, false, boolean),
        field("log", &S::log, Field::read | Field::changed, false, one_of({"none", "x", "y", "both"})),
        field("scatter", &S::scatter, Field::read, true, boolean),
        field("block", &S::block, Field::read, false, integer(0, 1'000'000)),
        field("replicates", &S::replicates, Field::read, false, integer(100, 1'000'000)),
        field("policies", &S::policies, Field::changed, false, read_policies),
        field("legend", &S::legend, Field::charts | Field::changed, true,
              one_of({"auto", "above", "right", "none"})),
        field("x_range", &S::x_range, Field::charts | Field::changed, true, read_range),
        field("y_range", &S::y_range, Field::charts | Field::changed, true, read_range),
        field("series", &S::series, Field::changed, true, read_series),
        field("attribution", &S::attribution, Field::read, false, named(attributions)),
        field("colour_map", &S::colour_map, Field::always, true,
              one_of({"viridis", "cividis", "magma", "grey"})),
        field("palette", &S::palette, Field::always, true, one_of({"default", "okabe_ito", "grey"})),
        field("colours", &S::colours, Field::changed, true, read_colours),
        field("range", &S::range, Field::changed, true, read_range),
        field("width_mm", &S::width_mm, Field::always, true,
              length(40, 1000, "mm (84 for one column, 174 for two)")),
        field("height_mm", &S::height_mm, Field::changed, true, length(15, 1000, "mm")),
        field("font", &S::font, Field::always, true, any_text),
        field("font_size", &S::font_size, Field::always, true, length(4, 24, "points")),
        field("dpi", &S::dpi, Field::always, true, length(72, 2400, "dots per inch")),
        field("theme", &S::theme, Field::always, true, one_of({"light", "dark"})),
        field("title", &S::title, Field::changed, true, any_text)};
    return all;
}

void refuse_unknown(const JsonObject& json) {
    std::vector<std::string_view> known{"kind", "trace", "runs", "panels"};
    for (const Field& one : fields()) {
        known.push_back(one.key);
    }
    for (const std::string& key : json.keys()) {
        if (std::find(known.begin(), known.end(), key) == known.end()) {
            throw InputError(json.source().string() + ": \"" + key + "\" is not a key of a figure" +
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

std::string_view name_of(TokenColour colour) {
    return colour.minus_b ? info_of(colour.of).difference : info_of(colour.of).column;
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
        throw InputError(
            json.source(), "a key \"kind\"", "none",
            "say " + joined(names, [](std::string_view name) { return "\"" + std::string(name) + "\""; }));
    }
    const auto found = std::find(names.begin(), names.end(), *text);
    if (found == names.end()) {
        refuse_value(json, "kind", *text, names);
    }
    return figure_kinds()[static_cast<std::size_t>(found - names.begin())].kind;
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
        spec.width_mm = double_column_mm;
    } else {
        spec.runs = read_runs(json);
    }
    for (const Field& one : fields()) {
        one.read_into(json, spec);
    }
    if (!spec.annotation.empty() && json.has("quantity")) {
        json.fail("annotation", "either \"quantity\" or \"annotation\"", "remove one of them");
    }
    if (spec.kind == FigureKind::token_text && spec.quantity.minus_b && spec.runs.size() < 2) {
        json.fail("quantity", "two runs for \"" + std::string(name_of(spec.quantity)) + "\"",
                  "name the second one in \"runs\"");
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

/// Numbers belong to the one "trace" that stands beside them.
nlohmann::ordered_json written_runs(const std::vector<RunName>& runs,
                                    const std::function<std::string(const RunName&)>& name_of_run) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const RunName& run : runs) {
        list.push_back(run.numbered ? nlohmann::ordered_json(std::stoll(run.run))
                                    : nlohmann::ordered_json(name_of_run(run)));
    }
    return list;
}

nlohmann::ordered_json written(const FigureSpec& spec, const std::filesystem::path& folder) {
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
    if (spec.kind == FigureKind::panels) {
        json["panels"] = nlohmann::ordered_json::array();
        for (const FigureSpec& panel : spec.panels) {
            nlohmann::ordered_json one = written(panel, folder);
            for (const char* key : {"width_mm", "dpi", "theme"}) {
                one.erase(key); // the page has them
            }
            json["panels"].push_back(std::move(one));
        }
    } else if (one_trace && !any_hash) {
        json["trace"] = relative(spec.runs.front().trace);
        if (spec.runs.size() > 1 || !spec.runs.front().run.empty()) {
            json["runs"] = written_runs(spec.runs, [](const RunName& run) { return run.run; });
        }
    } else {
        const auto numbered =
            std::find_if(spec.runs.begin(), spec.runs.end(), [](const RunName& run) { return run.numbered; });
        if (numbered != spec.runs.end()) {
            json["trace"] = relative(numbered->trace);
        }
        json["runs"] =
            written_runs(spec.runs, [&](const RunName& run) { return relative(run.trace) + "#" + run.run; });
    }
    for (const Field& one : fields()) {
        const bool wanted = ((one.writes & Field::changed) == 0 || one.is_changed(spec)) &&
                            ((one.writes & Field::read) == 0 || reads(spec.kind, one.key)) &&
                            ((one.writes & Field::charts) == 0 || is_chart(spec.kind));
        if (wanted && (one.key != "quantity" || !json.contains("annotation"))) { // one of them colours
            json[std::string(one.key)] = one.value(spec);
        }
    }
    return json;
}

} // namespace

bool same_numbers(const FigureSpec& a, const FigureSpec& b) {
    const auto without_looks = [](FigureSpec spec) {
        for (const Field& one : fields()) {
            if (one.look) {
                one.reset(spec);
            }
        }
        return spec;
    };
    return without_looks(a) == without_looks(b);
}

std::string write_figure_spec(const FigureSpec& spec, const std::filesystem::path& folder) {
    return written(spec, folder).dump(2) + "\n";
}

} // namespace ponderscope::figure
