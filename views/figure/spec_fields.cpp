// SPDX-License-Identifier: GPL-3.0-or-later
// The keys of a figure's specification: reading, editing, writing.
#include "views/figure/spec_fields.h"

#include "core/base/error.h"
#include "core/base/utf8.h"
#include "core/base/words.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

namespace ponderscope::figure {

void refuse_value(const JsonObject& json, std::string_view key, const std::string& value,
                  const std::vector<std::string_view>& known) {
    throw InputError(ErrorId::json_value, json.source().string() + ": \"" + json.name_of(key) + "\": \"" +
                                              printable(value, 60) + "\" is not a possible value" +
                                              did_you_mean_or_list(value, known));
}

/// nlohmann::json finds this function by its name.
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

/// Reads a value of one type. `form` describes its editor.
template <typename Read>
struct Reader {
    FieldForm form;
    Read read;
    auto operator()(const JsonObject& json, std::string_view key) const { return read(json, key); }
};
std::string_view name_of(Attribution attribution) {
    return attributions[attribution == Attribution::predicted ? 0 : 1].second;
}

std::string_view name_of(MagnitudeMap map) {
    return magnitude_names[static_cast<std::size_t>(map)].second;
}

template <typename T>
nlohmann::ordered_json json_of(const T& value) {
    if constexpr (requires { value.has_value(); }) {
        return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
    } else if constexpr (std::is_enum_v<T> || std::is_same_v<T, TokenColour>) {
        return name_of(value);
    } else {
        return value;
    }
}

/// \p reads returns no value if the key is absent.
template <typename T, typename Reads>
Field field(std::string_view key, const char* title, T FigureSpec::*member, unsigned writes, bool look,
            const Reads& reads) {
    FieldForm form = reads.form;
    form.key = key;
    form.title = title;
    form.look = look;
    return {form,
            writes,
            [=](const JsonObject& json, FigureSpec& spec) {
                if (const auto value = reads(json, key)) {
                    spec.*member = *value;
                }
            },
            [=](const FigureSpec& spec) { return json_of(spec.*member); },
            [=](const FigureSpec& spec) { return spec.*member != FigureSpec().*member; },
            [=](FigureSpec& spec) { spec.*member = FigureSpec().*member; }};
}

auto any_text() {
    return Reader{FieldForm{.editor = FieldForm::text},
                  [](const JsonObject& json, std::string_view key) { return json.text(key); }};
}

auto boolean() {
    return Reader{FieldForm{.editor = FieldForm::flag},
                  [](const JsonObject& json, std::string_view key) { return json.boolean(key); }};
}

auto integer(std::int64_t low, std::int64_t high) {
    return Reader{FieldForm{.editor = FieldForm::whole,
                            .low = static_cast<double>(low),
                            .high = static_cast<double>(high)},
                  [=](const JsonObject& json, std::string_view key) { return json.integer(key, low, high); }};
}

auto one_of(const std::vector<std::string_view>& names) {
    return Reader{FieldForm{.editor = FieldForm::choice, .choices = names},
                  [names](const JsonObject& json, std::string_view key) {
                      auto chosen = json.text(key);
                      if (chosen && std::ranges::find(names, *chosen) == names.end()) {
                          refuse_value(json, key, *chosen, names);
                      }
                      return chosen;
                  }};
}

template <typename Names>
auto named(const Names& names) {
    FieldForm form{.editor = FieldForm::choice};
    for (const auto& [value, name] : names) {
        form.choices.push_back(name);
    }
    return Reader{
        form, [&names](const JsonObject& json, std::string_view key) { return choice(json, key, names); }};
}

auto length(double low, double high, const char* unit, const char* range) {
    return Reader{FieldForm{.editor = FieldForm::real, .low = low, .high = high, .unit = unit},
                  [=](const JsonObject& json, std::string_view key) {
                      const auto value = json.number(key);
                      if (value && !(*value >= low && *value <= high)) {
                          json.fail(key, shortest(low) + " to " + shortest(high) + " " + range);
                      }
                      return value;
                  }};
}

/// A list for which \p fits(list) is true. \p expected: for messages.
template <typename T, typename Fits>
auto list_of(FieldForm::Editor editor, const Fits& fits, const char* expected) {
    return Reader{FieldForm{.editor = editor},
                  [=](const JsonObject& json, std::string_view key) -> std::optional<T> {
                      const nlohmann::json* list = json.array(key);
                      if (list != nullptr && !fits(*list)) {
                          json.fail(key, expected);
                      }
                      return list == nullptr ? std::optional<T>() : list->get<T>();
                  }};
}

bool is_finite(const nlohmann::json& value) {
    return value.is_number() && std::isfinite(value.get<double>());
}

bool is_count(const nlohmann::json& value) {
    return value.is_number_integer() && value.get<std::int64_t>() >= 0;
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

std::optional<double> read_smoothing(const JsonObject& json, std::string_view key) {
    const auto smoothing = json.number(key);
    if (smoothing && !(*smoothing >= 0 && *smoothing < 1)) {
        json.fail(key, "a number from 0 to below 1, such as 0.9");
    }
    return smoothing;
}

} // namespace

const std::vector<Field>& fields() {
    using S = FigureSpec;
    const auto range = list_of<std::array<double, 2>>(
        FieldForm::range,
        [](const nlohmann::json& list) {
            return list.size() == 2 && is_finite(list[0]) && is_finite(list[1]) && list[0] < list[1];
        },
        "[low, high] with low < high");
    const auto tokens = list_of<std::array<std::int64_t, 2>>(
        FieldForm::range,
        [](const nlohmann::json& list) {
            return list.size() == 2 && is_count(list[0]) && is_count(list[1]) && list[0] < list[1];
        },
        "[first, last] with 0 <= first < last; the last is not included");
    const auto colours = list_of<std::vector<std::int64_t>>(
        FieldForm::none,
        [](const nlohmann::json& list) {
            return std::ranges::all_of(list, [](const auto& one) { return is_count(one) && one < 100; });
        },
        "numbers from 0 to 99, one for each run, such as [2, 0]; 0 is the colour of A, 1 the colour of B");
    const auto policies = list_of<std::vector<std::string>>(
        FieldForm::list,
        [](const nlohmann::json& list) {
            return std::ranges::all_of(list, [](const auto& name) { return name.is_string(); });
        },
        "names of policies, such as [\"learned\", \"entropy\"]");
    const auto unseen = [](const auto& read) { return Reader{FieldForm(), read}; };
    const Reader smoothing{FieldForm{.editor = FieldForm::real, .high = 0.999}, read_smoothing};
    static const std::vector<Field> all{
        field("columns", "Columns", &S::columns, Field::read, true, integer(1, 6)),
        field("letters", "Letters of the panels", &S::letters, Field::read, true, boolean()),
        field("sequence", "Sequence", &S::sequence, Field::read | Field::changed, false,
              unseen([](const JsonObject& json, std::string_view key) {
                  return json.integer(key, 0, std::numeric_limits<std::int64_t>::max());
              })),
        field("tokens", "Tokens", &S::tokens, Field::read | Field::changed, false, tokens),
        field("annotation", "Annotation", &S::annotation, Field::read | Field::changed, false, any_text()),
        field("quantity", "Quantity", &S::quantity, Field::read, false, named(token_colours)),
        field("step_ticks", "Steps under each token", &S::step_ticks, Field::read, true, boolean()),
        field("signal", "Signal", &S::signal, Field::read, false, any_text()),
        field("by", "Group by", &S::by, Field::read, false,
              one_of({"class", "type", "position", "difficulty"})),
        field("task", "Task", &S::task, Field::read | Field::changed, false, any_text()),
        field("curve", "Curve", &S::curve, Field::read, false, any_text()),
        field("axis", "Over", &S::axis, Field::read, false, one_of({"steps", "tokens", "seconds"})),
        field("smoothing", "Smoothing", &S::smoothing, Field::read, false, smoothing),
        field("cost", "Cost", &S::cost, Field::read | Field::changed, false,
              one_of({"compute", "steps", "time"})),
        field("bands", "Bands", &S::bands, Field::read | Field::changed, false, boolean()),
        field("log", "Logarithmic", &S::log, Field::read | Field::changed, false,
              one_of({"none", "x", "y", "both"})),
        field("scatter", "Points of tokens", &S::scatter, Field::read, false, boolean()),
        field("block", "Block", &S::block, Field::read, false, integer(0, 1'000'000)),
        field("replicates", "Replicates", &S::replicates, Field::read, false, integer(100, 1'000'000)),
        field("policies", "Policies", &S::policies, Field::read | Field::changed, false, policies),
        field("legend", "Legend", &S::legend, Field::charts | Field::changed, true,
              one_of({"auto", "above", "right", "none"})),
        field("x_range", "Horizontal axis", &S::x_range, Field::charts | Field::changed, true, range),
        field("y_range", "Vertical axis", &S::y_range, Field::charts | Field::changed, true, range),
        field("series", "Entries", &S::series, Field::changed, true, unseen(read_series)),
        field("attribution", "Shown token", &S::attribution, Field::read, false, named(attributions)),
        field("colour_map", "Cells", &S::colour_map, Field::always, true, named(magnitude_names)),
        field("palette", "Lines", &S::palette, Field::always, true, one_of({"default", "okabe_ito", "grey"})),
        field("colours", "Colours", &S::colours, Field::changed, true, colours),
        field("range", "Colour scale", &S::range, Field::changed, true, range),
        field("width_mm", "Width", &S::width_mm, Field::always, true,
              length(40, 1000, " mm", "mm (84 for one column, 174 for two)")),
        field("height_mm", "Height", &S::height_mm, Field::changed, true, length(15, 1000, " mm", "mm")),
        field("font", "Font", &S::font, Field::always, true, any_text()),
        field("font_size", "Font size", &S::font_size, Field::always, true, length(4, 24, " pt", "points")),
        field("dpi", "Resolution", &S::dpi, Field::always, true, length(72, 2400, " dpi", "dots per inch")),
        field("theme", "Theme", &S::theme, Field::always, true, one_of({"light", "dark"})),
        field("title", "Title", &S::title, Field::changed, true, any_text())};
    return all;
}

namespace {

const Field& field_of(std::string_view key) {
    return *std::ranges::find_if(fields(), [&](const Field& one) { return one.form.key == key; });
}

} // namespace

std::string_view name_of(TokenColour colour) {
    return colour.minus_b ? info_of(colour.of).difference : info_of(colour.of).column;
}

std::vector<FieldForm> field_forms(FigureKind kind) {
    std::vector<FieldForm> forms;
    for (const Field& one : fields()) {
        if (one.form.editor != FieldForm::none && one.applies(kind)) {
            forms.push_back(one.form);
        }
    }
    return forms;
}

std::string field_json(const FigureSpec& spec, std::string_view key) {
    return field_of(key).value(spec).dump();
}

void set_field(FigureSpec& spec, std::string_view key, const std::string& value) {
    const Field& field = field_of(key);
    const nlohmann::json parsed = parse_json(value, "form");
    if (parsed.is_null()) {
        field.reset(spec);
        return;
    }
    const nlohmann::json document{{std::string(key), parsed}};
    field.read_into(JsonObject(document, "form"), spec);
}

void reset_unread_keys(FigureSpec& spec) {
    for (const Field& one : fields()) {
        if (!one.applies(spec.kind)) {
            one.reset(spec);
        }
    }
}

bool same_numbers(const FigureSpec& a, const FigureSpec& b) {
    const auto without_looks = [](FigureSpec spec) {
        for (const Field& one : fields()) {
            if (one.form.look) {
                one.reset(spec);
            }
        }
        return spec;
    };
    return without_looks(a) == without_looks(b);
}

} // namespace ponderscope::figure
