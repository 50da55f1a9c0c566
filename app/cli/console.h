// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/notice.h"
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

using namespace plain_text; // NOLINT(google-build-using-namespace): every report formats numbers

/// Exit codes of all verbs.
enum ExitCode : int { done = 0, check_failed = 1, wrong_input = 2, cancelled = 130 };

/// The form of progress on stderr: one line that a terminal rewrites, one JSON object on each line for
/// programs, or nothing.
enum class ProgressStyle { automatic, json, none };

/// --progress auto|json|none.
struct ProgressOption {
    ProgressStyle style = ProgressStyle::automatic;
    void add_to(CLI::App& verb);
};

/// Prints progress with rate and remaining time, at most five times a second and always at the end of an
/// activity. The sink may be called at any rate.
class ProgressPrinter {
public:
    explicit ProgressPrinter(ProgressStyle style);
    ~ProgressPrinter();
    ProgressPrinter(const ProgressPrinter&) = delete;
    ProgressPrinter& operator=(const ProgressPrinter&) = delete;

    /// The result is valid while this object lives.
    [[nodiscard]] ProgressSink sink();
    /// Ends the progress line on a terminal.
    void finish();
    /// Prints each notice on a line of stderr; prints nothing with --progress json or none.
    void note(const Notices& notices);
    /// Whether progress is printed for people on a terminal.
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

/// Requests a stop when the user presses Ctrl+C (SIGINT), the terminal closes (SIGHUP) or the process is
/// asked to end (SIGTERM). A second signal ends the process at once.
std::stop_token stop_on_interrupt();
/// Whether a signal of stop_on_interrupt() has arrived. ssh receives the signal, too, and may fail before the
/// stop token is set. Callers then treat the failure of ssh as a cancellation.
bool interrupted();

void print_json(const nlohmann::json& document);
/// Prints each notice on a line, after \p indent.
void print_notices(const Notices& notices, const std::string& indent = {});

} // namespace ponderscope::cli
