// SPDX-License-Identifier: GPL-3.0-or-later
// The window with a trace: time until it is painted, until the text and every panel are there, memory, and
// frame times of fixed gestures. A frame is the gesture's step and the painting that follows it, up to the
// window's backing store. Goal: the 99th percentile below the 16.7 ms of a 60 Hz screen.
//   views_bench [TOKENS]
#include "app/desktop/main_window.h"
#include "app/desktop/settings.h"
#include "tests/support/sample_trace.h"
#include "views/common/style.h"
#include "views/depth/depth_view.h"
#include "views/heatmap/heatmap_view.h"
#include "views/heatmap/step_map_canvas.h"
#include "views/policy/policy_lab.h"
#include "views/text/corpus_map.h"
#include "views/text/text_panel.h"
#include "views/text/text_view.h"

#include <QApplication>
#include <QComboBox>
#include <QElapsedTimer>
#include <QScrollBar>
#include <QSlider>
#include <QStandardPaths>
#include <QTableView>
#include <QTemporaryDir>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

using namespace Qt::StringLiterals;
using namespace ponderscope;

namespace {

/// Memory of this process in MB; 0 where /proc does not say it.
double resident_megabytes() {
    std::ifstream status("/proc/self/status");
    double kilobytes = 0;
    for (std::string word; status >> word;) {
        if (word == "VmRSS:") {
            status >> kilobytes;
        }
    }
    return kilobytes / 1000;
}

/// Time that this thread has computed, in ms: what a frame costs on a machine that does other things, too.
double computed() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

double milliseconds(const QElapsedTimer& clock) {
    return static_cast<double>(clock.nsecsElapsed()) / 1e6;
}

void gesture(const char* name, QWidget* widget, int frames, const std::function<void(int)>& step) {
    std::vector<double> ms, cpu;
    double longest_turn = 0; // of the event loop between frames
    QElapsedTimer clock;
    for (int i = 0; i < frames; ++i) {
        clock.start();
        const double before = computed();
        step(i);
        widget->repaint();
        ms.push_back(milliseconds(clock));
        cpu.push_back(computed() - before);
        clock.start();
        QCoreApplication::processEvents();
        longest_turn = std::max(longest_turn, milliseconds(clock));
    }
    const auto at = [](std::vector<double>& values, double q) {
        std::sort(values.begin(), values.end());
        return values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1))];
    };
    std::printf("    %-28s %5d frames   median %6.2f ms   p99 %6.2f ms   computing: median %6.2f ms   p99 "
                "%6.2f ms   longest turn %6.2f ms\n",
                name, frames, at(ms, 0.5), at(ms, 0.99), at(cpu, 0.5), at(cpu, 0.99), longest_turn);
}

/// Frame \p i of many that go all over the bar.
void jump(QScrollBar* bar, int i) {
    bar->setValue(static_cast<int>(static_cast<qint64>(bar->maximum()) * (i * 7919 % 1000) / 1000));
}

void measure_text(TextPanel& panel, Selection& selection) {
    TextView& view = panel.view();
    QScrollBar* bar = view.verticalScrollBar();
    QWidget* viewport = view.viewport();
    gesture("scroll by a third of a line", viewport, 600, [&](int) { bar->setValue(bar->value() + 17); });
    gesture("scroll by pages", viewport, 300, [&](int) { bar->setValue(bar->value() + bar->pageStep()); });
    gesture("jump anywhere", viewport, 300, [&](int i) { jump(bar, i); });
    const qint64 first = view.firstVisibleToken();
    gesture("hover", viewport, 300, [&](int i) { selection.setHover(first + i % 100); });
    gesture("arrow keys", viewport, 300, [&](int i) { selection.setToken(first + i); });
    const auto look = [](int i) { return i % 2 == 0 ? Quantity::entropy : Quantity::nll; };
    gesture("recolour", viewport, 40, [&](int i) { panel.setQuantity(look(i)); });
    panel.setZoom(TextZoom::tokens);
    QTableView& table = panel.table();
    gesture("a line a token: jump", table.viewport(), 300,
            [&](int i) { jump(table.verticalScrollBar(), i); });
    panel.setZoom(TextZoom::corpus);
    CorpusMap& map = panel.corpus();
    const auto settle = [&] {
        do {
            QCoreApplication::processEvents();
        } while (map.isBusy());
    };
    settle();
    const auto cell = [](int i) { return 1 + (i % 14 < 7 ? i % 14 : 14 - i % 14); };
    gesture("map: one to eight pixels", map.viewport(), 140, [&](int i) { map.setCell(cell(i)); });
    gesture("map: jump", map.viewport(), 300, [&](int i) { jump(map.verticalScrollBar(), i); });
    gesture("map: recolour, all of it", map.viewport(), 20, [&](int i) {
        panel.setQuantity(look(i));
        settle();
    });
    gesture("map: select", map.viewport(), 300, [&](int i) { selection.setToken(i * 31); });
    panel.setZoom(TextZoom::text);
}

void measure_map(QWidget& panel, StepMapCanvas& canvas, Selection& selection, std::int64_t tokens) {
    const auto all = static_cast<double>(tokens);
    gesture("map: pan", &panel, 200, [&](int i) { canvas.setView(all * i / 400, all * i / 400 + all / 2); });
    gesture("map: zoom", &panel, 200, [&](int i) { canvas.zoom(i < 100 ? 1.06 : 1 / 1.06, all / 3); });
    gesture("map: choose a token", &panel, 200, [&](int i) { selection.setToken(i * 31 % tokens); });
}

void measure(std::int64_t tokens) {
    const QTemporaryDir folder;
    const QString path = folder.filePath(u"bench.ponder"_s);
    testing::write_sample_trace(path.toStdString(),
                                {.sequences = 1, .tokens = tokens, .secondRun = false, .withDepth = true});
    const double before = resident_megabytes();
    QElapsedTimer clock;
    clock.start();
    Theme theme(Appearance::light);
    Settings settings(folder.filePath(u"settings.ini"_s));
    MainWindow window(theme, settings);
    window.resize(1440, 900);
    window.show();
    window.repaint();
    const double first = milliseconds(clock);
    window.open(path);
    while (!window.text().view().sequence()) {
        QCoreApplication::processEvents();
    }
    window.repaint();
    const double text = milliseconds(clock) - first;
    double longest_turn = 0;
    const auto settle = [&] {
        QElapsedTimer turn;
        do {
            turn.start();
            QCoreApplication::processEvents();
            longest_turn = std::max(longest_turn, milliseconds(turn));
        } while (window.isBusy());
    };
    settle();
    window.repaint();
    std::printf("%lld tokens: window painted after %.0f ms; from there the text after %.0f ms, every panel "
                "after %.0f ms (longest turn of the event loop %.1f ms), %.0f MB more\n",
                static_cast<long long>(tokens), first, text, milliseconds(clock) - first, longest_turn,
                resident_megabytes() - before);
    const auto raise = [&](const QString& panel) {
        std::printf("  %s\n", qPrintable(panel));
        window.raisePanel(panel);
        settle();
    };
    std::printf("  text\n");
    measure_text(window.text(), window.selection());
    gesture("resize by 5 pixels", &window, 40, [&](int i) { window.resize(1240 + i * 5, 900); });
    raise(u"heatmap"_s);
    auto& heatmap = window.panel<HeatmapView>();
    measure_map(heatmap, *heatmap.canvas(), window.selection(), tokens);
    raise(u"depth"_s);
    auto& depth = window.panel<DepthView>();
    measure_map(depth, *depth.map(), window.selection(), tokens);
    raise(u"lab"_s);
    auto& lab = window.panel<PolicyLab>();
    for (const char* policy : {"entropy", "learned", "calm_margin"}) {
        lab.policies()->setCurrentIndex(lab.policies()->findText(QLatin1String(policy)));
        gesture(policy, &window, 200, [&](int i) { lab.slider()->setValue(20 + i); });
    }
}

} // namespace

int main(int argc, char** argv) {
    if (qEnvironmentVariableIsEmpty("QT_QPA_PLATFORM")) {
        qputenv("QT_QPA_PLATFORM", "offscreen");
    }
    QApplication application(argc, argv);
    QStandardPaths::setTestModeEnabled(true); // nothing of the user's is read or written
    Theme theme(Appearance::light);
    QApplication::setStyle(new Style(theme));
    measure(argc > 1 ? std::stoll(argv[1]) : 1'000'000);
    return 0;
}
