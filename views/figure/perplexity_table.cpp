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
    std::vector<QString> cells;
};

std::vector<Column> columns_of(const RunComparison& comparison) {
    std::vector<Column> columns{{QStringLiteral("Run"), {}},        {QStringLiteral("Perplexity"), {}},
                                {QStringLiteral("NLL (nats)"), {}}, {QStringLiteral("Δ NLL"), {}},
                                {QStringLiteral("Bits/byte"), {}},  {QStringLiteral("Steps"), {}},
                                {QStringLiteral("FLOPs/token"), {}}};
    for (const RunComparison::Run& run : comparison.runs) {
        columns[0].cells.push_back(QString::fromStdString(run.label));
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
    std::vector<Column> columns = columns_of(comparison);
    const QString note = QStringLiteral("95 % intervals: paired bootstrap, %1; %2 replicates; %3 tokens")
                             .arg(QString::fromStdString(comparison.resampling.words()))
                             .arg(comparison.replicates)
                             .arg(format_count(static_cast<std::int64_t>(comparison.places.size())));
    Figure figure;
    figure.tables.push_back({"", csv_table(comparison)});
    figure.tables.push_back({"", latex_table(columns, note), "tex"});

    // A narrow column leaves out what says least, and then says so.
    const double gap = style.size * 1.4;
    const auto width_of = [&](const Column& column) {
        double width = fonts.width(column.head, style.small);
        for (const QString& cell : column.cells) {
            width = std::max(width, fonts.width(cell, style.body));
        }
        return width;
    };
    const auto needed = [&] {
        double sum = -gap;
        for (const Column& column : columns) {
            sum += width_of(column) + gap;
        }
        return sum;
    };
    QString left_out;
    for (const char* head : {"Bits/byte", "FLOPs/token", "Steps", "NLL (nats)", "Δ NLL"}) {
        if (needed() <= style.width || columns.size() <= 2) {
            break;
        }
        const QString name = QString::fromUtf8(head);
        std::erase_if(columns, [&](const Column& column) { return column.head == name; });
        left_out += (left_out.isEmpty() ? QString() : QStringLiteral(", ")) + name;
    }
    if (!left_out.isEmpty()) {
        figure.notices.push_back("The page is too narrow for " + left_out.toStdString() +
                                 "; the CSV and the LaTeX table have it.");
    }
    DisplayList list;
    const double line = style.size * 1.75;
    const double baseline = line / 2 + fonts.cap_height(style.body) / 2;
    const auto rule = [&](double y, double weight) {
        list.line({0, y}, {style.width, y}, {style.colours.text, weight, {}, false});
    };
    const double name_width =
        std::min(width_of(columns.front()),
                 std::max(style.size * 6, style.width - needed() + width_of(columns.front())));
    double right = style.width;
    rule(0.5, 0.9);
    for (std::size_t c = columns.size(); c-- > 0;) {
        const bool name = c == 0;
        const double x = name ? 0 : right;
        const Align align = name ? Align::left : Align::right;
        list.text(columns[c].head, {x, baseline}, style.small, align);
        for (std::size_t row = 0; row < columns[c].cells.size(); ++row) {
            const QString cell =
                name ? fonts.elided(columns[c].cells[row], style.body, name_width) : columns[c].cells[row];
            list.text(cell, {x, static_cast<double>(row + 1) * line + baseline + 2}, style.body, align);
        }
        right -= width_of(columns[c]) + gap;
    }
    rule(line + 0.5, 0.5);
    const double bottom = static_cast<double>(columns.front().cells.size() + 1) * line + 3;
    rule(bottom, 0.9);
    const double end = bottom + style.size * 1.5;
    list.text(fonts.elided(note, style.small, style.width), {0, end - fonts.descent(style.small)},
              style.small);
    figure.page = finish(spec, style, list, end, "show fewer runs");
    return figure;
}

} // namespace ponderscope::figure
