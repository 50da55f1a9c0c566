// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/verbs.h"
#include "core/base/error.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

namespace ponderscope::cli {

namespace fs = std::filesystem;

namespace {

fs::path own_folder() {
    std::error_code ignored;
    return fs::read_symlink("/proc/self/exe", ignored).parent_path();
}

bool is_there(const fs::path& path) {
    std::error_code ignored;
    return fs::exists(path, ignored);
}

std::string environment(const char* name) {
    const char* value = std::getenv(name);
    return value != nullptr ? value : "";
}

std::vector<fs::path> places_of_libtorch() {
    std::vector<fs::path> places;
    for (const char* hint : {"Torch_DIR", "LIBTORCH"}) {
        if (const std::string folder = environment(hint); !folder.empty()) {
            // Torch_DIR conventionally names share/cmake/Torch inside the tree.
            places.insert(places.end(), {folder, fs::path(folder) / "../../..", fs::path(folder) / "torch"});
        }
    }
    fs::path kept = environment("PONDERSCOPE_DEPS");
    if (kept.empty()) {
        const std::string cache = environment("XDG_CACHE_HOME");
        kept = (cache.empty() ? fs::path(environment("HOME")) / ".cache" : fs::path(cache)) / "ponderscope";
    }
    places.push_back(kept / "torch-" PONDERSCOPE_TORCH_VERSION / "torch");
    return places;
}

/// Whether LibTorch at \p torch has the version of the engine's build, or an unknown version.
bool fits(const fs::path& torch) {
    std::ifstream file(torch / "share/cmake/Torch/TorchConfigVersion.cmake");
    const std::string said{std::istreambuf_iterator<char>(file), {}};
    return said.empty() ||
           said.find("set(PACKAGE_VERSION \"" PONDERSCOPE_TORCH_VERSION "\")") != std::string::npos;
}

/// If the LibTorch of the engine's build is missing, puts another LibTorch of the same version at the front
/// of LD_LIBRARY_PATH. InputError: none was found.
void find_libtorch() {
    if (is_there(fs::path(PONDERSCOPE_TORCH_ROOT) / "lib/libtorch_cpu.so")) {
        return;
    }
    std::string looked;
    for (const fs::path& place : places_of_libtorch()) {
        const fs::path libraries = place / "lib";
        if (is_there(libraries / "libtorch_cpu.so") && fits(place)) {
            const std::string others = environment("LD_LIBRARY_PATH");
            ::setenv("LD_LIBRARY_PATH", (libraries.string() + (others.empty() ? "" : ":" + others)).c_str(),
                     1);
            return;
        }
        looked += (looked.empty() ? "" : ", ") + place.string() +
                  (is_there(libraries / "libtorch_cpu.so") ? " (another version)" : "");
    }
    throw InputError(
        ErrorId::environment_program,
        "This verb needs LibTorch " PONDERSCOPE_TORCH_VERSION ", which was not found (searched: " + looked +
            "). Set Torch_DIR to the folder of an unpacked LibTorch, or install the wheel "
            "torch==" PONDERSCOPE_TORCH_VERSION " and set Torch_DIR to its folder torch.");
}

} // namespace

void become_desktop(std::vector<std::string> arguments) {
    const fs::path beside = own_folder() / "ponderscope-desktop";
    const std::string program = is_there(beside) ? beside.string() : "ponderscope-desktop";
    std::vector<char*> argv;
    arguments.insert(arguments.begin(), program);
    argv.reserve(arguments.size() + 1);
    for (std::string& argument : arguments) {
        argv.push_back(argument.data());
    }
    argv.push_back(nullptr);
    sigset_t none; // unblocks signals, which this program blocks for its signal thread
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, nullptr);
    ::execvp(program.c_str(), argv.data());
    throw InputError(
        ErrorId::environment_program,
        "This verb needs ponderscope-desktop, which was not found beside ponderscope or on PATH (" +
            std::string(std::strerror(errno)) + "); build it with -DPONDERSCOPE_DESKTOP=ON.");
}

void become_engine(char** argv) {
    const fs::path folder = own_folder();
    for (const fs::path& engine :
         {folder / "ponderscope-engine", folder / "../lib/ponderscope/ponderscope-engine"}) {
        if (is_there(engine)) {
            find_libtorch();
            ::execv(engine.c_str(), argv);
            throw InputError(ErrorId::environment_program, engine, "an engine that can be started",
                             std::string("the error: ") + std::strerror(errno),
                             "install or build the engine again");
        }
    }
    throw InputError(ErrorId::environment_program,
                     "This verb needs ponderscope-engine, which was not found beside ponderscope or in "
                     "../lib/ponderscope; "
                     "install the package ponderscope, or build with -DPONDERSCOPE_ENGINE=ON.");
}

} // namespace ponderscope::cli
