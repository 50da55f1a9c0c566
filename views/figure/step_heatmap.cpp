// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/format.h"
#include "views/common/value_look.h"
#include "views/figure/figure.h"
#include "views/figure/token_pieces.h"

#include "core/stats/significance.h"

#include <cmath>
#include <limits>

using namespace Qt::StringLiterals;

namespace ponderscope::figure {
namespace {

constexpr std::int64_t most_columns = 4096; ///< 174 mm at 600 dots an inch
constexpr std::int64_t most_named = 66;     ///< tokens whose names have room on 174 mm

/// Columns as they are drawn: one a token, or the mean of several where a page cannot show that many, as in
/// the window.
struct Columns {
    std::int64_t count = 0;
    std::int64_t tokens_each = 1;
    std::vector<float> values; ///< [column * steps + step]; NaN: not recorded
    std::vector<bool> ran;     ///< same shape; false: halted
    std::vector<bool> exists;  ///< [column]: some token of it shows a row
};

Columns columns_of(const StepSignal& signal, std::int64_t most) {
    const auto tokens = static_cast<std::int64_t>(signal.values.size());
    Columns columns;
    columns.tokens_each = (tokens + most - 1) / most;
    columns.count = (tokens + columns.tokens_each - 1) / columns.tokens_each;
    const auto cells = static_cast<std::size_t>(columns.count * signal.steps);
    columns.values.assign(cells, std::numeric_limits<float>::quiet_NaN());
    columns.ran.assign(cells, false);
    columns.exists.assign(static_cast<std::size_t>(columns.count), false);
    std::vector<Moments> means(cells);
    for (std::int64_t token = 0; token < tokens; ++token) {
        const auto i = static_cast<std::size_t>(token);
        if (signal.executed[i] >= 0) {
            columns.exists[static_cast<std::size_t>(token / columns.tokens_each)] = true;
        }
        for (std::int64_t step = 0; step < signal.steps && step <= signal.executed[i]; ++step) {
            const auto cell = static_cast<std::size_t>(token / columns.tokens_each * signal.steps + step);
            const float value = signal.values[i][static_cast<std::size_t>(step)];
            columns.ran[cell] = true;
            if (std::isfinite(value)) {
                means[cell].add(static_cast<double>(value));
                columns.values[cell] = static_cast<float>(means[cell].mean);
            }
        }
    }
    return columns;
}

} // namespace

Chart step_heatmap_chart(const FigureSpec& spec, FigureData& data) {
    const RunRows& run = data.runs.front();
    const StepSignal& signal = *data.signal;
    const Columns columns = columns_of(signal, most_columns);
    const std::int64_t each = columns.tokens_each;
    const ValueLook look =
        look_of(kind_of_signal(signal.info), spread_of(std::span<const float>(columns.values)));
    const QString unit = QString::fromStdString(signal.info.unit);
    const QString step_name = step_word(run.info.step_unit);
    Chart chart;
    chart.title = QString::fromStdString(signal.info.shown_name());
    chart.x.label = each > 1 ? u"token (each column: mean of %1 tokens)"_s.arg(each) : u"token"_s;
    chart.x.whole = true;
    chart.y.label = step_name;
    chart.y.whole = true;
    chart.y.reversed = true;
    chart.dx = static_cast<double>(each);
    chart.scale = Chart::Scale{unit.isEmpty() ? chart.title : u"%1 (%2)"_s.arg(chart.title, unit),
                               look.scale.low, look.scale.high, look.diverging, look.scale.logarithmic};
    const std::vector<TokenPiece> pieces = token_pieces(run);
    if (run.count() <= most_named) {
        for (const TokenPiece& piece : pieces) { // a dot where a token stands inside a character
            chart.x.names.push_back(piece.text.isEmpty() ? u"·"_s : piece.text);
        }
    }
    Chart::Series cells;
    cells.mark = Chart::Mark::cell;
    Chart::Series halted = cells;
    halted.name = u"halted"_s;
    halted.ink = Chart::halted;
    bool missing = false;
    for (std::int64_t column = 0; column < columns.count; ++column) {
        const std::int64_t token = run.first + column * each;
        const double x = static_cast<double>(chart.x.names.empty() ? token : column * each) +
                         static_cast<double>(each - 1) / 2;
        const QString name =
            each > 1 ? u"tokens %1 to %2"_s.arg(token).arg(std::min(token + each, run.last) - 1)
                     : u"token %1 “%2”"_s.arg(token).arg(pieces[static_cast<std::size_t>(column)].text);
        const auto row = run.shown(token, spec.attribution);
        for (std::int64_t step = 0; step < signal.steps; ++step) {
            const auto cell = static_cast<std::size_t>(column * signal.steps + step);
            const double value = static_cast<double>(columns.values[cell]);
            missing = missing || (columns.ran[cell] && std::isnan(value));
            if (columns.ran[cell] ? std::isnan(value) : !columns.exists[static_cast<std::size_t>(column)]) {
                continue;
            }
            Chart::Series& series = columns.ran[cell] ? cells : halted;
            series.x.push_back(x);
            series.y.push_back(static_cast<double>(step));
            if (columns.ran[cell]) {
                series.value.push_back(value);
            }
            series.labels.push_back(u"%1 · %2 %3 · %4"_s.arg(
                name, step_name, QString::number(step), columns.ran[cell] ? look.text(value) : halted.name));
            if (each == 1 && row) {
                series.links.push_back(
                    token_link(run.sequence.number, run.rows.first + static_cast<std::int64_t>(*row)));
            }
        }
    }
    if (each > 1) {
        data.notices.push_back("Each column of the heatmap shows the mean of " + std::to_string(each) +
                               " tokens.");
    }
    if (missing) {
        data.notices.push_back("Some steps ran, but no value of \"" + signal.info.name +
                               "\" was recorded for them; their cells are left empty.");
    }
    chart.series = {std::move(cells)};
    if (!halted.x.empty()) {
        chart.series.push_back(std::move(halted));
    }
    return chart;
}

std::string step_heatmap_table(const FigureSpec& spec, const FigureData& data) {
    const RunRows& run = data.runs.front();
    const StepSignal& signal = *data.signal;
    std::string csv = "token,id,text,row,step," + csv_field(signal.info.name) + "\n";
    for (std::int64_t token = run.first; token < run.last; ++token) {
        const auto i = static_cast<std::size_t>(token - run.first);
        const auto row = run.shown(token, spec.attribution);
        if (!row) {
            continue;
        }
        const std::string start = std::to_string(token) + "," +
                                  std::to_string(run.rows.id[run.local(token)]) + "," +
                                  csv_bytes(token_bytes_of(run, token)) + "," +
                                  std::to_string(run.rows.first + static_cast<std::int64_t>(*row)) + ",";
        for (std::int64_t step = 0; step < signal.steps && step <= signal.executed[i]; ++step) {
            csv += start + std::to_string(step) + "," +
                   csv_number(signal.values[i][static_cast<std::size_t>(step)]) + "\n";
        }
    }
    return csv;
}

} // namespace ponderscope::figure
