// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

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

/// The kinds of kinds.def.
enum class FigureKind {
#define PONDERSCOPE_CHART(name, ...) name,
#define PONDERSCOPE_PAGE(name, ...) name,
#include "views/figure/kinds.def"
#undef PONDERSCOPE_CHART
#undef PONDERSCOPE_PAGE
};

/// How many runs a kind shows.
enum class RunUse {
    one,
    more, ///< others beside the first, where there are any
    pair  ///< needs two
};

/// The description of a kind, for the gallery, menus and readers of specifications.
struct KindInfo {
    FigureKind kind;
    std::string_view name;   ///< in specifications
    const char* title;       ///< for people
    const char* shows;       ///< one sentence
    RunUse runs;             ///< the runs that it shows
    std::string_view keys{}; ///< keys that the kind reads beside the common ones, with commas
    bool chart = false;      ///< of whole runs, in axes: no sequence, no tokens
};
/// All kinds, in the order of a gallery.
std::span<const KindInfo> figure_kinds();
const KindInfo& info_of(FigureKind kind);
/// Whether figures of that kind read a key that is not common to all.
bool reads(FigureKind kind, std::string_view key);
/// Charts of a whole run: no sequence, no tokens.
inline bool is_chart(FigureKind kind) {
    return info_of(kind).chart;
}
inline std::string_view name_of(FigureKind kind) {
    return info_of(kind).name;
}

/// The quantity that colours the tokens of a text: of A, or of A − B.
struct TokenColour {
    constexpr TokenColour(Quantity quantity = Quantity::nll, bool difference = false) // NOLINT: converts
        : of(quantity), minus_b(difference) {}
    Quantity of;
    bool minus_b;
    friend bool operator==(const TokenColour&, const TokenColour&) = default;
};

/// The name of a run in a specification; the trace is absolute once it has been read.
struct RunName {
    std::filesystem::path trace;
    std::string run;       ///< name, or the number of a run if none is named so; empty: the only one
    bool numbered = false; ///< `run` is the number of a run, whatever others are named
    friend bool operator==(const RunName&, const RunName&) = default;
};

/// The look of a series of a chart, or of a run. The order of these is that of the legend.
struct SeriesSpec {
    std::string name;
    std::string as;   ///< instead of its name; empty: its name
    bool show = true; ///< charts: false leaves it out
    friend bool operator==(const SeriesSpec&, const SeriesSpec&) = default;
};

/// The complete specification of a figure, as stored in a JSON file. The same specification and the same
/// traces give the same bytes.
struct FigureSpec {
    FigureKind kind = FigureKind::token_text;
    std::vector<RunName> runs;            ///< the first is A, the second B
    std::optional<std::int64_t> sequence; ///< empty: the first, and all of them for nll_comparison
    /// Tokens [first, last) of the sequence; nothing: all of them.
    std::optional<std::array<std::int64_t, 2>> tokens;
    TokenColour quantity;       ///< token_text
    std::string annotation;     ///< token_text: colours by it instead of the quantity; empty: by the quantity
    std::string signal = "nll"; ///< step_heatmap
    Attribution attribution = Attribution::predicted;
    double width_mm = 84;
    std::optional<double> height_mm;            ///< empty: as high as the content
    std::string font = "DejaVu Sans";           ///< family of the letters, embedded
    double font_size = 8;                       ///< points
    double dpi = 300;                           ///< PNG only
    std::optional<std::array<double, 2>> range; ///< ends of the colour scale; nothing: from the values
    std::string colour_map = "viridis";         ///< of cells: "viridis", "cividis", "magma", "grey"
    std::string theme = "light";                ///< "light" for paper, "dark" for slides
    bool step_ticks = true; ///< token_text: the steps under each token, if a method has any
    bool scatter =
        true; ///< nll_comparison: token against token, when there are two runs; token_pairs: as points
    std::vector<std::string> policies; ///< names of policies; empty: what the kind has by itself
    std::string by = "class";          ///< steps_by_type, winners: class, type, position, difficulty
    std::string curve = "loss";        ///< training_curves: "loss", "mean_steps", or a quantity's name
    std::string task;                  ///< task_accuracy: its name; empty: the first of the run
    std::string axis = "steps";        ///< training_curves: "steps", "tokens" or "seconds"
    std::string cost = "compute";      ///< policy_front: "compute", "steps" or "time"
    bool bands = false;                ///< policy_front: 95 % bands of the loss against full
    std::string log = "none";          ///< policy_front: axes that are logarithmic: "none", "x", "y", "both"
    double smoothing = 0;              ///< training_curves: weight of what came before, 0 to below 1
    std::string legend = "auto";       ///< charts: "auto", "above", "right", "none"
    std::optional<std::array<double, 2>> x_range,
        y_range;                     ///< charts: ends of the axes; nothing: from the values
    std::vector<SeriesSpec> series;  ///< charts; names of runs in tables too
    std::string palette = "default"; ///< colours of runs: "default", "okabe_ito", "grey"
    /// The places of `runs` in the palette: 0 is A's, 1 B's. Runs without an entry take the next ones.
    std::vector<std::int64_t> colours;
    std::vector<FigureSpec> panels; ///< panels: each with everything of its own but the width
    std::int64_t columns = 2;       ///< panels: beside each other
    bool letters = true;            ///< panels: a, b, c
    std::string title;              ///< empty: none, the caption of the paper says it
    std::int64_t block = 0;         ///< tokens in a block of the bootstrap; 0: chosen from the data
    std::int64_t replicates = 10000;
    friend bool operator==(const FigureSpec&, const FigureSpec&) = default;
};

inline constexpr double single_column_mm = 84;
inline constexpr double double_column_mm = 174;

/// How many runs the figure shows at most.
std::size_t most_runs(const FigureSpec& spec);

/// Reads a specification; "-" is standard input. Relative trace paths are relative to the file's folder.
/// InputError names file, key, value and what is possible; an unknown key is named together with the nearest
/// known one.
FigureSpec read_figure_spec(const std::filesystem::path& path);
/// The same from memory; \p source is named in messages and its folder is where relative paths start.
FigureSpec parse_figure_spec(std::string_view json, const std::filesystem::path& source);
/// JSON that read_figure_spec understands, with the keys that its kind uses. Traces inside or beside \p
/// folder are named relative to it.
std::string write_figure_spec(const FigureSpec& spec, const std::filesystem::path& folder);

/// How a form edits one key of a specification.
struct FieldForm {
    enum Editor { none, choice, flag, whole, real, text, range, list };
    std::string_view key;
    const char* title = "";
    Editor editor = none;
    std::vector<std::string_view> choices; ///< of a choice
    double low = 0, high = 0;              ///< of numbers
    const char* unit = "";
    bool look = false; ///< the numbers do not depend on it
};
/// The keys that a form of this kind has, in the order in which they are written.
std::vector<FieldForm> field_forms(FigureKind kind);
/// The value of a key as JSON; null: none.
std::string field_json(const FigureSpec& spec, std::string_view key);
/// Sets a key from JSON; null: to what it is by itself. InputError: the value is impossible.
void set_field(FigureSpec& spec, std::string_view key, const std::string& value);

/// Keys that the kind does not read become what they are by themselves.
void reset_unread_keys(FigureSpec& spec);

/// The name of a series or run in the figure.
const std::string& shown_name(const FigureSpec& spec, const std::string& name);
/// Whether two specifications read and compute the same: they differ in looks alone.
bool same_numbers(const FigureSpec& a, const FigureSpec& b);

std::string_view name_of(TokenColour colour);

} // namespace ponderscope::figure
