// SPDX-License-Identifier: GPL-3.0-or-later
// `figure` and `open` belong to the desktop program; this one finds it and becomes it.
#include "app/cli/verbs.h"
#include "core/base/error.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

namespace ponderscope::cli {
namespace {

[[noreturn]] void become_desktop(std::vector<std::string> arguments) {
    std::error_code ignored;
    const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", ignored);
    const std::filesystem::path beside = self.parent_path() / "ponderscope-desktop";
    const bool is_beside = !self.empty() && std::filesystem::exists(beside, ignored);
    const std::string program = is_beside ? beside.string() : "ponderscope-desktop";
    std::vector<char*> argv;
    arguments.insert(arguments.begin(), program);
    argv.reserve(arguments.size() + 1);
    for (std::string& argument : arguments) {
        argv.push_back(argument.data());
    }
    argv.push_back(nullptr);
    sigset_t none; // this program waits for signals in a thread; the other one wants them delivered
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, nullptr);
    ::execvp(program.c_str(), argv.data());
    throw InputError(
        "This verb needs ponderscope-desktop, which was not found beside ponderscope or on PATH (" +
        std::string(std::strerror(errno)) + "); build it with -DPONDERSCOPE_DESKTOP=ON.");
}

} // namespace

void add_figure(CLI::App& program) {
    struct Verb {
        std::string spec;
        std::string output;
    };
    auto verb = std::make_shared<Verb>();
    CLI::App* app = program.add_subcommand(
        "figure", "Make a figure from its JSON spec, the same bytes every time (needs the desktop program)");
    app->add_option("spec", verb->spec, "Figure spec; - is standard input")
        ->required()
        ->type_name("SPEC.json");
    app->add_option("-o,--output", verb->output, "Figure to write: PDF, SVG, PNG, or CSV of its numbers")
        ->required()
        ->type_name("FILE.pdf|svg|png|csv");
    app->footer("Example:\n  ponderscope figure resources/figures/step_heatmap.json -o heatmap.pdf");
    app->callback([verb] { become_desktop({"--figure", verb->spec, "-o", verb->output}); });
}

void add_open(CLI::App& program) {
    auto paths = std::make_shared<std::vector<std::string>>();
    CLI::App* app = program.add_subcommand(
        "open", "Open traces or checkpoint folders in the window (needs the desktop program)");
    app->add_option("path", *paths, "Traces (TRACE.ponder or TRACE.ponder#RUN) and checkpoint folders");
    app->footer("Example:\n  ponderscope open story.ponder");
    app->callback([paths] { become_desktop(*paths); });
}

} // namespace ponderscope::cli
