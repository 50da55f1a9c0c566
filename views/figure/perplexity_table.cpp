// SPDX-License-Identifier: GPL-3.0-or-later
// Runs over the same tokens as a table: as a figure, as LaTeX (booktabs) and as CSV.
#include "views/figure/figure.h"
#include "views/figure/parts.h"

#include "views/common/format.h"

#include <cmath>

namespace ponderscope::figure {
namespace {

QString interval(const Estimate& estimate, int decimals, bool difference = false) {
    if (!std::isfinite(estimate.value)) {
        return QStringLiteral("–");
    }
    const auto text = [&](double value) {
        return difference ? format_difference(value, decimals) : format_nats(value, decimals);
    };
    return std::isfinite(estimate.low)
               ? QStringLiteral("%1 [%2, %3]")
                     .arg(text(estimate.value), text(estimate.low), text(estimate.high))
               : text(estimate.value);
}

struct Column {
    QString head;
    std::vector<QString> cells; ///< perhaps with an interval in brackets behind the value
};

/// Value and interval of a cell, the second perhaps empty.
std::pair<QString, QString> parted(const QString& cell) {
    return {cell.section(u' ', 0, cell.contains(u'[') ? 0 : -1),
            cell.contains(u'[') ? cell.mid(cell.indexOf(u'[')) : QString()};
}

std::vector<Column> columns_of(const RunComparison& comparison, const FigureSpec& spec) {
    std::vector<Column> columns{{QStringLiteral("Run"), {}},        {QStringLiteral("Perplexity"), {}},
                                {QStringLiteral("NLL (nats)"), {}}, {QStringLiteral("Δ NLL"), {}},
                                {QStringLiteral("Bits/byte"), {}},  {QStringLiteral("Steps"), {}},
                                {QStringLiteral("FLOPs/token"), {}}};
    for (const RunComparison::Run& run : comparison.runs) {
        columns[0].cells.push_back(QString::fromStdString(shown_name(spec, run.label)));
        columns[1].cells.push_back(interval(run.perplexity, 2));
        columns[2].cells.push_back(interval(run.nll, 3));
        columns[3].cells.push_back(interval(run.difference, 3, true));
        columns[4].cells.push_back(std::isfinite(run.bits_per_byte.value)
                                       ? format_nats(run.bits_per_byte.value, 3)
                                       : QStringLiteral("–"));
        columns[5].cells.push_back(format_nats(run.mean_steps, 2));
        columns[6].cells.push_back(format_si(run.mean_flops));
    }
    return columns;
}

std::string latex_table(const std::vector<Column>& columns, const QString& note) {
    std::string text = "% " + note.toStdString() + "\n% \\usepackage{booktabs}\n\\begin{tabular}{l" +
                       std::string(columns.size() - 1, 'r') + "}\n\\toprule\n";
    for (std::size_t c = 0; c < columns.size(); ++c) {
        QString head = columns[c].head;
        text += (c > 0 ? " & " : "") + tex(head.replace(QStringLiteral("Δ"), QStringLiteral("Delta")));
    }
    text += " \\\\\n\\midrule\n";
    for (std::size_t row = 0; row < columns.front().cells.size(); ++row) {
        for (std::size_t c = 0; c < columns.size(); ++c) {
            text += (c > 0 ? " & " : "") + tex(columns[c].cells[row]);
        }
        text += " \\\\\n";
    }
    return text + "\\bottomrule\n\\end{tabular}\n";
}

std::string csv_table(const RunComparison& comparison) {
    std::string csv = "run,tokens,nll,nll_low,nll_high,perplexity,perplexity_low,perplexity_high,difference,"
                      "difference_low,difference_high,bits_per_byte,mean_steps,mean_flops\n";
    for (const RunComparison::Run& run : comparison.runs) {
        csv += csv_text(run.label) + "," + std::to_string(comparison.places.size());
        for (const Estimate* one : {&run.nll, &run.perplexity, &run.difference}) {
            csv += "," + csv_number(one->value) + "," + csv_number(one->low) + "," + csv_number(one->high);
        }
        csv += "," + csv_number(run.bits_per_byte.value) + "," + csv_number(run.mean_steps) + "," +
               csv_number(run.mean_flops) + "\n";
    }
    return csv;
}

} // namespace

Figure compose_perplexity_table(const FigureSpec& spec, const FigureData& data, const Fonts& fonts) {
    const Style style(spec, fonts);
    const RunComparison& comparison = *data.comparison;
    const std::vector<Column> columns = columns_of(comparison, spec);
    const QString note = QStringLiteral("95 % intervals: paired bootstrap, %1; %2 replicates; %3 tokens")
                             .arg(QString::fromStdString(comparison.resampling.words()))
                             .arg(comparison.replicates)
                             .arg(format_count(static_cast<std::int64_t>(comparison.places.size())));
    Figure figure;
    figure.tables.push_back({"", csv_table(comparison)});
    figure.tables.push_back({"", latex_table(columns, note), "tex"});

    // Where the page is too narrow, intervals stand under their values; then those columns that find no room
    // stand below, beside the names again.
    const double gap = style.size * 1.4;
    bool below = false;
    const auto width_of = [&](const Column& column) {
        double width = fonts.width(column.head, style.small);
        for (const QString& cell : column.cells) {
            const auto [value, bounds] = parted(cell);
            width = std::max(
                width, below ? std::max(fonts.width(value, style.body), fonts.width(bounds, style.small))
                             : fonts.width(cell, style.body));
        }
        return width;
    };
    double all = -gap;
    for (const Column& column : columns) {
        all += width_of(column) + gap;
    }
    below = all > style.width;
    double widest = 0;
    for (std::size_t c = 1; c < columns.size(); ++c) {
        widest = std::max(widest, width_of(columns[c]));
    }
    const double name_width =
        std::min(width_of(columns.front()), std::max(style.size * 6, style.width - widest - gap));
    std::vector<std::vector<std::size_t>> blocks;
    double room = 0;
    for (std::size_t c = 1; c < columns.size(); ++c) {
        const double needed = width_of(columns[c]) + gap;
        if (blocks.empty() || needed > room) {
            blocks.emplace_back();
            room = style.width - name_width;
        }
        blocks.back().push_back(c);
        room -= needed;
    }
    DisplayList list;
    const double line = style.size * 1.75;
    const double row_line = below ? style.size * 2.7 : line;
    const double baseline = line / 2 + fonts.cap_height(style.body) / 2;
    const auto rule = [&](double y, double weight) {
        list.line({0, y}, {style.width, y}, {style.colours.text, weight, {}, false});
    };
    double top = 0;
    rule(0.5, 0.9);
    for (const std::vector<std::size_t>& block : blocks) {
        const auto draw = [&](const Column& column, double x, Align align) {
            list.text(column.head, {x, top + baseline}, style.small, align);
            for (std::size_t row = 0; row < column.cells.size(); ++row) {
                const double y = top + line + static_cast<double>(row) * row_line + baseline + 2;
                const auto [value, bounds] = parted(column.cells[row]);
                list.text(align == Align::left ? fonts.elided(column.cells[row], style.body, name_width)
                          : below              ? value
                                               : column.cells[row],
                          {x, y}, style.body, align);
                if (below && align == Align::right) {
                    list.text(bounds, {x, y + style.size * 1.1}, style.small, align);
                }
            }
        };
        draw(columns.front(), 0, Align::left);
        double right = style.width;
        for (auto c = block.rbegin(); c != block.rend(); ++c) {
            draw(columns[*c], right, Align::right);
            right -= width_of(columns[*c]) + gap;
        }
        rule(top + line + 0.5, 0.5);
        top += line + static_cast<double>(columns.front().cells.size()) * row_line + 3;
        rule(top, &block == &blocks.back() ? 0.9 : 0.5);
    }
    double end = top + style.size * 0.3;
    for (const QString& words : wrapped_lines(style, note, style.width)) {
        end += style.size * 1.2;
        list.text(words, {0, end - fonts.descent(style.small)}, style.small);
    }
    figure.page = finish(spec, style, list, end, "show fewer runs");
    return figure;
}

} // namespace ponderscope::figure
