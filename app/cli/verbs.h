// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <CLI/CLI.hpp>

namespace ponderscope::cli {

/// One file a verb. Each function adds its subcommand to the program; the subcommand's callback does the work
/// and throws ponderscope::Error; main turns that into a sentence and an exit code. A callback that ends with
/// another code than 0 throws CheckFailed or Cancelled.
void add_record(CLI::App& program);
void add_generate(CLI::App& program);
void add_logits(CLI::App& program);
void add_verify(CLI::App& program);
void add_inspect(CLI::App& program);
void add_tokenize(CLI::App& program);
void add_compare(CLI::App& program);
void add_policy(CLI::App& program);
void add_referee(CLI::App& program);
void add_stats(CLI::App& program);
void add_lineage(CLI::App& program);
void add_annotate(CLI::App& program);
void add_check(CLI::App& program);
void add_train(CLI::App& program);
void add_curves(CLI::App& program);
void add_merge(CLI::App& program);
void add_export(CLI::App& program);
void add_figure(CLI::App& program);
void add_open(CLI::App& program);
void add_page(CLI::App& program);

} // namespace ponderscope::cli
