// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/console.h"

#include "core/base/json.h"
#include "core/base/not_a_number.h"
#include "core/base/utf8.h"

#include <cmath>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <map>
#include <thread>

#include <pthread.h>
#include <unistd.h>

namespace ponderscope::cli {

namespace {

/// "3:07" or "1:02:03".
std::string human_time(double seconds) {
    const auto whole = static_cast<std::int64_t>(std::ceil(seconds));
    const auto two = [](std::int64_t value) {
        std::string digits = std::to_string(value);
        digits.insert(0, digits.size() < 2 ? 1 : 0, '0');
        return digits;
    };
    const std::int64_t hours = whole / 3600;
    const std::int64_t minutes = whole / 60 % 60;
    return hours > 0 ? std::to_string(hours) + ":" + two(minutes) + ":" + two(whole % 60)
                     : std::to_string(minutes) + ":" + two(whole % 60);
}

sigset_t ending_signals() {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    // SIGHUP: the terminal was closed. Left out if nohup ignores the signal, because sigwait() would get it.
    struct sigaction hang_up = {};
    sigaction(SIGHUP, nullptr, &hang_up);
    if (hang_up.sa_handler != SIG_IGN) {
        sigaddset(&signals, SIGHUP);
    }
    return signals;
}

} // namespace

void ProgressOption::add_to(CLI::App& verb) {
    static const std::map<std::string, ProgressStyle> styles{
        {"auto", ProgressStyle::automatic}, {"json", ProgressStyle::json}, {"none", ProgressStyle::none}};
    verb.add_option("--progress", style,
                    "Progress on standard error, one of auto, json, none: auto prints on a terminal, json "
                    "one object a line")
        ->transform(CLI::CheckedTransformer(styles).description("{auto,json,none}"))
        ->type_name("TEXT")
        ->default_str("auto");
}

void print_json(const nlohmann::json& document) {
    std::cout << document.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
}

void print_notices(const Notices& notices, const std::string& indent) {
    for (const Notice& notice : notices) {
        std::cout << indent << "note: " << visible(notice.text) << "\n";
    }
}

ProgressPrinter::ProgressPrinter(ProgressStyle style)
    : for_people_(style == ProgressStyle::automatic),
      terminal_(for_people_ && ::isatty(STDERR_FILENO) == 1),
      json_(style == ProgressStyle::json) {}

ProgressPrinter::~ProgressPrinter() {
    finish();
}

ProgressSink ProgressPrinter::sink() {
    if (!terminal_ && !json_) {
        return {};
    }
    return [this](const Progress& progress) { show(progress); };
}

void ProgressPrinter::finish() {
    if (line_open_) {
        std::fputc('\n', stderr);
        line_open_ = false;
    }
}

void ProgressPrinter::note(const Notices& notices) {
    if (for_people_ && !notices.empty()) {
        finish();
        for (const Notice& notice : notices) {
            std::cerr << "note: " << printable(notice.text, notice.text.size()) << '\n';
        }
    }
}

void ProgressPrinter::show(const Progress& progress) {
    const Clock::time_point now = Clock::now();
    const bool other = progress.activity != activity_;
    if (other) {
        finish();
        activity_ = progress.activity;
        started_ = now;
        first_done_ = progress.done;
    }
    const bool last = progress.total > 0 && progress.done >= progress.total;
    if (!other && !last && now - printed_ < std::chrono::milliseconds(200)) {
        return;
    }
    printed_ = now;
    const double seconds = std::chrono::duration<double>(now - started_).count();
    const double rate = seconds > 0 ? static_cast<double>(progress.done - first_done_) / seconds : 0.0;
    const double left = rate > 0 && progress.total > 0 && progress.total >= progress.done
                            ? static_cast<double>(progress.total - progress.done) / rate
                            : not_a_number;
    if (json_) {
        nlohmann::json line{
            {"activity", progress.activity}, {"done", progress.done}, {"total", progress.total},
            {"unit", progress.unit},         {"rate", rate},          {"seconds_left", number_or_null(left)}};
        const std::string text = line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
        std::fputs(text.c_str(), stderr);
        std::fflush(stderr);
        return;
    }
    const bool bytes = progress.unit == "bytes";
    const auto amount = [bytes](double value) {
        return bytes ? human_bytes(value) : with_separators(std::llround(value));
    };
    std::string line = progress.activity + "  " + amount(static_cast<double>(progress.done));
    if (progress.total > 0) {
        line += " / " + amount(static_cast<double>(progress.total));
    }
    if (!bytes) {
        line += " " + progress.unit;
    }
    if (rate > 0) {
        line += "  " + amount(rate) + (bytes ? "/s" : " " + progress.unit + "/s");
    }
    if (left >= 0 && !last) {
        line += "  " + human_time(left) + " left";
    }
    std::fprintf(stderr, "\r\033[K%s", line.c_str());
    std::fflush(stderr);
    line_open_ = true;
}

bool interrupted() {
    sigset_t waiting; // signals that the signal thread has not received yet
    sigemptyset(&waiting);
    sigpending(&waiting);
    const sigset_t ending = ending_signals();
    const auto is_there = [&](int number) {
        return sigismember(&ending, number) == 1 && sigismember(&waiting, number) == 1;
    };
    return stop_on_interrupt().stop_requested() || is_there(SIGINT) || is_there(SIGTERM) || is_there(SIGHUP);
}

std::stop_token stop_on_interrupt() {
    // A thread that waits for the signals may call any function, unlike a signal handler. All other threads
    // block the signals.
    static std::stop_source* source = [] {
        auto* made = new std::stop_source; // lives as long as the process: the thread below uses it
        const sigset_t signals = ending_signals();
        pthread_sigmask(SIG_BLOCK, &signals, nullptr);
        std::thread([made, signals] {
            for (;;) {
                int number = 0;
                if (sigwait(&signals, &number) != 0) {
                    continue;
                }
                if (made->stop_requested()) {
                    ::_exit(cancelled);
                }
                made->request_stop();
            }
        }).detach();
        return made;
    }();
    return source->get_token();
}

} // namespace ponderscope::cli
