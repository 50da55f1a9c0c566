// SPDX-License-Identifier: GPL-3.0-or-later
// Runs over the same tokens, and halting policies, as a table: as a figure, as LaTeX (booktabs) and as CSV.
#include "views/figure/figure.h"
#include "views/figure/parts.h"

#include "core/policy/policy_rows.h"
#include "core/policy/replay.h"
#include "core/policy/rerun_difference.h"
#include "views/common/format.h"
#include "views/common/tables.h"

#include <algorithm>
#include <cmath>

using namespace Qt::StringLiterals;

namespace ponderscope::figure {
namespace {

QString text_of_cell(const Cell& cell, const TableColumn& column) {
    const auto* estimate = std::get_if<Estimate>(&cell);
    if (estimate == nullptr || column.brief || !std::isfinite(estimate->low)) {
        return window_text(cell, column);
    }
    const auto text = [&](double value) {
        return column.format == CellFormat::difference ? format_difference(value, column.decimals)
                                                       : format_nats(value, column.decimals);
    };
    return u"%1 [%2, %3]"_s.arg(text(estimate->value), text(estimate->low), text(estimate->high));
}

struct DrawnColumn {
    QString head;
    std::vector<QString> cells;
};

std::vector<DrawnColumn> columns_of(const DataTable& table) {
    std::vector<DrawnColumn> columns;
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
        if (table.columns[c].title.empty()) {
            continue;
        }
        columns.push_back({QString::fromStdString(table.columns[c].title).replace(u'\n', u' '), {}});
        for (const std::vector<Cell>& row : table.rows) {
            columns.back().cells.push_back(text_of_cell(row[c], table.columns[c]));
        }
    }
    return columns;
}

/// Splits a cell into value and interval, which may be empty.
std::pair<QString, QString> parted(const QString& cell) {
    return {cell.section(u' ', 0, cell.contains(u'[') ? 0 : -1),
            cell.contains(u'[') ? cell.mid(cell.indexOf(u'[')) : QString()};
}

} // namespace

BootstrapOptions bootstrap_of(const FigureSpec& spec, const std::stop_token& stop) {
    BootstrapOptions options;
    options.block = spec.block;
    options.replicates = spec.replicates;
    options.stop = stop;
    return options;
}

ReplayTable replay_of(const Gathering& figure) {
    const FigureSpec& spec = figure.spec;
    const RunName& name = spec.runs.front();
    const TraceReader reader = TraceReader::open(name.trace);
    const RunInfo info = find_run(reader, name.run);
    std::vector<PolicySignal> signals;
    for (const std::string& policy : spec.policies) {
        // A kind's name or, in tables, a policy with its parameters.
        const std::vector<PolicySignal>& needs = PolicySpec::named_kind(policy).needs;
        signals.insert(signals.end(), needs.begin(), needs.end());
    }
    ReplayTable table = ReplayTable::load(reader, info, figure.progress, figure.stop, signals);
    if (table.halted) {
        figure.data.notices.push_back(
            {NoticeId::policy_halted,
             "Run \"" + info.name + "\" halted, so the replay gives no token more steps than it had."});
    }
    return table;
}

void gather_policy_table(const Gathering& figure) {
    const FigureSpec& spec = figure.spec;
    FigureData& data = figure.data;
    const RunName& name = spec.runs.front();
    const RunInfo info = find_run(TraceReader::open(name.trace), name.run);
    const ReplayTable table = replay_of(figure);
    std::vector<PolicyRerun> reruns;
    std::vector<std::string> policies = spec.policies.empty() ? starting_policies(table) : spec.policies;
    for (std::size_t i = 1; i < spec.runs.size(); ++i) {
        const TraceReader other = TraceReader::open(spec.runs[i].trace);
        const RunInfo rerun = find_run(other, spec.runs[i].run);
        if (!is_rerun_of(rerun, info, rerun.policy)) {
            data.notices.push_back(
                {NoticeId::figure_left_out,
                 "Run \"" + rerun.name + "\" is no rerun of \"" + info.name + "\" and is left out."});
            continue;
        }
        reruns.push_back({rerun.policy, {spec.runs[i].trace, rerun}});
        if (spec.policies.empty() && std::ranges::find(policies, rerun.policy) == policies.end()) {
            policies.push_back(rerun.policy);
        }
    }
    BootstrapOptions options = bootstrap_of(spec, figure.stop);
    options.progress = figure.progress;
    const std::vector<PolicyRow> rows = policy_rows(table, {name.trace, info}, policies, reruns, options);
    for (const PolicyRow& row : rows) {
        if (!row.fault.empty()) {
            data.notices.push_back({NoticeId::figure_policy, row.fault});
        }
    }
    TableData made{table_of(rows), {}};
    for (std::size_t c = 0; c < made.table.columns.size(); ++c) {
        TableColumn& column = made.table.columns[c];
        const bool empty = std::ranges::all_of(made.table.rows, [&](const std::vector<Cell>& row) {
            const QString cell = text_of_cell(row[c], column);
            return cell.isEmpty() || cell == QString::fromUtf16(no_value);
        });
        if (empty || column.key == "rule") { // a rule in words does not fit on a page
            column.title.clear();
        }
    }
    made.note = u"%1, %2 tokens. Replay: recomputed from recorded signals. Rerun: the model run again "
                "under the policy. Blind: the best rule that ignores the token, at the same cost. "
                "Thinks better: the interval of NLL minus NLL of blind lies below 0. 95 % intervals: "
                "paired bootstrap, %3 replicates"_s.arg(QString::fromStdString(info.name),
                                                        format_count(info.scored_tokens),
                                                        QString::number(spec.replicates));
    data.table = std::move(made);
}

Figure compose_table(const FigureSpec& spec, const FigureData& gathered, const Fonts& fonts) {
    const Style style(spec, fonts);
    const TableData& data = *gathered.table;
    DataTable table = data.table;
    for (std::vector<Cell>& row : table.rows) {
        row.front() = shown_name(spec, std::get<std::string>(row.front()));
    }
    const std::vector<DrawnColumn> columns = columns_of(table);
    Figure figure;
    figure.tables.push_back({"", csv_of(data.table)});
    figure.tables.push_back(
        {"", "% " + data.note.simplified().toStdString() + "\n% \\usepackage{booktabs}\n" + latex_of(table),
         "tex"});

    // On a narrow page, intervals go below their values. Further columns follow below, with the names again.
    const double gap = style.size * 1.4;
    bool below = false;
    const auto width_of = [&](const DrawnColumn& column) {
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
    for (const DrawnColumn& column : columns) {
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
        const auto draw = [&](const DrawnColumn& column, double x, Align align) {
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
    for (const QString& words : wrapped_lines(style.fonts, style.small, data.note, style.width)) {
        end += style.size * 1.2;
        list.text(words, {0, end - fonts.descent(style.small)}, style.small);
    }
    figure.page = finish(spec, style, list, end, "show fewer runs");
    return figure;
}

} // namespace ponderscope::figure
