// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ponder/schedule/steps.h"

#include "core/model/device.h"
#include "core/ponder/schedule/run_patches.h"
#include "core/ponder/schedule/visibility.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ponderscope {

namespace {

/// Collects the tensors of passes with slots of several steps, and passes them to a listener step by step, as
/// if every step had its own pass. A later pass replaces the tensors of slots that an earlier pass computed.
class DenseTaps final : public TapListener {
public:
    /// \p tokens: number of tokens. \p slots: slots of each token. \p listener: nullptr collects nothing.
    DenseTaps(TapListener* listener, std::int64_t tokens, std::int64_t slots)
        : listener_(listener), tokens_(tokens), slots_(slots) {}

    /// Which tensors of a pass are collected. Attention is expensive, so only the final pass collects it. If
    /// the final pass is not known in advance, an extra pass collects attention alone.
    enum class Hear : std::uint8_t { nothing, all_but_attention, all, attention };
    /// The tap for a pass over these slots: \p tokens and \p steps int64 [n].
    [[nodiscard]] Tap of_pass(const at::Tensor& tokens, const at::Tensor& steps, Hear hear) {
        if (listener_ == nullptr || hear == Hear::nothing) {
            return {};
        }
        pass_tokens_ = tokens;
        pass_steps_ = steps;
        hear_ = hear;
        attention_heard_ = attention_heard_ || hear == Hear::all || hear == Hear::attention;
        return {this, 0};
    }
    /// Whether the listener still needs a pass that collects attention.
    [[nodiscard]] bool lacks_attention() const {
        return listener_ != nullptr && !attention_heard_ && listener_->wants("attention");
    }
    /// Passes all tensors of the slots of \p tokens (int64 [n], undefined: all) at \p step to the listener.
    void report(std::int64_t step, const at::Tensor& tokens) const {
        for (const auto& [key, dense] : dense_) {
            const at::Tensor of_step = dense.unflatten(0, {tokens_, slots_}).select(1, step);
            listener_->on_tensor(key.first, step, key.second, select_rows(of_step, tokens).contiguous());
        }
    }

    [[nodiscard]] bool wants(std::string_view name) const override {
        const Hear without = name == "attention" ? Hear::all_but_attention : Hear::attention;
        return hear_ != without && listener_->wants(name);
    }
    void on_tensor(std::string_view name, std::int64_t, std::int64_t layer,
                   const at::Tensor& tensor) override {
        if (!listener_->wants_layer(name, layer)) {
            return;
        }
        at::Tensor& dense = dense_[{std::string(name), layer}];
        if (!dense.defined()) {
            std::vector<std::int64_t> shape = tensor.sizes().vec();
            shape.front() = tokens_ * slots_;
            dense = at::zeros(shape, tensor.options());
        }
        dense.index_copy_(0, pass_tokens_ * slots_ + pass_steps_, tensor);
    }
    void attends(const Attending& attending) override {
        Attending of_slots = attending;
        of_slots.tokens = pass_tokens_;
        of_slots.steps = pass_steps_;
        listener_->attends(of_slots);
    }

private:
    TapListener* listener_;
    std::int64_t tokens_;
    std::int64_t slots_;
    at::Tensor pass_tokens_, pass_steps_;
    Hear hear_ = Hear::nothing;
    bool attention_heard_ = false;
    std::map<std::pair<std::string, std::int64_t>, at::Tensor> dense_; ///< [tokens * slots, ...], by layer
};

/// One run. Tensors of slots are dense, [N, K + 1, ...]. Passes pack the slots that exist.
class InterleavedRun {
public:
    InterleavedRun(const Backbone& backbone, const Method& method, const TokenBatch& batch,
                   const StepsOptions& options)
        : backbone_(backbone),
          method_(method),
          batch_(batch),
          options_(options),
          slots_a_token_(method.max_steps() + 1),
          halts_(may_halt(method, options.plan.rule.get())),
          taps_(options.listener, batch.size(), slots_a_token_),
          cache_(options.cache) {
        const double scale = method.embed_scale();
        const at::Tensor embedded = backbone.embed(batch.ids);
        const at::Tensor first = method.first_input(scale == 1.0 ? embedded : embedded * scale, {});
        inputs_ = at::zeros({batch.size(), slots_a_token_, first.size(1)}, first.options());
        put(inputs_, 0, {}, first);
        hidden_ = at::zeros_like(inputs_);
        count_ = at::ones_like(batch.ids);
        if (cache_ != nullptr) {
            used_ = cache_->counts.select(0, 0).clone();
        }
    }

    StepsResult run() {
        if (method_.max_steps() == 0 || (method_.knows_inputs() && !halts_)) {
            fill_known_inputs();
            pass(Hear::all);
        } else if (options_.plan.refreshes) {
            run_counted(*options_.plan.refreshes);
        } else {
            run_exactly();
        }
        attend_once_more();
        if (options_.cache != nullptr) {
            options_.cache->counts.select(0, 0).index_add_(0, batch_.space.sequence, count_);
        }
        return report_slots();
    }

private:
    [[nodiscard]] WalkParts parts(RunListener* listener) const {
        return {method_, backbone_.head(), batch_.size(), options_.plan.rule.get(), &batch_.places, listener};
    }

    void fill_known_inputs() {
        Walk walk(parts(nullptr));
        walk.begin({}, inputs_.select(1, 0));
        while (!walk.slots().last) {
            walk.make_inputs();
            put(inputs_, walk.slots().step, {}, walk.slots().input);
        }
        count_.fill_(slots_a_token_);
        known_count_ = slots_a_token_;
    }

    using Hear = DenseTaps::Hear;

    /// Runs the stack over all slots of all tokens. With a cache, their rows follow the rows in use.
    void pass(Hear hear) {
        const at::Tensor& sequence = batch_.space.sequence;
        const InterleavedRows rows = interleaved_rows(
            count_, sequence,
            known_count_ > 0 ? std::optional(sequence.size(0) * known_count_) : std::nullopt);
        const at::Tensor& tokens = rows.tokens;
        const at::Tensor index = tokens * slots_a_token_ + rows.steps; // in the dense tensors
        Pass pass = pass_of(batch_, tokens, options_);
        pass.tap = taps_.of_pass(tokens, rows.steps, hear);
        at::Tensor bias;
        if (bias_.defined()) {
            bias = bias_.view({-1}).index_select(0, index);
        }
        if (cache_ != nullptr) {
            const at::Tensor range = rows.ranges.select(1, 0);
            const at::Tensor before = used_.index_select(0, sequence.index_select(0, tokens));
            keep_rows(pass, begin_rows(tokens), range.select(1, 1) - range.select(1, 0) + before, bias);
        } else {
            pass.row_bias = bias;
            if (known_count_ > 0) {
                std::int64_t row = 0;
                for (const std::int64_t length : batch_.lengths) {
                    pass.visibility.causal.push_back({row, length * known_count_, row, 0});
                    row += length * known_count_;
                }
            } else {
                pass.visibility.ranges = rows.ranges;
                const auto sequences = static_cast<std::int64_t>(batch_.lengths.size());
                pass.visibility.runs = at::zeros({sequences + 1}, sequence.options());
                pass.visibility.runs.narrow(0, 1, sequences).index_add_(0, sequence, count_);
                pass.visibility.runs = pass.visibility.runs.cumsum(0).to(at::kInt);
                pass.visibility.longest_run =
                    slots_a_token_ * *std::max_element(batch_.lengths.begin(), batch_.lengths.end());
            }
        }
        const at::Tensor packed = inputs_.view({-1, inputs_.size(2)}).index_select(0, index);
        const at::Tensor states = run_patched(packed, pass, tokens, rows.steps);
        at::Tensor all = hidden_.view({-1, hidden_.size(2)});
        if (records_graph(hidden_, states)) {
            hidden_ = at::index_copy(all, 0, index, states).view_as(hidden_);
        } else {
            all.index_copy_(0, index, states);
        }
    }

    /// Lets a pass write K/V to the cache. \p visible: number of rows that each slot sees, its own row last.
    void keep_rows(Pass& pass, const at::Tensor& begin, const at::Tensor& visible, const at::Tensor& bias) {
        pass.kv = &cache_->rows;
        pass.rows = begin + visible - 1;
        pass.visibility.ranges = at::stack({begin, pass.rows + 1}, 1).unsqueeze(1).to(at::kInt);
        pass.visibility.most_rows = batch_.longest() * slots_a_token_;
        if (bias.defined()) {
            at::Tensor& all = cache_->bias;
            if (!all.defined()) {
                all = at::zeros({cache_->rows.k(0).size(0)}, bias.options().requires_grad(false));
            }
            if (records_graph(all, bias)) {
                all = at::index_copy(all, 0, pass.rows, bias);
            } else {
                all.index_copy_(0, pass.rows, bias);
            }
        }
        pass.row_bias = cache_->bias;
    }

    [[nodiscard]] at::Tensor begin_rows(const at::Tensor& tokens) const {
        const at::Tensor begin = select_rows(batch_.space.sequence_row, tokens);
        return options_.cache != nullptr ? begin : begin * slots_a_token_;
    }

    /// Runs the stack over slots, ordered by token, then step, and applies patches.
    [[nodiscard]] at::Tensor run_patched(const at::Tensor& input, Pass& pass, const at::Tensor& tokens,
                                         const at::Tensor& steps) const {
        const RunPatches* patches = options_.patches;
        if (patches == nullptr) {
            return backbone_.run(input, pass);
        }
        pass.edit = [&](std::int64_t layer, const at::Tensor& states) {
            return patches->apply_to_slots(states, tokens, steps, layer);
        };
        return patches->apply_to_slots(backbone_.run(input, pass), tokens, steps, StatePlace::end_of_step);
    }

    /// If the listener still needs attention: runs one pass over the final slots. The pass gives the same
    /// states again, so the known states are kept.
    void attend_once_more() {
        if (options_.cache != nullptr || !taps_.lacks_attention()) {
            return;
        }
        const at::Tensor states = hidden_.clone();
        pass(Hear::attention);
        hidden_ = states;
    }

    /// Makes slots and inputs from the states of the last pass. Returns the largest change of each token's
    /// inputs, over slots that existed before: fp32 [N].
    at::Tensor refresh() {
        const at::Tensor had = count_;
        count_ = at::ones_like(had);
        at::Tensor moved =
            at::zeros({batch_.size()}, inputs_.options().dtype(at::kFloat).requires_grad(false));
        Walk walk(parts(nullptr));
        walk.begin({}, inputs_.select(1, 0));
        while (true) {
            const std::int64_t k = walk.slots().step;
            walk.ran(select_rows(hidden_.select(1, k), walk.slots().tokens));
            if (walk.slots().last || !walk.goes_on()) {
                break;
            }
            const at::Tensor tokens = walk.slots().tokens;
            walk.make_inputs();
            {
                const c10::NoGradGuard no_grad;
                const at::Tensor both = select_rows(had, tokens) > k + 1;
                const at::Tensor before = select_rows(inputs_.select(1, k + 1), tokens);
                put_maximum(moved, tokens, (walk.slots().input - before).abs().amax(1).to(at::kFloat) * both);
            }
            put(inputs_, k + 1, tokens, walk.slots().input);
            put_bias(walk.key_bias(), k + 1, tokens);
            set_count(tokens, k + 2);
            // Only slots of the last pass have a state for the next decision.
            if (known_count_ > 0) {
                if (k + 2 > known_count_) {
                    break;
                }
            } else {
                const at::Tensor present = at::nonzero(select_rows(had, tokens) > k + 1).view(-1);
                if (present.size(0) == 0) {
                    break;
                }
                walk.keep(present);
            }
        }
        return moved;
    }

    static bool records_graph(const at::Tensor& all, const at::Tensor& values) {
        return at::GradMode::is_enabled() && (all.requires_grad() || values.requires_grad());
    }

    /// dense[tokens, k] = values, in place unless a graph is recorded.
    static void put(at::Tensor& dense, std::int64_t k, const at::Tensor& tokens, const at::Tensor& values) {
        at::Tensor column = dense.select(1, k);
        if (records_graph(dense, values)) {
            dense = at::select_scatter(
                dense, tokens.defined() ? at::index_copy(column, 0, tokens, values) : values, 1, k);
        } else if (tokens.defined()) {
            column.index_copy_(0, tokens, values);
        } else {
            column.copy_(values);
        }
    }

    void put_bias(const at::Tensor& bias, std::int64_t k, const at::Tensor& tokens) {
        if (bias.defined()) {
            if (!bias_.defined()) {
                bias_ = at::zeros({batch_.size(), slots_a_token_}, bias.options().requires_grad(false));
            }
            put(bias_, k, tokens, bias);
        }
    }

    void set_count(const at::Tensor& tokens, std::int64_t value) {
        tokens.defined() ? count_.index_fill_(0, tokens, value) : count_.fill_(value);
    }

    static void put_maximum(at::Tensor& all, const at::Tensor& tokens, const at::Tensor& values) {
        const at::Tensor largest = at::maximum(select_rows(all, tokens), values);
        tokens.defined() ? all.index_copy_(0, tokens, largest) : all.copy_(largest);
    }

    /// Runs all tokens together: K refreshes in which slots grow, \p refreshes more, then the final pass.
    void run_counted(std::int64_t refreshes) {
        const std::int64_t growth = method_.max_steps();
        const std::int64_t longest = *std::max_element(batch_.lengths.begin(), batch_.lengths.end());
        // After longest · K refreshes all inputs are final.
        if (longest <= std::numeric_limits<std::int32_t>::max() / slots_a_token_) {
            refreshes = std::min(refreshes, longest * growth);
        }
        known_count_ = halts_ ? 0 : 1;
        for (std::int64_t done = -growth; done < refreshes; ++done) {
            pass(Hear::nothing);
            const at::Tensor moved = refresh();
            if (done >= 0) {
                differences_.push_back(moved);
            }
            if (known_count_ > 0) {
                known_count_ = std::min(known_count_ + 1, slots_a_token_);
            }
        }
        pass(Hear::all);
    }

    /// Runs the first token of every sequence together, then the second token, and so on.
    void run_exactly() {
        std::optional<StepCache> own;
        if (cache_ == nullptr) {
            const auto sequences = static_cast<std::int64_t>(batch_.lengths.size());
            own.emplace(make_step_cache(backbone_, method_, options_, batch_.size(), sequences));
            cache_ = &*own;
            used_ = cache_->counts.select(0, 0).clone();
        }
        const std::int64_t longest = *std::max_element(batch_.lengths.begin(), batch_.lengths.end());
        for (std::int64_t place = 0; place < longest; ++place) {
            std::vector<std::int64_t> numbers;
            std::int64_t first = 0;
            for (const std::int64_t length : batch_.lengths) {
                if (place < length) {
                    numbers.push_back(first + place);
                }
                first += length;
            }
            const bool all = static_cast<std::int64_t>(numbers.size()) == batch_.size();
            run_column(all ? at::Tensor() : send(numbers, batch_.ids.device()));
        }
        cache_ = options_.cache;
    }

    /// Runs these tokens slot by slot. \p tokens: int64 [n], at most one of each sequence; undefined: all.
    void run_column(const at::Tensor& tokens) {
        Walk walk(parts(nullptr));
        walk.begin(tokens, select_rows(inputs_.select(1, 0), tokens));
        while (true) {
            const Slots& slots = walk.slots();
            const at::Tensor sequence = select_rows(batch_.space.sequence, slots.tokens);
            used_.index_add_(0, sequence, at::ones_like(sequence));
            const at::Tensor visible = used_.index_select(0, sequence);
            Pass pass = pass_of(batch_, slots.tokens, options_);
            const at::Tensor all =
                slots.tokens.defined() ? slots.tokens : at::arange(batch_.size(), visible.options());
            const at::Tensor steps = at::full_like(all, slots.step);
            pass.tap = taps_.of_pass(all, steps, Hear::all_but_attention);
            keep_rows(pass, begin_rows(slots.tokens), visible,
                      walk.key_bias().defined() || !cache_->bias.defined()
                          ? walk.key_bias()
                          : at::zeros({visible.size(0)}, cache_->bias.options()));
            const at::Tensor states = run_patched(slots.input, pass, all, steps);
            put(inputs_, slots.step, slots.tokens, slots.input);
            put(hidden_, slots.step, slots.tokens, states);
            put_bias(walk.key_bias(), slots.step, slots.tokens);
            set_count(slots.tokens, slots.step + 1);
            walk.ran(states);
            if (slots.last || !walk.goes_on()) {
                break;
            }
            walk.make_inputs();
        }
    }

    /// Walks over the final slots step by step, so that listeners get the same calls as under other rules.
    StepsResult report_slots() {
        StepsResult result;
        Walk walk(parts(options_.listener));
        walk.begin({}, inputs_.select(1, 0));
        while (true) {
            const Slots& slots = walk.slots();
            const Tap tap{options_.listener, slots.step};
            const at::Tensor hidden = select_rows(hidden_.select(1, slots.step), slots.tokens);
            tap("embeds", slots.input);
            tap("hidden", hidden);
            taps_.report(slots.step, slots.tokens);
            walk.ran(hidden);
            if (options_.keep_states) {
                result.states.push_back({slots.tokens, slots.input, slots.hidden, walk.decision().value});
            }
            if (slots.last) {
                break;
            }
            if (halts_) {
                const at::Tensor present =
                    at::nonzero(select_rows(count_, slots.tokens) > slots.step + 1).view(-1);
                if (present.size(0) == 0) {
                    break;
                }
                walk.keep(present);
            }
            walk.take_inputs(select_rows(inputs_.select(1, slots.step + 1), slots.tokens));
        }
        result.readout = walk.readout().output(hidden_.scalar_type());
        if (halts_) {
            result.steps = count_ - 1;
        }
        if (!differences_.empty()) {
            result.differences = at::stack(differences_, 1);
        }
        return result;
    }

    const Backbone& backbone_;
    const Method& method_;
    const TokenBatch& batch_;
    const StepsOptions& options_;
    std::int64_t slots_a_token_;
    bool halts_;
    DenseTaps taps_;
    StepCache* cache_;             ///< nullptr: slots see only rows of their own pass
    at::Tensor used_;              ///< int64 [S], rows of final slots in the cache
    at::Tensor inputs_, hidden_;   ///< [N, K + 1, d]
    at::Tensor bias_;              ///< fp32 [N, K + 1] or undefined
    at::Tensor count_;             ///< int64 [N]: slots that each token has
    std::int64_t known_count_ = 0; ///< slots of every token; 0: unequal or unknown to the host
    std::vector<at::Tensor> differences_;
};

} // namespace

StepsResult run_interleaved(const Backbone& backbone, const Method& method, const TokenBatch& batch,
                            const StepsOptions& options) {
    return InterleavedRun(backbone, method, batch, options).run();
}

} // namespace ponderscope
