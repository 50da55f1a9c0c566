// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/record/session.h"

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/sha256.h"
#include "core/record/windows.h"
#include "core/trace/reader.h"

#include <nlohmann/json.hpp>
#include <sqlite3.h>
#include <torch/version.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <limits>
#include <set>

namespace ponderscope {
namespace {

/// A window of one of the sequences.
struct Task {
    std::size_t sequence = 0;
    WindowSpan span;
};

std::string utc_now() {
    const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
    std::tm parts{};
    gmtime_r(&now, &parts);
    char text[32];
    std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
    return text;
}

/// Of the texts one after the other; of the ids, little-endian int32, where there is no text.
std::string digest_of(const std::vector<SequenceInput>& sequences) {
    Sha256 hash;
    for (const SequenceInput& sequence : sequences) {
        if (sequence.text.empty()) {
            hash.update(std::as_bytes(std::span(sequence.ids)));
        } else {
            hash.update(sequence.text);
        }
    }
    return hash.finish_hex();
}

RunInfo describe_run(const Engine& engine, const Checkpoint& checkpoint,
                     const std::vector<SequenceInput>& sequences, const RecordOptions& options,
                     const WindowShape& shape, const ProgressSink& progress, const std::stop_token& stop) {
    const ModelConfig& config = engine.config();
    RunInfo info;
    const std::filesystem::path folder = std::filesystem::absolute(checkpoint.folder).lexically_normal();
    const std::string folder_name =
        folder.has_filename() ? folder.filename().string() : folder.parent_path().filename().string();
    info.name = options.run_name.empty() ? folder_name : options.run_name;
    info.checkpoint = checkpoint.folder.string();
    info.checkpoint_digest = checkpoint_digest(checkpoint, progress, stop);
    info.architecture = to_string(config.architecture);
    info.method = to_string(config.ponder.method);
    info.depth_mixing = to_string(config.depth.kind);
    info.policy = options.policy;
    info.scoring = engine.scoring();
    info.device = engine.device_name();
    info.dtype = options.dtype;
    info.record_level = options.level == RecordLevel::basic ? "basic" : "steps";
    info.text_source = options.text_source;
    info.text_digest = digest_of(sequences);
    if (checkpoint.tokenizer_json) {
        info.tokenizer_digest = sha256_hex(read_file(*checkpoint.tokenizer_json));
    }
    info.versions = nlohmann::json{{"ponderscope", PONDERSCOPE_VERSION},
                                   {"torch", TORCH_VERSION},
                                   {"sqlite", sqlite3_libversion()}}
                        .dump();
    info.config = read_file(checkpoint.folder / "config.json");
    info.notices =
        nlohmann::json(engine.notices()).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    info.seed = options.seed;
    info.max_steps = config.ponder.max_steps;
    info.layers = config.layers;
    info.vocab_size = config.vocab_size;
    info.context = shape.context;
    info.stride = shape.stride;
    info.started = utc_now();
    return info;
}

/// Writes results in the order of their windows; opens and closes sequences as they come.
class Appender {
public:
    Appender(TraceWriter& writer, const std::vector<SequenceInput>& sequences, const Tokenizer* tokenizer)
        : writer_(writer), sequences_(sequences), tokenizer_(tokenizer) {}

    void append(const Task& task, WindowResult result) {
        const SequenceInput& sequence = sequences_[task.sequence];
        if (!open_ || current_ != task.sequence) {
            writer_.begin_sequence(sequence.title, sequence.text);
            current_ = task.sequence;
            open_ = true;
        }
        const auto from = static_cast<std::ptrdiff_t>(task.span.report_begin);
        const auto to = static_cast<std::ptrdiff_t>(task.span.report_end);
        TokenColumns& tokens = result.tokens;
        tokens.first = task.span.report_begin;
        if (sequence.begin.empty()) {
            tokens.begin.assign(tokens.size(), 0);
            tokens.end.assign(tokens.size(), 0);
        } else {
            tokens.begin.assign(sequence.begin.begin() + from, sequence.begin.begin() + to);
            tokens.end.assign(sequence.end.begin() + from, sequence.end.begin() + to);
        }
        for (const float nll : tokens.nll) {
            if (!std::isnan(nll)) {
                nll_sum_ += static_cast<double>(nll);
                ++scored_;
            }
        }
        tokens_ += static_cast<std::int64_t>(tokens.size());
        seen_.insert(tokens.id.begin(), tokens.id.end());
        for (auto& [name, chunk] : result.signals) {
            chunk.first = task.span.report_begin;
            if (tokenizer_ != nullptr && name == signal::candidate_ids) {
                for (const std::int64_t id : to_integers(chunk)) {
                    seen_.insert(static_cast<std::int32_t>(id));
                }
            }
        }
        writer_.append(std::move(result.tokens), std::move(result.signals));
        put_new_vocabulary();
        if (to == static_cast<std::ptrdiff_t>(sequence.ids.size())) {
            writer_.end_sequence();
            open_ = false;
        }
    }

    [[nodiscard]] std::int64_t tokens() const { return tokens_; }
    [[nodiscard]] std::int64_t scored() const { return scored_; }
    [[nodiscard]] double mean_nll() const {
        return scored_ > 0 ? nll_sum_ / static_cast<double>(scored_)
                           : std::numeric_limits<double>::quiet_NaN();
    }

private:
    /// With every batch, so that a recording that is killed can still be read with its words.
    void put_new_vocabulary() {
        if (tokenizer_ == nullptr) {
            return;
        }
        std::vector<std::pair<std::int32_t, std::string>> fresh;
        for (const std::int32_t id : seen_) {
            if (id >= 0 && id < tokenizer_->size() && written_.insert(id).second) {
                fresh.emplace_back(id, tokenizer_->token_bytes(id));
            }
        }
        seen_.clear();
        if (!fresh.empty()) {
            writer_.put_vocabulary(std::move(fresh));
        }
    }

    TraceWriter& writer_;
    const std::vector<SequenceInput>& sequences_;
    const Tokenizer* tokenizer_;
    std::size_t current_ = 0;
    bool open_ = false;
    std::int64_t tokens_ = 0;
    std::int64_t scored_ = 0;
    double nll_sum_ = 0;
    std::set<std::int32_t> seen_;
    std::set<std::int32_t> written_;
};

} // namespace

void check_sequences(const std::vector<SequenceInput>& sequences, std::int64_t vocab_size) {
    if (sequences.empty()) {
        throw InputError("There is no sequence to record; give a text or ids.");
    }
    for (const SequenceInput& sequence : sequences) {
        if (sequence.ids.size() < 2) {
            throw InputError(sequence.title + ": expected at least two tokens, found " +
                             std::to_string(sequence.ids.size()) + "; nothing can be predicted from less.");
        }
        for (const std::int32_t id : sequence.ids) {
            if (id < 0 || id >= vocab_size) {
                throw InputError(sequence.title + ": expected token ids below the model's vocab_size " +
                                 std::to_string(vocab_size) + ", found " + std::to_string(id) +
                                 "; these ids belong to another tokenizer.");
            }
        }
    }
}

WindowShape resolve_windows(const ModelConfig& config, std::int64_t context, std::int64_t stride) {
    WindowShape shape;
    shape.context = context > 0 ? context : std::min<std::int64_t>(config.max_positions, 2048);
    if (shape.context > config.max_positions) {
        throw InputError("--context: expected at most " + std::to_string(config.max_positions) +
                         " (the model's max_position_embeddings), found " + std::to_string(shape.context) +
                         ".");
    }
    shape.stride = stride > 0 ? stride : std::max<std::int64_t>(1, shape.context / 2);
    if (shape.stride > shape.context) {
        throw InputError("--stride: expected at most the context (" + std::to_string(shape.context) +
                         "), found " + std::to_string(shape.stride) + ".");
    }
    return shape;
}

RecordReport record(const Engine& engine, const Checkpoint& checkpoint,
                    const std::vector<SequenceInput>& sequences, const Tokenizer* tokenizer,
                    TraceWriter& writer, const RecordOptions& options, const ProgressSink& progress,
                    std::stop_token stop) {
    check_sequences(sequences, engine.config().vocab_size);
    const WindowShape shape = resolve_windows(engine.config(), options.context, options.stride);
    std::vector<Task> tasks;
    std::int64_t total = 0;
    for (std::size_t at = 0; at < sequences.size(); ++at) {
        const auto length = static_cast<std::int64_t>(sequences[at].ids.size());
        total += length;
        for (const WindowSpan& span : plan_windows(length, shape.context, shape.stride)) {
            tasks.push_back({at, span});
        }
    }
    RecordReport report;
    RunInfo info = describe_run(engine, checkpoint, sequences, options, shape, progress, stop);
    report.run = writer.begin_run(std::move(info), engine.signals(options.level));

    const auto started = std::chrono::steady_clock::now();
    const auto elapsed = [started] {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
    };
    Appender appender(writer, sequences, tokenizer);
    const std::size_t batch = static_cast<std::size_t>(std::max<std::int64_t>(options.batch, 1));

    // Two batches under way: a GPU computes the next while the last one's results travel and are packed for
    // the writer.
    Engine::PendingPtr pending;
    std::size_t pending_begin = 0;
    std::size_t pending_end = 0;
    const auto collect = [&] {
        if (!pending) {
            return;
        }
        std::vector<WindowResult> results = engine.collect(std::move(pending));
        for (std::size_t at = pending_begin; at < pending_end; ++at) {
            appender.append(tasks[at], std::move(results[at - pending_begin]));
        }
        if (progress) {
            progress({"recording", appender.tokens(), total, "tokens"});
        }
    };
    for (std::size_t next = 0; next < tasks.size() && !stop.stop_requested(); next += batch) {
        const std::size_t end = std::min(next + batch, tasks.size());
        std::vector<Window> windows;
        for (std::size_t at = next; at < end; ++at) {
            const WindowSpan& span = tasks[at].span;
            const std::span<const std::int32_t> ids(sequences[tasks[at].sequence].ids);
            windows.push_back({ids.subspan(static_cast<std::size_t>(span.begin),
                                           static_cast<std::size_t>(span.end - span.begin)),
                               span.report_begin - span.begin, span.report_end - span.begin});
        }
        Engine::PendingPtr submitted = engine.submit(windows, options.level);
        collect();
        pending = std::move(submitted);
        pending_begin = next;
        pending_end = end;
    }
    collect();

    report.tokens = appender.tokens();
    report.scored_tokens = appender.scored();
    report.mean_nll = appender.mean_nll();
    report.cancelled = appender.tokens() < total;
    if (report.cancelled) {
        writer.leave_run(elapsed());
    } else {
        writer.end_run(elapsed());
    }
    writer.finish();
    report.seconds = elapsed();
    return report;
}

} // namespace ponderscope
