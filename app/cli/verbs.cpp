// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/verbs.h"

#include "app/cli/console.h"
#include "core/base/error.h"
#include "core/base/scoped_stop.h"
#include "core/base/utf8.h"
#include "core/base/words.h"
#include "core/checkpoint/file_kind.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <iostream>
#include <new>
#include <string>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

namespace ponderscope::cli {

namespace {

enum class Where { front, engine };

struct Verb {
    const char* name;
    Where where;
    const char* description;
};

constexpr std::array verbs{
#define PONDERSCOPE_VERB(name, where, description) Verb{#name, Where::where, description},
#include "app/cli/verbs.def"
#undef PONDERSCOPE_VERB
};

const Verb* find(std::string_view name) {
    const auto found = std::ranges::find_if(verbs, [&](const Verb& verb) { return verb.name == name; });
    return found != verbs.end() ? &*found : nullptr;
}

InputError unknown_verb(const std::string& word) {
    std::vector<std::string_view> names;
    for (const Verb& verb : verbs) {
        names.emplace_back(verb.name);
    }
    return {ErrorId::usage_verb, "There is no verb '" + word + "'" + did_you_mean(word, names) +
                                     " ponderscope --help lists the verbs."};
}

/// Our own message, because CLI11 lists unexpected words in reverse order, includes the values of unknown
/// options, and does not name the verb.
InputError wrong_use(const CLI::App& program, const CLI::ParseError& error) {
    for (const CLI::App* verb : program.get_subcommands()) {
        std::vector<std::string> unexpected = verb->remaining();
        std::erase(unexpected, "--");
        if (unexpected.empty()) {
            continue;
        }
        std::string word = unexpected.front();
        const std::string help = " ponderscope " + verb->get_name() + " --help-all lists its arguments.";
        if (!word.starts_with('-') || word == "-") {
            return {ErrorId::usage_option, verb->get_name() + ": unexpected argument '" + word + "'." + help};
        }
        word.resize(std::min(word.size(), word.find('=')));
        std::vector<std::string> names;
        for (const CLI::Option* option : verb->get_options()) {
            for (const std::string& name : option->get_lnames()) {
                names.push_back("--" + name);
            }
        }
        return {ErrorId::usage_option,
                verb->get_name() + " has no option " + word +
                    did_you_mean(word, std::vector<std::string_view>(names.begin(), names.end())) + help};
    }
    const std::string kind = error.get_name();
    const bool is_missing = kind == "RequiredError" || kind == "RequiresError";
    if (program.get_subcommands().empty() && is_missing) {
        return {ErrorId::usage_verb, "Expected a verb, found none; ponderscope --help lists the verbs."};
    }
    const std::string said = error.what();
    return {is_missing                ? ErrorId::usage_missing
            : kind == "ExcludesError" ? ErrorId::usage_conflict
                                      : ErrorId::usage_value,
            said + (said.ends_with('.') ? "" : ".") + " Run with --help for the usage."};
}

/// A full disk is an error, because standard output may be a verb's only result. A standard output that was
/// closed from the start is not an error.
int after_printing() {
    errno = 0;
    std::cout.flush();
    const int flushed = std::fflush(stdout);
    const int error = errno; // 0 if an earlier write failed
    const bool lost = !std::cout || flushed != 0 || std::ferror(stdout) != 0;
    if (!lost || ::fcntl(STDOUT_FILENO, F_GETFD) < 0) {
        return done;
    }
    return fail(
        EnvironmentError(error == ENOSPC ? ErrorId::file_space : ErrorId::environment_failed,
                         "cannot write to standard output" +
                             (error != 0 ? ": " + std::generic_category().message(error) : std::string()) +
                             ". Free space on its disk, or print to another file."));
}

/// The error for an empty file name, for example from an empty variable in a script.
std::string no_name() {
    return "expected a file name, found an empty name; give the name of the file to write.";
}

} // namespace

CLI::App& add_verb(CLI::App& program, const char* name) {
    return *program.add_subcommand(name, find(name)->description);
}

CLI::Validator replaces_no_trace() {
    return {[](std::string& name) {
                if (name.empty()) {
                    return no_name();
                }
                std::error_code error; // do not read devices
                const FileKind kind =
                    std::filesystem::is_regular_file(name, error) ? recognise_file(name) : FileKind::unknown;
                return kind == FileKind::sqlite || kind == FileKind::safetensors
                           ? name + ": expected a new file or a file that may be replaced, found " +
                                 (kind == FileKind::sqlite ? "a trace" : "weights") + "; choose another name."
                           : std::string();
            },
            {}};
}

int fail(const Error& error, bool prints_json) {
    // The sentence may quote text from an untrusted file.
    std::fprintf(stderr, "ponderscope: %s [%s]\n", visible(error.what()).c_str(), name_of(error.id()));
    switch (error.id()) {
    case ErrorId::check_failed: // the report is already printed
        return check_failed;
    case ErrorId::run_cancelled:
        return cancelled;
    default:
        if (prints_json) {
            std::cout << nlohmann::json{{"error", name_of(error.id())}, {"message", error.what()}}.dump(
                             -1, ' ', false, nlohmann::json::error_handler_t::replace)
                      << std::endl;
        }
        return wrong_input;
    }
}

bool runs_in_engine(std::string_view name) {
    const Verb* verb = find(name);
    return verb != nullptr && verb->where == Where::engine;
}

const char* verb_of(int argc, char** argv) {
    const auto found =
        std::find_if(argv + std::min(argc, 1), argv + argc, [](const char* word) { return *word != '-'; });
    return found != argv + argc ? *found : nullptr;
}

int run_program(int argc, char** argv, void (*add_verbs)(CLI::App& program)) {
    std::signal(SIGXFSZ, SIG_IGN); // a file size limit becomes a write error, with its message
    // Before any library starts a thread, so that all of them inherit the blocked signals.
    const ScopedStop scope(stop_on_interrupt()); // also stops waits for another machine

    CLI::App program{"Records and shows how language models decide how long to think about each token.\n"
                     "Every verb has --help with an example. TRACE.ponder#RUN names a run of a trace."};
    program.set_version_flag("--version", PONDERSCOPE_VERSION);
    program.require_subcommand(1);
    program.set_help_all_flag("--help-all", "Print every option and exit");
    add_verbs(program);
    format_help(program);
    const CLI::Validator named([](const std::string& name) { return name.empty() ? no_name() : ""; }, {});
    for (CLI::App* verb : program.get_subcommands({})) {
        if (CLI::Option* output = verb->get_option_no_throw("--output")) {
            output->check(named);
        }
        if (verb->help("", CLI::AppFormatMode::All).find("resources/docs/") != std::string::npos) {
            verb->footer("Pages of resources/docs are installed in share/doc/ponderscope.\n" +
                         verb->get_footer());
        }
    }
    if (const char* verb = verb_of(argc, argv); verb != nullptr && find(verb) == nullptr) {
        return fail(unknown_verb(verb));
    }
    const bool prints_json = std::find(argv, argv + argc, std::string_view("--json")) != argv + argc;
    try {
        program.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        // Help and version are "errors" of code 0 and print to stdout; the rest is wrong use.
        if (error.get_exit_code() == 0) {
            const std::vector<CLI::App*> verb = program.get_subcommands();
            if (error.get_name() == "CallForAllHelp" &&
                !verb.empty()) { // CLI11 would print the help of every verb
                std::cout << verb.front()->help("", CLI::AppFormatMode::All);
            } else {
                program.exit(error);
            }
            return after_printing();
        }
        return fail(wrong_use(program, error), prints_json);
    } catch (const Error& error) {
        const bool may_stop = error.id() != ErrorId::check_failed;
        return interrupted() && may_stop ? fail(Cancelled()) : fail(error, prints_json);
    } catch (const std::bad_alloc&) {
        return fail(MemoryExhausted("Out of memory. Use a smaller --batch or --context."), prints_json);
    } catch (const std::filesystem::filesystem_error& error) {
        return fail(InputError(ErrorId::environment_failed, error.path1(), "a usable path",
                               "the error: " + error.code().message(), "check the name and the permissions"),
                    prints_json);
    } catch (const std::system_error& error) { // from std::thread
        return fail(EnvironmentError(ErrorId::environment_limit,
                                     "The system has no more threads or memory (" + error.code().message() +
                                         "); close other programs or raise this shell's limits (ulimit)."),
                    prints_json);
    } catch (const std::exception& error) {
        return fail(Error(ErrorId::program_unexpected, std::string("Unexpected: ") + error.what()),
                    prints_json);
    }
    return after_printing();
}

} // namespace ponderscope::cli
