// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QCoreApplication>
#include <QElapsedTimer>
#include <QWidget>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <ctime>
#include <vector>

namespace ponderscope::bench {

/// Time that this thread has computed, in ms: what a frame costs on a machine that does other things, too.
inline double computed() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

/// Frames of a gesture: its step and the painting that follows.
struct Times {
    std::vector<double> ms;
    std::vector<double> cpu;
    double longest_turn = 0; ///< of the event loop between frames, ms
    template <typename Step>
    void frame(QWidget* viewport, Step step) {
        QElapsedTimer timer;
        timer.start();
        const double before = computed();
        step();
        viewport->repaint();
        ms.push_back(static_cast<double>(timer.nsecsElapsed()) / 1e6);
        cpu.push_back(computed() - before);
        turn();
    }
    /// What else the event loop has to do.
    void turn() {
        QElapsedTimer timer;
        timer.start();
        QCoreApplication::processEvents();
        longest_turn = std::max(longest_turn, static_cast<double>(timer.nsecsElapsed()) / 1e6);
    }
    void print(const char* gesture) {
        const auto at = [](std::vector<double>& values, double q) {
            std::sort(values.begin(), values.end());
            return values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1))];
        };
        std::printf("    %-28s %5zu frames   median %6.2f ms   p99 %6.2f ms   computing: median %6.2f ms   "
                    "p99 %6.2f ms   longest turn %6.2f ms\n",
                    gesture, ms.size(), at(ms, 0.5), at(ms, 0.99), at(cpu, 0.5), at(cpu, 0.99), longest_turn);
    }
};

} // namespace ponderscope::bench
