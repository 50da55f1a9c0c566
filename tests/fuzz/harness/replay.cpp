// SPDX-License-Identifier: GPL-3.0-or-later
// A harness without libFuzzer, in every build: replay PATH...: the inputs that are kept (of a folder all of
// its files) and an empty one, each as it is and in seeded changes, the same ones everywhere.
// PONDERSCOPE_FUZZ_ROUNDS: how many of these.
#include "core/base/splitmix.h"
#include "tests/fuzz/mutate.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

extern "C" {
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
__attribute__((weak)) std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                                          std::size_t most, unsigned int seed);

/// What libFuzzer gives to mutators of a harness.
std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most) {
    static std::uint64_t calls = 0;
    const std::string changed =
        ponderscope::testing::Mutator(++calls)(std::string(reinterpret_cast<const char*>(data), size));
    const std::size_t kept = std::min(changed.size(), most);
    std::memcpy(data, changed.data(), kept);
    return kept;
}
}

namespace {

std::string now; // what is tried, for whoever looks for the reason of an end

void say_which(int signal) {
    (void)!write(STDERR_FILENO, now.data(), now.size());
    std::signal(signal, SIG_DFL);
    std::raise(signal);
}

std::string changed(const std::string& input, unsigned int seed) {
    if (LLVMFuzzerCustomMutator == nullptr) {
        return ponderscope::testing::Mutator(seed)(input);
    }
    std::vector<std::uint8_t> bytes(input.begin(), input.end());
    bytes.resize(std::max<std::size_t>(input.size(), 131072));
    bytes.resize(LLVMFuzzerCustomMutator(bytes.data(), input.size(), bytes.size(), seed));
    return {bytes.begin(), bytes.end()};
}

} // namespace

int main(int count, char** arguments) {
    namespace fs = std::filesystem;
    std::vector<std::pair<std::string, std::string>> inputs{{"the empty input", ""}};
    const auto add = [&](const fs::path& file) {
        std::ifstream stream(file, std::ios::binary);
        inputs.emplace_back(file.string(), std::string(std::istreambuf_iterator<char>(stream), {}));
    };
    for (int i = 1; i < count; ++i) {
        if (fs::is_directory(arguments[i])) {
            for (const auto& entry : fs::directory_iterator(arguments[i])) {
                add(entry.path());
            }
        } else {
            add(arguments[i]);
        }
    }
    const char* set = std::getenv("PONDERSCOPE_FUZZ_ROUNDS");
    const int rounds = set != nullptr ? std::max(0, std::atoi(set)) : 40;
    for (const int signal : {SIGABRT, SIGSEGV, SIGFPE, SIGBUS, SIGILL}) {
        std::signal(signal, say_which);
    }
    for (const auto& [name, input] : inputs) {
        for (int round = 0; round <= rounds; ++round) {
            now = "at " + name + ", change " + std::to_string(round) + "\n";
            const std::string bytes = round == 0 ? input : changed(input, static_cast<unsigned int>(round));
            LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
        }
    }
    std::printf("%zu inputs, each as it is and in %d changes\n", inputs.size(), rounds);
    return 0;
}
