// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/record/session.h"

#include "core/base/error.h"
#include "core/base/sha256.h"
#include "core/ponder/engine/no_numbers.h"
#include "core/record/batches.h"
#include "core/record/kept_signals.h"
#include "core/record/run_recording.h"
#include "core/record/sequence_source.h"
#include "core/record/tasks.h"
#include "core/trace/reader.h"
#include "core/trace/shard.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <memory>
#include <string_view>
#include <utility>

namespace ponderscope {
namespace {

/// SHA-256 of the texts in order. For a sequence without text: its ids as little-endian int32.
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

/// Sequences in memory.
class ListSource final : public SequenceSource {
public:
    explicit ListSource(const std::vector<SequenceInput>& sequences)
        : sequences_(sequences), digest_(digest_of(sequences)) {}
    std::shared_ptr<const SequenceInput> next() override {
        if (next_ == sequences_.size()) {
            return nullptr;
        }
        // Without ownership: the sequences belong to the caller.
        return {std::shared_ptr<const SequenceInput>(), &sequences_[next_++]};
    }
    [[nodiscard]] Amount amount() const override {
        Amount amount;
        for (const SequenceInput& sequence : sequences_) {
            amount.total += sequence.length();
            amount.longest = std::max(amount.longest, sequence.length());
        }
        return amount;
    }
    [[nodiscard]] std::string text_digest() const override { return digest_; }
    void add_choices(nlohmann::json& choices) const override {
        std::vector<std::int64_t> lengths;
        bool shorter = false;
        for (const SequenceInput& sequence : sequences_) {
            lengths.push_back(sequence.length_for_rules());
            shorter = shorter || sequence.length() < lengths.back();
        }
        if (shorter) {
            choices["planned_lengths"] = lengths;
        }
    }

private:
    const std::vector<SequenceInput>& sequences_;
    std::string digest_;
    std::size_t next_ = 0;
};

} // namespace

void check_sequences(const std::vector<SequenceInput>& sequences, std::int64_t vocab_size) {
    if (sequences.empty()) {
        throw InputError(ErrorId::usage_missing, "There is no sequence to record; give a text or ids.");
    }
    for (const SequenceInput& sequence : sequences) {
        check_sequence(sequence, vocab_size);
    }
}

WindowShape resolve_windows(const ModelConfig& config, std::int64_t context, std::int64_t stride) {
    WindowShape shape;
    shape.context = context > 0 ? context : std::min<std::int64_t>(config.max_positions, 2048);
    if (shape.context > config.max_positions) {
        throw InputError(ErrorId::usage_value, "--context: expected at most " +
                                                   std::to_string(config.max_positions) +
                                                   " (the model's max_position_embeddings), found " +
                                                   std::to_string(shape.context) + ".");
    }
    shape.stride = stride > 0 ? stride : std::max<std::int64_t>(1, shape.context / 2);
    if (shape.stride > shape.context) {
        throw InputError(ErrorId::usage_value, "--stride: expected at most the context (" +
                                                   std::to_string(shape.context) + "), found " +
                                                   std::to_string(shape.stride) + ".");
    }
    return shape;
}

namespace {

RecordReport report_of(const RunInfo& run) {
    RecordReport report;
    report.run = run.id;
    report.sequences = run.sequences;
    report.tokens = run.tokens;
    report.scored_tokens = run.scored_tokens;
    report.mean_nll = run.scored_tokens > 0 ? run.nll_sum / static_cast<double>(run.scored_tokens)
                                            : std::numeric_limits<double>::quiet_NaN();
    report.seconds = run.seconds;
    report.found_complete = true;
    return report;
}

} // namespace

std::int64_t windows_that_fit(const Engine& engine, std::int64_t longest, std::int64_t wanted) {
    constexpr std::int64_t room = std::int64_t{512} << 20;
    const auto take = [&](const std::string& what, std::int64_t bytes, std::int64_t fits,
                          std::int64_t share) {
        if (longest > fits) {
            throw InputError(ErrorId::text_long,
                             what + " of a window of " + std::to_string(longest) + " tokens would take " +
                                 std::to_string(bytes >> 20) + " MiB of memory, more than the limit of " +
                                 std::to_string(room >> 20) + " MiB; choose fewer layers or heads" +
                                 (fits >= 2 ? ", or --context " + std::to_string(fits) + "." : "."));
        }
        wanted = std::min(wanted, std::max<std::int64_t>(share / std::max<std::int64_t>(bytes, 1), 1));
    };
    if (engine.token_bytes() > 0) {
        const std::int64_t each = engine.token_room();
        take("--record: the states and read-outs", longest * each, room / each, room);
    }
    if (const std::int64_t pair = engine.attention_pair_bytes(); pair > 0) {
        // Memory grows with the square of the window. A batch may take a quarter of the room.
        const auto fits = static_cast<std::int64_t>(std::sqrt(static_cast<double>(room / pair)));
        take("--attention: the weights", longest * longest * pair, fits, room / 4);
    }
    return wanted;
}

namespace {

/// Whether a writer gave this name, like "x (2)", to another run with the wanted name "x".
bool is_another_of(const std::string& name, const std::string& wanted) {
    if (!name.starts_with(wanted + " (") || !name.ends_with(')')) {
        return false;
    }
    const std::string_view number = std::string_view(name).substr(wanted.size() + 2);
    return number.size() > 1 && number.find_first_not_of("0123456789") == number.size() - 1;
}

/// How a run differs from the wanted recording; empty: no difference.
std::string difference_from(const TraceReader& reader, const RunInfo& run, const Recording& wanted,
                            const ShardInfo& place) {
    const std::optional<ShardInfo> was = reader.shard(run.id);
    std::string difference =
        difference_of_recordings({run, reader.signal_infos(run.id), was ? was->batch : 0}, wanted);
    if (difference.empty() && was && (was->rank != place.rank || was->world != place.world)) {
        difference = "rank " + std::to_string(was->rank) + " of " + std::to_string(was->world) +
                     ", and rank " + std::to_string(place.rank) + " of " + std::to_string(place.world);
    }
    return difference;
}

/// Chooses a run with this name to resume. Prefers equal texts, weights and options, then an incomplete run,
/// then the newest. No value: no such run. The run's tokens and (approximate) bytes of text are those of
/// finished sequences. InputError: the chosen run has other texts, weights or options.
std::optional<RunInfo> run_to_resume(const std::filesystem::path& trace, const Recording& wanted,
                                     const ShardInfo& place) {
    const TraceReader reader = TraceReader::open(trace);
    std::optional<RunInfo> found;
    std::string difference;
    const auto rank = [](const RunInfo& run, const std::string& differs) {
        return (differs.empty() ? 2 : 0) + (run.complete ? 0 : 1);
    };
    for (RunInfo& run : reader.runs()) {
        const bool named = run.name == wanted.run.name || is_another_of(run.name, wanted.run.name);
        if (!named && (place.world == 1 || found)) {
            continue;
        }
        std::string differs = difference_from(reader, run, wanted, place);
        if (!found || rank(run, differs) >= rank(*found, difference)) {
            found = std::move(run);
            difference = std::move(differs);
        }
    }
    if (!found) {
        return found;
    }
    if (!difference.empty()) {
        throw InputError(
            ErrorId::resume_differs, trace, "a run of these texts, weights and options to resume",
            "run \"" + found->name +
                "\" with other settings (first the recorded, then the requested: " + difference + ")",
            "resume with the options of that run, or choose another --name");
    }
    TokenTotals finished;
    for (const SequenceInfo& sequence : reader.sequences(found->id)) {
        if (!sequence.complete) {
            break;
        }
        finished += sequence;
    }
    static_cast<TokenTotals&>(*found) = finished;
    return found;
}

/// One call of record().
class RunRecording {
public:
    RunRecording(const Engine& engine, const Checkpoint& checkpoint, SequenceSource& source,
                 const Tokenizer* tokenizer, TraceWriter& writer, const RecordOptions& options,
                 const ProgressSink& progress, const std::stop_token& stop)
        : engine_(engine),
          source_(source),
          tokenizer_(tokenizer),
          writer_(writer),
          options_(options),
          progress_(progress),
          stop_(stop),
          shape_(resolve_windows(engine.config(), options.context, options.stride)),
          place_{options.rank, options.world, batch()},
          info_(describe_run(engine, checkpoint, &source, tokenizer, options, shape_, progress, stop)),
          digest_known_(options.text_digest || !info_.text_digest.empty()),
          signals_(kept_signals(engine.signals(options.level), options.kept)),
          amount_(source.amount()) {
        for (const auto& [signal, rows] : options.generated) {
            signals_.push_back(signal);
        }
        amount_.total /= options.world; // approximately
        report_.wanted_name = info_.name;
    }

    RecordReport run() {
        if (options_.resume) {
            begun_ = run_to_resume(*options_.resume, {info_, signals_, place_.batch}, place_);
            if (begun_ && begun_->complete) {
                return report_of(*begun_);
            }
        }
        begin();
        compute();
        end();
        return report_;
    }

private:
    [[nodiscard]] std::int64_t batch() const {
        const std::int64_t known = source_.amount().longest;
        return windows_that_fit(engine_, known > 0 ? std::min(known, shape_.context) : shape_.context,
                                std::max<std::int64_t>(options_.batch, 1));
    }

    [[nodiscard]] std::optional<std::int32_t> start_token() const {
        if (options_.reading.bos != TextReading::Bos::every_window) {
            return std::nullopt;
        }
        if (shape_.stride == shape_.context) {
            throw InputError(ErrorId::usage_unsuited,
                             "--bos every-window puts the start token into the overlap of windows, and these "
                             "do not overlap. Choose a --stride below the context.");
        }
        return tokenizer_ != nullptr ? std::optional(require_start_token(*tokenizer_)) : std::nullopt;
    }

    /// Reads the first sequences, then begins or resumes the run.
    void begin() {
        const std::int64_t finished = begun_ ? writer_.resume_run(begun_->id, signals_) : 0;
        tasks_.emplace(source_, shape_.context, shape_.stride, engine_.config().vocab_size,
                       Tasks::Share{place_, finished, start_token()}, stop_);
        if (tasks_->reach(0, 1) == 0 && tasks_->sequences() == 0) {
            throw_if_stopped(stop_);
            throw InputError(ErrorId::text_empty,
                             options_.text_source + ": expected a sequence to record, found none" +
                                 (source_.left_out().empty() ? "." : "; " + source_.left_out()));
        }
        report_.run = begun_ ? begun_->id : writer_.begin_run(std::move(info_), signals_, place_);
        started_ = std::chrono::steady_clock::now();
        appender_.emplace(writer_, tokenizer_, options_, finished, begun_);
    }

    /// Runs all batches. If an error ends them early, stores the error in the trace.
    void compute() {
        try {
            run_in_batches([&](std::size_t begin, std::size_t size) { return tasks_->reach(begin, size); },
                           static_cast<std::size_t>(place_.batch), stop_,
                           [&](std::size_t begin, std::size_t end) { return submit(begin, end); },
                           [&](Engine::PendingPtr pending, std::size_t begin, std::size_t end) {
                               collect(std::move(pending), begin, end);
                           });
        } catch (const MemoryExhausted& full) {
            const std::size_t tokens = window_of(tasks_->at(submitted_)).ids.size();
            const std::string sentence =
                std::string(full.what()) + " A window of " + std::to_string(tokens) +
                " tokens alone does not fit; " +
                (tokens > 3 ? "choose a smaller one, such as --context " + std::to_string(tokens / 2) + "."
                            : "choose a smaller model or another --device.");
            end_with_fault(sentence);
            throw EnvironmentError(ErrorId::environment_memory,
                                   sentence + " Earlier sequences are in the trace, marked partial.");
        } catch (const InputError& wrong) {
            end_with_fault(wrong.what());
            throw InputError(wrong.id(), std::string(wrong.what()) +
                                             " Earlier sequences are in the trace, marked partial.");
        } catch (const std::exception& failure) {
            // A GPU error, no memory, a full disk: only the first line of the message names the problem.
            const std::string what = failure.what();
            end_with_fault("The recording ended before its time: " + what.substr(0, what.find('\n')));
            throw;
        }
    }

    Engine::PendingPtr submit(std::size_t begin, std::size_t end) {
        submitted_ = begin;
        std::vector<Window> windows;
        for (std::size_t at = begin; at < end; ++at) {
            windows.push_back(window_of(tasks_->at(at)));
        }
        return engine_.submit(windows, options_.level);
    }

    void collect(Engine::PendingPtr pending, std::size_t begin, std::size_t end) {
        std::vector<WindowResult> results = engine_.collect(std::move(pending));
        for (std::size_t at = begin; at < end; ++at) {
            appender_->append(tasks_->at(at), std::move(results[at - begin]));
        }
        tasks_->release_until(end);
        report_progress(progress_, {"recording", done(), amount_.total, by_bytes() ? "bytes" : "tokens"});
    }

    /// Ends the run, complete or partial, with its faults.
    void end() {
        report_.sequences = appender_->sequences();
        report_.tokens = appender_->tokens();
        report_.scored_tokens = appender_->scored();
        report_.mean_nll = appender_->mean_nll();
        report_.lost = appender_->lost();
        const bool whole = options_.world == 1 && !begun_;
        const bool all_done = whole && amount_.total > 0 && done() >= amount_.total;
        report_.cancelled =
            (stop_.stop_requested() && !tasks_->done() && !all_done) || !options_.cut_short.empty();
        if (const std::string omissions = source_.left_out(); !omissions.empty()) {
            writer_.put_fault(omissions);
        }
        if (report_.lost > 0) {
            writer_.put_fault(sentence_of_lost(report_.lost));
        }
        if (report_.cancelled) {
            const bool counts = amount_.total > 0 && !amount_.bytes;
            writer_.put_fault(!options_.cut_short.empty()
                                  ? options_.cut_short
                                  : "Cancelled after " + std::to_string(appender_->tokens_in_all()) +
                                        (counts ? " of " + std::to_string(amount_.total) : "") + " tokens.");
            writer_.leave_run(elapsed());
        } else {
            if (!digest_known_) {
                writer_.put_text_digest(source_.text_digest());
            }
            writer_.end_run(elapsed());
        }
        if (options_.finish) {
            writer_.finish();
        }
        report_.seconds = elapsed();
        // Fail only if a whole run produced no scored token. A resumed run or a shard may contain none.
        if (report_.lost > 0 && report_.scored_tokens == 0 && whole && !report_.cancelled) {
            throw InputError(ErrorId::checkpoint_numbers, no_numbers);
        }
    }

    /// Keeps the finished sequences and marks the run partial, with the reason.
    void end_with_fault(const std::string& sentence) {
        try {
            writer_.put_fault(sentence);
            writer_.leave_run(elapsed());
            if (options_.finish) {
                writer_.finish();
            }
        } catch (const Error&) {
            // The disk may have failed. The writer has stored this in the trace if possible.
        }
    }

    static Window window_of(const Task& task) {
        Window window = task.sequence->window(task.span, task.number);
        window.ids = task.window_ids();
        return window;
    }
    [[nodiscard]] bool by_bytes() const { return amount_.bytes && amount_.total > 0; }
    [[nodiscard]] std::int64_t done() const {
        return by_bytes() ? appender_->text_bytes() : appender_->tokens_in_all();
    }
    [[nodiscard]] double elapsed() const {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
    }

    const Engine& engine_;
    SequenceSource& source_;
    const Tokenizer* tokenizer_;
    TraceWriter& writer_;
    const RecordOptions& options_;
    const ProgressSink& progress_;
    const std::stop_token& stop_;
    WindowShape shape_;
    ShardInfo place_;
    RunInfo info_;
    bool digest_known_;
    std::vector<SignalInfo> signals_;
    SequenceSource::Amount amount_;
    RecordReport report_;
    std::optional<RunInfo> begun_; ///< the run to resume
    std::optional<Tasks> tasks_;
    std::optional<Appender> appender_;
    std::chrono::steady_clock::time_point started_;
    std::size_t submitted_ = 0; ///< first task of the last submitted batch
};

} // namespace

RecordReport record(const Engine& engine, const Checkpoint& checkpoint, SequenceSource& source,
                    const Tokenizer* tokenizer, TraceWriter& writer, const RecordOptions& options,
                    const ProgressSink& progress, const std::stop_token& stop) {
    return RunRecording(engine, checkpoint, source, tokenizer, writer, options, progress, stop).run();
}

RecordReport record(const Engine& engine, const Checkpoint& checkpoint,
                    const std::vector<SequenceInput>& sequences, const Tokenizer* tokenizer,
                    TraceWriter& writer, const RecordOptions& options, const ProgressSink& progress,
                    std::stop_token stop) {
    check_sequences(sequences, engine.config().vocab_size);
    ListSource source(sequences);
    return record(engine, checkpoint, source, tokenizer, writer, options, progress, stop);
}

} // namespace ponderscope
