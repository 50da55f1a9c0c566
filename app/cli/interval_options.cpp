// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/interval_options.h"

namespace ponderscope::cli {

void IntervalOptions::add_to(CLI::App& verb) {
    verb.add_option("--block", bootstrap.block, "Tokens a bootstrap block")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    verb.add_option("--replicates", bootstrap.replicates, "Bootstrap replicates")
        ->check(CLI::Range(100, 10'000'000))
        ->capture_default_str();
    verb.add_option("--level", bootstrap.level, "Level of the intervals")
        ->check(CLI::Range(0.5, 0.9999))
        ->capture_default_str();
    verb.add_option("--interval", interval, "percentile or bca")
        ->check(CLI::IsMember({"percentile", "bca"}))
        ->capture_default_str();
    verb.add_option("--seed", bootstrap.seed, "Of the bootstrap")->capture_default_str();
}

void IntervalOptions::begin(ProgressPrinter& printer) {
    bootstrap.kind = interval == "bca" ? IntervalKind::bca : IntervalKind::percentile;
    bootstrap.progress = printer.sink();
    bootstrap.stop = stop_on_interrupt();
}

void IntervalOptions::write_to(nlohmann::json& report) const {
    report["block"] = bootstrap.block;
    report["replicates"] = bootstrap.replicates;
    report["level"] = bootstrap.level;
    report["interval"] = interval;
    report["seed"] = bootstrap.seed;
}

std::string IntervalOptions::sentence() const {
    return fixed(bootstrap.level * 100, 0) + " % intervals, paired moving-block bootstrap: blocks of " +
           std::to_string(bootstrap.block) + " tokens, " + with_separators(bootstrap.replicates) +
           " replicates";
}

} // namespace ponderscope::cli
