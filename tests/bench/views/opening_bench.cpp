// SPDX-License-Identifier: GPL-3.0-or-later
// Opening a trace of many gigabytes in the window's own way: time until its runs are known, until the first
// text and heatmap can be painted, and resident memory. Makes the trace, measures in a process of its own,
// deletes it. With a delay, it is opened as a trace of another machine, over a line on which every byte is so
// long under way, each way (tests/support/far_shell.py in the place of ssh), and scrolled while it comes.
//   opening_bench [GIGABYTES] [FOLDER] [MILLISECONDS]
#include "app/desktop/main_window.h"
#include "app/desktop/settings.h"
#include "core/trace/writer.h"
#include "tests/bench/resident.h"
#include "tests/bench/views/frames.h"
#include "views/common/paths.h"
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
#include <QScrollBar>
#include <QStandardPaths>
#include <QTemporaryDir>
#include <QThread>

#include <algorithm>
#include <cstdio>
#include <cstring>

using namespace Qt::StringLiterals;
using namespace ponderscope;

namespace {

constexpr std::int64_t tokens = 4096; ///< of a sequence
constexpr std::int64_t steps = 4;
constexpr std::int64_t wide = 256; ///< of the signal that makes the trace large

void write_trace(const QString& path, double gigabytes) {
    TraceWriter writer(path_of(path));
    RunInfo info;
    info.name = "large";
    info.method = "ponderlm";
    info.max_steps = steps - 1;
    info.context = tokens;
    info.stride = tokens;
    writer.begin_run(info, {{signal::nll, {"token", "step"}, "nats", "NLL by step", ""},
                            {"wide", {"token", "step", "candidate"}, "", "Wide", "", DType::f16}});
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

/// Through the whole trace as a reader goes: sequence after sequence, scrolled on whether its text and map
/// have come or not. What blocks the window would be a long frame, or a long turn of its event loop.
void scroll(Selection& selection, TextPanel& text, HeatmapView& heatmap, int sequences) {
    bench::Times frames;
    int shown = 0;
    QElapsedTimer clock;
    clock.start();
    QScrollBar* bar = text.view().verticalScrollBar();
    for (int i = 0; i < 60 * sequences; ++i) {
        frames.frame(text.view().viewport(), [&] {
            if (i % 60 == 0) {
                const auto there = text.view().sequence();
                shown += i > 0 && there && there->sequence == selection.sequence() ? 1 : 0;
                selection.setSequence(i / 60);
            }
            bar->setValue(bar->value() + 40);
            heatmap.repaint();
        });
        QThread::msleep(8); // another thread reads meanwhile, as between frames of a screen
    }
    frames.print("scroll, a sequence a second");
    std::printf("    %d of %d texts were there before the next was asked for; %.0f ms a frame in all\n",
                shown, sequences - 1, static_cast<double>(clock.nsecsElapsed()) / 1e6 / (60 * sequences));
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
    scroll(selection, text, heatmap, std::min(20, static_cast<int>(data.sequences(selection.runA()).size())));
    return 0;
}

/// The whole window: until its first picture is there, and until the trace stands in it.
int measure_window(const QString& path) {
    QElapsedTimer clock;
    clock.start();
    QStandardPaths::setTestModeEnabled(true); // nothing of the user's is read or written
    const QTemporaryDir folder;
    Theme theme(Appearance::light);
    Settings settings(folder.filePath(u"settings.ini"_s));
    MainWindow window(theme, settings);
    window.resize(1440, 900);
    window.show();
    window.repaint();
    const double first = static_cast<double>(clock.nsecsElapsed()) / 1e6;
    window.open(path);
    while (!window.text().view().sequence()) {
        QCoreApplication::processEvents();
    }
    window.repaint();
    const double text = static_cast<double>(clock.nsecsElapsed()) / 1e6 - first;
    while (window.isBusy()) {
        QCoreApplication::processEvents();
    }
    window.repaint();
    std::printf("window painted after %.0f ms; from there the trace's text after %.0f ms, every panel after "
                "%.0f ms\n",
                first, text, static_cast<double>(clock.nsecsElapsed()) / 1e6 - first);
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
    if (arguments.value(1) == QLatin1String("--window")) {
        return measure_window(arguments.value(2));
    }
    const double gigabytes = arguments.size() > 1 ? arguments[1].toDouble() : 10;
    QTemporaryDir folder(arguments.value(2, QDir::tempPath()) + u"/opening-XXXXXX"_s);
    const QString path = folder.filePath(u"large.ponder"_s);
    QElapsedTimer clock;
    clock.start();
    write_trace(path, gigabytes);
    std::printf("trace of %.2f GB written in %.0f s\n", static_cast<double>(QFileInfo(path).size()) / 1e9,
                static_cast<double>(clock.elapsed()) / 1e3);
    std::fflush(stdout);
    const double delay = arguments.size() > 3 ? arguments[3].toDouble() : 0;
    if (delay > 0) {
        qputenv("PONDERSCOPE_SSH", PONDERSCOPE_FAR_SHELL);
        qputenv("PONDERSCOPE_REMOTE", PONDERSCOPE_PROGRAM);
        qputenv("FAR_SHELL", "{\"delay\": " + QByteArray::number(delay / 1000) + "}");
    }
    const QString name = (delay > 0 ? u"ssh://far"_s : QString()) + path;
    for (int i = 0; i < 3; ++i) {
        for (const char* what : {"--measure", "--window"}) {
            QProcess::execute(QApplication::applicationFilePath(), {QLatin1String(what), name});
        }
    }
    return 0;
}
