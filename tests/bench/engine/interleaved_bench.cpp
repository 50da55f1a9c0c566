// SPDX-License-Identifier: GPL-3.0-or-later
// What exact scoring under the interleaved rule costs (PonderLM-2, PonderLM-3): beside scoring by three
// Jacobi refreshes, and beside decoding, every text a token at a time, all of them side by side. Rounds are
// interleaved; medians of processor time, for machines that are never quiet; no figure is asserted.
//   interleaved_bench [--model FOLDER] [--method ponderlm2] [--steps 3] [--hidden 512] [--layers 6]
//                     [--vocabulary 50304] [--windows 1,8] [--tokens 128] [--rounds 5] [--device cpu]
// Without a model: random weights of that shape (the defaults are Pythia-70M's), which come to rest sooner
// than trained ones do.
#include "core/base/splitmix.h"
#include "core/model/device.h"
#include "core/model/head.h"
#include "core/ponder/engine/engine.h"
#include "core/ponder/engine/model.h"
#include "core/ponder/schedule/steps.h"
#include "core/trace/reader.h"
#include "tests/bench/engine/random_checkpoint.h"
#include "tests/bench/program.h"
#include "tests/bench/timing.h"
#include "tests/support/test_data.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <string>

namespace ponderscope {
namespace {

using Options = std::map<std::string, std::string>;

Checkpoint make_checkpoint(const std::filesystem::path& folder, const Options& options) {
    const std::int64_t d = std::stoll(options.at("--hidden"));
    return bench::make_random_checkpoint(
        folder, {{"model_type", "gpt_neox"},
                 {"hidden_size", d},
                 {"intermediate_size", 4 * d},
                 {"num_hidden_layers", std::stoll(options.at("--layers"))},
                 {"num_attention_heads", std::max<std::int64_t>(1, d / 64)},
                 {"vocab_size", std::stoll(options.at("--vocabulary"))},
                 {"max_position_embeddings", 16384},
                 {"pondering",
                  {{"method", options.at("--method")}, {"max_steps", std::stoll(options.at("--steps"))}}}});
}

/// NLL of all tokens, window after window, the texts decoded side by side over a cache.
std::vector<float> decode(const Model& model, at::Device device, std::span<const Window> windows) {
    const c10::InferenceMode no_gradients;
    StepsOptions options;
    const std::int64_t slots = model.method().max_steps() + 1;
    const auto length = static_cast<std::int64_t>(windows.front().ids.size());
    const auto count = static_cast<std::int64_t>(windows.size());
    StepCache cache = make_step_cache(model.backbone(), model.method(), options, count * length, count);
    options.cache = &cache;
    std::vector<std::int64_t> rows;
    for (std::int64_t i = 0; i < count; ++i) {
        rows.push_back(i * length * slots);
    }
    std::vector<float> nll(static_cast<std::size_t>(count * length));
    for (std::int64_t t = 0; t < length; ++t) {
        std::vector<std::span<const std::int32_t>> fresh;
        std::vector<std::int64_t> targets;
        for (const Window& window : windows) {
            fresh.push_back(window.ids.subspan(static_cast<std::size_t>(t), 1));
            targets.push_back(t + 1 < length ? window.ids[static_cast<std::size_t>(t + 1)] : -1);
        }
        const TokenBatch batch =
            TokenBatch::make(model.backbone(), fresh, device, true,
                             std::vector<std::int64_t>(windows.size(), t), rows, cache.segment_rows);
        const StepsResult run = run_steps(model.backbone(), model.method(), batch, options);
        HeadRequest request;
        request.targets = at::tensor(targets, at::kLong).to(device);
        const at::Tensor read = read_out(run.readout, model.backbone().head(), request).nll.to(at::kCPU);
        for (std::int64_t i = 0; i < count; ++i) {
            nll[static_cast<std::size_t>(i * length + t)] = read.const_data_ptr<float>()[i];
        }
    }
    return nll;
}

void measure(Engine& engine, const Model& model, at::Device device, std::int64_t count, std::int64_t tokens,
             int rounds) {
    std::vector<std::vector<std::int32_t>> ids(static_cast<std::size_t>(count));
    std::vector<Window> windows;
    for (std::size_t row = 0; row < ids.size(); ++row) {
        for (std::int64_t t = 0; t < tokens; ++t) {
            ids[row].push_back(
                static_cast<std::int32_t>(bounded(splitmix64(row, static_cast<std::uint64_t>(t)),
                                                  static_cast<std::uint64_t>(engine.config().vocab_size))));
        }
        windows.push_back({ids[row], 0, tokens});
    }
    std::vector<WindowResult> exact;
    std::vector<float> decoded;
    const std::vector<bench::Timed> timed = bench::interleaved(
        std::vector<std::function<void()>>{[&] {
                                               engine.use_scoring(3);
                                               static_cast<void>(engine.score(windows, RecordLevel::nll));
                                           },
                                           [&] {
                                               engine.use_scoring(std::nullopt);
                                               exact = engine.score(windows, RecordLevel::basic);
                                           },
                                           [&] { decoded = decode(model, device, windows); }},
        rounds);
    double gap = 0;
    double passes = 0;
    double flops = 0;
    std::size_t place = 0;
    for (const WindowResult& window : exact) {
        for (const float nll : window.tokens.nll) {
            const double off = std::abs(static_cast<double>(nll) - decoded[place++]);
            gap = std::isnan(off) ? gap : std::max(gap, off); // last tokens have no NLL
        }
        for (const std::int64_t one : window.tokens.flops) {
            flops += static_cast<double>(one);
        }
        for (const auto& [name, chunk] : window.signals) {
            if (name == signal::scoring_flops) {
                for (const float one : to_floats(chunk)) {
                    passes += one;
                }
            }
        }
    }
    const double all = static_cast<double>(count * tokens);
    std::printf("%3lld windows of %lld: jacobi 3 %8.1f tokens/s; exact %8.1f, %.2f of jacobi 3's time, "
                "%.1f times decoding's FLOPs; decoding %8.1f, %.2f of jacobi 3's time; NLL off by %.1e; %s\n",
                static_cast<long long>(count), static_cast<long long>(tokens), all / timed[0].processor,
                all / timed[1].processor, timed[1].processor / timed[0].processor, passes / flops,
                all / timed[2].processor, timed[2].processor / timed[0].processor, gap,
                timed[1].machine.c_str());
}

int run(int argc, char** argv) {
    const auto given = bench::options_of(argc, argv,
                                         {{"--model", ""},
                                          {"--method", "ponderlm2"},
                                          {"--steps", "3"},
                                          {"--hidden", "512"},
                                          {"--layers", "6"},
                                          {"--vocabulary", "50304"},
                                          {"--windows", "1,8"},
                                          {"--tokens", "128"},
                                          {"--rounds", "5"},
                                          {"--device", "cpu"}});
    if (!given) {
        return 2;
    }
    const Options& options = *given;
    const testing::TemporaryFolder folder;
    const Checkpoint checkpoint = options.at("--model").empty() ? make_checkpoint(folder.path(), options)
                                                                : Checkpoint::open(options.at("--model"));
    LoadOptions load;
    load.device = options.at("--device");
    Engine engine = Engine::load(checkpoint, load);
    const at::Device device = device_from_string(load.device);
    const Model model(checkpoint.config,
                      Parameters::load(parameter_layout(checkpoint.config), checkpoint, device, at::kFloat));
    std::printf("%s, K = %lld, d %lld, %lld layers, %s\n", to_string(engine.config().ponder.method).c_str(),
                static_cast<long long>(engine.max_steps()),
                static_cast<long long>(engine.config().hidden_size),
                static_cast<long long>(engine.config().layers), engine.device_name().c_str());
    for (const std::int64_t count : bench::numbers_of(options.at("--windows"))) {
        measure(engine, model, device, count, std::stoll(options.at("--tokens")),
                std::stoi(options.at("--rounds")));
    }
    return 0;
}

} // namespace
} // namespace ponderscope

int main(int argc, char** argv) {
    return ponderscope::bench::run_program(ponderscope::run, argc, argv);
}
