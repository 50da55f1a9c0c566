// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/figure/figure_command.h"

#include "views/common/paths.h"

#include <algorithm>
#include <filesystem>

using namespace Qt::StringLiterals;

namespace ponderscope::figure {

FigureSpec window_figure(const TraceData& data, const Selection& selection, FigureKind kind) {
    FigureSpec spec;
    spec.kind = kind;
    const RunInfo* a = data.run(selection.runA());
    for (const RunKey& key : {selection.runA(), selection.runB()}) {
        const RunInfo* run = data.run(key);
        if (run != nullptr && a != nullptr && run->text_digest == a->text_digest) {
            spec.runs.push_back({path_of(key.trace), run_name(*run).toStdString()});
        }
    }
    spec.attribution = selection.attribution();
    if (reads(kind, "sequence")) {
        spec.sequence = selection.sequence();
    }
    spec.width_mm = double_column_mm;
    return spec;
}

const RunInfo* run_named(const TraceData& data, const RunName& name) {
    const QString trace = path_text(name.trace);
    const auto runs = data.runs(trace);
    auto found = std::ranges::find_if(
        runs, [&](const RunInfo& run) { return run.name == name.run || name.run.empty(); });
    if (found == runs.end()) { // otherwise `run` may be a number
        found = std::ranges::find_if(runs,
                                     [&](const RunInfo& run) { return std::to_string(run.id) == name.run; });
    }
    return found == runs.end() ? nullptr : data.run({trace, found->id});
}

std::vector<std::int64_t> window_colours(const ViewContext& window, const std::vector<RunName>& runs) {
    const std::vector<QColor>& others = Theme::runColours(window.theme.dark());
    std::vector<std::int64_t> colours;
    bool asTheyCome = true;
    for (const RunName& run : runs) {
        auto colour = static_cast<std::int64_t>(colours.size());
        if (const RunInfo* info = run_named(window.data, run)) {
            const RunKey key{path_text(run.trace), info->id};
            const Selection nobody; // without A and B, a run has its own fixed colour
            const auto place = std::ranges::find(others, window.theme.runColour(key, nobody));
            colour = key == window.selection.runA()   ? 0
                     : key == window.selection.runB() ? 1
                                                      : 2 + (place - others.begin());
        }
        asTheyCome = asTheyCome && colour == static_cast<std::int64_t>(colours.size());
        colours.push_back(colour);
    }
    return asTheyCome ? std::vector<std::int64_t>() : colours;
}

QString figure_command(const FigureSpec& spec, const QString& file) {
    const QString output = file.isEmpty() ? QString::fromUtf8(name_of(spec.kind)) + u".pdf"_s : file;
    // No line can be SPEC, which would end the input: every line of the JSON begins with a space or a brace.
    return u"ponderscope figure - -o %1 <<'SPEC'\n%2SPEC\n"_s.arg(
        shell_quoted(output),
        QString::fromStdString(write_figure_spec(spec, std::filesystem::path("/nowhere"))));
}

ViewCommand figure_view(const TraceData& data, const Selection& selection, const FigureSpec& spec) {
    const QString why = why_no_run(data, selection);
    return why.isEmpty() ? ViewCommand{ViewCommand::Kind::shell, figure_command(spec)} : no_command(why);
}

} // namespace ponderscope::figure
