// SPDX-License-Identifier: GPL-3.0-or-later
// How fast tokens are generated: by a sample model, and by a shape with random weights beside the time in
// which this machine reads that model's weights once, which no decoding at batch 1 can beat. Rounds are
// interleaved; medians; no figure is asserted.
//   decode_bench [--model FOLDER] [--method vanilla] [--hidden 512] [--layers 6] [--vocabulary 50304]
//                [--batches 1,8] [--prompt 32] [--tokens 64] [--rounds 5]
// Without a model: the shape, whose defaults are Pythia-70M's.
#include "core/base/splitmix.h"
#include "core/ponder/engine/engine.h"
#include "tests/bench/engine/random_checkpoint.h"
#include "tests/bench/program.h"
#include "tests/bench/timing.h"
#include "tests/support/test_data.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <functional>
#include <map>
#include <string>

namespace ponderscope {
namespace {

using Options = std::map<std::string, std::string>;

Checkpoint make_checkpoint(const std::filesystem::path& folder, const Options& options) {
    const std::int64_t d = std::stoll(options.at("--hidden"));
    nlohmann::json config{{"model_type", "gpt_neox"},
                          {"hidden_size", d},
                          {"intermediate_size", 4 * d},
                          {"num_hidden_layers", std::stoll(options.at("--layers"))},
                          {"num_attention_heads", std::max<std::int64_t>(1, d / 64)},
                          {"vocab_size", std::stoll(options.at("--vocabulary"))},
                          {"max_position_embeddings", 4096}};
    if (options.at("--method") != "vanilla") {
        config["pondering"] = {{"method", options.at("--method")}, {"max_steps", 3}};
    }
    return bench::make_random_checkpoint(folder, config);
}

int run(int argc, char** argv) {
    const auto given = bench::options_of(argc, argv,
                                         {{"--model", ""},
                                          {"--method", "vanilla"},
                                          {"--hidden", "512"},
                                          {"--layers", "6"},
                                          {"--vocabulary", "50304"},
                                          {"--batches", "1,8"},
                                          {"--prompt", "32"},
                                          {"--tokens", "64"},
                                          {"--rounds", "5"}});
    if (!given) {
        return 2;
    }
    const Options& options = *given;
    const testing::TemporaryFolder folder;
    const Checkpoint checkpoint = options.at("--model").empty() ? make_checkpoint(folder.path(), options)
                                                                : Checkpoint::open(options.at("--model"));
    const Engine engine = Engine::load(checkpoint);
    const c10::InferenceMode no_gradients;
    // What a step of one token must read: every matrix, of the embedding one row.
    std::int64_t elements = 0;
    for (const TensorSpec& spec : parameter_layout(checkpoint.config).tensors) {
        if (spec.shape.size() == 2 && spec.name.find("embed_in") == std::string::npos) {
            elements += spec.shape[0] * spec.shape[1];
        }
    }
    const at::Tensor matrix = at::ones({elements / 1024, 1024});
    const at::Tensor vector = at::ones({1024});
    at::Tensor product = at::empty({matrix.size(0)});
    const std::int64_t tokens = std::stoll(options.at("--tokens"));
    std::printf("%s, d %lld, %lld layers, %lld MB of weights a token, %d threads\n",
                to_string(engine.config().ponder.method).c_str(),
                static_cast<long long>(engine.config().hidden_size),
                static_cast<long long>(engine.config().layers), static_cast<long long>(elements * 4 >> 20),
                at::get_num_threads());
    for (const std::int64_t batch : bench::numbers_of(options.at("--batches"))) {
        std::vector<std::vector<std::int32_t>> prompts(static_cast<std::size_t>(batch));
        for (std::size_t row = 0; row < prompts.size(); ++row) {
            for (std::int64_t t = 0; t < std::stoll(options.at("--prompt")); ++t) {
                prompts[row].push_back(static_cast<std::int32_t>(
                    bounded(splitmix64(row, static_cast<std::uint64_t>(t)),
                            static_cast<std::uint64_t>(checkpoint.config.vocab_size))));
            }
        }
        const auto generate = [&](std::int64_t count) {
            GenerateOptions how;
            how.max_new_tokens = count;
            static_cast<void>(engine.generate(prompts, how, RecordLevel::nll));
        };
        const std::vector<bench::Timed> timed = bench::interleaved(
            std::vector<std::function<void()>>{[&] { generate(1 + tokens); }, [&] { generate(1); },
                                               [&] {
                                                   for (std::int64_t i = 0; i < tokens; ++i) {
                                                       at::mv_out(product, matrix, vector);
                                                   }
                                               }},
            std::stoi(options.at("--rounds")));
        const auto line = [&](const char* what, double bench::Timed::*time) {
            const double each = (timed[0].*time - timed[1].*time) / static_cast<double>(tokens);
            const double reading = timed[2].*time / static_cast<double>(tokens);
            std::printf("  batch %2lld, %s: %8.1f tokens/s, %6.3f ms a step, %.2f of the speed at which "
                        "the weights are read; %s\n",
                        static_cast<long long>(batch), what, static_cast<double>(batch) / each, 1e3 * each,
                        reading / each, timed[0].machine.c_str());
        };
        line("wall time     ", &bench::Timed::seconds);
        line("processor time", &bench::Timed::processor);
    }
    return 0;
}

} // namespace
} // namespace ponderscope

int main(int argc, char** argv) {
    return ponderscope::bench::run_program(ponderscope::run, argc, argv);
}
