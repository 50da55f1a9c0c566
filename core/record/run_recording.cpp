// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/record/run_recording.h"

#include "core/base/files.h"
#include "core/base/json.h"
#include "core/checkpoint/method_info.h"
#include "core/record/kept_signals.h"
#include "core/trace/reader.h"
#include "core/trace/writing/store.h"

#include <nlohmann/json.hpp>
#include <sqlite3.h>
#include <torch/version.h>

#include <cmath>
#include <utility>
#include <vector>

namespace ponderscope {
namespace {

std::string choices_of(const Engine& engine, const SequenceSource* source, const RecordOptions& options) {
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
    if (engine.plan().prefix) {
        choices["prefix"] = *engine.plan().prefix;
    }
    if (config.layers_left_out > 0) {
        choices["layers"] = config.layers; // fewer than the checkpoint has
    }
    if (options.branch) {
        choices["branch"] = to_json(*options.branch);
    }
    if (!options.patches.empty()) {
        choices["patches"] = nlohmann::json::parse(options.patches);
    }
    if (options.reading.bos != TextReading::Bos::automatic) {
        choices["bos"] = options.reading.bos_text();
    }
    if (!options.reading.parse_special) {
        choices["parse_special"] = false;
    }
    if (source != nullptr) {
        source->add_choices(choices);
    }
    return choices.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

} // namespace

RunInfo describe_run(const Engine& engine, const Checkpoint& checkpoint, const SequenceSource* source,
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
    info.dtype = engine.dtype();
    info.record_level = options.kept.scalars                  ? "scalars"
                        : options.level == RecordLevel::basic ? "basic"
                                                              : "steps";
    info.text_source = options.text_source;
    info.text_digest = options.text_digest.value_or(source != nullptr ? source->text_digest() : "");
    if (tokenizer != nullptr) {
        info.tokenizer_digest = tokenizer->content_digest();
    }
    info.versions = nlohmann::json{{"ponderscope", PONDERSCOPE_VERSION},
                                   {"torch", TORCH_VERSION},
                                   {"sqlite", sqlite3_libversion()}}
                        .dump();
    const std::filesystem::path config_file = checkpoint.folder / "config.json";
    info.config = read_file(config_file);
    if (!nlohmann::json::accept(info.config)) { // replace Python's NaN and Infinity by null
        info.config = parse_json(info.config, config_file, {.python = true}).dump();
    }
    Notices notices = engine.notices();
    notices.insert(notices.end(), options.notices.begin(), options.notices.end());
    info.notices =
        nlohmann::json(texts_of(notices)).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    info.seed = options.seed;
    info.flops_model = engine.flops_model();
    info.step_unit = engine.plan().layers_are_steps ? "layer" : "step";
    info.choices = choices_of(engine, source, options);
    info.max_steps = engine.max_steps();
    info.layers = config.layers;
    info.vocab_size = config.vocab_size;
    info.context = shape.context;
    info.stride = shape.stride;
    info.started = utc_now();
    return info;
}

void Appender::append(const Task& task, WindowResult result) {
    if (task.place < sequences_ - (open_ ? 1 : 0)) {
        return; // already in the trace; computed because its batch has a new sequence
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
        } else if (std::exchange(tokens.rank[i], 0) > 0) { // it has a target; NaN has no rank
            ++lost_;
        }
    }
    tokens_ += static_cast<std::int64_t>(tokens.size());
    keep(result, options_.kept);
    for (const auto& [info, rows] : options_.generated) {
        append_rows(result.signals.emplace_back(info.name, SignalChunk()).second, rows,
                    static_cast<std::size_t>(from), tokens.size());
    }
    seen_.insert(tokens.id.begin(), tokens.id.end());
    for (auto& [name, chunk] : result.signals) {
        chunk.first = task.span.report_begin;
        if (tokenizer_ != nullptr && (name == signal::candidate_ids || name == signal::sampling_ids)) {
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

void Appender::begin_sequence(const Task& task) {
    const SequenceInput& sequence = *task.sequence;
    open_ = true;
    ++sequences_;
    writer_.begin_sequence(sequence.title, sequence.text, sequence.group,
                           options_.world > 1 ? std::optional(task.number) : std::nullopt);
    if (!sequence.labels.empty()) {
        writer_.put_labels(sequence.labels);
    }
}

void Appender::put_new_vocabulary() {
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

} // namespace ponderscope
