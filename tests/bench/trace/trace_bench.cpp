// SPDX-License-Identifier: GPL-3.0-or-later
// How fast traces are written and read, against what this machine's SQLite gives for plain BLOBs in the same
// run.
//
//   trace_bench [--tokens N] [--folder DIR]
//
// Prints name, value, unit as CSV. Nothing is asserted. Each timing is the median of some repeats.
#include "core/base/splitmix.h"
#include "core/trace/reader.h"
#include "core/trace/writer.h"
#include "tests/bench/timing.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>
#include <sqlite3.h>
#include <stdexcept>
#include <string>
#include <sys/resource.h>
#include <unistd.h>
#include <vector>

namespace {

namespace fs = std::filesystem;
using namespace ponderscope;
using Clock = std::chrono::steady_clock;
using bench::median;

double seconds_since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Processor time of this program. Under other load the clock on the wall says little; this says what the
/// work costs.
double cpu_seconds() {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

template <class Work>
double median_seconds(int repeats, Work work) {
    std::vector<double> seconds;
    for (int i = 0; i < repeats; ++i) {
        const auto begin = Clock::now();
        work();
        seconds.push_back(seconds_since(begin));
    }
    return median(seconds);
}

void remove_trace(const fs::path& path) {
    for (const char* suffix : {"", "-wal", "-shm", "-lock", "-journal"}) {
        fs::remove(path.string() + suffix);
    }
}

/// MB/s of plain BLOBs of 256 KiB through SQLite in WAL mode, up to a single closed file: what no writer of a
/// trace can beat.
double blob_limit(const fs::path& path, std::size_t bytes) {
    remove_trace(path);
    sqlite3* database = nullptr;
    const auto run = [&](const char* sql) {
        if (sqlite3_exec(database, sql, nullptr, nullptr, nullptr) != SQLITE_OK) {
            throw std::runtime_error(sqlite3_errmsg(database));
        }
    };
    std::vector<unsigned char> blob(256 << 10);
    for (std::size_t i = 0; i < blob.size(); ++i) {
        blob[i] = static_cast<unsigned char>(splitmix64(1, i));
    }
    const auto begin = Clock::now();
    if (sqlite3_open(path.c_str(), &database) != SQLITE_OK) {
        throw std::runtime_error("cannot open " + path.string());
    }
    run("PRAGMA page_size=16384; PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA "
        "cache_size=-32768;"
        "CREATE TABLE t (id INTEGER PRIMARY KEY, data BLOB)");
    sqlite3_stmt* insert = nullptr;
    sqlite3_prepare_v2(database, "INSERT INTO t (data) VALUES (?)", -1, &insert, nullptr);
    const std::size_t count = bytes / blob.size();
    for (std::size_t i = 0; i < count; ++i) {
        if (i % 64 == 0) {
            run("BEGIN");
        }
        sqlite3_bind_blob(insert, 1, blob.data(), static_cast<int>(blob.size()), SQLITE_STATIC);
        if (sqlite3_step(insert) != SQLITE_DONE) {
            throw std::runtime_error(sqlite3_errmsg(database));
        }
        sqlite3_reset(insert);
        if (i % 64 == 63 || i + 1 == count) {
            run("COMMIT");
        }
    }
    sqlite3_finalize(insert);
    run("PRAGMA wal_checkpoint(TRUNCATE); PRAGMA journal_mode=DELETE");
    sqlite3_close(database);
    const double seconds = seconds_since(begin);
    remove_trace(path);
    return static_cast<double>(count * blob.size()) / seconds / 1e6;
}

constexpr std::int64_t steps = 4; // K = 3
constexpr std::int64_t candidates = 10;

RunInfo run_info(const char* name) {
    RunInfo run;
    run.name = name;
    run.method = "ponderlm";
    run.max_steps = steps - 1;
    run.text_digest = "bench";
    return run;
}

/// What `--record steps` keeps.
std::vector<SignalInfo> step_signals() {
    std::vector<SignalInfo> signals;
    for (const char* name : {signal::nll, signal::entropy, signal::max_probability, signal::margin,
                             signal::rank, signal::argmax, signal::kl_previous_current,
                             signal::kl_current_previous, signal::cosine, signal::latent_difference}) {
        const std::string_view shown = name;
        const bool whole = shown == signal::rank || shown == signal::argmax;
        signals.push_back({name, {"token", "step"}, "", name, "", whole ? DType::i32 : DType::f32});
    }
    const std::vector<std::string> axes{"token", "step", "candidate"};
    signals.push_back({signal::candidate_ids, axes, "", "Candidates", "", DType::i32});
    signals.push_back({signal::candidate_probabilities, axes, "", "Candidates", "", DType::f16});
    return signals;
}

TokenColumns tokens_from(std::int64_t first, std::int64_t count) {
    TokenColumns tokens;
    tokens.first = first;
    for (std::int64_t t = first; t < first + count; ++t) {
        const std::uint64_t bits = splitmix64(7, static_cast<std::uint64_t>(t));
        const auto u = static_cast<float>(unit_interval(bits));
        tokens.id.push_back(static_cast<std::int32_t>(bits % 50304));
        tokens.begin.push_back(static_cast<std::uint64_t>(t) * 4);
        tokens.end.push_back(static_cast<std::uint64_t>(t) * 4 + 4);
        tokens.nll.push_back(6 * u * u);
        tokens.entropy.push_back(4 * u);
        tokens.max_probability.push_back(1 - u);
        tokens.rank.push_back(1 + static_cast<std::int32_t>(bits % 997));
        tokens.steps.push_back(static_cast<std::int32_t>(bits % steps));
        tokens.flops.push_back(140'000'000 + static_cast<std::int64_t>(bits % 100'000));
    }
    return tokens;
}

std::vector<std::pair<std::string, SignalChunk>> chunks_from(std::int64_t first, std::int64_t count) {
    std::vector<std::pair<std::string, SignalChunk>> chunks;
    for (const SignalInfo& info : step_signals()) {
        SignalChunk chunk;
        chunk.first = first;
        chunk.shape = {count, steps};
        if (info.axes.size() == 3) {
            chunk.shape.push_back(candidates);
        }
        chunk.dtype = info.dtype;
        std::size_t bytes = size_of(chunk.dtype);
        for (const std::int64_t length : chunk.shape) {
            bytes *= static_cast<std::size_t>(length);
        }
        chunk.data.resize(bytes);
        for (std::size_t i = 0; i + 8 <= bytes; i += 8) {
            const std::uint64_t bits = splitmix64(3, i + static_cast<std::size_t>(first));
            std::memcpy(chunk.data.data() + i, &bits, 8);
        }
        chunks.emplace_back(info.name, std::move(chunk));
    }
    return chunks;
}

std::string text_of(std::int64_t tokens) {
    std::string text;
    for (std::int64_t t = 0; t < tokens; ++t) {
        text += "abc ";
    }
    return text;
}

/// Seconds from the first call to the finished file; what is handed over is made before the clock runs.
double write_trace(const fs::path& path, std::int64_t tokens, bool with_steps) {
    constexpr std::int64_t piece = 4096; // eight windows of 512
    remove_trace(path);
    const auto chunks =
        with_steps ? chunks_from(0, piece) : std::vector<std::pair<std::string, SignalChunk>>();
    const TokenColumns columns = tokens_from(0, piece);
    const std::string text = text_of(tokens);
    const auto begin = Clock::now();
    double preparing = 0; // copies that a recorder does not make
    TraceWriter writer(path);
    writer.begin_run(run_info("bench"), with_steps ? step_signals() : std::vector<SignalInfo>());
    writer.begin_sequence("bench", text);
    for (std::int64_t first = 0; first < tokens; first += piece) {
        const auto copying = Clock::now();
        TokenColumns now = columns;
        now.first = first;
        for (std::int64_t i = 0; i < piece; ++i) {
            now.begin[static_cast<std::size_t>(i)] = static_cast<std::uint64_t>((first + i) * 4);
            now.end[static_cast<std::size_t>(i)] = static_cast<std::uint64_t>((first + i) * 4 + 4);
        }
        auto signals = chunks;
        for (auto& [name, chunk] : signals) {
            chunk.first = first;
        }
        preparing += seconds_since(copying);
        writer.append(std::move(now), std::move(signals));
    }
    writer.end_sequence();
    writer.end_run(1);
    writer.finish();
    // The copies run beside the writer thread, so their time counts only as far as it did not wait for them;
    // it is taken off whole only when it is small.
    const double total = seconds_since(begin);
    return preparing < 0.1 * total ? total - preparing : total;
}

} // namespace

int main(int argc, char** argv) {
    std::int64_t tokens = 1 << 20;
    fs::path parent = fs::temp_directory_path();
    for (int i = 1; i < argc; ++i) {
        const std::string argument = argv[i];
        if (argument == "--tokens" && i + 1 < argc) {
            tokens = std::max<std::int64_t>(4096, std::atoll(argv[++i]) / 4096 * 4096);
        } else if (argument == "--folder" && i + 1 < argc) {
            parent = argv[++i];
        } else {
            std::fprintf(stderr, "usage: trace_bench [--tokens N] [--folder DIR]\n");
            return 2;
        }
    }
    try {
        const fs::path folder = parent / ("ponderscope-trace-bench-" + std::to_string(::getpid()));
        fs::create_directories(folder);
        const fs::path path = folder / "bench.ponder";
        const auto report = [](const std::string& name, double value, const char* unit) {
            std::printf("%s,%.4g,%s\n", name.c_str(), value, unit);
            std::fflush(stdout);
        };
        const auto n = static_cast<double>(tokens);
        constexpr int repeats = 3;

        std::vector<double> scalar_seconds;
        for (int i = 0; i < repeats; ++i) {
            scalar_seconds.push_back(write_trace(path, tokens, false));
        }
        report("scalar rows written", n / median(scalar_seconds) / 1e6, "M rows/s");
        report("scalar bytes a token", static_cast<double>(fs::file_size(path)) / n - 4, "bytes");
        {
            const TraceReader reader = TraceReader::open(path);
            report("scalar rows read", n / median_seconds(repeats, [&] { (void)reader.tokens(1, 0); }) / 1e6,
                   "M rows/s");
        }

        // In turn, so that a disturbance of the machine meets both.
        std::vector<double> limits;
        std::vector<double> written;
        std::vector<double> ratios;
        double megabytes = 0;
        std::vector<double> processor_ratios;
        for (int i = 0; i < repeats; ++i) {
            const double at_start = cpu_seconds();
            const auto bytes = static_cast<std::size_t>(n) * 400;
            const double limit = blob_limit(folder / "blobs.db", bytes);
            const double between = cpu_seconds();
            const double seconds = write_trace(path, tokens, true);
            const double at_end = cpu_seconds();
            megabytes = static_cast<double>(fs::file_size(path)) / 1e6;
            limits.push_back(limit);
            written.push_back(megabytes / seconds);
            ratios.push_back(megabytes / seconds / limit);
            processor_ratios.push_back((between - at_start) / (static_cast<double>(bytes) / 1e6) /
                                       ((at_end - between) / megabytes));
        }
        report("plain BLOBs written", median(limits), "MB/s");
        report("trace written (K = 3, --record steps)", median(written), "MB/s");
        report("trace / plain BLOBs", median(ratios), "ratio");
        report("trace / plain BLOBs by processor time", median(processor_ratios), "ratio");
        report("trace written", median(written) / megabytes * n / 1e6, "M tokens/s");
        report("bytes a token (K = 3, --record steps)", megabytes * 1e6 / n - 4, "bytes without the text");

        report("tokens in the trace", n, "tokens");
        report("open, list runs, sequences, signals",
               1e3 * median_seconds(21,
                                    [&] {
                                        const TraceReader reader = TraceReader::open(path);
                                        (void)reader.runs();
                                        (void)reader.sequences(1);
                                        (void)reader.signal_infos(1);
                                    }),
               "ms");
        report("open and read the first screen (2,000 tokens, their text, NLL by step)",
               1e3 * median_seconds(21,
                                    [&] {
                                        const TraceReader reader = TraceReader::open(path);
                                        (void)reader.runs();
                                        (void)reader.tokens(1, 0, 0, 2000);
                                        (void)reader.signal(1, 0, signal::nll, 0, 2000);
                                    }),
               "ms");
        const TraceReader reader = TraceReader::open(path);
        report("one token's candidates, anywhere",
               1e3 *
                   median_seconds(21,
                                  [&] {
                                      static std::uint64_t draw = 0;
                                      const auto at = static_cast<std::int64_t>(
                                          bounded(splitmix64(2, draw++), static_cast<std::uint64_t>(tokens)));
                                      (void)reader.signal(1, 0, signal::candidate_ids, at, at + 1);
                                      (void)reader.signal(1, 0, signal::candidate_probabilities, at, at + 1);
                                  }),
               "ms");
        report("the whole text", 1e3 * median_seconds(5, [&] { (void)reader.text(1, 0); }), "ms");
        report("a whole signal (NLL by step)",
               n * 16 / 1e6 / median_seconds(5, [&] { (void)reader.signal(1, 0, signal::nll); }), "MB/s");
        fs::remove_all(folder);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 2;
    }
    return 0;
}
