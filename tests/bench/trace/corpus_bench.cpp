// SPDX-License-Identifier: GPL-3.0-or-later
// What `ponderscope` takes to look at many tokens: two runs of synthetic tokens in shards, as `record
// --record scalars` writes them, and then each verb as a process of its own.
//
//   corpus_bench [--tokens N,N,...] [--shards W] [--ponderscope PROGRAM] [--folder DIR] [--keep] [VERB...]
//
// VERB: compare, stats, policy, referee, export (default: compare and stats); with policy or referee the runs
// have NLL and entropy at every step, as `record --record steps` writes them. Prints seconds on the clock and
// of processors, the largest memory (VmHWM) and the load of the machine. 10^8 tokens take 5 GB below
// --folder, which are removed again; --keep leaves them, and what is there already is not written again.
// Nothing is asserted.
#include "core/base/splitmix.h"
#include "core/trace/shard.h"
#include "core/trace/writer.h"
#include "tests/bench/program.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <limits>
#include <stdexcept>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

namespace fs = std::filesystem;
using namespace ponderscope;

constexpr std::int64_t vocabulary = 50'304;
constexpr std::int64_t shortest = 512; // tokens of a sequence
constexpr std::int64_t longest = 1024;
constexpr std::int64_t token_bytes = 4; // of text
constexpr std::int64_t max_steps = 3;

/// Uniform in [0, 1), of a token for one purpose.
double draw(std::uint64_t purpose, std::int64_t sequence, std::int64_t position) {
    return token_draw(purpose, static_cast<std::uint64_t>(sequence), static_cast<std::uint64_t>(position));
}

/// Ids as often as Zipf says, steps that grow with the loss, and losses of which most is of the token, some
/// of the sequence and some of the run.
TokenColumns tokens_of(std::uint64_t run, std::int64_t sequence, std::int64_t count) {
    TokenColumns tokens;
    const double hard = 0.8 + 0.4 * draw(1, sequence, 0);
    for (std::int64_t t = 0; t < count; ++t) {
        const bool scored = t + 1 < count;
        const double own = -std::log(1 - draw(2, sequence, t));
        const double loss = hard * (1.9 * own - 0.3 * std::log(1 - draw(10 + run, sequence, t)));
        tokens.id.push_back(
            static_cast<std::int32_t>(std::pow(static_cast<double>(vocabulary), draw(3, sequence, t))) - 1);
        tokens.begin.push_back(static_cast<std::uint64_t>(t * token_bytes));
        tokens.end.push_back(static_cast<std::uint64_t>((t + 1) * token_bytes));
        tokens.nll.push_back(scored ? static_cast<float>(loss) : std::numeric_limits<float>::quiet_NaN());
        tokens.entropy.push_back(static_cast<float>(0.7 * loss + draw(20 + run, sequence, t)));
        tokens.rank.push_back(scored ? 1 + static_cast<std::int32_t>(loss * loss) : 0);
        tokens.steps.push_back(
            std::min(static_cast<std::int32_t>(max_steps),
                     static_cast<std::int32_t>(loss * (0.5 + draw(30 + run, sequence, t)))));
        tokens.flops.push_back(140'000'000 * (1 + tokens.steps.back()));
    }
    tokens.max_probability.assign(tokens.id.size(), std::numeric_limits<float>::quiet_NaN());
    return tokens;
}

std::int64_t length_of(std::int64_t sequence) {
    return shortest +
           static_cast<std::int64_t>(draw(4, sequence, 0) * static_cast<double>(longest - shortest + 1));
}

/// Sequences that are made once, and come again and again.
constexpr std::int64_t made = 2048;

/// What replays look at: the NLL and entropy of each step.
std::vector<std::pair<std::string, SignalChunk>> steps_of(const TokenColumns& tokens) {
    const auto count = static_cast<std::int64_t>(tokens.size());
    std::vector<std::pair<std::string, SignalChunk>> signals;
    for (const auto& [name, last] :
         {std::pair{signal::nll, &tokens.nll}, {signal::entropy, &tokens.entropy}}) {
        std::vector<float> values;
        for (std::size_t t = 0; t < tokens.size(); ++t) {
            for (std::int64_t k = 0; k <= max_steps; ++k) {
                values.push_back((*last)[t] * (1 + 0.2F * static_cast<float>(tokens.steps[t] - k)));
            }
        }
        SignalChunk chunk{0, DType::f32, {count, max_steps + 1}, {}};
        chunk.data.resize(values.size() * sizeof(float));
        std::memcpy(chunk.data.data(), values.data(), chunk.data.size());
        signals.emplace_back(name, std::move(chunk));
    }
    return signals;
}

void write_shard(const std::vector<TokenColumns>& sequences, const fs::path& trace, std::uint64_t number,
                 std::int64_t tokens, std::int64_t rank, std::int64_t world, bool steps) {
    RunInfo run;
    run.name = number == 0 ? "plain" : "ponder";
    run.checkpoint_digest = run.name;
    run.method = "ponderlm";
    run.record_level = steps ? "steps" : "scalars";
    run.max_steps = max_steps;
    run.vocab_size = vocabulary;
    run.text_digest = "synthetic " + std::to_string(tokens);
    run.tokenizer_digest = "synthetic";
    const fs::path path = shard_path(trace, rank, world);
    TraceWriter writer(path);
    std::vector<SignalInfo> signals;
    if (steps) {
        signals = {{signal::nll, {"token", "step"}, "nats", "NLL by step", "Synthetic."},
                   {signal::entropy, {"token", "step"}, "nats", "Entropy by step", "Synthetic."}};
    }
    writer.begin_run(run, signals, ShardInfo{rank, world, 1});
    std::int64_t done = 0;
    for (std::int64_t sequence = 0; done < tokens; ++sequence) {
        const TokenColumns& tokens_here = sequences[static_cast<std::size_t>(sequence % made)];
        const auto count = static_cast<std::int64_t>(tokens_here.size());
        done += count;
        if (sequence % world != rank) {
            continue;
        }
        std::string text;
        for (std::int64_t t = 0; t < count; ++t) {
            text += "abc ";
        }
        writer.begin_sequence("document", text, {}, sequence);
        writer.append(tokens_here,
                      steps ? steps_of(tokens_here) : std::vector<std::pair<std::string, SignalChunk>>());
        writer.end_sequence();
    }
    std::vector<std::pair<std::int32_t, std::string>> words;
    for (std::int32_t id = 0; id < vocabulary; ++id) {
        words.emplace_back(id, (id % 3 == 0 ? " w" : "w") + std::to_string(id));
    }
    writer.put_vocabulary(std::move(words));
    writer.end_run(1);
    writer.finish();
}

/// Two runs below \p folder, each shard written once.
void write_runs(const fs::path& folder, std::int64_t tokens, std::int64_t world, bool steps) {
    for (std::uint64_t number = 0; number < 2; ++number) {
        const fs::path trace = folder / (number == 0 ? "a" : "b") / "corpus.ponder";
        fs::create_directories(trace.parent_path());
        std::vector<TokenColumns> sequences;
        for (std::int64_t sequence = 0; sequence < made; ++sequence) {
            sequences.push_back(tokens_of(number, sequence, length_of(sequence)));
        }
        std::vector<std::jthread> threads;
        std::atomic<std::int64_t> next{0};
        for (unsigned i = 0; i < std::max(1U, std::thread::hardware_concurrency()); ++i) {
            threads.emplace_back([&] {
                for (std::int64_t rank; (rank = next++) < world;) {
                    if (!fs::exists(shard_path(trace, rank, world))) {
                        write_shard(sequences, trace, number, tokens, rank, world, steps);
                    }
                }
            });
        }
    }
}

struct Cost {
    double seconds = 0;
    double processor_seconds = 0;
    double megabytes = 0; ///< at most
};

/// What \p work costs in a process of its own.
template <class Work>
Cost cost_of(const std::string& what, Work work) {
    const auto begin = std::chrono::steady_clock::now();
    const pid_t child = ::fork();
    if (child == 0) {
        work();
        std::_Exit(0);
    }
    int status = 0;
    rusage usage{};
    if (child < 0 || ::wait4(child, &status, 0, &usage) != child || !WIFEXITED(status) ||
        WEXITSTATUS(status) != 0) {
        throw std::runtime_error(what + ": failed");
    }
    const auto seconds = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
    };
    return {std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(),
            seconds(usage.ru_utime) + seconds(usage.ru_stime), static_cast<double>(usage.ru_maxrss) / 1e3};
}

void start(const std::vector<std::string>& command) {
    std::vector<char*> arguments;
    for (const std::string& word : command) {
        arguments.push_back(const_cast<char*>(word.c_str())); // as execv wants it
    }
    arguments.push_back(nullptr);
    ::dup2(::open("/dev/null", O_WRONLY), STDOUT_FILENO);
    ::execv(arguments.front(), arguments.data());
    std::_Exit(127);
}

int run(int argc, char** argv) {
    std::vector<std::int64_t> sizes{1'000'000, 10'000'000};
    std::int64_t world = 64;
    fs::path program = fs::absolute(argv[0]).parent_path().parent_path() / "bin" / "ponderscope";
    fs::path folder = fs::temp_directory_path() / ("corpus_bench." + std::to_string(::getpid()));
    bool keep = false;
    std::vector<std::string> verbs;
    for (int i = 1; i < argc; ++i) {
        const std::string word = argv[i];
        const auto value = [&]() -> std::string {
            if (i + 1 >= argc) {
                throw std::runtime_error(word + ": expected a value behind it");
            }
            return argv[++i];
        };
        if (word == "--tokens") {
            sizes = bench::numbers_of(value());
        } else if (word == "--shards") {
            world = std::stoll(value());
        } else if (word == "--ponderscope") {
            program = value();
        } else if (word == "--folder") {
            folder = value();
        } else if (word == "--keep") {
            keep = true;
        } else {
            verbs.push_back(word);
        }
    }
    if (verbs.empty()) {
        verbs = {"compare", "stats"};
    }
    std::printf("verb,tokens,seconds,processor_seconds,megabytes,load\n");
    for (const std::int64_t tokens : sizes) {
        const bool steps = std::any_of(verbs.begin(), verbs.end(), [](const std::string& verb) {
            return verb == "policy" || verb == "referee";
        });
        const fs::path here = folder / (std::to_string(tokens) + (steps ? "-steps" : ""));
        // Apart, because a process is born with the memory of the one that starts it.
        cost_of("writing", [&] { write_runs(here, tokens, world, steps); });
        const std::string a = (here / "a").string();
        for (const std::string& verb : verbs) {
            std::vector<std::string> command{program.string(), verb, a};
            if (verb == "compare") {
                command.push_back((here / "b").string());
            } else if (verb == "export") {
                command.insert(command.end(), {"-o", (here / "tables").string()});
            } else if (verb == "policy") {
                command.insert(command.end(), {"--policy", "entropy", "--sweep", "theta=0.5:4:4"});
            } else if (verb == "referee") {
                command.insert(command.end(),
                               {"--policy", "entropy", "--policy", "uniform", "--against", "uniform"});
            }
            const Cost cost = cost_of(verb, [&] { start(command); });
            double load = 0;
            ::getloadavg(&load, 1);
            std::printf("%s,%lld,%.2f,%.2f,%.0f,%.1f\n", verb.c_str(), static_cast<long long>(tokens),
                        cost.seconds, cost.processor_seconds, cost.megabytes, load);
        }
        if (!keep) {
            fs::remove_all(here);
        }
    }
    return 0;
}

} // namespace

int main(int argc, char** argv) {
    return bench::run_program(run, argc, argv);
}
