// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/error.h"

#include <CLI/CLI.hpp>

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ponderscope::cli {

/// Each verb has its own file. add_NAME adds the verb's subcommand to the program. The subcommand's callback
/// does the work. It may throw ponderscope::Error, CheckFailed or Cancelled. run_program turns these
/// exceptions into a message and an exit code.
#define PONDERSCOPE_VERB(name, where, description) void add_##name(CLI::App& program);
#include "app/cli/verbs.def"
#undef PONDERSCOPE_VERB

/// Adds the subcommand of a verb, with its description from verbs.def.
CLI::App& add_verb(CLI::App& program, const char* name);
/// Like add_verb(), and makes a \p Verb with the verb's options. The subcommand owns it and calls its run().
template <typename Verb>
std::pair<CLI::App&, Verb&> add_verb(CLI::App& program, const char* name) {
    const auto verb = std::make_shared<Verb>();
    CLI::App& app = add_verb(program, name);
    app.callback([verb] { verb->run(); });
    return {app, *verb};
}
/// Formats the help of the program and its verbs, 80 columns wide. `--help` of a verb fits on a screen of 80
/// x 50: purpose, usage, the most important options with a few words each, one example. `--help-all`
/// describes every option.
void format_help(CLI::App& program);
/// Checks the name of an output file that the verb may replace. Refuses traces and weights of checkpoints,
/// which a mistyped name could destroy.
CLI::Validator replaces_no_trace();
/// Whether verbs.def assigns the verb to the engine.
bool runs_in_engine(std::string_view name);
/// The first argument that is not an option; nullptr: none.
const char* verb_of(int argc, char** argv);

/// Prints the error with its id on stderr, and with \p prints_json also on stdout. Returns the error's exit
/// code.
int fail(const Error& error, bool prints_json = false);
/// Whether `inspect` treats the path as a trace (a file or shards). Other paths are checkpoints.
bool is_trace(const std::filesystem::path& path);
/// Prints a description of a trace, as text or JSON.
void inspect_trace(const std::filesystem::path& path, bool json);
/// `inspect` for traces only, which needs no LibTorch.
void add_inspect_trace(CLI::App& program);

/// Replaces this process by ponderscope-desktop with these arguments. Searches beside this program, then on
/// PATH. InputError: not found.
[[noreturn]] void become_desktop(std::vector<std::string> arguments);
/// Replaces this process by ponderscope-engine with this program's arguments. Searches beside this program
/// and in ../lib/ponderscope. Uses the LibTorch of the engine's build, else the same version in Torch_DIR,
/// LIBTORCH or the download folder of ./run. InputError: the engine or LibTorch is missing.
[[noreturn]] void become_engine(char** argv);

/// Runs a program with these verbs and help. Returns an exit code of console.h, also for exceptions.
int run_program(int argc, char** argv, void (*add_verbs)(CLI::App& program));

} // namespace ponderscope::cli
