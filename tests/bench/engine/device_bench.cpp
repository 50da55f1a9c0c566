// SPDX-License-Identifier: GPL-3.0-or-later
// What a device makes of the engine's parts, as ratios against something measured beside it in the same run:
//   attention  time of the library's causal kernel over that of ranges that say the same, and of ranges that
//              the device knows to be causal, with a bias of rows
//   read-out   time of the head's product over that of NLL, of what is said of exits, and of every statistic
//   recording  time of scoring that records (basic, steps) over that of scoring for the NLL alone; of the
//              plain model, time of its products, the library's attention and its bytes at a copy's speed
//              over that
//   decoding   tokens a second times the bytes of the weights over the bytes that a copy reads and writes a
//              second
//   device_bench [--device cpu] [--dtype float32] [--shape 160m|410m|1.4b|tiny] [--rounds 5]
//                [--parts all] [--profile no]
// --profile yes: which kernels of a GPU take the time of scoring and decoding. --parts: those of the names
// above that are wanted, with commas between. A GPT-NeoX and a PonderLM on it, of the same drawn weights.
// Rounds are interleaved, figures are medians; none is asserted.
#include "core/base/files.h"
#include "core/kernels/attend.h"
#include "core/kernels/head.h"
#include "core/model/device.h"
#include "core/ponder/engine/engine.h"
#include "tests/bench/engine/random_checkpoint.h"
#include "tests/bench/timing.h"
#include "tests/support/test_data.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/csrc/autograd/profiler_kineto.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace ponderscope {
namespace {

struct Shape {
    std::int64_t d, layers, heads, vocabulary;
};

class DeviceBench {
public:
    DeviceBench(at::Device device, Precision precision, Shape shape, int rounds, std::string parts,
                bool profiles)
        : device_(device),
          precision_(precision),
          type_(scalar_type_of(precision)),
          shape_(shape),
          rounds_(rounds),
          parts_("," + std::move(parts) + ","),
          profiles_(profiles) {}

    void run() {
        copy_speed();
        if (wanted("attention")) {
            attention();
        }
        if (wanted("read-out")) {
            read_out_speed();
        }
        if (!wanted("recording") && !wanted("decoding")) {
            return;
        }
        const testing::TemporaryFolder folder;
        (void)bench::make_random_checkpoint(folder.path(), config(false),
                                            type_ == at::kBFloat16 ? DType::bf16 : DType::f32);
        for (const bool ponders : {false, true}) {
            write_file_atomically(folder.path() / "config.json", config(ponders).dump(1));
            engine(Checkpoint::open(folder.path()), ponders);
        }
    }

private:
    using Actions = std::vector<std::function<void()>>;

    [[nodiscard]] bool wanted(const std::string& part) const {
        return parts_ == ",all," || parts_.find("," + part + ",") != std::string::npos;
    }

    /// Returns when the device is done with the work.
    void finish(const std::function<void()>& work) const {
        work();
        if (!device_.is_cpu()) {
            const c10::impl::VirtualGuardImpl guard(device_.type());
            guard.synchronizeDevice(device_.index());
        }
    }

    [[nodiscard]] std::vector<bench::Timed> timed(const Actions& actions) const {
        Actions waiting;
        for (const auto& action : actions) {
            waiting.emplace_back([this, action] { finish(action); });
        }
        return bench::interleaved(waiting, rounds_);
    }

    /// The kernels of one run behind another, longest first.
    void profile(const std::string& what, const std::function<void()>& work) const {
        (void)timed({work});
        using namespace torch::autograd::profiler;
        const ProfilerConfig settings(torch::profiler::impl::ProfilerState::KINETO);
        const std::set<torch::profiler::impl::ActivityType> kinds{torch::profiler::impl::ActivityType::CPU,
                                                                  torch::profiler::impl::ActivityType::CUDA};
        prepareProfiler(settings, kinds);
        enableProfiler(settings, kinds);
        const double seconds = bench::seconds_of([&] { finish(work); });
        const auto result = disableProfiler();
        std::map<std::string, std::pair<double, int>> kernels; // milliseconds, calls
        double all = 0;
        int calls = 0;
        for (const KinetoEvent& event : result->events()) {
            if (event.deviceType() == device_.type()) {
                const double took = static_cast<double>(event.durationNs()) / 1e6;
                auto& kernel = kernels[event.name().substr(0, 110)];
                kernel.first += took;
                ++kernel.second;
                all += took;
                ++calls;
            }
        }
        std::vector<std::pair<double, std::string>> longest;
        for (const auto& [name, kernel] : kernels) {
            longest.emplace_back(kernel.first, name);
        }
        std::sort(longest.rbegin(), longest.rend());
        std::printf("profile    %s: %.2f ms, of which %.2f in %d kernels\n", what.c_str(), seconds * 1e3, all,
                    calls);
        for (std::size_t i = 0; i < std::min<std::size_t>(longest.size(), 25); ++i) {
            std::printf("  %8.3f ms %6d  %s\n", longest[i].first, kernels[longest[i].second].second,
                        longest[i].second.c_str());
        }
    }

    [[nodiscard]] at::Tensor drawn(at::IntArrayRef sizes) const {
        return at::randn(sizes, at::TensorOptions(at::kFloat).device(device_)).to(type_);
    }

    void copy_speed() {
        const std::int64_t bytes = !device_.is_cuda() ? std::int64_t{256} << 20 : std::int64_t{2} << 30;
        const at::Tensor from = at::randint(-128, 128, {bytes}, at::TensorOptions(at::kChar).device(device_));
        at::Tensor to = at::empty_like(from);
        const auto all = timed({[&] { to.copy_(from); }});
        copy_ = 2 * static_cast<double>(bytes) / all[0].seconds;
        std::printf("copy       %8.1f GB/s; %s\n", copy_ / 1e9, all[0].machine.c_str());
    }

    void attention() {
        const std::int64_t sequences = 8, length = !device_.is_cuda() ? 512 : 2048;
        const std::int64_t n = sequences * length, size = shape_.d / shape_.heads;
        const at::Tensor q = drawn({n, shape_.heads, size}), k = drawn({n, shape_.heads, size}),
                         v = drawn({n, shape_.heads, size});
        const double scale = 1 / std::sqrt(static_cast<double>(size));
        Visibility causal, ranges, runs;
        for (std::int64_t s = 0; s < sequences; ++s) {
            causal.causal.push_back({s * length, length, s * length, 0});
        }
        ranges.ranges = visible_ranges(causal, n, device_).to(at::kInt);
        runs.ranges = ranges.ranges;
        runs.runs = at::arange(0, n + 1, length, at::TensorOptions(at::kInt).device(device_));
        runs.longest_run = length;
        const at::Tensor bias = at::rand({n}, at::TensorOptions(at::kFloat).device(device_)).neg();
        const auto stacked = [&](const at::Tensor& rows) {
            return rows.view({sequences, length, shape_.heads, size}).transpose(1, 2);
        };
        const auto all = timed({[&] {
                                    (void)at::scaled_dot_product_attention(stacked(q), stacked(k), stacked(v),
                                                                           {}, 0.0, true, scale);
                                },
                                [&] { (void)attend(q, k, v, causal, scale); },
                                [&] { (void)attend(q, k, v, ranges, scale); },
                                [&] { (void)attend(q, k, v, runs, scale, bias); }});
        const auto speed = [&](std::size_t i) { return all[0].seconds / all[i].seconds; };
        std::printf("attention  8 x %lld: causal %.2f, ranges %.2f, runs with a bias %.2f of the library's "
                    "causal kernel (%.2f ms); %s\n",
                    static_cast<long long>(length), speed(1), speed(2), speed(3), all[0].seconds * 1e3,
                    all[2].machine.c_str());
    }

    void read_out_speed() {
        const std::int64_t rows = !device_.is_cuda() ? 512 : 8192;
        HeadWeights weights;
        weights.head = weights.embedding = drawn({shape_.vocabulary, shape_.d});
        const at::Tensor h = drawn({rows, shape_.d}), before = drawn({rows, shape_.d});
        HeadRequest nll;
        nll.targets = at::zeros({rows}, at::TensorOptions(at::kLong).device(device_));
        HeadRequest exits = nll;
        exits.distribution = true;
        exits.candidates = 10;
        HeadRequest everything = exits;
        everything.previous = before;
        const auto all = timed(
            {[&] { (void)at::mm(h, weights.head.t()); }, [&] { (void)read_out(h, weights, nll); },
             [&] { (void)read_out(h, weights, exits); }, [&] { (void)read_out(h, weights, everything); }});
        std::printf("read-out   NLL %.2f, exits %.2f of its product, every statistic %.2f of its two (%.2f "
                    "ms); %s\n",
                    all[0].seconds / all[1].seconds, all[0].seconds / all[2].seconds,
                    2 * all[0].seconds / all[3].seconds, all[0].seconds * 1e3, all[3].machine.c_str());
    }

    [[nodiscard]] nlohmann::json config(bool ponders) const {
        nlohmann::json config = bench::neox_config(shape_.d, shape_.layers, shape_.heads, shape_.vocabulary);
        config["rotary_pct"] = 0.25;
        config["tie_word_embeddings"] = false;
        if (ponders) {
            config["ponderinglm"] = true;
            config["pondering_steps"] = 3;
            config["scale_embeds"] = true;
        }
        return config;
    }

    void engine(const Checkpoint& checkpoint, bool ponders) {
        LoadOptions load{.device = device_.str(), .precision = precision_};
        const Engine model = Engine::load(checkpoint, load);
        const char* name = ponders ? "ponderlm" : "vanilla ";

        if (wanted("recording")) {
            recording(model, name, ponders ? 4 : 1);
        }
        if (wanted("decoding")) {
            decoding(model, name, checkpoint, ponders ? 4 : 1);
        }
    }

    void recording(const Engine& model, const char* name, int passes) const {
        const std::int64_t length = !device_.is_cuda() ? 256 : 1024;
        std::vector<std::vector<std::int32_t>> texts;
        std::vector<Window> windows;
        for (std::uint64_t i = 0; i < 8; ++i) {
            texts.push_back(bench::random_ids(length, shape_.vocabulary, i));
        }
        for (const auto& text : texts) {
            windows.push_back({text, 0, length});
        }
        const auto scoring = [&](RecordLevel level) {
            return [&, level] { (void)model.score(windows, level); };
        };
        if (profiles_) {
            profile(std::string(name) + " NLL", scoring(RecordLevel::nll));
            profile(std::string(name) + " steps", scoring(RecordLevel::steps));
            return;
        }
        const auto all =
            timed({scoring(RecordLevel::nll), scoring(RecordLevel::basic), scoring(RecordLevel::steps)});
        std::printf("recording  %s: NLL %.0f tokens/s, basic %.3f, steps %.3f of its time; %s\n", name,
                    static_cast<double>(8 * length) / all[0].seconds, all[1].seconds / all[0].seconds,
                    all[2].seconds / all[0].seconds, all[2].machine.c_str());
        if (passes == 1) {
            std::printf("scoring    %s: parts %.2f of its time\n", name,
                        seconds_of_parts(8, length) / all[0].seconds);
        }
    }

    /// What scoring cannot do without, each part alone.
    [[nodiscard]] double seconds_of_parts(std::int64_t sequences, std::int64_t length) const {
        const std::int64_t n = sequences * length, d = shape_.d;
        const at::Tensor x = drawn({n, d}), inner = drawn({n, 4 * d}), up = drawn({d, 4 * d}),
                         down = drawn({4 * d, d}), head = drawn({d, shape_.vocabulary});
        const at::Tensor q = drawn({sequences, shape_.heads, length, d / shape_.heads});
        // Ten calls at a time, as a layer follows a layer: waiting for each would count as its time.
        constexpr int calls = 10;
        const auto often = [](auto part) {
            return [part] {
                for (int i = 0; i < calls; ++i) {
                    (void)part();
                }
            };
        };
        auto all = timed({often([&] { return at::mm(x, up); }), often([&] { return at::mm(inner, down); }),
                          often([&] { return at::scaled_dot_product_attention(q, q, q, {}, 0.0, true); }),
                          often([&] { return at::mm(x, head); })});
        for (bench::Timed& part : all) {
            part.seconds /= calls;
        }
        // Read and written by two norms and a sum (7), the activation (8) and the rotation (4).
        const double bytes = 19 * static_cast<double>(x.nbytes());
        // Queries, keys, values and the output are as many products as the MLP's first.
        return static_cast<double>(shape_.layers) *
                   (2 * all[0].seconds + all[1].seconds + all[2].seconds + bytes / copy_) +
               all[3].seconds;
    }

    void decoding(const Engine& model, const char* name, const Checkpoint& checkpoint, int passes) const {
        double elements = 0; // read for a token: the input's table is multiplied between passes alone
        for (const std::string& tensor : checkpoint.weights.names()) {
            double size = 1;
            for (const std::int64_t axis : checkpoint.weights.find(tensor)->shape) {
                size *= static_cast<double>(axis);
            }
            elements += size * (tensor.find("embed_in") != std::string::npos ? passes - 1 : passes);
        }
        const double bytes = elements * static_cast<double>(c10::elementSize(type_));
        for (const std::size_t batch : {std::size_t{1}, std::size_t{32}}) {
            const std::int64_t more = 16;
            const std::vector<std::vector<std::int32_t>> prompts(batch,
                                                                 bench::random_ids(32, shape_.vocabulary, 9));
            const auto generating = [&](std::int64_t count, bool repeats) {
                return [&, count, repeats] {
                    (void)model.generate(prompts, {.max_new_tokens = count, .repeat_steps = repeats});
                };
            };
            if (profiles_) {
                profile(std::string(name) + " 16 tokens of " + std::to_string(batch), generating(19, true));
                continue;
            }
            // Behind the prompts' own step and the two after it, which are asked for anew and captured.
            const auto all = timed({generating(3, true), generating(3 + more, true), generating(3, false),
                                    generating(3 + more, false)});
            const double each = (all[1].seconds - all[0].seconds) / static_cast<double>(more);
            const double anew = (all[3].seconds - all[2].seconds) / static_cast<double>(more);
            std::printf("decoding   %s, batch %2zu: %.1f tokens/s, weights read at %.2f of a copy's bytes, "
                        "%.2f times "
                        "as fast as steps asked for anew; %s\n",
                        name, batch, static_cast<double>(batch) / each, bytes / each / copy_, anew / each,
                        all[1].machine.c_str());
        }
    }

    at::Device device_;
    Precision precision_;
    at::ScalarType type_;
    Shape shape_;
    int rounds_;
    std::string parts_; ///< ",attention,decoding,"
    bool profiles_;
    double copy_ = 0; ///< bytes read and written a second
};

int run(int argc, char** argv) {
    const std::map<std::string, std::string> preset{{"--device", "cpu"}, {"--dtype", "float32"},
                                                    {"--shape", "tiny"}, {"--rounds", "5"},
                                                    {"--parts", "all"},  {"--profile", "no"}};
    const auto given = bench::options_of(argc, argv, preset);
    if (!given) {
        return 2;
    }
    const std::map<std::string, Shape> shapes{{"tiny", {256, 4, 4, 8192}},
                                              {"160m", {768, 12, 12, 50304}},
                                              {"410m", {1024, 24, 16, 50304}},
                                              {"1.4b", {2048, 24, 16, 50304}}};
    const auto shape = shapes.find(given->at("--shape"));
    const std::optional<Precision> precision = precision_from_string(given->at("--dtype"));
    if (shape == shapes.end() || !precision) {
        std::fprintf(stderr, "--shape: tiny, 160m, 410m or 1.4b; --dtype: %s\n", precision_names().c_str());
        return 2;
    }
    const at::Device device = device_from_string(given->at("--device"));
    std::printf("%s on %s, %s\n", shape->first.c_str(), describe_device(device).c_str(),
                given->at("--dtype").c_str());
    const c10::NoGradGuard no_grad;
    DeviceBench(device, *precision, shape->second, std::stoi(given->at("--rounds")), given->at("--parts"),
                given->at("--profile") == "yes")
        .run();
    return 0;
}

} // namespace
} // namespace ponderscope

int main(int argc, char** argv) {
    return ponderscope::bench::run_program(ponderscope::run, argc, argv);
}
