// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

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

/// A figure that is a table.
struct TableData {
    DataTable table; ///< the first column names the rows
    QString note;    ///< below the table: the basis of the numbers
};

/// The content of a figure, read from its traces and computed; no fonts, no colours. Any thread.
struct FigureData {
    std::vector<RunRows> runs;
    std::optional<TokenAnnotations> annotation; ///< token_text coloured by an annotation
    std::optional<StepSignal> signal;           ///< step_heatmap
    std::optional<RunComparison> comparison;    ///< nll_comparison
    std::optional<Chart> chart;                 ///< kinds that are charts
    std::optional<TableData> table;             ///< policy_table
    std::vector<FigureData> panels;             ///< panels: of each
    std::vector<std::string> notices;           ///< about the data
};

/// The numbers of a figure, as CSV with a header line.
struct Table {
    std::string
        suffix; ///< "" for the first table, which goes to FIGURE.csv; "tokens" goes to FIGURE.tokens.csv
    std::string csv;
    std::string extension = "csv"; ///< "tex": the same as a LaTeX table
};

struct Figure {
    DisplayList page;
    std::string pgfplots; ///< of charts; empty: the figure has no axes
    std::vector<Table> tables;
    std::vector<std::string> entries; ///< names of a chart's series, for the key "series"
    std::vector<std::string>
        notices; ///< notices for the user: characters that the typeface lacks, merged columns
};

/// Data shared by the charts of one page, so that each run is read once.
struct GatherCache {
    RunName halting_of;
    std::shared_ptr<const HaltingStats> halting;
};

/// The sources of a figure, and its result.
struct Gathering {
    const FigureSpec& spec;
    FigureData& data;
    const ProgressSink& progress;
    const std::stop_token& stop;
    GatherCache& shared;
};

/// Reads and computes. InputError as load_rows and load_step_signal say; Cancelled when \p stop is requested.
FigureData gather(const FigureSpec& asked, const ProgressSink& progress = {},
                  const std::stop_token& stop = {}, GatherCache* shared = nullptr);

/// Lays out. GUI thread. InputError when the content does not fit the height that was requested.
Figure compose(const FigureSpec& spec, const FigureData& data, const Fonts& fonts);

// Kinds other than charts have separate functions.
Figure compose_token_text(const FigureSpec& spec, const FigureData& data, const Fonts& fonts);
Figure compose_step_heatmap(const FigureSpec& spec, const FigureData& data, const Fonts& fonts);
Figure compose_nll_comparison(const FigureSpec& spec, const FigureData& data, const Fonts& fonts);
Figure compose_perplexity_table(const FigureSpec& spec, const FigureData& data, const Fonts& fonts);
Figure compose_policy_table(const FigureSpec& spec, const FigureData& data, const Fonts& fonts);
Figure compose_chart(const FigureSpec& spec, const FigureData& data, const Fonts& fonts);

/// Applies the specification to the chart: limits, names, omissions, legend. Notices and names of entries go
/// into \p figure.
void dress_chart(Chart& chart, const FigureSpec& spec, Figure& figure);

BootstrapOptions bootstrap_of(const FigureSpec& spec, const std::stop_token& stop);
/// The replay table of the first run, with a notice where the run halted.
ReplayTable replay_of(const Gathering& figure);
/// The table of policies.
void gather_policy_table(const Gathering& figure);

/// Cells of a heatmap that are drawn separately; more become one image.
inline constexpr std::int64_t most_vector_cells = 20'000;

} // namespace ponderscope::figure
