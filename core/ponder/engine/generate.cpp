// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/error.h"
#include "core/base/splitmix.h"
#include "core/model/device.h"
#include "core/ponder/engine/decoder.h"
#include "core/ponder/engine/no_numbers.h"
#include "core/ponder/recording/recorded_signals.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

namespace ponderscope {

namespace {

/// Orders ids by descending logits. Of equal logits, the lower id comes first.
struct Likelier {
    const float* logits;
    /// NaN counts as -infinity: it cannot be drawn, and sorting needs an order.
    [[nodiscard]] float logit(std::int32_t id) const {
        return std::isnan(logits[id]) ? -std::numeric_limits<float>::infinity() : logits[id];
    }
    bool operator()(std::int32_t a, std::int32_t b) const {
        return logit(a) != logit(b) ? logit(a) > logit(b) : a < b;
    }
    /// The \p count most likely ids.
    [[nodiscard]] std::vector<std::int32_t> first(std::int64_t count, std::int64_t vocabulary) const {
        std::vector<std::int32_t> order(static_cast<std::size_t>(vocabulary));
        std::iota(order.begin(), order.end(), 0);
        std::partial_sort(order.begin(), order.begin() + std::min(count, vocabulary), order.end(), *this);
        order.resize(static_cast<std::size_t>(std::min(count, vocabulary)));
        return order;
    }
};

/// The ids to draw from, in descending probability softmax(logits / temperature): of the top_k most likely
/// ids, the smallest set with at least the share top_p of their total probability.
struct SamplingSet {
    std::vector<std::int32_t> ids;
    std::vector<double> weights;
    double total = 0; ///< sum of the weights

    SamplingSet(const float* logits, std::int64_t vocabulary, const GenerateOptions& options) {
        const bool greedy = options.temperature <= 0;
        const std::int64_t count = greedy ? 1 : options.top_k > 0 ? options.top_k : vocabulary;
        const Likelier likelier{logits};
        ids = likelier.first(count, vocabulary);
        const double largest = likelier.logit(ids.front());
        double all = 0;
        for (const std::int32_t id : ids) {
            weights.push_back(greedy ? 1 : std::exp((likelier.logit(id) - largest) / options.temperature));
            all += weights.back();
        }
        std::size_t size = 0;
        while (size < weights.size() && (size == 0 || total < options.top_p * all)) {
            total += weights[size++];
        }
        ids.resize(size);
        weights.resize(size);
    }

    [[nodiscard]] std::int32_t draw(double draw) const {
        double rest = draw * total;
        for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
            rest -= weights[i];
            if (rest < 0) {
                return ids[i];
            }
        }
        return ids.back();
    }
    /// Probability that draw() returns \p id.
    [[nodiscard]] double share(std::int32_t id) const {
        const auto found = std::find(ids.begin(), ids.end(), id);
        return found == ids.end() ? 0 : weights[static_cast<std::size_t>(found - ids.begin())] / total;
    }
};

template <typename T>
std::pair<std::string, SignalChunk> one_row(const char* name, DType dtype, const std::vector<T>& values) {
    const std::span bytes = std::as_bytes(std::span(values));
    return {name, {0, dtype, {1, static_cast<std::int64_t>(values.size())}, {bytes.begin(), bytes.end()}}};
}

/// Adds sampling_signals() of the token \p chosen to its read-out.
void report_sampling(const SamplingSet& set, const float* logits, std::int64_t vocabulary,
                     std::int32_t chosen, WindowResult& readout) {
    const Likelier likelier{logits};
    std::vector<std::int32_t> ids = likelier.first(recorded_candidates, vocabulary);
    if (std::find(ids.begin(), ids.end(), chosen) == ids.end()) {
        ids.back() = chosen;
    }
    const double largest = likelier.logit(ids.front());
    double all = 0;
    for (std::int64_t id = 0; id < vocabulary; ++id) {
        all += std::exp(likelier.logit(static_cast<std::int32_t>(id)) - largest);
    }
    std::vector<float> before;
    std::vector<float> after;
    for (const std::int32_t id : ids) {
        before.push_back(static_cast<float>(std::exp(likelier.logit(id) - largest) / all));
        after.push_back(static_cast<float>(set.share(id)));
    }
    readout.signals.push_back(one_row(signal::sampling_ids, DType::i32, ids));
    readout.signals.push_back(one_row(signal::sampling_before, DType::f32, before));
    readout.signals.push_back(one_row(signal::sampling_after, DType::f32, after));
}

/// One call of generate().
class Generation {
public:
    Generation(const EngineParts& impl, const std::vector<std::vector<std::int32_t>>& prompts,
               const GenerateOptions& options, RecordLevel level, const Engine::TokenCallback& on_token)
        : impl_(impl),
          options_(options),
          level_(on_token ? std::optional(level) : std::nullopt),
          on_token_(on_token),
          ids_(prompts),
          past_(prompts.size(), 0),
          steps_(prompts.size()),
          prompt_(prompts.size()) {
        for (std::size_t i = 0; i < prompts.size(); ++i) {
            impl.check_ids(prompts[i]);
            const auto longest = static_cast<std::int64_t>(prompts[i].size()) + options.max_new_tokens - 1;
            if (longest > impl.backbone().longest_sequence()) {
                throw InputError(ErrorId::text_long,
                                 "This model has positions for " +
                                     std::to_string(impl.backbone().longest_sequence()) +
                                     " tokens, and a prompt of " + std::to_string(prompts[i].size()) +
                                     " leaves no room for " + std::to_string(options.max_new_tokens) +
                                     " new tokens; shorten the prompt, or generate fewer tokens.");
            }
            prompt_[i] = static_cast<std::int64_t>(prompts[i].size());
            live_.push_back(i);
        }
        if (cacheable()) {
            make_cache();
        }
        decoder_.emplace(impl, cache_ ? &*cache_ : nullptr,
                         Decoder::Wish{level_, options.temperature <= 0 && !options.reports_sampling,
                                       options.repeat_steps, options.graphs});
    }

    std::vector<std::vector<std::int32_t>> run() {
        try {
            bool wanted = !options_.stop.stop_requested();
            for (std::int64_t n = 0; n < options_.max_new_tokens && !live_.empty() && wanted; ++n) {
                wanted = step() && !options_.stop.stop_requested();
                report_progress(options_.progress, {"generating", n + 1, options_.max_new_tokens, "tokens"});
            }
        } catch (const Cancelled&) { // stopped within a token
            if (!options_.stop.stop_requested()) {
                throw;
            }
        }
        std::vector<std::vector<std::int32_t>> result;
        for (std::size_t i = 0; i < ids_.size(); ++i) {
            result.emplace_back(ids_[i].begin() + prompt_[i], ids_[i].end());
        }
        return result;
    }

private:
    /// False if rotation angles change with the sequence's length, because earlier keys then change.
    [[nodiscard]] bool cacheable() const {
        const ModelConfig& config = impl_.model.config();
        const std::int64_t shortest = *std::min_element(prompt_.begin(), prompt_.end());
        const auto keeps = [&](const RopeConfig& rope) {
            return longest() <= rope.longest_shared(config.max_positions) ||
                   (rope.kind == RopeConfig::Kind::longrope && shortest > rope.original_max_positions);
        };
        return options_.use_cache && keeps(config.rope) && keeps(config.local_rope);
    }

    [[nodiscard]] std::int64_t longest() const {
        return *std::max_element(prompt_.begin(), prompt_.end()) + options_.max_new_tokens;
    }

    void make_cache() {
        (void)impl_.backbone().rotation({longest()}); // computes the table that all steps share
        const bool interleaved = impl_.method().visibility() == VisibilityRule::interleaved;
        const std::int64_t slots = interleaved ? impl_.method().max_steps() + 1 : 1;
        std::int64_t total = 0;
        for (const std::int64_t prompt : prompt_) {
            first_rows_.push_back(total * slots);
            total += prompt + options_.max_new_tokens;
        }
        StepsOptions options = impl_.generation_options(true);
        options.read_out_every_step = level_ == RecordLevel::steps;
        cache_.emplace(make_step_cache(impl_.backbone(), impl_.method(), options, total,
                                       static_cast<std::int64_t>(prompt_.size())));
    }

    /// Runs the tokens that are not in the cache and chooses the next token of every unfinished sequence.
    bool step() {
        std::vector<std::span<const std::int32_t>> fresh;
        std::vector<std::int64_t> past;
        std::vector<Window> windows;
        std::vector<ReportedWindow> reported;
        for (const std::size_t i : live_) {
            const auto begin = cache_ ? past_[i] : 0;
            fresh.push_back(std::span(ids_[i]).subspan(static_cast<std::size_t>(begin)));
            past.push_back(begin);
            const auto length = static_cast<std::int64_t>(fresh.back().size());
            windows.push_back(
                {fresh.back(), length - 1, length, number(i), begin, prompt_[i] + options_.max_new_tokens});
            reported.push_back({length,
                                begin,
                                begin == 0 ? std::vector<std::int32_t>() : steps_[i],
                                length - 1,
                                length,
                                {ids_[i].back()}});
        }
        TokenBatch batch = make_batch(fresh, past);
        const std::vector<std::int64_t> lengths = batch.lengths;
        const NewestTokens& newest = decoder_->run(std::move(batch), windows);
        const at::Tensor logits = newest.likeliest.defined()
                                      ? at::Tensor()
                                      : full_logits(newest.states, impl_.backbone().head()).to(at::kCPU);
        std::vector<SamplingSet> sets;
        const std::vector<std::int32_t> chosen =
            logits.defined() ? draw(logits.contiguous(), sets) : ids_of(newest.likeliest);
        remember_steps(newest.steps, lengths);
        std::vector<WindowResult> readouts;
        if (newest.recorder) {
            readouts = ScoreTransfer(*newest.recorder, std::move(reported))
                           .collect(impl_.cost(), impl_.decides_by_head());
        }
        bool wanted = true;
        std::vector<std::size_t> still;
        std::vector<std::int64_t> columns;
        for (std::size_t row = 0; row < live_.size(); ++row) {
            const std::size_t i = live_[row];
            past_[i] = static_cast<std::int64_t>(ids_[i].size());
            ids_[i].push_back(chosen[row]);
            if (on_token_ && wanted) {
                rate(chosen[row], logits.defined() ? logits[static_cast<std::int64_t>(row)] : logits,
                     readouts[row].tokens);
                // At level nll without logits, max_probability is not computed. The NLL is then NaN even if
                // the model's numbers are valid.
                const bool rated = logits.defined() || level_ != RecordLevel::nll;
                if (rated && std::isnan(readouts[row].tokens.nll.at(0))) {
                    throw InputError(ErrorId::checkpoint_numbers, no_numbers);
                }
                if (options_.reports_sampling) {
                    report_sampling(sets[row], logits[static_cast<std::int64_t>(row)].const_data_ptr<float>(),
                                    logits.size(1), chosen[row], readouts[row]);
                }
                wanted = on_token_(static_cast<std::int64_t>(i), chosen[row], readouts[row]);
            }
            const bool stopped = std::find(options_.stop_ids.begin(), options_.stop_ids.end(), chosen[row]) !=
                                 options_.stop_ids.end();
            const std::span<const std::int32_t> fresh_ids =
                std::span(ids_[i]).subspan(static_cast<std::size_t>(prompt_[i]));
            if (!stopped && !(options_.is_finished && options_.is_finished(i, fresh_ids))) {
                still.push_back(i);
                columns.push_back(static_cast<std::int64_t>(row));
            }
        }
        if (cache_ && cache_->counts.defined() && still.size() < live_.size()) {
            cache_->counts = cache_->counts.index_select(1, send(columns, impl_.device));
        }
        live_ = std::move(still);
        return wanted;
    }

    [[nodiscard]] TokenBatch make_batch(const std::vector<std::span<const std::int32_t>>& fresh,
                                        const std::vector<std::int64_t>& past) const {
        TokenBatch batch;
        if (cache_) {
            std::vector<std::int64_t> rows;
            for (const std::size_t i : live_) {
                rows.push_back(first_rows_[i]);
            }
            batch = TokenBatch::make(impl_.backbone(), fresh, impl_.device, true, past, rows,
                                     cache_->segment_rows);
            batch.room = longest();
        } else {
            batch = TokenBatch::make(impl_.backbone(), fresh, impl_.device, impl_.plans_rows());
        }
        for (std::size_t row = 0; row < live_.size(); ++row) {
            batch.prefix.push_back(past[row] == 0 ? impl_.prefix_of_prompt(prompt_[live_[row]]) : 0);
        }
        return batch;
    }

    /// Stores K_t of the new tokens, because the FLOPs of later tokens depend on it.
    void remember_steps(const at::Tensor& steps, const std::vector<std::int64_t>& lengths) {
        if (!steps.defined()) {
            return;
        }
        const at::Tensor host = steps.to(at::kCPU);
        const std::int64_t* next = host.const_data_ptr<std::int64_t>();
        for (std::size_t row = 0; row < live_.size(); ++row) {
            std::vector<std::int32_t>& known = steps_[live_[row]];
            known.resize(cache_ ? known.size() : 0);
            std::transform(next, next + lengths[row], std::back_inserter(known),
                           [](std::int64_t last) { return static_cast<std::int32_t>(last); });
            next += lengths[row];
        }
    }

    [[nodiscard]] std::int64_t number(std::size_t prompt) const {
        return options_.numbers.empty() ? options_.first_sequence + static_cast<std::int64_t>(prompt)
                                        : options_.numbers[prompt];
    }

    static std::vector<std::int32_t> ids_of(const at::Tensor& chosen) {
        const at::Tensor ids = chosen.to(at::kCPU, at::kInt).contiguous();
        const auto* first = ids.const_data_ptr<std::int32_t>();
        return {first, first + ids.size(0)};
    }

    /// Sets NLL and rank of the chosen token, which the read-out did not know. \p logits: fp32 [V], its
    /// logits; undefined: it has the largest probability.
    static void rate(std::int32_t id, const at::Tensor& logits, TokenColumns& readout) {
        readout.nll.at(0) = logits.defined() ? (logits.logsumexp(0) - logits[id]).item<float>()
                                             : -std::log(readout.max_probability.at(0));
        readout.rank.at(0) = logits.defined() ? 1 + (logits > logits[id]).sum().item<std::int32_t>() : 1;
    }

    /// \p logits: fp32 [S, V]. \p sets: receives the sampling set of each sequence.
    [[nodiscard]] std::vector<std::int32_t> draw(const at::Tensor& logits,
                                                 std::vector<SamplingSet>& sets) const {
        std::vector<std::int32_t> chosen;
        for (std::size_t row = 0; row < live_.size(); ++row) {
            const double draw = token_draw(options_.seed, static_cast<std::uint64_t>(number(live_[row])),
                                           ids_[live_[row]].size());
            sets.emplace_back(logits.const_data_ptr<float>() +
                                  static_cast<std::int64_t>(row) * logits.size(1),
                              logits.size(1), options_);
            chosen.push_back(sets.back().draw(draw));
        }
        return chosen;
    }

    const EngineParts& impl_;
    const GenerateOptions& options_;
    std::optional<RecordLevel> level_; ///< record level for on_token_; absent: no callback
    const Engine::TokenCallback& on_token_;
    std::vector<std::vector<std::int32_t>> ids_;
    std::vector<std::int64_t> past_;               ///< tokens of each sequence whose K/V are in the cache
    std::vector<std::vector<std::int32_t>> steps_; ///< K_t of these tokens, if the method halts
    std::vector<std::int64_t> prompt_;
    std::vector<std::size_t> live_;
    std::optional<StepCache> cache_;
    std::optional<Decoder> decoder_;
    std::vector<std::int64_t> first_rows_; ///< first row of each sequence in a segment of the cache
};

} // namespace

std::vector<SignalInfo> sampling_signals() {
    const std::vector<std::string> axes{"token", "candidate"};
    return {{signal::sampling_ids, axes, "", "Sampling: ids",
             "The likeliest ids at each generated token, the chosen one among them; -1: no generated token "
             "follows.",
             DType::i32},
            {signal::sampling_before, axes, "probability", "Sampling: probability before",
             "Probabilities of these ids in the model's distribution.", DType::f32},
            {signal::sampling_after, axes, "probability", "Sampling: probability after",
             "Their probabilities after temperature, top-k and top-p; 0: cut off.", DType::f32}};
}

std::vector<std::vector<std::int32_t>> Engine::generate(const std::vector<std::vector<std::int32_t>>& prompts,
                                                        const GenerateOptions& options, RecordLevel level,
                                                        const TokenCallback& on_token) const try {
    if (prompts.empty()) {
        return {};
    }
    if (!(options.top_p > 0 && options.top_p <= 1)) {
        throw InputError(ErrorId::usage_value,
                         "top_p must be above 0 and at most 1, not " + std::to_string(options.top_p) + ".");
    }
    if (options.top_k < 0) {
        throw InputError(ErrorId::usage_value, "top_k must be 0 (all tokens) or a positive number, not " +
                                                   std::to_string(options.top_k) + ".");
    }
    if (!(options.temperature >= 0) || std::isinf(options.temperature)) {
        throw InputError(ErrorId::usage_value,
                         "The temperature must be 0 (greedy) or a positive number, not " +
                             std::to_string(options.temperature) + ".");
    }
    const c10::InferenceMode no_gradients;
    const GpuProducts products(impl_->precision);
    return Generation(*impl_, prompts, options, level, on_token).run();
} catch (const c10::OutOfMemoryError&) {
    throw memory_exhausted(impl_->device);
}

} // namespace ponderscope
