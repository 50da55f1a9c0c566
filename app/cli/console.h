// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/progress.h"
#include "core/stats/data_table.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

namespace ponderscope::cli {

using namespace plain_text; // NOLINT(google-build-using-namespace): of numbers in every report

/// Exit codes of every verb.
enum ExitCode : int { done = 0, check_failed = 1, wrong_input = 2, cancelled = 130 };

/// How to print progress on stderr: a line that rewrites itself on a terminal, one JSON object a line for
/// programs, or nothing.
enum class ProgressStyle { automatic, json, none };

/// --progress auto|json|none.
struct ProgressOption {
    ProgressStyle style = ProgressStyle::automatic;
    void add_to(CLI::App& verb);
};

/// Turns Progress into output with rate and time left. The sink may be called as often as the work likes; it
/// prints at most five times a second, and always when an activity ends.
class ProgressPrinter {
public:
    explicit ProgressPrinter(ProgressStyle style);
    ~ProgressPrinter();
    ProgressPrinter(const ProgressPrinter&) = delete;
    ProgressPrinter& operator=(const ProgressPrinter&) = delete;

    /// Valid while this object lives.
    [[nodiscard]] ProgressSink sink();
    /// Ends the line on a terminal.
    void finish();
    /// A line on standard error for each, where a person reads what is written there.
    void note(const std::vector<std::string>& notices);
    /// Whether progress is printed.
    [[nodiscard]] bool on_terminal() const { return terminal_; }

private:
    using Clock = std::chrono::steady_clock;
    void show(const Progress& progress);

    bool for_people_ = true;
    bool terminal_ = false;
    bool json_ = false;
    bool line_open_ = false;
    std::string activity_;
    Clock::time_point started_;
    Clock::time_point printed_;
    std::int64_t first_done_ = 0;
};

/// Stops when the user presses Ctrl+C (SIGINT), the terminal is gone (SIGHUP) or the process is asked to end
/// (SIGTERM). The second of these ends at once.
std::stop_token stop_on_interrupt();
/// Whether one of these signals arrived. ssh may receive the signal too, and its failure can be noticed
/// before the stop is requested: callers treat such a failure as the user's wish.
bool interrupted();

/// Prints \p document to standard output.
void print_json(const nlohmann::json& document);
/// A line for each, after \p indent.
void print_notices(const std::vector<std::string>& notices, const std::string& indent = {});

/// "4.6 GB", powers of 1000.
std::string human_bytes(double bytes);
/// "3:07" or "1:02:03".
std::string human_time(double seconds);

} // namespace ponderscope::cli
