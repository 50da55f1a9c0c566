// SPDX-License-Identifier: GPL-3.0-or-later
// Opening a trace of many gigabytes in the window's own way: time until its runs are known, until the first
// text and heatmap can be painted, and resident memory. Makes the trace, measures in a process of its own,
// deletes it.
//   opening_bench [GIGABYTES] [FOLDER]
// Before Qt, whose keyword `signals` is a name there.
#include "core/trace/writer.h"

#include "tests/bench/resident.h"
#include "views/common/style.h"
#include "views/heatmap/heatmap_view.h"
#include "views/heatmap/step_map_canvas.h"
#include "views/text/text_panel.h"
#include "views/text/text_view.h"

#include <QApplication>
#include <QDir>
#include <QElapsedTimer>
#include <QFileInfo>
#include <QProcess>
#include <QTemporaryDir>

#include <cstdio>
#include <cstring>

using namespace ponderscope;

namespace {

constexpr std::int64_t tokens = 4096; ///< of a sequence
constexpr std::int64_t steps = 4;
constexpr std::int64_t wide = 256; ///< of the signal that makes the trace large

void write_trace(const QString& path, double gigabytes) {
    TraceWriter writer(std::filesystem::path(path.toStdU16String()));
    RunInfo info;
    info.name = "large";
    info.method = "ponderlm";
    info.max_steps = steps - 1;
    info.context = tokens;
    info.stride = tokens;
    writer.begin_run(info, {{signal::nll, {"token", "step"}, "nats", "NLL by step", ""},
                            {"wide", {"token", "step", "candidate"}, "", "Wide", ""}});
    const auto sequences = static_cast<std::int64_t>(gigabytes * 1e9 / (tokens * steps * wide * 2));
    std::uint64_t state = 1;
    for (std::int64_t s = 0; s < sequences; ++s) {
        TokenColumns columns;
        std::string text;
        for (std::int64_t t = 0; t < tokens; ++t) {
            const std::string word = " w" + std::to_string(t % 997);
            columns.id.push_back(static_cast<std::int32_t>(t % 997));
            columns.begin.push_back(text.size());
            text += word;
            columns.end.push_back(text.size());
            columns.nll.push_back(static_cast<float>(t % 7));
            columns.entropy.push_back(1);
            columns.max_probability.push_back(0.5F);
            columns.rank.push_back(1);
            columns.steps.push_back(static_cast<std::int32_t>(t % steps));
            columns.flops.push_back(1000);
        }
        SignalChunk nll{0, DType::f32, {tokens, steps}, {}};
        nll.data.resize(static_cast<std::size_t>(tokens * steps) * 4);
        for (std::int64_t i = 0; i < tokens * steps; ++i) {
            const auto value = static_cast<float>(i % 13);
            std::memcpy(nll.data.data() + i * 4, &value, 4);
        }
        SignalChunk large{0, DType::f16, {tokens, steps, wide}, {}};
        large.data.resize(static_cast<std::size_t>(tokens * steps * wide) * 2);
        for (std::size_t i = 0; i + 8 <= large.data.size(); i += 8) { // nothing that could be stored smaller
            state = state * 6364136223846793005ULL + 1442695040888963407ULL;
            const std::uint64_t value = state & 0x3bff3bff3bff3bffULL; // finite halves
            std::memcpy(large.data.data() + i, &value, 8);
        }
        writer.begin_sequence("part " + std::to_string(s), text);
        std::vector<std::pair<std::string, SignalChunk>> all;
        all.emplace_back(signal::nll, std::move(nll));
        all.emplace_back("wide", std::move(large));
        writer.append(std::move(columns), std::move(all));
        writer.end_sequence();
    }
    writer.end_run(1);
    writer.finish();
}

int measure(const QString& path) {
    Theme theme(Appearance::light);
    TraceData data;
    Selection selection;
    const ViewContext context{data, selection, theme};
    TextPanel text(context);
    HeatmapView heatmap(context);
    text.resize(900, 600);
    heatmap.resize(900, 200);
    text.show();
    heatmap.show();
    QCoreApplication::processEvents();
    const double before = testing::resident_megabytes("VmRSS:");
    QElapsedTimer clock;
    clock.start();
    data.open(path);
    while (!data.isOpen(path)) {
        QCoreApplication::processEvents();
    }
    const double opened = static_cast<double>(clock.nsecsElapsed()) / 1e6;
    selection.setRunA({path, data.runs(path).front().id});
    while (!text.view().sequence() || !heatmap.canvas()->map()) {
        QCoreApplication::processEvents();
    }
    text.repaint();
    heatmap.repaint();
    std::printf("runs known after %.0f ms, text and heatmap painted after %.0f ms; resident memory %.0f MB "
                "before, %.0f MB after, %.0f MB at most\n",
                opened, static_cast<double>(clock.nsecsElapsed()) / 1e6, before,
                testing::resident_megabytes("VmRSS:"), testing::resident_megabytes("VmHWM:"));
    return 0;
}

} // namespace

int main(int argc, char** argv) {
    if (qEnvironmentVariableIsEmpty("QT_QPA_PLATFORM")) {
        qputenv("QT_QPA_PLATFORM", "offscreen");
    }
    QApplication application(argc, argv);
    Theme theme(Appearance::light);
    QApplication::setStyle(new Style(theme));
    const QStringList arguments = QApplication::arguments();
    if (arguments.value(1) == QLatin1String("--measure")) {
        return measure(arguments.value(2));
    }
    const double gigabytes = arguments.size() > 1 ? arguments[1].toDouble() : 10;
    QTemporaryDir folder(arguments.value(2, QDir::tempPath()) + QStringLiteral("/opening-XXXXXX"));
    const QString path = folder.filePath(QStringLiteral("large.ponder"));
    QElapsedTimer clock;
    clock.start();
    write_trace(path, gigabytes);
    std::printf("trace of %.2f GB written in %.0f s\n", static_cast<double>(QFileInfo(path).size()) / 1e9,
                static_cast<double>(clock.elapsed()) / 1e3);
    std::fflush(stdout);
    for (int i = 0; i < 3; ++i) {
        QProcess::execute(QApplication::applicationFilePath(), {QStringLiteral("--measure"), path});
    }
    return 0;
}
