// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/format.h"
#include "views/common/value_look.h"
#include "views/figure/figure.h"
#include "views/figure/token_pieces.h"

#include <cmath>
#include <limits>

using namespace Qt::StringLiterals;

namespace ponderscope::figure {
namespace {

constexpr std::int64_t most_columns = 4096; ///< 174 mm at 600 dots an inch
constexpr std::int64_t most_named = 66;     ///< number of token names that fit on 174 mm

} // namespace

Chart step_heatmap_chart(const FigureSpec& spec, FigureData& data) {
    const RunRows& run = data.runs.front();
    const StepMap& map = *data.signal;
    const SignalInfo& info = map.info();
    // One column for each token; if a page cannot show so many, the mean of several tokens, as in the window.
    const std::int64_t each = (run.count() + most_columns - 1) / most_columns;
    const std::int64_t count = (run.count() + each - 1) / each;
    const auto begin = static_cast<double>(run.first - run.rows.first);
    const std::vector<StepMap::Cell> drawn =
        map.columns(begin, begin + static_cast<double>(count * each), static_cast<int>(count));
    std::vector<float> values; // NaN: no value
    for (const StepMap::Cell& cell : drawn) {
        values.push_back(cell.kind == StepMap::Kind::value && std::isfinite(cell.value)
                             ? cell.value
                             : std::numeric_limits<float>::quiet_NaN());
    }
    const ValueLook look = look_of(kind_of_signal(info), spread_of(std::span<const float>(values)));
    const QString unit = QString::fromStdString(info.unit);
    const QString step_name = step_word(run.info.step_unit);
    Chart chart;
    chart.title = QString::fromStdString(info.shown_name());
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
        for (const TokenPiece& piece : pieces) { // a dot for a token inside a character
            chart.x.names.push_back(piece.text.isEmpty() ? u"·"_s : piece.text);
        }
    }
    auto cells = Chart::Series::of(Chart::Mark::cell);
    auto halted = Chart::Series::of(Chart::Mark::cell, Chart::halted, u"halted"_s);
    bool missing = false;
    for (std::int64_t column = 0; column < count; ++column) {
        const std::int64_t token = run.first + column * each;
        const double x = static_cast<double>(chart.x.names.empty() ? token : column * each) +
                         static_cast<double>(each - 1) / 2;
        const QString name =
            each > 1 ? u"tokens %1 to %2"_s.arg(token).arg(std::min(token + each, run.last) - 1)
                     : u"token %1 “%2”"_s.arg(token).arg(pieces[static_cast<std::size_t>(column)].text);
        const auto row = run.shown(token, spec.attribution);
        const bool shows_row = run.shown(std::min(token + each, run.last) - 1, spec.attribution).has_value();
        for (std::int64_t step = 0; step < map.steps(); ++step) {
            const auto cell = static_cast<std::size_t>(column * map.steps() + step);
            const auto value = static_cast<double>(values[cell]);
            const bool ran = drawn[cell].kind != StepMap::Kind::halted;
            if (ran && std::isnan(value)) {
                missing = missing || shows_row;
                continue;
            }
            const QString label = u"%1 · %2 %3 · %4"_s.arg(name, step_name, QString::number(step),
                                                           ran ? look.text(value) : halted.name);
            if (ran) {
                cells.addCell(x, static_cast<double>(step), value, label);
            } else {
                halted.add(x, static_cast<double>(step), label);
            }
            if (each == 1 && row) {
                (ran ? cells : halted)
                    .links.push_back(
                        token_link(run.sequence.number, run.rows.first + static_cast<std::int64_t>(*row)));
            }
        }
    }
    if (each > 1) {
        data.notices.push_back({NoticeId::figure_averaged, "Each column of the heatmap shows the mean of " +
                                                               std::to_string(each) + " tokens."});
    }
    if (missing) {
        data.notices.push_back(
            {NoticeId::figure_gaps, "Some steps ran, but no value of \"" + info.name +
                                        "\" was recorded for them; their cells are left empty."});
    }
    chart.series = {std::move(cells)};
    if (!halted.x.empty()) {
        chart.series.push_back(std::move(halted));
    }
    return chart;
}

std::string step_heatmap_table(const FigureSpec& spec, const FigureData& data) {
    const RunRows& run = data.runs.front();
    const StepMap& map = *data.signal;
    std::string csv = "token,id,text,row,step," + csv_field(map.info().name) + "\n";
    for (std::int64_t token = run.first; token < run.last; ++token) {
        const auto row = run.shown(token, spec.attribution);
        if (!row) {
            continue;
        }
        const std::string start = std::to_string(token) + "," +
                                  std::to_string(run.rows.id[run.local(token)]) + "," +
                                  csv_bytes(token_bytes_of(run, token)) + "," +
                                  std::to_string(run.rows.first + static_cast<std::int64_t>(*row)) + ",";
        for (std::int64_t step = 0; step < map.steps(); ++step) {
            const StepMap::Cell cell = map.at(token - run.rows.first, step);
            if (cell.kind != StepMap::Kind::halted) {
                csv += start + std::to_string(step) + "," +
                       (cell.kind == StepMap::Kind::value ? csv_number(cell.value) : "") + "\n";
            }
        }
    }
    return csv;
}

} // namespace ponderscope::figure
