// SPDX-License-Identifier: GPL-3.0-or-later
// A harness without libFuzzer, in every build: replay PATH...: the inputs that are kept (of a folder all of
// its files) and an empty one, each as it is and in seeded changes, the same ones everywhere.
// PONDERSCOPE_FUZZ_ROUNDS: how many of these.
#include "core/base/splitmix.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <unistd.h>

namespace {

/// Damages valid input in ways that parsers have fallen for: flipped bits, lying numbers, lost and doubled
/// parts. A function of the seed alone, so that a failure can be made again from its number.
class Mutator {
public:
    explicit Mutator(std::uint64_t seed) : seed_(seed) {}

    std::string operator()(std::string text) {
        const std::uint64_t times = 1 + draw(4);
        for (std::uint64_t i = 0; i < times && !text.empty(); ++i) {
            mutate(text);
        }
        return text;
    }

    /// In [0, bound).
    std::uint64_t draw(std::uint64_t bound) {
        return ponderscope::bounded(ponderscope::splitmix64(seed_, draws_++), bound);
    }

private:
    void mutate(std::string& text) {
        const std::size_t at = draw(text.size());
        const std::size_t length = 1 + draw(16);
        switch (draw(9)) {
        case 0:
            text[at] = static_cast<char>(static_cast<unsigned char>(text[at]) ^ (1U << draw(8)));
            break;
        case 1:
            text[at] = static_cast<char>(draw(256));
            break;
        case 2:
            text.resize(at);
            break;
        case 3:
            text.erase(at, length);
            break;
        case 4:
            text.insert(at, text.substr(draw(text.size()), length));
            break;
        case 5:
            text.insert(at, std::string(length, static_cast<char>(draw(256))));
            break;
        case 6:
            replace_number(text, at);
            break;
        case 7:
            text.insert(at, pieces[draw(pieces.size())]);
            break;
        default:
            std::swap(text[at], text[draw(text.size())]);
            break;
        }
    }

    /// The digits at or after \p at become a number that overflows something.
    void replace_number(std::string& text, std::size_t at) {
        const std::size_t begin = text.find_first_of("0123456789", at);
        if (begin == std::string::npos) {
            return;
        }
        const std::size_t end = text.find_first_not_of("0123456789", begin);
        text.replace(begin, (end == std::string::npos ? text.size() : end) - begin,
                     numbers[draw(numbers.size())]);
    }

    static constexpr std::array<std::string_view, 12> numbers{"0",
                                                              "1",
                                                              "-1",
                                                              "255",
                                                              "65536",
                                                              "4294967296",
                                                              "9223372036854775807",
                                                              "9223372036854775808",
                                                              "18446744073709551615",
                                                              "1e308",
                                                              "1e-400",
                                                              "0.5"};
    static constexpr std::array<std::string_view, 12> pieces{"[", "{", "}",       "]",    "\"",   "null",
                                                             ",", ":", "\\u0000", "\xC3", "true", "[[[[[[[["};

    std::uint64_t seed_;
    std::uint64_t draws_ = 0;
};

} // namespace

extern "C" {
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
__attribute__((weak)) std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                                          std::size_t most, unsigned int seed);

/// What libFuzzer gives to mutators of a harness.
std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most) {
    static std::uint64_t calls = 0;
    const std::string changed = Mutator(++calls)(std::string(reinterpret_cast<const char*>(data), size));
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
        return Mutator(seed)(input);
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
