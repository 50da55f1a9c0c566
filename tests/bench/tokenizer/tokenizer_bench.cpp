// SPDX-License-Identifier: GPL-3.0-or-later
// How fast a text becomes tokens, on one thread. Times are of this thread's processor time, so that
// neighbours on a busy machine count less; compare_with_wheel.py sets the figures beside those of the Python
// package `tokenizers` in one run.
//   tokenizer_bench                                        the reference tokenizers on the reference novels
//   tokenizer_bench --json TOKENIZER REPEATS FILE...       one line of JSON; each file is one text
#include "core/base/files.h"
#include "core/text/tokenizer.h"
#include "tests/support/test_data.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

double processor_seconds() {
    timespec t{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

// Resident now and at its peak, in bytes.
std::size_t memory(const char* key) {
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;) {
        if (word == key) {
            std::size_t kilobytes = 0;
            status >> kilobytes;
            return kilobytes * 1024;
        }
    }
    return 0;
}

nlohmann::json measure(const fs::path& tokenizer_path, const std::vector<std::string>& texts, int repeats) {
    const std::size_t before = memory("VmRSS:");
    const double start = processor_seconds();
    const auto tokenizer = ponderscope::Tokenizer::load_folder(tokenizer_path);
    const double loading = processor_seconds() - start;
    const std::size_t loaded = memory("VmRSS:");
    double first = 0;
    double best = 1e300;
    std::size_t tokens = 0;
    for (int i = 0; i < repeats; ++i) {
        const double begin = processor_seconds();
        tokens = 0;
        for (const std::string& text : texts) {
            tokens += tokenizer.encode(text).ids.size();
        }
        const double seconds = processor_seconds() - begin;
        first = i == 0 ? seconds : first;
        best = std::min(best, seconds);
    }
    std::size_t bytes = 0;
    for (const std::string& text : texts) {
        bytes += text.size();
    }
    return {{"bytes", bytes},
            {"tokens", tokens},
            {"load_seconds", loading},
            {"first_seconds", first},
            {"seconds", best},
            {"loaded_bytes", loaded > before ? loaded - before : 0},
            {"peak_bytes", memory("VmHWM:")}};
}

} // namespace

int main(int argc, char** argv) {
    try {
        if (argc > 4 && std::strcmp(argv[1], "--json") == 0) {
            std::vector<std::string> texts;
            for (int i = 4; i < argc; ++i) {
                texts.push_back(ponderscope::read_file(argv[i]));
            }
            std::cout << measure(argv[2], texts, std::stoi(argv[3])) << "\n";
            return 0;
        }
        const fs::path data = ponderscope::testing::test_data() / "external";
        if (!fs::is_directory(data / "tokenizers") || !fs::is_directory(data / "text" / "english_novels")) {
            std::cout << "reference data is absent; set PONDERSCOPE_TEST_DATA\n";
            return 0;
        }
        std::vector<fs::path> novels;
        for (const auto& entry : fs::directory_iterator(data / "text" / "english_novels")) {
            if (entry.path().extension() == ".txt") {
                novels.push_back(entry.path());
            }
        }
        std::sort(novels.begin(), novels.end());
        std::vector<std::string> texts;
        std::size_t bytes = 0;
        for (std::size_t i = 0; i < novels.size() && bytes < 15'000'000; ++i) {
            texts.push_back(ponderscope::read_file(novels[i]));
            bytes += texts.back().size();
        }
        std::cout << "tokenizer         load ms   MB/s first   MB/s   (" << bytes / 1'000'000
                  << " MB of novels)\n";
        for (const char* name : {"gpt2", "gpt_neox_pythia", "llama3", "qwen3", "llama2"}) {
            const nlohmann::json r = measure(data / "tokenizers" / name, texts, 3);
            const double megabytes = static_cast<double>(bytes) * 1e-6;
            std::cout << std::left << std::setw(16) << name << std::right << std::fixed
                      << std::setprecision(0) << std::setw(9) << r["load_seconds"].get<double>() * 1e3
                      << std::setprecision(1) << std::setw(13) << megabytes / r["first_seconds"].get<double>()
                      << std::setw(7) << megabytes / r["seconds"].get<double>() << "\n";
        }
        return 0;
    } catch (const std::exception& error) {
        std::cerr << error.what() << "\n";
        return 2;
    }
}
