// SPDX-License-Identifier: GPL-3.0-or-later
// How fast the engine is, as ratios against things measured in the same run:
//   forward    FLOPs a second of the stack over those of the machine's own best matrix product
//   recording  time of a scoring run that records over one that only computes the NLL
//   mixing     the same for the weights of depth mixing
//   lengths    tokens a second of long texts, with and without a sliding window, and of many short ones
//   memory     peak RSS after scoring 10,000 and 100,000 tokens in windows
// forward and recording are in bfloat16 too where that word is given. No figure is asserted. Shapes: a
// 6-layer Pythia-70M and the sample models' size, random weights.
#include "core/base/files.h"
#include "core/checkpoint/safetensors.h"
#include "core/model/device.h"
#include "core/ponder/engine/engine.h"
#include "core/ponder/engine/model.h"
#include "core/record/session.h"
#include "core/trace/writer.h"
#include "tests/bench/engine/random_checkpoint.h"
#include "tests/bench/timing.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include <stdlib.h>

namespace ponderscope {
namespace {

double seconds_of(const std::function<void()>& work, int repeats) {
    work(); // warm-up
    std::vector<double> times;
    for (int i = 0; i < repeats; ++i) {
        times.push_back(bench::seconds_of(work));
    }
    return bench::median(times);
}

/// FLOPs a second of the forward without a head, and of the best matrix product that this machine makes over
/// a few shapes that suit it, into a reused result. The rounds are interleaved, so that what else the machine
/// does meets both alike; medians.
struct ForwardSpeed {
    double forward = 0;
    double product = 0;
};

ForwardSpeed forward_speed(const std::function<void()>& forward, double flops, at::ScalarType type) {
    struct Product {
        at::Tensor a, b, c;
        std::vector<double> seconds;
        double flops = 0;
    };
    std::vector<Product> products;
    for (const std::int64_t n : {512, 1024, 2048, 4096}) {
        products.push_back({at::randn({n, 1024}).to(type),
                            at::randn({1024, 2048}).to(type),
                            at::empty({n, 2048}, type),
                            {},
                            2.0 * static_cast<double>(n) * 1024 * 2048});
    }
    using bench::median;

    std::vector<double> forwards;
    forward(); // warm-up
    for (int round = 0; round < 15; ++round) {
        forwards.push_back(bench::seconds_of(forward));
        for (Product& one : products) {
            one.seconds.push_back(bench::seconds_of([&] { at::mm_out(one.c, one.a, one.b); }));
        }
    }
    ForwardSpeed speed{flops / median(forwards), 0};
    for (const Product& one : products) {
        speed.product = std::max(speed.product, one.flops / median(one.seconds));
    }
    return speed;
}

struct Shape {
    const char* name;
    std::int64_t d, layers, heads, intermediate, vocabulary, context;
};

/// A checkpoint with fresh weights in Hugging Face layout.
Checkpoint make_checkpoint(const std::filesystem::path& folder, const Shape& shape, std::int64_t steps) {
    nlohmann::json config{{"model_type", "gpt_neox"},
                          {"hidden_size", shape.d},
                          {"intermediate_size", shape.intermediate},
                          {"num_hidden_layers", shape.layers},
                          {"num_attention_heads", shape.heads},
                          {"vocab_size", shape.vocabulary},
                          {"max_position_embeddings", shape.context}};
    if (steps > 0) {
        config["ponderinglm"] = true;
        config["pondering_steps"] = steps;
        config["mutiply_pondering_steps"] = false;
        config["scale_embeds"] = true;
    }
    return bench::make_random_checkpoint(folder, config);
}

std::vector<std::vector<std::int32_t>> random_ids(std::int64_t rows, std::int64_t tokens,
                                                  std::int64_t vocabulary) {
    std::vector<std::vector<std::int32_t>> ids;
    const at::Tensor drawn = at::randint(vocabulary, {rows, tokens}, at::kInt);
    for (std::int64_t row = 0; row < rows; ++row) {
        const auto* begin = drawn[row].const_data_ptr<std::int32_t>();
        ids.emplace_back(begin, begin + tokens);
    }
    return ids;
}

/// Peak resident memory of this process since the last reset, in MB (Linux).
double peak_rss() {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
        if (line.starts_with("VmHWM:")) {
            return std::stod(line.substr(6)) / 1024;
        }
    }
    return 0;
}

void reset_peak_rss() {
    std::ofstream("/proc/self/clear_refs") << "5";
}

void measure(const std::filesystem::path& folder, const Shape& shape, std::int64_t steps, std::int64_t batch,
             bool recording, Precision precision) {
    const Checkpoint checkpoint =
        make_checkpoint(folder / (std::string(shape.name) + "-" + std::to_string(steps)), shape, steps);
    const auto ids = random_ids(batch, shape.context, shape.vocabulary);
    const c10::NoGradGuard no_grad;
    const at::ScalarType type = scalar_type_of(precision);
    const std::string name = std::string(shape.name) + " " + to_string(precision);
    const Model model(checkpoint.config,
                      Parameters::load(parameter_layout(checkpoint.config), checkpoint, {at::kCPU}, type));
    bench::Busy busy;
    busy.begin();
    const PackedBatch packed = PackedBatch::pack(ids, at::kCPU);
    const double tokens = static_cast<double>(batch * shape.context);

    PackedBatch unscored = packed; // with targets, forward() would compute its own loss
    unscored.targets = at::Tensor();
    if (steps == 0) {
        const double flops = tokens * (2.0 * static_cast<double>(model.backbone().block_matrix_elements()) +
                                       static_cast<double>(shape.layers) * 4 * static_cast<double>(shape.d) *
                                           static_cast<double>(shape.context + 1) / 2);
        const ForwardSpeed speed =
            forward_speed([&] { static_cast<void>(model.forward(unscored)); }, flops, type);
        busy.end();
        std::printf("%-19s K=%lld  forward %7.1f GFLOP/s, best product %7.1f: ratio %.2f; %s\n", name.c_str(),
                    static_cast<long long>(steps), speed.forward / 1e9, speed.product / 1e9,
                    speed.forward / speed.product, busy.text().c_str());
        busy.begin();
    }
    if (!recording) {
        return;
    }
    // Unrecorded: the forward, then the NLL of every token and nothing else.
    const double unrecorded = seconds_of(
        [&] {
            const ForwardResult result = model.forward(unscored);
            HeadRequest request;
            request.targets = packed.targets;
            static_cast<void>(read_out(result.readout, model.backbone().head(), request));
        },
        3);
    // What of it are read-outs: an expected embedding a step, and the last NLL.
    const at::Tensor states = model.forward(unscored).readout;
    HeadRequest mixture;
    mixture.mixture = true;
    HeadRequest last;
    last.targets = packed.targets;
    const auto reading = [&](const HeadRequest& request) {
        return seconds_of([&] { static_cast<void>(read_out(states, model.backbone().head(), request)); }, 3);
    };
    const double mixtures = steps == 0 ? 0 : static_cast<double>(steps) * reading(mixture) / unrecorded;
    const double nll = reading(last) / unrecorded;
    LoadOptions load;
    load.precision = precision;
    const Engine engine = Engine::load(checkpoint, load);
    std::vector<Window> windows;
    for (const auto& row : ids) {
        windows.push_back({row, 0, static_cast<std::int64_t>(row.size())});
    }
    const double basic = seconds_of([&] { static_cast<void>(engine.score(windows, RecordLevel::basic)); }, 3);
    const double all = seconds_of([&] { static_cast<void>(engine.score(windows, RecordLevel::steps)); }, 3);
    // What the read-outs of `steps` cost in products of their own: one head product for the state before, at
    // every step from 1 on.
    double flops = 0;
    for (const WindowResult& result : engine.score(windows, RecordLevel::basic)) {
        for (const std::int64_t one : result.tokens.flops) {
            flops += static_cast<double>(one);
        }
    }
    const double extra =
        tokens * static_cast<double>(steps) * 2 * static_cast<double>(shape.vocabulary * shape.d);
    busy.end();
    std::printf("%-19s K=%lld  NLL alone %.3f s (%.0f tokens/s; layers %.2f of it, expected embeddings %.2f, "
                "NLL %.2f); record basic %.3f s: ratio %.3f; record steps %.3f s: ratio %.3f",
                name.c_str(), static_cast<long long>(steps), unrecorded, tokens / unrecorded,
                1 - mixtures - nll, mixtures, nll, basic, basic / unrecorded, all, all / unrecorded);
    if (extra > 0) {
        std::printf(", time per FLOP of the extra read-outs over the run's %.2f",
                    ((all - basic) / extra) / (basic / flops));
    }
    std::printf("; %s\n", busy.text().c_str());
}

/// What recording the weights of depth mixing costs beside the NLL alone: both in turn, medians.
void measure_mixing(const std::filesystem::path& folder, const char* mixing, std::int64_t stride) {
    nlohmann::json config{{"model_type", "llama"},      {"hidden_size", 512},
                          {"intermediate_size", 1408},  {"num_hidden_layers", 12},
                          {"num_attention_heads", 8},   {"num_key_value_heads", 4},
                          {"vocab_size", 16384},        {"max_position_embeddings", 512},
                          {"tie_word_embeddings", true}};
    if (std::string(mixing) == "depth_attention") {
        config.update(
            {{"use_depth_attention", true}, {"recurrent_model", true}, {"depth_attention_stride", stride}});
    } else {
        config["baseline_mode"] = mixing;
    }
    const Checkpoint checkpoint =
        bench::make_random_checkpoint(folder / (mixing + std::to_string(stride)), config);
    const Engine engine = Engine::load(checkpoint);
    const auto ids = random_ids(4, 512, 16384);
    std::vector<Window> windows;
    for (const auto& row : ids) {
        windows.push_back({row, 0, static_cast<std::int64_t>(row.size())});
    }
    std::vector<std::function<void()>> actions;
    for (const RecordLevel level : {RecordLevel::nll, RecordLevel::basic}) {
        actions.emplace_back([&, level] { static_cast<void>(engine.score(windows, level)); });
    }
    const std::vector<bench::Timed> timed = bench::interleaved(actions, 5);
    std::printf("%-15s stride %lld, 12 layers  NLL alone %.3f s, recorded with its weights %.3f s: ratio "
                "%.3f; %s\n",
                mixing, static_cast<long long>(stride), timed[0].seconds, timed[1].seconds,
                timed[1].seconds / timed[0].seconds, timed[1].machine.c_str());
}

/// What a token costs in texts of other lengths than 512: long ones, whose attention grows, and short ones,
/// whose batches are small unless many go together.
void measure_lengths(const std::filesystem::path& folder, Shape shape, std::int64_t window) {
    shape.context = 8192;
    nlohmann::json config{{"model_type", "mistral"},
                          {"hidden_size", shape.d},
                          {"intermediate_size", shape.intermediate},
                          {"num_hidden_layers", shape.layers},
                          {"num_attention_heads", shape.heads},
                          {"num_key_value_heads", shape.heads},
                          {"vocab_size", shape.vocabulary},
                          {"max_position_embeddings", shape.context},
                          {"sliding_window", nullptr}};
    if (window > 0) {
        config["sliding_window"] = window;
    }
    const Engine engine = Engine::load(bench::make_random_checkpoint(
        folder / (std::string(shape.name) + "-lengths-" + std::to_string(window)), config));
    struct Form {
        std::int64_t texts, tokens, together;
    };
    const std::vector<Form> forms{{16, 512, 8}, {4, 2048, 4},  {1, 8192, 1},
                                  {400, 20, 8}, {400, 20, 32}, {400, 20, 200}};
    std::vector<std::vector<std::vector<std::int32_t>>> ids;
    std::vector<std::function<void()>> actions;
    for (const Form& form : forms) {
        ids.push_back(random_ids(form.texts, form.tokens, shape.vocabulary));
    }
    for (std::size_t i = 0; i < forms.size(); ++i) {
        actions.emplace_back([&, i] {
            for (std::int64_t first = 0; first < forms[i].texts; first += forms[i].together) {
                std::vector<Window> windows;
                for (auto text = first; text < std::min(first + forms[i].together, forms[i].texts); ++text) {
                    windows.push_back({ids[i][static_cast<std::size_t>(text)], 0, forms[i].tokens});
                }
                static_cast<void>(engine.score(windows, RecordLevel::basic));
            }
        });
    }
    const std::vector<bench::Timed> timed = bench::interleaved(actions, 5);
    const auto rate = [&](std::size_t i) {
        return static_cast<double>(forms[i].texts * forms[i].tokens) / timed[i].processor;
    };
    for (std::size_t i = 0; i < forms.size(); ++i) {
        std::printf(
            "%-11s %s  %4lld texts of %4lld tokens, %3lld together: %8.0f tokens/s of processor time, "
            "%.2f of those of 512; %s\n",
            shape.name, window > 0 ? "sliding" : "whole  ", static_cast<long long>(forms[i].texts),
            static_cast<long long>(forms[i].tokens), static_cast<long long>(forms[i].together), rate(i),
            rate(i) / rate(0), timed[i].machine.c_str());
    }
}

void measure_memory(const std::filesystem::path& folder, const Shape& shape) {
    const Checkpoint checkpoint = make_checkpoint(folder / "memory", shape, 3);
    const Engine engine = Engine::load(checkpoint);
    for (const std::int64_t tokens : {10'000, 100'000}) {
        SequenceInput input;
        input.title = "random";
        input.ids = random_ids(1, tokens, shape.vocabulary).front();
        reset_peak_rss();
        bench::Busy busy;
        busy.begin();
        const std::filesystem::path trace = folder / ("memory-" + std::to_string(tokens) + ".ponder");
        TraceWriter writer(trace);
        RecordOptions options;
        options.context = shape.context;
        options.stride = shape.context;
        const RecordReport report = record(engine, checkpoint, {input}, nullptr, writer, options);
        busy.end();
        std::printf("%-11s K=3  %7lld tokens in windows: peak RSS %.0f MB, trace %.1f bytes/token, %.0f "
                    "tokens/s; %s\n",
                    shape.name, static_cast<long long>(tokens), peak_rss(),
                    static_cast<double>(std::filesystem::file_size(trace)) / static_cast<double>(tokens),
                    static_cast<double>(tokens) / report.seconds, busy.text().c_str());
    }
}

} // namespace
} // namespace ponderscope

int main(int count, char** words) {
    using namespace ponderscope;
    // engine_bench [forward] [recording] [mixing] [lengths] [memory] [pythia-70m] [sample] [bfloat16]: those
    // parts and shapes only.
    const std::vector<std::string> given(words + 1, words + count);
    const auto named = [&](const std::string& one) {
        return std::find(given.begin(), given.end(), one) != given.end();
    };
    const bool all_parts =
        !named("forward") && !named("recording") && !named("memory") && !named("mixing") && !named("lengths");
    const bool all_shapes = !named("pythia-70m") && !named("sample");
    const auto wanted = [&](const char* part) { return all_parts || named(part); };
    std::setvbuf(stdout, nullptr, _IOLBF, 0); // each line as it is measured, through pipes too
    std::string name = (std::filesystem::temp_directory_path() / "ponderscope-bench-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) {
        std::fprintf(stderr, "no temporary folder\n");
        return 2;
    }
    const std::filesystem::path folder = name;
    std::printf("%d threads, medians\n", at::get_num_threads());
    const Shape pythia{"pythia-70m", 512, 6, 8, 2048, 50304, 512};
    const Shape sample{"sample", 128, 4, 4, 512, 2048, 256};
    for (const Shape& shape : {pythia, sample}) {
        if (!all_shapes && !named(shape.name)) {
            continue;
        }
        for (const std::int64_t steps : {0, 3}) {
            for (const Precision precision : {Precision::float32, Precision::bfloat16}) {
                if ((precision == Precision::float32 || named("bfloat16")) &&
                    (wanted("recording") || (wanted("forward") && steps == 0))) {
                    measure(folder, shape, steps, 8, wanted("recording"), precision);
                }
            }
        }
    }
    if (wanted("mixing")) {
        measure_mixing(folder, "depth_attention", 1);
        measure_mixing(folder, "depth_attention", 6);
        measure_mixing(folder, "mhc", 0);
        measure_mixing(folder, "attnres", 0);
    }
    for (const Shape& shape : {pythia, sample}) {
        if (wanted("lengths") && (all_shapes || named(shape.name))) {
            measure_lengths(folder, shape, 0);
            measure_lengths(folder, shape, 1024);
        }
    }
    if (wanted("memory")) {
        measure_memory(folder, sample);
    }
    std::filesystem::remove_all(folder);
    return 0;
}
