// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/error.h"

#include <CLI/CLI.hpp>

#include <string>
#include <string_view>

namespace ponderscope::cli {

/// Each verb has one file. Each function adds its subcommand to the program; the subcommand's callback does
/// the work and throws ponderscope::Error; run_program turns that into a sentence and an exit code. A
/// callback that ends with another code than 0 throws CheckFailed or Cancelled.
#define PONDERSCOPE_VERB(name, where, description) void add_##name(CLI::App& program);
#include "app/cli/verbs.def"
#undef PONDERSCOPE_VERB

/// Adds the subcommand of a verb, with its description from verbs.def.
CLI::App* add_verb(CLI::App& program, const char* name);
/// For options that name an output file. An existing file is replaced, unless it is a trace or a checkpoint's
/// weights: a mistyped name would destroy it.
CLI::Validator replaces_no_trace();
/// Whether verbs.def has it as one of the engine's.
bool runs_in_engine(std::string_view name);
/// The first argument that is no option; nullptr: there is none.
const char* verb_of(int argc, char** argv);

/// Prints the error and its id on standard error, with \p prints_json on standard output too. Its exit code.
int fail(const Error& error, bool prints_json = false);
/// Runs a program with these verbs, its help, and the exit codes of console.h for thrown errors.
int run_program(int argc, char** argv, void (*add_verbs)(CLI::App& program));

} // namespace ponderscope::cli
