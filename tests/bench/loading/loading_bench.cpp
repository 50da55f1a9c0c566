// SPDX-License-Identifier: GPL-3.0-or-later
// loading_bench CHECKPOINT [float32|bfloat16|float16]: loads the weights onto the CPU once and prints a line
// of JSON: seconds, bytes of the weights in the run's precision, and the most memory that was resident
// meanwhile, before and with them.
#include "core/base/error.h"
#include "core/ponder/engine/engine.h"

#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <string>

namespace {

/// VmHWM or VmRSS of this process, in bytes.
double memory(const std::string& key) {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
        if (line.starts_with(key + ":")) {
            return std::stod(line.substr(key.size() + 1)) * 1024;
        }
    }
    return 0;
}

} // namespace

int main(int argc, char** argv) {
    using namespace ponderscope;
    if (argc < 2) {
        std::cerr << "loading_bench CHECKPOINT [float32|bfloat16|float16]\n";
        return 2;
    }
    try {
        LoadOptions options;
        options.precision = precision_from_string(argc > 2 ? argv[2] : "float32").value();
        std::int64_t elements = 0;
        options.progress = [&](const Progress&) {};
        const Checkpoint checkpoint = Checkpoint::open(argv[1]);
        for (const std::string& name : checkpoint.weights.names()) {
            std::int64_t product = 1;
            for (const std::int64_t size : checkpoint.weights.find(name)->shape) {
                product *= size;
            }
            elements += product;
        }
        const double base = memory("VmRSS");
        const auto start = std::chrono::steady_clock::now();
        const Engine engine = Engine::load(checkpoint, options);
        const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
        const double weights =
            static_cast<double>(elements) * (options.precision == Precision::float32 ? 4 : 2);
        std::printf("{\"seconds\": %.4f, \"weight_bytes\": %.0f, \"base_bytes\": %.0f, \"peak_bytes\": %.0f, "
                    "\"peak_over_weights\": %.4f}\n",
                    seconds.count(), weights, base, memory("VmHWM"), (memory("VmHWM") - base) / weights);
    } catch (const Error& error) {
        std::cerr << error.what() << '\n';
        return 2;
    }
    return 0;
}
