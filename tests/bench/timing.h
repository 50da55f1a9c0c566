// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

namespace ponderscope::bench {

inline double median(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

template <typename Work>
double seconds_of(const Work& work) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Programs that wanted a processor in the last minute, which says what a figure is worth; -1: not known.
inline double load() {
    double average = 0;
    return ::getloadavg(&average, 1) == 1 ? average : -1;
}

/// What the machine did while something was measured, in parts of its processors' time, from one or more
/// stretches: whether others had them, or the host behind a virtual machine took them away. Linux; elsewhere
/// only the load is known.
class Busy {
public:
    void begin() { before_ = now(); }
    void end() {
        const Times after = now();
        total_.all += after.all - before_.all;
        total_.idle += after.idle - before_.idle;
        total_.stolen += after.stolen - before_.stolen;
        total_.own += after.own - before_.own;
    }
    /// "load 3.9, others 12 %, stolen 1 %"
    [[nodiscard]] std::string text() const {
        char line[80];
        if (total_.all <= 0) {
            std::snprintf(line, sizeof line, "load %.1f", load());
            return line;
        }
        const double others = total_.all - total_.idle - total_.stolen - total_.own;
        std::snprintf(line, sizeof line, "load %.1f, others %.0f %%, stolen %.0f %%", load(),
                      100 * std::max(0.0, others / total_.all), 100 * total_.stolen / total_.all);
        return line;
    }

private:
    struct Times {
        double all = 0, idle = 0, stolen = 0, own = 0; ///< seconds of all processors
    };
    static Times now() {
        Times times;
        std::ifstream file("/proc/stat");
        std::string name;
        double part = 0;
        file >> name;
        for (int i = 0; i < 8 && file >> part; ++i) { // user nice system idle iowait irq softirq steal
            part /= static_cast<double>(::sysconf(_SC_CLK_TCK));
            times.all += part;
            times.idle += i == 3 || i == 4 ? part : 0;
            times.stolen += i == 7 ? part : 0;
        }
        for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
            ::rusage usage{};
            ::getrusage(who, &usage);
            for (const auto& time : {usage.ru_utime, usage.ru_stime}) {
                times.own += static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
            }
        }
        return times;
    }
    Times before_, total_;
};

/// The median of one of several things to do, and what the machine did meanwhile.
struct Timed {
    double seconds = 0;
    double processor =
        0; ///< seconds of all threads: what is left to compare where others want the machine too
    std::string machine;
};

/// Each of several things to do, in rounds that are interleaved, so that what else the machine does meets all
/// of them alike. A round before them warms up.
template <typename Actions>
std::vector<Timed> interleaved(const Actions& actions, int rounds) {
    std::vector<std::vector<double>> seconds(actions.size());
    std::vector<std::vector<double>> processor(actions.size());
    std::vector<Busy> busy(actions.size());
    for (int round = -1; round < rounds; ++round) {
        for (std::size_t i = 0; i < actions.size(); ++i) {
            busy[i].begin();
            const std::clock_t clock = std::clock();
            const double taken = seconds_of(actions[i]);
            if (round >= 0) {
                busy[i].end();
                seconds[i].push_back(taken);
                processor[i].push_back(static_cast<double>(std::clock() - clock) / CLOCKS_PER_SEC);
            }
        }
    }
    std::vector<Timed> timed;
    for (std::size_t i = 0; i < actions.size(); ++i) {
        timed.push_back({median(seconds[i]), median(processor[i]), busy[i].text()});
    }
    return timed;
}

/// "--name value" pairs over what is preset. Nothing, and what there is to choose on standard error, for any
/// other argument.
inline std::optional<std::map<std::string, std::string>>
options_of(int argc, char** argv, std::map<std::string, std::string> options) {
    for (int i = 1; i < argc; i += 2) {
        const auto found = options.find(argv[i]);
        if (found == options.end() || i + 1 == argc) {
            std::fprintf(stderr, "usage: %s", argv[0]);
            for (const auto& [name, value] : options) {
                std::fprintf(stderr, " [%s %s]", name.c_str(), value.c_str());
            }
            std::fprintf(stderr, "\n");
            return std::nullopt;
        }
        found->second = argv[i + 1];
    }
    return options;
}

} // namespace ponderscope::bench
