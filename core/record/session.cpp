// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/record/session.h"

#include "core/base/error.h"
#include "core/base/sha256.h"
#include "core/ponder/engine/no_numbers.h"
#include "core/record/batches.h"
#include "core/record/kept_signals.h"
#include "core/record/resume.h"
#include "core/record/run_recording.h"
#include "core/record/sequence_source.h"
#include "core/record/tasks.h"
#include "core/trace/reader.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

namespace ponderscope {
namespace {

/// SHA-256 of the texts, one after the other. A sequence without a text counts with its ids, as little-endian
/// int32.
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

/// Sequences that lie in memory.
class ListSource final : public SequenceSource {
public:
    explicit ListSource(const std::vector<SequenceInput>& sequences)
        : sequences_(sequences), digest_(digest_of(sequences)) {}
    std::shared_ptr<const SequenceInput> next() override {
        if (next_ == sequences_.size()) {
            return nullptr;
        }
        // The caller's: nothing to be deleted.
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
    [[nodiscard]] std::vector<std::int64_t> planned_lengths() const override {
        std::vector<std::int64_t> lengths;
        bool shorter = false;
        for (const SequenceInput& sequence : sequences_) {
            lengths.push_back(sequence.length_for_rules());
            shorter = shorter || sequence.length() < lengths.back();
        }
        return shorter ? lengths : std::vector<std::int64_t>();
    }

private:
    const std::vector<SequenceInput>& sequences_;
    std::string digest_;
    std::size_t next_ = 0;
};

/// What to do about a window that alone does not fit.
std::string too_large(const MemoryExhausted& full, const Engine::MemoryAdvice& advice, std::int64_t tokens) {
    std::string sentence =
        std::string(full.what()) + " A window of " + std::to_string(tokens) + " tokens alone does not fit";
    if (advice.needed > 0) {
        sentence += ": it would need about " + std::to_string((advice.needed >> 20) + 1) + " MiB";
    }
    sentence += advice.fits > 0 ? "; use --context " + std::to_string(advice.fits) + ", which fits."
                                : "; the model is too large for this GPU beside what else runs on it.";
    return sentence;
}

/// What was finished stays; the run says that it is partial, and why.
void end_with_fault(TraceWriter& writer, const std::string& sentence, double seconds, bool finish) {
    try {
        writer.put_fault(sentence);
        writer.leave_run(seconds);
        if (finish) {
            writer.finish();
        }
    } catch (const Error&) {
        // The disk may be what failed: the writer has said so in the trace, if it could.
    }
}

} // namespace

void check_sequences(const std::vector<SequenceInput>& sequences, std::int64_t vocab_size) {
    if (sequences.empty()) {
        throw InputError("There is no sequence to record; give a text or ids.");
    }
    for (const SequenceInput& sequence : sequences) {
        check_sequence(sequence, vocab_size);
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

RecordReport record(const Engine& engine, const Checkpoint& checkpoint, SequenceSource& source,
                    const Tokenizer* tokenizer, TraceWriter& writer, const RecordOptions& options,
                    const ProgressSink& progress, const std::stop_token& stop) {
    const WindowShape shape = resolve_windows(engine.config(), options.context, options.stride);
    std::int64_t batch = std::max<std::int64_t>(options.batch, 1);
    if (engine.attention_pair_bytes() > 0 || engine.token_bytes() > 0) {
        // No window is longer than the context.
        const std::int64_t known = source.amount().longest;
        SequenceInput longest;
        longest.ids.resize(
            static_cast<std::size_t>(known > 0 ? std::min(known, shape.context) : shape.context));
        for (const auto price_of : {attention_price, states_price}) {
            const RecordingPrice price = price_of(engine, {longest}, shape);
            batch = price.bytes > 0 ? std::min(batch, price.windows_a_batch) : batch;
        }
    }
    RecordReport report;
    const ShardInfo place{options.rank, options.world, batch};
    RunInfo info = describe_run(engine, checkpoint, source, tokenizer, options, shape, progress, stop);
    report.wanted_name = info.name;
    const bool digest_known = options.text_digest || !info.text_digest.empty();
    const std::vector<SignalInfo> signals = kept_signals(engine.signals(options.level), options);
    const std::optional<RunInfo> begun =
        options.resume ? run_to_resume(*options.resume, {info, signals, batch}, place) : std::nullopt;
    if (begun && begun->complete) {
        return report_of(*begun);
    }
    const std::int64_t finished = begun ? writer.resume_run(begun->id, signals) : 0;
    std::optional<std::int32_t> start_token;
    if (options.reading.bos == TextReading::Bos::every_window) {
        if (shape.stride == shape.context) {
            throw InputError(
                "--bos every-window puts the start token where windows overlap. Choose a --stride "
                "below the context.");
        }
        if (tokenizer != nullptr) {
            start_token = require_start_token(*tokenizer);
        }
    }
    Tasks tasks(source, shape.context, shape.stride, engine.config().vocab_size,
                {place, finished, start_token}, stop);
    if (tasks.reach(0, 1) == 0 && tasks.sequences() == 0) {
        if (stop.stop_requested()) {
            throw Cancelled();
        }
        throw InputError(options.text_source + ": expected a sequence to record, found none" +
                         (source.left_out().empty() ? "." : "; " + source.left_out()));
    }
    report.run = begun ? begun->id : writer.begin_run(std::move(info), signals, place);

    const auto started = std::chrono::steady_clock::now();
    const auto elapsed = [started] {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
    };
    Appender appender(writer, tokenizer, options, finished, begun);
    SequenceSource::Amount amount = source.amount();
    amount.total /= options.world; // about
    const bool by_bytes = amount.bytes && amount.total > 0;
    const auto done = [&] { return by_bytes ? appender.text_bytes() : appender.tokens_in_all(); };
    const auto window_of = [&](const Task& task) {
        return Window{task.window_ids(),
                      task.span.report_begin - task.span.begin,
                      task.span.report_end - task.span.begin,
                      task.number,
                      task.span.begin,
                      task.sequence->length_for_rules()};
    };
    const auto reach = [&](std::size_t begin, std::size_t size) { return tasks.reach(begin, size); };
    std::size_t submitted = 0; // the task that was tried last
    const auto submit = [&](std::size_t begin, std::size_t end) {
        submitted = begin;
        std::vector<Window> windows;
        for (std::size_t at = begin; at < end; ++at) {
            windows.push_back(window_of(tasks.at(at)));
        }
        return engine.submit(windows, options.level);
    };
    const auto collect = [&](Engine::PendingPtr pending, std::size_t begin, std::size_t end) {
        std::vector<WindowResult> results = engine.collect(std::move(pending));
        for (std::size_t at = begin; at < end; ++at) {
            appender.append(tasks.at(at), std::move(results[at - begin]));
        }
        tasks.release_until(end);
        if (progress) {
            progress({"recording", done(), amount.total, by_bytes ? "bytes" : "tokens"});
        }
    };
    try {
        run_in_batches(reach, static_cast<std::size_t>(batch), stop, submit, collect);
    } catch (const MemoryExhausted& full) {
        const Window window = window_of(tasks.at(submitted));
        const std::string sentence = too_large(full, engine.advise(window, options.level),
                                               static_cast<std::int64_t>(window.ids.size()));
        end_with_fault(writer, sentence, elapsed(), options.finish);
        throw EnvironmentError(ErrorId::environment_memory,
                               sentence + " The sequences before are in the trace, marked partial.");
    } catch (const InputError& wrong) {
        end_with_fault(writer, wrong.what(), elapsed(), options.finish);
        throw InputError(wrong.id(), std::string(wrong.what()) +
                                         " The sequences before are in the trace, marked partial.");
    } catch (const std::exception& failure) {
        // A GPU that failed, memory of the machine, a full disk: the first line says what, others where.
        const std::string what = failure.what();
        end_with_fault(writer, "The recording ended before its time: " + what.substr(0, what.find('\n')),
                       elapsed(), options.finish);
        throw;
    }

    report.sequences = appender.sequences();
    report.tokens = appender.tokens();
    report.scored_tokens = appender.scored();
    report.mean_nll = appender.mean_nll();
    const bool all_done = options.world == 1 && !begun && amount.total > 0 && done() >= amount.total;
    report.cancelled = (stop.stop_requested() && !tasks.done() && !all_done) || !options.cut_short.empty();
    if (const std::string omissions = source.left_out(); !omissions.empty()) {
        writer.put_fault(omissions);
    }
    report.lost = appender.lost();
    if (report.lost > 0) {
        writer.put_fault(sentence_of_lost(report.lost));
    }
    if (report.cancelled) {
        const bool counts = amount.total > 0 && !amount.bytes;
        writer.put_fault(!options.cut_short.empty()
                             ? options.cut_short
                             : "Cancelled after " + std::to_string(appender.tokens_in_all()) +
                                   (counts ? " of " + std::to_string(amount.total) : "") + " tokens.");
        writer.leave_run(elapsed());
    } else {
        if (!digest_known) {
            writer.put_text_digest(source.text_digest());
        }
        writer.end_run(elapsed());
    }
    if (options.finish) {
        writer.finish();
    }
    report.seconds = elapsed();
    // Fail only if a whole run produced no scored token. A resumed run or a shard may contain none.
    if (report.lost > 0 && report.scored_tokens == 0 && options.world == 1 && !begun && !report.cancelled) {
        throw InputError(ErrorId::checkpoint_numbers, no_numbers);
    }
    return report;
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
