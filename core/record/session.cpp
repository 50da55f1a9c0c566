// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/record/session.h"

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/sha256.h"
#include "core/checkpoint/method_info.h"
#include "core/ponder/engine/no_numbers.h"
#include "core/record/batches.h"
#include "core/record/kept_signals.h"
#include "core/record/resume.h"
#include "core/record/sequence_source.h"
#include "core/record/tasks.h"
#include "core/trace/reader.h"
#include "core/trace/store.h"

#include <nlohmann/json.hpp>
#include <sqlite3.h>
#include <torch/version.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <memory>
#include <set>
#include <utility>

namespace ponderscope {
namespace {

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

std::string choices_of(const Engine& engine, const SequenceSource& source, const RecordOptions& options) {
    nlohmann::json choices = nlohmann::json::object();
    if (!engine.kv().empty()) {
        choices["kv"] = engine.kv();
    }
    if (!engine.start_state().empty()) {
        choices["initial_state"] = engine.start_state();
    }
    if (const std::string digest = engine.start_state_digest(); !digest.empty()) {
        choices["initial_state_digest"] = digest;
    }
    const ModelConfig& config = engine.config();
    if (method_info(config.ponder.method).own_rule.signal != nullptr) {
        choices["threshold"] =
            std::isinf(config.ponder.threshold) ? nlohmann::json() : nlohmann::json(config.ponder.threshold);
    }
    if (const auto step = config.ponder.own.find("exit_step"); step != config.ponder.own.end()) {
        choices["exit_step"] = static_cast<std::int64_t>(step->second);
    }
    if (config.layers_left_out > 0) {
        choices["layers"] = config.layers; // the first ones, not all
    }
    if (const std::vector<std::int64_t> lengths = source.planned_lengths(); !lengths.empty()) {
        choices["planned_lengths"] = lengths;
    }
    if (!options.patches.empty()) {
        choices["patches"] = nlohmann::json::parse(options.patches);
    }
    // The texts' digest says nothing of these, and parts of a run must not differ in them.
    if (!options.special_tokens) {
        choices["special_tokens"] = false;
    }
    if (options.limit_tokens > 0) {
        choices["limit_tokens"] = options.limit_tokens;
    }
    if (options.sample < 1) {
        choices["sample"] = options.sample;
    }
    for (const auto& [key, field] :
         {std::pair{"group_field", &options.group_field}, std::pair{"label_field", &options.label_field},
          std::pair{"text_field", &options.text_field}}) {
        if (!field->empty()) {
            choices[key] = *field;
        }
    }
    return choices.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
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

RunInfo describe_run(const Engine& engine, const Checkpoint& checkpoint, const SequenceSource& source,
                     const Tokenizer* tokenizer, const RecordOptions& options, const WindowShape& shape,
                     const ProgressSink& progress, const std::stop_token& stop) {
    const ModelConfig& config = engine.config();
    RunInfo info;
    const std::filesystem::path folder = std::filesystem::absolute(checkpoint.folder).lexically_normal();
    const std::string folder_name =
        folder.has_filename() ? folder.filename().string() : folder.parent_path().filename().string();
    info.name = options.run_name.empty() ? folder_name + options.changes : options.run_name;
    info.checkpoint = checkpoint.folder.string();
    info.checkpoint_digest = checkpoint_digest(checkpoint, progress, stop);
    info.architecture = to_string(config.architecture);
    info.method = to_string(config.ponder.method);
    info.depth_mixing = to_string(config.depth.kind);
    info.policy = engine.policy();
    info.scoring = engine.scoring();
    info.device = engine.device_name();
    info.dtype = options.dtype;
    info.record_level = options.scalars ? "scalars" : options.level == RecordLevel::basic ? "basic" : "steps";
    info.text_source = options.text_source;
    info.text_digest = options.text_digest ? *options.text_digest : source.text_digest();
    if (tokenizer != nullptr) {
        info.tokenizer_digest = tokenizer->content_digest();
    }
    info.versions = nlohmann::json{{"ponderscope", PONDERSCOPE_VERSION},
                                   {"torch", TORCH_VERSION},
                                   {"sqlite", sqlite3_libversion()}}
                        .dump();
    const std::filesystem::path config_file = checkpoint.folder / "config.json";
    info.config = read_file(config_file);
    if (!nlohmann::json::accept(info.config)) { // NaN and Infinity, as Python writes them, become null
        info.config = parse_json(info.config, config_file, {.python = true}).dump();
    }
    std::vector<std::string> notices = engine.notices();
    notices.insert(notices.end(), options.notices.begin(), options.notices.end());
    info.notices = nlohmann::json(notices).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    info.seed = options.seed;
    info.training = options.training;
    info.training_step = options.training_step;
    info.flops_model = engine.flops_model();
    info.step_unit = engine.layers_are_steps() ? "layer" : "step";
    info.choices = choices_of(engine, source, options);
    info.max_steps = engine.max_steps();
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
    /// \p finished: sequences that are in the trace already; \p begun: the run that they are of.
    Appender(TraceWriter& writer, const Tokenizer* tokenizer, const RecordOptions& options,
             std::int64_t finished, const std::optional<RunInfo>& begun)
        : writer_(writer),
          tokenizer_(tokenizer),
          options_(options),
          sequences_(finished),
          text_bytes_(begun ? begun->text_bytes : 0),
          tokens_before_(begun ? begun->tokens : 0) {}

    void append(const Task& task, WindowResult result) {
        if (task.place < sequences_ - (open_ ? 1 : 0)) {
            return; // in the trace already; it was computed beside one that is not
        }
        const SequenceInput& sequence = *task.sequence;
        if (!open_) {
            begin_sequence(task);
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
        for (std::size_t i = 0; i < tokens.size(); ++i) {
            if (!std::isnan(tokens.nll[i])) {
                nll_sum_ += static_cast<double>(tokens.nll[i]);
                ++scored_;
            } else if (std::exchange(tokens.rank[i], 0) > 0) { // it has a next token, and NaN has no rank
                ++lost_;
            }
        }
        tokens_ += static_cast<std::int64_t>(tokens.size());
        keep(result, task.span.report_begin, options_);
        seen_.insert(tokens.id.begin(), tokens.id.end());
        for (auto& [name, chunk] : result.signals) {
            chunk.first = task.span.report_begin;
            if (tokenizer_ != nullptr && name == signal::candidate_ids) {
                for (const std::int64_t id : to_integers(chunk)) {
                    if (id != did_not_run) {
                        seen_.insert(static_cast<std::int32_t>(id));
                    }
                }
            }
        }
        writer_.append(std::move(result.tokens), std::move(result.signals));
        put_new_vocabulary();
        if (task.span.report_end == sequence.length()) {
            writer_.end_sequence();
            open_ = false;
            text_bytes_ += static_cast<std::int64_t>(sequence.text.size());
        }
    }

    [[nodiscard]] std::int64_t sequences() const { return sequences_; }   ///< begun
    [[nodiscard]] std::int64_t text_bytes() const { return text_bytes_; } ///< of finished ones
    /// With those that were there before.
    [[nodiscard]] std::int64_t tokens_in_all() const { return tokens_before_ + tokens_; }
    [[nodiscard]] std::int64_t tokens() const { return tokens_; }
    [[nodiscard]] std::int64_t scored() const { return scored_; }
    [[nodiscard]] std::int64_t lost() const { return lost_; } ///< that have a next token, and no NLL
    [[nodiscard]] double mean_nll() const {
        return scored_ > 0 ? nll_sum_ / static_cast<double>(scored_)
                           : std::numeric_limits<double>::quiet_NaN();
    }

private:
    void begin_sequence(const Task& task) {
        const SequenceInput& sequence = *task.sequence;
        open_ = true;
        ++sequences_;
        writer_.begin_sequence(sequence.title, sequence.text, sequence.group,
                               options_.world > 1 ? std::optional(task.number) : std::nullopt);
        if (!sequence.labels.empty()) {
            writer_.put_labels(sequence.labels);
        }
    }
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
    const Tokenizer* tokenizer_;
    const RecordOptions& options_;
    std::int64_t sequences_; ///< begun
    bool open_ = false;
    std::int64_t text_bytes_;
    std::int64_t tokens_before_;
    std::int64_t tokens_ = 0;
    std::int64_t scored_ = 0;
    std::int64_t lost_ = 0;
    double nll_sum_ = 0;
    std::set<std::int32_t> seen_;
    std::set<std::int32_t> written_;
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
    Tasks tasks(source, shape.context, shape.stride, engine.config().vocab_size, {place, finished}, stop);
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
        const std::span<const std::int32_t> ids(task.sequence->ids);
        return Window{ids.subspan(static_cast<std::size_t>(task.span.begin),
                                  static_cast<std::size_t>(task.span.end - task.span.begin)),
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
        tasks.let_go(end);
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
        throw EnvironmentError(sentence + " What was recorded before is in the trace, marked partial.");
    } catch (const InputError& wrong) {
        end_with_fault(writer, wrong.what(), elapsed(), options.finish);
        throw InputError(std::string(wrong.what()) +
                         " What was recorded before is in the trace, marked partial.");
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
    // Of all texts, whichever came first; what is left of a run, or another part of it, may have others.
    if (report.lost > 0 && report.scored_tokens == 0 && options.world == 1 && !begun && !report.cancelled) {
        throw InputError(no_numbers);
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
