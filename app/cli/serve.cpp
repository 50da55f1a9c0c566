// SPDX-License-Identifier: GPL-3.0-or-later
// The server side of remote access. Windows and verbs on another machine talk to it through ssh.
#include "core/remote/serve.h"

#include "app/cli/console.h"
#include "app/cli/verbs.h"
#include "core/remote/transport.h"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <unistd.h>

namespace ponderscope::cli {
namespace {

/// Expands a path, alone or as an option's value, with parts that only this machine can resolve. "/~/runs" is
/// below the home folder. "/a/b/.../c" is c in /a/b, or in the nearest folder above that contains c.
std::string resolved(std::string word) {
    const std::size_t value = word.starts_with("--") ? word.find('=') + 1 : 0;
    const char* home = std::getenv("HOME");
    if (home != nullptr && word.compare(value, 3, "/~/") == 0) {
        word.replace(value, 2, home);
    }
    constexpr std::string_view above = "/.../";
    if (const std::size_t dots = word.find(above); dots != std::string::npos) {
        namespace fs = std::filesystem;
        const fs::path named = word.substr(dots + above.size());
        std::error_code error;
        fs::path folder = word.substr(value, dots - value);
        while (!fs::exists(folder / named, error) && folder.has_relative_path()) {
            folder = folder.parent_path();
        }
        if (fs::exists(folder / named, error)) {
            word.replace(value, std::string::npos, (folder / named).string());
        }
    }
    return word;
}

/// Writes \p bytes to \p descriptor. False: the reader is gone.
bool pass_on(int descriptor, std::string& bytes) {
    while (!bytes.empty()) {
        const ssize_t put = ::write(descriptor, bytes.data(), bytes.size());
        if (put <= 0) {
            return false;
        }
        bytes.erase(0, static_cast<std::size_t>(put));
    }
    return true;
}

/// Runs a verb for a user on another machine and returns its exit code. A byte on standard input means
/// Ctrl+C. The end of standard input means a lost connection; the verb continues.
int run_verb(const std::vector<std::string>& words) {
    std::vector<std::string> command{"/proc/self/exe"};
    for (const std::string& word : words) {
        command.push_back(resolved(word));
    }
    remote::Transport verb(command, false);
    int input = STDIN_FILENO;
    bool open = true;
    bool heard = true;
    std::string out;
    std::string errors;
    while (open) {
        const remote::Transport::Ready ready = verb.wait(false, input, -1);
        if (ready.wake) {
            char byte = 0;
            const ssize_t got = ::read(input, &byte, 1);
            if (got > 0) {
                verb.interrupt();
            } else if (got == 0) {
                input = -1;
            }
        }
        // Drain the verb's output even if the reader is gone, so that the verb does not block.
        if (ready.read) {
            open = verb.read(out);
        }
        if (ready.errors) {
            verb.read_errors(errors);
        }
        heard = heard && pass_on(STDERR_FILENO, errors) && pass_on(STDOUT_FILENO, out);
        if (!heard) {
            out.clear();
            errors.clear();
        }
    }
    const int code = verb.end();
    verb.read_errors(errors);
    pass_on(STDERR_FILENO, errors);
    return code;
}

} // namespace

void add_serve(CLI::App& program) {
    struct Verb {
        ServeOptions options;
        std::vector<std::string> words; ///< the verb to run, with its arguments

        void run() const {
            std::signal(SIGPIPE, SIG_IGN); // a client may disconnect at any time
            if (words.empty()) {
                return serve(options, stop_on_interrupt());
            }
            // The verb has printed its errors, so only its exit code is passed on.
            std::_Exit(run_verb(words));
        }
    };
    auto [app, verb] = add_verb<Verb>(program, "serve");
    CLI::Option* root =
        app.add_option("--root", verb.options.root, "Serve only this folder")->type_name("DIR");
    app.add_option("run", verb.words,
                   "After --, a verb to run for the other machine: any byte on standard input stops it like "
                   "Ctrl+C; it continues if the connection breaks")
        ->type_name("VERB ARGUMENT...")
        ->excludes(root);
    app.footer(
        "ponderscope on the other machine starts this verb through ssh. The verb opens\nno port and asks for "
        "no password.\nExample, on the other machine:\n  ponderscope stats ssh://server/runs/story.ponder");
}

} // namespace ponderscope::cli
