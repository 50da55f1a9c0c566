// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/selection.h"

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ponderscope::figure {

enum class FigureKind {
    token_text,       ///< the text itself, every token on a background that tells a quantity
    step_heatmap,     ///< a signal that has a value a token and step
    nll_comparison,   ///< NLL of runs over the same tokens, with intervals, and token against token
    steps_histogram,  ///< share of tokens by the last step that they ran
    nll_by_halt_step, ///< mean and middle half of the NLL by that step
    gate_curves,      ///< gates (or halting masses) by step
    steps_entropy,    ///< density of steps against entropy
    policy_front      ///< perplexity against compute of halting policies, by replay, and the runs themselves
};
/// Charts of a whole run: no sequence, no tokens.
constexpr bool is_chart(FigureKind kind) {
    return kind >= FigureKind::steps_histogram;
}

enum class TokenQuantity { nll, entropy, rank, max_probability, steps, flops, nll_difference };

/// One run as a specification names it; the trace is absolute once it has been read.
struct RunName {
    std::filesystem::path trace;
    std::string run; ///< name or number; empty: the only one
    friend bool operator==(const RunName&, const RunName&) = default;
};

/// All that makes a figure, as it stands in a JSON file. The same specification and the same traces give the
/// same bytes.
struct FigureSpec {
    FigureKind kind = FigureKind::token_text;
    std::vector<RunName> runs;            ///< the first is A, the second B
    std::optional<std::int64_t> sequence; ///< nothing: the first, and all of them for nll_comparison
    /// Tokens [first, last) of the sequence; nothing: all of them.
    std::optional<std::array<std::int64_t, 2>> tokens;
    TokenQuantity quantity = TokenQuantity::nll; ///< token_text
    std::string signal = "nll";                  ///< step_heatmap
    Attribution attribution = Attribution::predicted;
    double width_mm = 84;
    std::optional<double> height_mm;            ///< nothing: as high as it needs to be
    double font_size = 8;                       ///< points
    double dpi = 300;                           ///< PNG only
    std::optional<std::array<double, 2>> range; ///< ends of the colour scale; nothing: from the values
    std::string colour_map = "viridis";         ///< step_heatmap: "viridis", "cividis"
    std::string theme = "light";                ///< "light" for paper, "dark" for slides
    bool step_ticks = true;            ///< token_text: the steps under each token, where a method has any
    bool scatter = true;               ///< nll_comparison: token against token, when there are two runs
    std::vector<std::string> policies; ///< policy_front: names of policies; empty: all that can be replayed
    std::string title;                 ///< empty: none, the caption of the paper says it
    std::int64_t block = 64;           ///< nll_comparison: tokens in a block of the bootstrap
    std::int64_t replicates = 10000;
    friend bool operator==(const FigureSpec&, const FigureSpec&) = default;
};

inline constexpr double single_column_mm = 84;
inline constexpr double double_column_mm = 174;

/// Reads a specification. Relative trace paths are relative to the file's folder. InputError names file, key,
/// value and what is possible; an unknown key is named together with the nearest known one.
FigureSpec read_figure_spec(const std::filesystem::path& path);
/// The same from memory; \p source is named in messages and its folder is where relative paths start.
FigureSpec parse_figure_spec(std::string_view json, const std::filesystem::path& source);
/// JSON that read_figure_spec understands, with the keys that its kind uses. Traces inside or beside \p
/// folder are named relative to it.
std::string write_figure_spec(const FigureSpec& spec, const std::filesystem::path& folder);

std::string_view name_of(FigureKind kind);
std::string_view name_of(TokenQuantity quantity);

} // namespace ponderscope::figure
