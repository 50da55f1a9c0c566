// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/notice.h"
#include "core/base/progress.h"
#include "core/stats/data_table.h"
#include "core/stats/run_comparison.h"
#include "views/chart/chart.h"
#include "views/figure/source.h"
#include "views/figure/spec.h"
#include "views/figure/writer/display_list.h"
#include "views/figure/writer/fonts.h"

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace ponderscope {
struct BootstrapOptions;
struct HaltingStats;
struct ReplayTable;
} // namespace ponderscope

namespace ponderscope::figure {

struct TableData {
    DataTable table; ///< the first column names the rows
    QString note;    ///< below the table: how the numbers were computed
};

/// The content of a figure, read from its traces and computed, without fonts and colours. Any thread.
struct FigureData {
    std::vector<RunRows> runs;
    std::optional<TokenAnnotations> annotation; ///< for token_text coloured by an annotation
    std::optional<StepMap> signal;              ///< for step_heatmap
    std::optional<RunComparison> comparison;    ///< for nll_comparison and perplexity_table
    std::optional<Chart> chart;                 ///< for charts
    std::optional<TableData> table;             ///< for policy_table and perplexity_table
    std::vector<FigureData> panels;             ///< data of each panel, for the kind `panels`
    Notices notices;                            ///< about the data
};

/// The numbers of a figure as a CSV file with a header line.
struct Table {
    std::string suffix; ///< "" for the first table, FIGURE.csv; "tokens" for FIGURE.tokens.csv
    std::string csv;
    std::string extension = "csv"; ///< "tex": the same numbers as a LaTeX table
};

struct Figure {
    DisplayList page;
    std::string pgfplots; ///< pgfplots code of a chart; empty: the figure has no axes
    std::vector<Table> tables;
    std::vector<std::string> entries; ///< names of a chart's series, for the key "series"
    Notices notices; ///< for the user: characters that the typeface lacks, columns that average tokens
};

/// Data that the charts of one page share, so that each run is read once.
struct GatherCache {
    RunName halting_of;
    std::shared_ptr<const HaltingStats> halting;
};

/// The inputs of a figure, and its result.
struct Gathering {
    const FigureSpec& spec;
    FigureData& data;
    const ProgressSink& progress;
    const std::stop_token& stop;
    GatherCache& shared;
};

/// Computes the content of a figure. Throws the errors of load_rows and load_step_map, and Cancelled.
FigureData gather(const FigureSpec& asked, const ProgressSink& progress = {},
                  const std::stop_token& stop = {}, GatherCache* shared = nullptr);

/// Creates the layout. GUI thread. InputError: the content does not fit the requested height.
Figure compose(const FigureSpec& spec, const FigureData& data, const Fonts& fonts);

// The layouts of the kinds, which compose() calls.
Figure compose_token_text(const FigureSpec& spec, const FigureData& data, const Fonts& fonts);
Figure compose_nll_comparison(const FigureSpec& spec, const FigureData& data, const Fonts& fonts);
Figure compose_table(const FigureSpec& spec, const FigureData& data, const Fonts& fonts);
Figure compose_chart(const FigureSpec& spec, const FigureData& data, const Fonts& fonts);

/// The signal of \p data over its tokens and steps; notices go into \p data.
Chart step_heatmap_chart(const FigureSpec& spec, FigureData& data);
/// The values of step_heatmap_chart() as CSV, with a row for each step of each token.
std::string step_heatmap_table(const FigureSpec& spec, const FigureData& data);

/// Applies the keys for axis ends, colours, series and legend. Adds notices and entries to \p figure.
void dress_chart(Chart& chart, const FigureSpec& spec, Figure& figure);

BootstrapOptions bootstrap_of(const FigureSpec& spec, const std::stop_token& stop);
/// The replay table of the first run, with a notice if tokens of the run halted.
ReplayTable replay_of(const Gathering& figure);
void gather_policy_table(const Gathering& figure);

/// Largest number of heatmap cells that are drawn as vectors. A map with more cells becomes one image.
inline constexpr std::int64_t most_vector_cells = 20'000;

} // namespace ponderscope::figure
