// SPDX-License-Identifier: GPL-3.0-or-later
// Frame times of the text view: the real widget, driven through fixed gestures. A frame is the gesture's step
// and the painting that follows it, up to the window's backing store. Goal: the 99th percentile below
// the 16.7 ms of a 60 Hz screen.
// Before Qt, whose keyword `signals` is a name there.
#include "core/policy/replay.h"

#include "tests/support/sample_trace.h"
#include "views/common/style.h"
#include "views/text/text_panel.h"
#include "views/text/text_view.h"

#include <QApplication>
#include <QElapsedTimer>
#include <QScrollBar>
#include <QTemporaryDir>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <vector>

using namespace ponderscope;

namespace {

/// Resident memory in MB.
double resident() {
    std::ifstream status("/proc/self/status");
    std::string word;
    while (status >> word) {
        if (word == "VmRSS:") {
            double kilobytes = 0;
            status >> kilobytes;
            return kilobytes / 1000;
        }
    }
    return 0;
}

/// Time that this thread has computed, in ms: what a frame costs on a machine that does other things, too.
double computed() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

struct Times {
    std::vector<double> ms;
    std::vector<double> cpu;
    template <typename Step>
    void frame(QWidget* viewport, Step step) {
        QElapsedTimer timer;
        timer.start();
        const double before = computed();
        step();
        viewport->repaint();
        ms.push_back(static_cast<double>(timer.nsecsElapsed()) / 1e6);
        cpu.push_back(computed() - before);
        QCoreApplication::processEvents();
    }
    void print(const char* gesture) {
        const auto at = [](std::vector<double>& values, double q) {
            std::sort(values.begin(), values.end());
            return values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1))];
        };
        std::printf("    %-28s %5zu frames   median %6.2f ms   p99 %6.2f ms   computing: median %6.2f ms   "
                    "p99 %6.2f ms\n",
                    gesture, ms.size(), at(ms, 0.5), at(ms, 0.99), at(cpu, 0.5), at(cpu, 0.99));
    }
};

void measure(std::int64_t tokens) {
    QTemporaryDir folder;
    const QString path = folder.filePath(QStringLiteral("bench.ponder"));
    testing::write_sample_trace(path.toStdString(),
                                {.sequences = 1, .tokens = tokens, .secondRun = false, .withSignals = false});
    Theme theme(Appearance::light);
    TraceData data;
    Selection selection;
    TextPanel panel(ViewContext{data, selection, theme});
    panel.resize(900, 800);
    panel.show();
    TextView& view = panel.view();
    const double before = resident();

    QElapsedTimer clock;
    clock.start();
    data.open(path);
    while (!data.isOpen(path)) {
        QCoreApplication::processEvents();
    }
    const double open = static_cast<double>(clock.nsecsElapsed()) / 1e6;
    selection.setRunA({path, data.runs(path)[0].id});
    while (!view.sequence()) {
        QCoreApplication::processEvents();
    }
    const double text = static_cast<double>(clock.nsecsElapsed()) / 1e6;
    double slice = 0;
    while (!view.settled()) {
        QElapsedTimer turn;
        turn.start();
        QCoreApplication::processEvents();
        slice = std::max(slice, static_cast<double>(turn.nsecsElapsed()) / 1e6);
    }
    const double placed = static_cast<double>(clock.nsecsElapsed()) / 1e6;
    std::printf("%lld tokens: open %.0f ms, text on the screen after %.0f ms, all placed after %.0f ms "
                "(longest turn of the event "
                "loop %.1f ms), %.0f MB more\n",
                static_cast<long long>(tokens), open, text, placed, slice, resident() - before);

    QScrollBar* bar = view.verticalScrollBar();
    QWidget* viewport = view.viewport();
    Times wheel;
    for (int i = 0; i < 600; ++i) {
        wheel.frame(viewport, [&] { bar->setValue(bar->value() + 17); });
    }
    wheel.print("scroll by a third of a line");
    Times page;
    for (int i = 0; i < 300; ++i) {
        page.frame(viewport, [&] { bar->setValue(bar->value() + bar->pageStep()); });
    }
    page.print("scroll by pages");
    Times jump;
    for (int i = 0; i < 300; ++i) {
        const auto target = static_cast<qint64>(bar->maximum()) * (i * 7919 % 1000) / 1000;
        jump.frame(viewport, [&] { bar->setValue(static_cast<int>(target)); });
    }
    jump.print("jump anywhere");
    Times hover;
    const qint64 first = view.firstVisibleToken();
    for (int i = 0; i < 300; ++i) {
        hover.frame(viewport, [&] { selection.setHover(first + i % 100); });
    }
    hover.print("hover");
    Times arrows;
    for (int i = 0; i < 300; ++i) {
        arrows.frame(viewport, [&] { selection.setToken(first + i); });
    }
    arrows.print("arrow keys");
    Times recolour;
    for (int i = 0; i < 40; ++i) {
        recolour.frame(viewport, [&] { view.setQuantity(i % 2 == 0 ? Quantity::entropy : Quantity::nll); });
    }
    recolour.print("recolour");
    // What a moved slider of the policy lab costs: a replay over all tokens, then the text by its steps.
    ReplayTable table;
    {
        const auto count = static_cast<std::size_t>(tokens);
        const std::int64_t steps = 3;
        table.columns = SignalColumns(steps, count);
        for (const PolicySignal signal : {PolicySignal::nll, PolicySignal::entropy}) {
            table.columns.add(signal);
            for (std::int64_t k = 0; k <= steps; ++k) {
                const auto column = table.columns.column(signal, k);
                for (std::size_t i = 0; i < count; ++i) {
                    column[i] =
                        static_cast<float>((i * 2654435761U + static_cast<std::size_t>(k) * 977U) % 8000U) /
                        1000.0F;
                }
            }
        }
        table.ran.assign(count, static_cast<std::int32_t>(steps));
        table.nll.assign(count, 1.0F);
        table.sequences = {tokens};
        for (std::size_t i = 0; i < count; ++i) {
            table.places.push_back({0, static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(count)});
        }
        table.context.max_steps = steps;
        table.finish();
    }
    ReplayResult result;
    Times lab;
    for (int i = 0; i < 60; ++i) {
        lab.frame(viewport, [&] {
            replay(table, PolicySpec::parse("entropy:theta=" + std::to_string(0.5 + 0.1 * i)), result);
            view.setReplay({selection.runA(), 0, QStringLiteral("entropy"), 3, result.steps});
        });
    }
    view.setReplay({});
    lab.print("policy lab: move the slider");
    Times resize;
    for (int i = 0; i < 40; ++i) {
        resize.frame(viewport, [&] { panel.resize(900 + i * 5, 800); });
    }
    resize.print("resize by 5 pixels");
}

} // namespace

int main(int argc, char** argv) {
    if (qEnvironmentVariableIsEmpty("QT_QPA_PLATFORM")) {
        qputenv("QT_QPA_PLATFORM", "offscreen");
    }
    QApplication application(argc, argv);
    Theme theme(Appearance::light);
    QApplication::setStyle(new Style(theme));
    std::printf("text view, 900 x 800, platform %s\n", qPrintable(QGuiApplication::platformName()));
    for (const std::int64_t tokens : {std::int64_t{10'000}, std::int64_t{100'000}, std::int64_t{1'000'000}}) {
        measure(tokens);
    }
    return 0;
}
