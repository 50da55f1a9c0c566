// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ponder/schedule/interleaved.h"

#include "core/ponder/schedule/dense_taps.h"
#include "core/ponder/schedule/flops.h"
#include "core/ponder/schedule/run_patches.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

namespace ponderscope {

namespace {

/// One run. Slots are kept dense, [N, K + 1, ...], whatever a token has of them; passes pack what is there.
class InterleavedRun {
public:
    InterleavedRun(const Backbone& backbone, const Method& method, const TokenBatch& batch,
                   const StepsOptions& options)
        : backbone_(backbone),
          method_(method),
          batch_(batch),
          options_(options),
          slots_a_token_(method.max_steps() + 1),
          halts_(may_halt(method, options.choices.rule.get())),
          cost_(flops_model(backbone, method, options.choices)),
          taps_(options.taps, batch.size(), slots_a_token_) {
        const double scale = method.embed_scale();
        const at::Tensor embedded = backbone.embed(batch.ids);
        const at::Tensor first = method.first_input(scale == 1.0 ? embedded : embedded * scale, {});
        const std::int64_t d = first.size(1);
        inputs_ = at::zeros({batch.size(), slots_a_token_, d}, first.options());
        inputs_ = at::select_scatter(inputs_, first, 1, 0);
        hidden_ = at::zeros_like(inputs_);
        count_ = at::ones_like(batch.ids);
        pass_flops_ = at::zeros_like(batch.ids);
        live_.assign(batch.lengths.size(), 1);
    }

    StepsResult run() {
        const bool one_by_one =
            options_.cache != nullptr && std::all_of(batch_.lengths.begin(), batch_.lengths.end(),
                                                     [](std::int64_t length) { return length == 1; });
        if (method_.max_steps() == 0 || (method_.knows_inputs() && !options_.choices.rule)) {
            fill_known_inputs();
            pass(Hear::all);
        } else if (one_by_one) {
            run_token_by_token();
        } else {
            iterate();
        }
        attend_once_more();
        append_to_cache();
        return tell();
    }

private:
    [[nodiscard]] WalkParts parts(StepObserver* observer) const {
        return {method_,        backbone_.head(), batch_.size(), options_.choices.rule.get(),
                &batch_.places, observer,         nullptr};
    }

    void fill_known_inputs() {
        Walk walk(parts(nullptr));
        walk.begin({}, inputs_.select(1, 0));
        while (!walk.slots().last) {
            walk.make_inputs();
            inputs_ = at::select_scatter(inputs_, walk.slots().input, 1, walk.slots().step);
        }
        count_ = at::full_like(count_, slots_a_token_);
        known_count_ = slots_a_token_;
    }

    using Hear = DenseTaps::Hear;

    /// The stack over all slots of the live sequences.
    void pass(Hear hear) {
        const at::Tensor packed_count = all_live() ? count_ : count_ * live_tokens_;
        const InterleavedRows rows = interleaved_rows(
            packed_count, batch_.space.sequence,
            known_count_ > 0 && all_live() ? std::optional(batch_.size() * known_count_) : std::nullopt);
        const at::Tensor index = rows.tokens * slots_a_token_ + rows.steps; // into the dense form
        Pass pass = pass_of(batch_, rows.tokens, options_);
        pass.tap = taps_.of_pass(rows.tokens, rows.steps, hear);
        at::Tensor bias;
        if (bias_.defined()) {
            bias = bias_.view({-1}).index_select(0, index);
        }
        at::Tensor visible = rows.ranges.select(1, 0).select(1, 1) - rows.ranges.select(1, 0).select(1, 0);
        if (options_.cache != nullptr) {
            StepCache& cache = *options_.cache;
            const at::Tensor sequence = batch_.space.sequence.index_select(0, rows.tokens);
            const at::Tensor begin = batch_.space.sequence_row.index_select(0, rows.tokens);
            visible = visible + cache.counts.select(0, 0).index_select(0, sequence);
            pass.kv = &cache.rows;
            pass.rows = begin + visible - 1;
            pass.visibility.ranges = at::stack({begin, pass.rows + 1}, 1).unsqueeze(1).to(at::kInt);
            pass.row_bias = put_bias(cache, pass.rows, bias);
        } else {
            pass.row_bias = bias;
            if (known_count_ > 0 && all_live()) {
                std::int64_t row = 0;
                for (const std::int64_t length : batch_.lengths) {
                    pass.visibility.causal.push_back({row, length * known_count_, row, 0});
                    row += length * known_count_;
                }
            } else {
                pass.visibility.ranges = rows.ranges;
            }
        }
        pass_flops_.index_add_(0, rows.tokens, slot_flops(cost_, visible.to(at::kLong)));
        const at::Tensor packed = inputs_.view({-1, inputs_.size(2)}).index_select(0, index);
        const at::Tensor states = run_patched(packed, pass, rows.tokens, rows.steps);
        hidden_ = at::index_copy(hidden_.view({-1, hidden_.size(2)}), 0, index, states).view_as(hidden_);
    }

    /// The stack over slots, by token, then step.
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

    /// The pass over what all slots have become, for those who want its attention: it gives the states that
    /// are there already, which stay what they are.
    void attend_once_more() {
        if (options_.cache != nullptr || !taps_.lacks_attention()) {
            return;
        }
        const at::Tensor states = hidden_;
        const at::Tensor flops = pass_flops_.clone();
        live_tokens_ = at::Tensor();
        pass(Hear::attention);
        hidden_ = states;
        pass_flops_ = flops;
    }

    /// Biases of the cache's rows, with those of this pass in their places.
    static at::Tensor put_bias(StepCache& cache, const at::Tensor& rows, const at::Tensor& bias) {
        if (!bias.defined()) {
            return cache.bias;
        }
        if (!cache.bias.defined()) {
            cache.bias = at::zeros({cache.rows.k(0).size(0)}, bias.options().requires_grad(false));
        }
        cache.bias = at::index_copy(cache.bias, 0, rows, bias);
        return cache.bias;
    }

    /// What the next pass runs, made from this one's states: slots and inputs of the live tokens.
    struct Refreshed {
        at::Tensor inputs, bias, count;
    };
    Refreshed refresh() {
        Refreshed next{inputs_, bias_,
                       all_live() ? at::ones_like(count_)
                                  : at::where(live_tokens_ > 0, at::ones_like(count_), count_)};
        const at::Tensor live = all_live() ? at::Tensor() : at::nonzero(live_tokens_).view(-1);
        Walk walk(parts(nullptr));
        walk.begin(live, select_rows(inputs_.select(1, 0), live));
        while (true) {
            const std::int64_t k = walk.slots().step;
            walk.ran(select_rows(hidden_.select(1, k), walk.slots().tokens));
            if (walk.slots().last || !keep_those_going(walk)) {
                break;
            }
            const at::Tensor tokens = walk.slots().tokens;
            add_input_flops(tokens, k);
            walk.make_inputs();
            next.inputs = with(next.inputs, k + 1, tokens, walk.slots().input);
            if (walk.key_bias().defined()) {
                if (!next.bias.defined()) {
                    next.bias = at::zeros({batch_.size(), slots_a_token_},
                                          walk.key_bias().options().requires_grad(false));
                }
                next.bias = with(next.bias, k + 1, tokens, walk.key_bias());
            }
            next.count = with_value(next.count, tokens, k + 2);
            // Only slots that this pass had can be asked on.
            if (!halts_ && known_count_ > 0) {
                if (k + 2 > known_count_) {
                    break;
                }
            } else {
                const at::Tensor present = at::nonzero(select_rows(count_, tokens) > k + 1).view(-1);
                if (present.size(0) == 0) {
                    break;
                }
                walk.keep(present);
            }
        }
        return next;
    }

    static at::Tensor with(const at::Tensor& dense, std::int64_t k, const at::Tensor& tokens,
                           const at::Tensor& values) {
        const at::Tensor column =
            tokens.defined() ? at::index_copy(dense.select(1, k), 0, tokens, values) : values;
        return at::select_scatter(dense, column, 1, k);
    }

    static at::Tensor with_value(const at::Tensor& all, const at::Tensor& tokens, std::int64_t value) {
        return tokens.defined() ? all.index_fill(0, tokens, value) : at::full_like(all, value);
    }

    void add_input_flops(const at::Tensor& tokens, std::int64_t k) {
        const std::int64_t each = method_.input_flops() + method_.decision_flops(k);
        if (each > 0) {
            tokens.defined() ? pass_flops_.index_add_(0, tokens, at::full_like(tokens, each))
                             : pass_flops_.add_(each);
        }
    }

    /// False: nobody goes on.
    static bool keep_those_going(Walk& walk) {
        const at::Tensor go_on = walk.choose();
        if (!go_on.defined()) {
            return true;
        }
        const at::Tensor going = at::nonzero(go_on).view(-1);
        if (going.size(0) > 0 && going.size(0) < go_on.size(0)) {
            walk.keep(going);
        }
        return going.size(0) > 0;
    }

    void iterate() {
        const std::int64_t growth = method_.max_steps();
        const std::int64_t longest = *std::max_element(batch_.lengths.begin(), batch_.lengths.end());
        // After that many refreshes nothing can move any more, whatever the weights.
        const std::int64_t enough = longest > std::numeric_limits<std::int32_t>::max() / slots_a_token_
                                        ? std::numeric_limits<std::int64_t>::max()
                                        : longest * growth;
        const bool exact = !options_.choices.refreshes;
        const std::int64_t refreshes = std::min(options_.choices.refreshes.value_or(exact_refreshes), enough);
        known_count_ = halts_ ? 0 : 1;
        for (std::int64_t done = -growth;; ++done) {
            const bool last = !exact && done == refreshes;
            pass(last ? Hear::all : exact && done >= 0 ? Hear::all_but_attention : Hear::nothing);
            if (last) {
                return;
            }
            Refreshed next = refresh();
            if (done >= 0) {
                const Movement moved = movement(next);
                differences_.push_back(moved.shared);
                if (exact) {
                    retire(moved.still, next);
                    if (std::find(live_.begin(), live_.end(), 1) == live_.end()) {
                        return;
                    }
                    if (done == refreshes) {
                        restless_ = std::count(live_.begin(), live_.end(), 1);
                        run_token_by_token();
                        return;
                    }
                }
            }
            inputs_ = next.inputs;
            bias_ = next.bias;
            count_ = next.count;
            if (known_count_ > 0) {
                known_count_ = std::min(known_count_ + 1, slots_a_token_);
            }
        }
    }

    /// How far inputs of the slots that both have moved from this pass to the next, a token, and whether all
    /// of them are still and no slot appeared or vanished.
    struct Movement {
        at::Tensor shared; ///< fp32 [N]
        at::Tensor still;  ///< bool [N]
    };
    [[nodiscard]] Movement movement(const Refreshed& next) const {
        const at::Tensor both = at::arange(slots_a_token_, count_.options())
                                    .unsqueeze(0)
                                    .lt(at::minimum(count_, next.count).unsqueeze(1));
        const at::Tensor distance = (next.inputs - inputs_).abs().amax(2).to(at::kFloat);
        const at::Tensor allowed = next.inputs.abs().amax(2).to(at::kFloat) * still_part();
        Movement moved;
        moved.shared = at::where(both, distance, at::zeros_like(distance)).amax(1);
        moved.still =
            distance.le(allowed).logical_or(both.logical_not()).all(1).logical_and(next.count.eq(count_));
        return moved;
    }

    [[nodiscard]] double still_part() const {
        switch (inputs_.scalar_type()) {
        case at::kHalf:
            return still_units_half * 0x1p-10;
        case at::kBFloat16:
            return still_units_half * 0x1p-7;
        default:
            return still_units_fp32 * 0x1p-23;
        }
    }

    /// Takes out the sequences that came to rest: what they are is what this pass had.
    void retire(const at::Tensor& still, Refreshed& next) {
        const at::Tensor moving_tokens =
            at::zeros({static_cast<std::int64_t>(live_.size())}, count_.options())
                .index_add_(0, batch_.space.sequence, still.logical_not().to(at::kLong))
                .to(at::kCPU);
        bool changed = false;
        for (std::size_t i = 0; i < live_.size(); ++i) {
            if (live_[i] != 0 && moving_tokens.const_data_ptr<std::int64_t>()[i] == 0) {
                live_[i] = 0;
                changed = true;
            }
        }
        if (changed) {
            std::vector<std::int64_t> tokens;
            for (std::size_t i = 0; i < live_.size(); ++i) {
                tokens.insert(tokens.end(), static_cast<std::size_t>(batch_.lengths[i]), live_[i]);
            }
            live_tokens_ = at::tensor(tokens, at::kLong).to(batch_.ids.device());
        }
        if (live_tokens_.defined()) {
            const at::Tensor moving = live_tokens_ > 0;
            next.inputs = at::where(moving.view({-1, 1, 1}), next.inputs, inputs_);
            next.count = at::where(moving, next.count, count_);
            if (next.bias.defined() && bias_.defined()) {
                next.bias = at::where(moving.unsqueeze(1), next.bias, bias_);
            }
        }
    }

    [[nodiscard]] bool all_live() const { return !live_tokens_.defined(); }

    /// Exact without iterating: the live sequences side by side, a slot of each at a time.
    void run_token_by_token() {
        std::vector<std::int64_t> first;
        std::vector<std::int64_t> room;
        std::int64_t tokens = 0;
        std::int64_t rows = 0;
        for (std::size_t i = 0; i < live_.size(); ++i) {
            first.push_back(tokens);
            room.push_back(rows);
            tokens += batch_.lengths[i];
            rows += live_[i] != 0 ? batch_.lengths[i] * slots_a_token_ : 0;
        }
        std::optional<StepCache> own;
        if (options_.cache == nullptr) {
            const ModelConfig& config = backbone_.config();
            own.emplace(
                StepCache{KvRows(config.layers, rows, config.kv_heads, config.head_dim, inputs_.options()),
                          rows,
                          at::zeros({1, static_cast<std::int64_t>(live_.size())}, count_.options()),
                          {}});
        }
        StepCache& cache = own ? *own : *options_.cache;
        const at::Tensor begins =
            own ? at::tensor(room, at::kLong).to(batch_.ids.device()).index_select(0, batch_.space.sequence)
                : batch_.space.sequence_row;
        at::Tensor used = cache.counts.select(0, 0).clone();
        const std::int64_t longest = *std::max_element(batch_.lengths.begin(), batch_.lengths.end());
        for (std::int64_t column = 0; column < longest; ++column) {
            std::vector<std::int64_t> now;
            for (std::size_t i = 0; i < live_.size(); ++i) {
                if (live_[i] != 0 && column < batch_.lengths[i]) {
                    now.push_back(first[i] + column);
                }
            }
            if (!now.empty()) {
                run_column(at::tensor(now, at::kLong).to(batch_.ids.device()), cache, begins, used);
            }
        }
    }

    void run_column(const at::Tensor& tokens, StepCache& cache, const at::Tensor& begins, at::Tensor& used) {
        Walk walk(parts(nullptr));
        walk.begin(tokens, inputs_.select(1, 0).index_select(0, tokens));
        while (true) {
            const Slots& slots = walk.slots();
            const at::Tensor sequence = batch_.space.sequence.index_select(0, slots.tokens);
            const at::Tensor begin = begins.index_select(0, slots.tokens);
            Pass pass = pass_of(batch_, slots.tokens, options_);
            pass.tap =
                taps_.of_pass(slots.tokens, at::full_like(slots.tokens, slots.step), Hear::all_but_attention);
            pass.kv = &cache.rows;
            pass.rows = begin + used.index_select(0, sequence);
            pass.visibility.ranges = at::stack({begin, pass.rows + 1}, 1).unsqueeze(1).to(at::kInt);
            pass.row_bias = put_bias(cache, pass.rows,
                                     walk.key_bias().defined() || !cache.bias.defined()
                                         ? walk.key_bias()
                                         : at::zeros({pass.rows.size(0)}, cache.bias.options()));
            const at::Tensor states =
                run_patched(slots.input, pass, slots.tokens, at::full_like(slots.tokens, slots.step));
            used = used.index_add(0, sequence, at::ones_like(sequence));
            inputs_ = with(inputs_, slots.step, slots.tokens, slots.input);
            hidden_ = with(hidden_, slots.step, slots.tokens, states);
            count_ = with_value(count_, slots.tokens, slots.step + 1);
            if (walk.key_bias().defined() && bias_.defined()) {
                bias_ = with(bias_, slots.step, slots.tokens, walk.key_bias());
            }
            pass_flops_.index_add_(0, slots.tokens, slot_flops(cost_, pass.rows + 1 - begin));
            walk.ran(states);
            if (slots.last || !keep_those_going(walk)) {
                return;
            }
            add_input_flops(slots.tokens, slots.step);
            walk.make_inputs();
        }
    }

    void append_to_cache() {
        if (options_.cache != nullptr) {
            options_.cache->counts.select(0, 0).index_add_(0, batch_.space.sequence, count_);
        }
    }

    /// Goes through what the slots have become, step by step, as the other rules do while they compute.
    StepsResult tell() {
        StepsResult result;
        Walk walk(parts(options_.observer));
        walk.begin({}, inputs_.select(1, 0));
        while (true) {
            const Slots& slots = walk.slots();
            const Tap tap{options_.taps, slots.step};
            const at::Tensor hidden = select_rows(hidden_.select(1, slots.step), slots.tokens);
            tap("embeds", slots.input);
            tap("hidden", hidden);
            taps_.tell(slots.step, slots.tokens);
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
        result.pass_flops = pass_flops_ + cost_.read_out;
        result.restless = restless_;
        return result;
    }

    const Backbone& backbone_;
    const Method& method_;
    const TokenBatch& batch_;
    const StepsOptions& options_;
    std::int64_t slots_a_token_;
    bool halts_;
    FlopsModel cost_;
    DenseTaps taps_;
    at::Tensor inputs_, hidden_;   ///< [N, K + 1, d]
    at::Tensor bias_;              ///< fp32 [N, K + 1] or undefined
    at::Tensor count_;             ///< int64 [N]: slots that each token has
    std::int64_t known_count_ = 0; ///< the same number for all, where the host knows it; 0: it does not
    std::vector<int> live_;        ///< a sequence: still moving
    at::Tensor live_tokens_;       ///< int64 [N], 1 or 0; undefined while all are live
    at::Tensor pass_flops_;        ///< int64 [N]
    std::vector<at::Tensor> differences_;
    std::int64_t restless_ = 0; ///< sequences
};

} // namespace

StepsResult run_interleaved(const Backbone& backbone, const Method& method, const TokenBatch& batch,
                            const StepsOptions& options) {
    return InterleavedRun(backbone, method, batch, options).run();
}

} // namespace ponderscope
