// SPDX-License-Identifier: GPL-3.0-or-later
// Does halting save time? Wall time saved over FLOPs saved, both against the same model in which nothing
// halts, measured alternately in one run: 1 means that a token that is not computed costs nothing.
//   halting_bench [--device cpu] [--dtype float32] [--tokens 128] [--hidden 256] [--layers 4] [--repeats 5]
//   [--batches 1,8,32]
// An AdaPonderLM. Which tokens go on after step 0 is drawn; those that do run all steps. Random weights; no
// figure is asserted.
#include "core/model/device.h"
#include "core/ponder/engine/engine.h"
#include "core/ponder/halting/halting.h"
#include "tests/bench/engine/random_checkpoint.h"
#include "tests/bench/timing.h"
#include "tests/support/test_data.h"

#include <ATen/ATen.h>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <map>
#include <numeric>
#include <sstream>
#include <string>

namespace ponderscope {
namespace {

/// After step 0 a share of all tokens goes on, by the hash of their places; behind it nobody stops any more.
class Share final : public HaltingRule {
public:
    explicit Share(double share) : share_(share) {}
    [[nodiscard]] std::string name() const override { return "share:" + std::to_string(share_); }
    [[nodiscard]] HaltingAnswer answer(const HaltingQuestion& question) const override {
        if (question.slots.step > 0) {
            return {};
        }
        // A hash that needs no host: the fraction of a multiple of the golden ratio.
        at::Tensor place = (question.places.sequence * 8191 + question.places.position + 1).to(at::kDouble) *
                           0.6180339887498949;
        if (question.slots.tokens.defined()) {
            place = place.index_select(0, question.slots.tokens);
        }
        return {(place - place.floor()) < share_, {}};
    }

private:
    double share_;
};

constexpr std::int64_t vocabulary = 4096;
using Options = std::map<std::string, std::string>;

Checkpoint make_checkpoint(const std::filesystem::path& folder, const Options& options) {
    const std::int64_t d = std::stoll(options.at("--hidden"));
    nlohmann::json config = bench::neox_config(d, std::stoll(options.at("--layers")),
                                               std::max<std::int64_t>(1, d / 64), vocabulary);
    config["pondering"] = {{"method", "adaponderlm"}, {"max_steps", 3}, {"threshold", 0}};
    return bench::make_random_checkpoint(folder, config);
}

struct Run {
    double seconds = 0;
    double flops = 0;
};

Run run_once(const Engine& engine, std::span<const Window> windows) {
    std::vector<WindowResult> results;
    Run run;
    run.seconds = bench::seconds_of([&] { results = engine.score(windows, RecordLevel::nll); });
    for (const WindowResult& result : results) {
        run.flops = std::accumulate(result.tokens.flops.begin(), result.tokens.flops.end(), run.flops);
    }
    return run;
}

void measure(Engine& engine, std::int64_t batch, std::int64_t tokens, int repeats) {
    std::vector<std::vector<std::int32_t>> ids(static_cast<std::size_t>(batch));
    std::vector<Window> windows;
    for (std::size_t row = 0; row < ids.size(); ++row) {
        ids[row] = bench::random_ids(tokens, vocabulary, row);
        windows.push_back({ids[row], 0, tokens});
    }
    // All of them: what it costs that somebody might halt and nobody does.
    const std::vector<double> shares{1, 0.9, 0.5, 0.25, 0.1};
    std::vector<std::shared_ptr<const HaltingRule>> rules{full_halting()};
    for (const double share : shares) {
        rules.push_back(std::make_shared<Share>(share));
    }
    std::vector<std::vector<double>> seconds(rules.size());
    std::vector<double> flops(rules.size());
    for (int repeat = -1; repeat < repeats; ++repeat) { // the first is a warm-up
        for (std::size_t i = 0; i < rules.size(); ++i) {
            engine.choose(&RunPlan::rule, rules[i]);
            const Run run = run_once(engine, windows);
            flops[i] = run.flops;
            if (repeat >= 0) {
                seconds[i].push_back(run.seconds);
            }
        }
    }
    const double full = bench::median(seconds[0]);
    for (std::size_t i = 1; i < rules.size(); ++i) {
        const double time_saved = 1 - bench::median(seconds[i]) / full;
        const double flops_saved = 1 - flops[i] / flops[0];
        if (flops_saved <= 0) {
            std::printf("  batch %2lld  nobody halts  full %7.1f ms  time %+5.1f %%\n",
                        static_cast<long long>(batch), 1e3 * full, -100 * time_saved);
            continue;
        }
        std::printf(
            "  batch %2lld  active %3.0f %%  full %7.1f ms  time saved %5.1f %%  FLOPs saved %5.1f %%  "
            "ratio %.2f\n",
            static_cast<long long>(batch), 100 * shares[i - 1], 1e3 * full, 100 * time_saved,
            100 * flops_saved, time_saved / flops_saved);
    }
}

int run(int argc, char** argv) {
    const std::map<std::string, std::string> preset{
        {"--device", "cpu"}, {"--dtype", "float32"}, {"--tokens", "128"},    {"--hidden", "256"},
        {"--layers", "4"},   {"--repeats", "5"},     {"--batches", "1,8,32"}};
    const auto given = bench::options_of(argc, argv, preset);
    if (!given) {
        return 2;
    }
    const Options& options = *given;
    const testing::TemporaryFolder folder;
    LoadOptions load{.device = options.at("--device")};
    const std::optional<Precision> precision = precision_from_string(options.at("--dtype"));
    if (!precision) {
        std::fprintf(stderr, "--dtype: %s\n", precision_names().c_str());
        return 2;
    }
    load.precision = *precision;
    Engine engine = Engine::load(make_checkpoint(folder.path(), options), load);
    std::printf("AdaPonderLM, d %s, %s layers, %s tokens a sequence, K = 3, %s, load %.1f\n",
                options.at("--hidden").c_str(), options.at("--layers").c_str(),
                options.at("--tokens").c_str(), engine.device_name().c_str(), bench::load());
    std::istringstream batches(options.at("--batches"));
    for (std::string batch; std::getline(batches, batch, ',');) {
        measure(engine, std::stoll(batch), std::stoll(options.at("--tokens")),
                std::stoi(options.at("--repeats")));
    }
    return 0;
}

} // namespace
} // namespace ponderscope

int main(int argc, char** argv) {
    return ponderscope::bench::run_program(ponderscope::run, argc, argv);
}
