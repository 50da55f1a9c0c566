// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/colour_map.h"
#include "views/common/selection.h"

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ponderscope::figure {

enum class FigureKind {
#define PONDERSCOPE_CHART(name, ...) name,
#define PONDERSCOPE_PAGE(name, ...) name,
#include "views/figure/kinds.def"
#undef PONDERSCOPE_CHART
#undef PONDERSCOPE_PAGE
};

/// The number of runs that a kind shows.
enum class RunUse {
    one,
    more, ///< one or more
    pair  ///< exactly two
};

/// The description of a kind, for the gallery, the menus and the reading of specifications.
struct KindInfo {
    FigureKind kind;
    std::string_view name;   ///< name in specifications
    const char* title;       ///< title for people
    const char* shows;       ///< one sentence
    RunUse runs;             ///< number of runs that the kind shows
    std::string_view keys{}; ///< keys that the kind reads in addition to the common keys, separated by commas
    bool chart = false;      ///< the figure is a Chart; false: any other page
};
/// All kinds, in the order of the gallery.
std::span<const KindInfo> figure_kinds();
const KindInfo& info_of(FigureKind kind);
/// Whether the kind reads a key that is not common to all kinds.
bool reads(FigureKind kind, std::string_view key);
inline bool is_chart(FigureKind kind) {
    return info_of(kind).chart;
}
inline std::string_view name_of(FigureKind kind) {
    return info_of(kind).name;
}

/// The quantity that colours the tokens of a text, for A or A − B.
struct TokenColour {
    constexpr TokenColour(Quantity quantity = Quantity::nll, bool difference = false) // NOLINT: converts
        : of(quantity), minus_b(difference) {}
    Quantity of;
    bool minus_b;
    friend bool operator==(const TokenColour&, const TokenColour&) = default;
};

/// A run in a specification. The trace's path is absolute after reading.
struct RunName {
    std::filesystem::path trace;
    std::string run;       ///< name; or number, if no run has this name; empty: the only run
    bool numbered = false; ///< `run` is a number, even if another run has this name
    friend bool operator==(const RunName&, const RunName&) = default;
};

/// The look of a chart's series, or of a run. The legend lists the series in the order of FigureSpec::series.
struct SeriesSpec {
    std::string name;
    std::string as;   ///< new name; empty: unchanged
    bool show = true; ///< charts: false omits the series
    friend bool operator==(const SeriesSpec&, const SeriesSpec&) = default;
};

/// The specification of a figure, as stored in a JSON file. Equal specifications and traces give equal bytes.
struct FigureSpec {
    FigureKind kind = FigureKind::token_text;
    std::vector<RunName> runs;            ///< the first is A, the second B
    std::optional<std::int64_t> sequence; ///< empty: the first sequence; for nll_comparison all sequences
    /// Tokens [first, last) of the sequence; empty: all tokens.
    std::optional<std::array<std::int64_t, 2>> tokens;
    TokenColour quantity;       ///< token_text
    std::string annotation;     ///< token_text: colour by this annotation; empty: by the quantity
    std::string signal = "nll"; ///< step_heatmap
    Attribution attribution = Attribution::predicted;
    double width_mm = 84;
    std::optional<double> height_mm;                 ///< empty: the content's height
    std::string font = "DejaVu Sans";                ///< font family, which is embedded
    double font_size = 8;                            ///< points
    double dpi = 300;                                ///< PNG only
    std::optional<std::array<double, 2>> range;      ///< ends of the colour scale; empty: from the values
    MagnitudeMap colour_map = MagnitudeMap::viridis; ///< colours of cells
    std::string theme = "light";                     ///< "light" for paper, "dark" for slides
    bool step_ticks = true; ///< token_text: draw the steps of each token, if the method has steps
    bool scatter = true; ///< nll_comparison with two runs: draw token against token; token_pairs: draw points
    std::vector<std::string> policies; ///< names of policies; empty: the default of the kind
    std::string by = "class";          ///< steps_by_type, winners: class, type, position, difficulty
    std::string curve = "loss";        ///< training_curves: "loss", "mean_steps", or a quantity's name
    std::string task;                  ///< task_accuracy: name of the task; empty: the run's first task
    std::string axis = "steps";        ///< training_curves: "steps", "tokens" or "seconds"
    std::string cost = "compute";      ///< policy_front: "compute", "steps" or "time"
    bool bands = false;                ///< policy_front: 95 % bands of the loss minus the loss of `full`
    std::string log = "none";          ///< policy_front: logarithmic axes: "none", "x", "y", "both"
    double smoothing = 0;              ///< training_curves: weight of earlier values, 0 to below 1
    std::string legend = "auto";       ///< charts: "auto", "above", "right", "none"
    std::optional<std::array<double, 2>> x_range,
        y_range;                     ///< charts: ends of the axes; empty: from the values
    std::vector<SeriesSpec> series;  ///< charts: series in the legend; tables: names of runs
    std::string palette = "default"; ///< colours of runs: "default", "okabe_ito", "grey"
    /// The palette numbers of `runs`. 0: A's colour, 1: B's colour. Further runs get the unused colours.
    std::vector<std::int64_t> colours;
    std::vector<FigureSpec> panels; ///< panels: each with its own settings, except for the width
    std::int64_t columns = 2;       ///< panels: number of figures side by side
    bool letters = true;            ///< panels: label them a, b, c
    std::string title;              ///< empty: no title, because the paper has a caption
    std::int64_t block = 0;         ///< tokens per block of the bootstrap; 0: chosen from the data
    std::int64_t replicates = 10000;
    friend bool operator==(const FigureSpec&, const FigureSpec&) = default;
};

inline constexpr double single_column_mm = 84;
inline constexpr double double_column_mm = 174;

/// The largest number of runs that the figure shows.
std::size_t most_runs(const FigureSpec& spec);

/// Reads a specification; "-" is standard input. Relative trace paths start at the file's folder. InputError
/// names file, key, value and the possible values; for an unknown key also the nearest known key.
FigureSpec read_figure_spec(const std::filesystem::path& path);
/// Reads a specification from memory. \p source: the name in messages. Relative paths start at its folder.
FigureSpec parse_figure_spec(std::string_view json, const std::filesystem::path& source);
/// JSON for read_figure_spec, with the kind's keys. Traces in or beside \p folder get relative paths.
std::string write_figure_spec(const FigureSpec& spec, const std::filesystem::path& folder);

/// The form's field for one key of a specification.
struct FieldForm {
    enum Editor { none, choice, flag, whole, real, text, range, list };
    std::string_view key = {};
    const char* title = "";
    Editor editor = none;
    std::vector<std::string_view> choices = {}; ///< the values of Editor::choice
    double low = 0, high = 0;                   ///< limits of a number
    const char* unit = "";
    bool look = false; ///< the key changes only the look, not the numbers
};
/// The fields for the keys of this kind, in the order in which a specification lists them.
std::vector<FieldForm> field_forms(FigureKind kind);
/// The value of a key as JSON; null: no value.
std::string field_json(const FigureSpec& spec, std::string_view key);
/// Sets a key from JSON; null sets the default. InputError: invalid value.
void set_field(FigureSpec& spec, std::string_view key, const std::string& value);

/// Resets the keys that the kind does not read to their defaults.
void reset_unread_keys(FigureSpec& spec);

/// The displayed name of a series or run.
const std::string& shown_name(const FigureSpec& spec, const std::string& name);
/// Whether two specifications need the same numbers, so that they differ at most in their looks.
bool same_numbers(const FigureSpec& a, const FigureSpec& b);

std::string_view name_of(TokenColour colour);

} // namespace ponderscope::figure
