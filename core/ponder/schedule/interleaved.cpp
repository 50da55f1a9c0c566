// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ponder/schedule/interleaved.h"

#include "core/model/device.h"
#include "core/ponder/schedule/dense_taps.h"
#include "core/ponder/schedule/flops.h"
#include "core/ponder/schedule/run_patches.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <limits>
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
          halts_(may_halt(method, options.plan.rule.get())),
          cost_(flops_model(backbone, method, options.plan)),
          taps_(options.listener, batch.size(), slots_a_token_),
          cache_(options.cache) {
        const double scale = method.embed_scale();
        const at::Tensor embedded = backbone.embed(batch.ids);
        const at::Tensor first = method.first_input(scale == 1.0 ? embedded : embedded * scale, {});
        inputs_ = at::zeros({batch.size(), slots_a_token_, first.size(1)}, first.options());
        put(inputs_, 0, {}, first);
        hidden_ = at::zeros_like(inputs_);
        count_ = at::ones_like(batch.ids);
        pass_flops_ = at::zeros_like(batch.ids);
    }

    StepsResult run() {
        if (method_.max_steps() == 0 || (method_.knows_inputs() && !halts_)) {
            fill_known_inputs();
            pass({}, Hear::all);
        } else if (options_.plan.refreshes) {
            run_counted(*options_.plan.refreshes);
        } else {
            run_exactly();
        }
        attend_once_more();
        if (options_.cache != nullptr) {
            options_.cache->counts.select(0, 0).index_add_(0, batch_.space.sequence, count_);
        }
        return tell();
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

    /// The stack over all slots of these tokens (int64 [w], whole runs of neighbours; undefined: all), behind
    /// the rows in use where rows are kept.
    void pass(const at::Tensor& some, Hear hear) {
        const at::Tensor sequence = select_rows(batch_.space.sequence, some);
        const InterleavedRows rows = interleaved_rows(
            select_rows(count_, some), sequence,
            known_count_ > 0 ? std::optional(sequence.size(0) * known_count_) : std::nullopt);
        const at::Tensor tokens = some.defined() ? some.index_select(0, rows.tokens) : rows.tokens;
        const at::Tensor index = tokens * slots_a_token_ + rows.steps; // into the dense form
        Pass pass = pass_of(batch_, tokens, options_);
        pass.tap = taps_.of_pass(tokens, rows.steps, hear);
        at::Tensor bias;
        if (bias_.defined()) {
            bias = bias_.view({-1}).index_select(0, index);
        }
        at::Tensor visible = rows.ranges.select(1, 0).select(1, 1) - rows.ranges.select(1, 0).select(1, 0);
        if (cache_ != nullptr) {
            visible = visible + used().index_select(0, sequence.index_select(0, rows.tokens));
            keep_rows(pass, begin_rows(tokens), visible, bias);
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
                pass.visibility.runs.narrow(0, 1, sequences)
                    .index_add_(0, sequence, select_rows(count_, some));
                pass.visibility.runs = pass.visibility.runs.cumsum(0).to(at::kInt);
                pass.visibility.longest_run =
                    slots_a_token_ * *std::max_element(batch_.lengths.begin(), batch_.lengths.end());
            }
        }
        pass_flops_.index_add_(0, tokens, slot_flops(cost_, visible.to(at::kLong)));
        const at::Tensor packed = inputs_.view({-1, inputs_.size(2)}).index_select(0, index);
        const at::Tensor states = run_patched(packed, pass, tokens, rows.steps);
        at::Tensor all = hidden_.view({-1, hidden_.size(2)});
        if (records_graph(hidden_, states)) {
            hidden_ = at::index_copy(all, 0, index, states).view_as(hidden_);
        } else {
            all.index_copy_(0, index, states);
        }
    }

    /// K/V of slots that see so many rows of their sequence, their own the last, go into the cache.
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

    /// int64 [S]: rows of final slots, a sequence.
    [[nodiscard]] at::Tensor used() const { return used_.defined() ? used_ : cache_->counts.select(0, 0); }

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
        const at::Tensor states = hidden_.clone();
        const at::Tensor flops = pass_flops_.clone();
        pass({}, Hear::attention);
        hidden_ = states;
        pass_flops_ = flops;
    }

    /// Slots and inputs of these tokens (undefined: all) as the last pass's states make them. How far inputs
    /// of slots that are still there have moved, and whether all of them are still and no slot appeared or
    /// vanished.
    struct Movement {
        at::Tensor distance; ///< fp32 [N]
        at::Tensor still;    ///< bool [N]
    };
    Movement refresh(const at::Tensor& some) {
        const at::Tensor had = count_;
        count_ = some.defined() ? had.index_fill(0, some, 1) : at::ones_like(had);
        Movement moved{at::zeros({batch_.size()}, inputs_.options().dtype(at::kFloat).requires_grad(false)),
                       {}};
        at::Tensor excess = at::zeros_like(moved.distance);
        Walk walk(parts(nullptr));
        walk.begin(some, select_rows(inputs_.select(1, 0), some));
        while (true) {
            const std::int64_t k = walk.slots().step;
            walk.ran(select_rows(hidden_.select(1, k), walk.slots().tokens));
            if (walk.slots().last || !walk.goes_on()) {
                break;
            }
            const at::Tensor tokens = walk.slots().tokens;
            add_input_flops(tokens, k);
            walk.make_inputs();
            {
                const c10::NoGradGuard no_grad;
                const at::Tensor& now = walk.slots().input;
                const at::Tensor both = select_rows(had, tokens) > k + 1;
                const at::Tensor distance =
                    (now - select_rows(inputs_.select(1, k + 1), tokens)).abs().amax(1).to(at::kFloat) * both;
                put_maximum(moved.distance, tokens, distance);
                put_maximum(excess, tokens,
                            distance - now.abs().amax(1).to(at::kFloat) * (still_part() * both));
            }
            put(inputs_, k + 1, tokens, walk.slots().input);
            put_bias(walk.key_bias(), k + 1, tokens);
            set_count(tokens, k + 2);
            // Only slots that this pass had can be asked on.
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
        moved.still = excess.le(0).logical_and(count_.eq(had));
        return moved;
    }

    static bool records_graph(const at::Tensor& all, const at::Tensor& values) {
        return at::GradMode::is_enabled() && (all.requires_grad() || values.requires_grad());
    }

    /// dense[tokens, k] = values: in place where no graph is recorded.
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

    void add_input_flops(const at::Tensor& tokens, std::int64_t k) {
        const std::int64_t each = method_.input_flops() + method_.decision_flops(k);
        if (each > 0) {
            tokens.defined() ? pass_flops_.index_add_(0, tokens, at::full_like(tokens, each))
                             : pass_flops_.add_(each);
        }
    }

    /// All tokens together: the growth of slots, then so many refreshes, then the pass that counts.
    void run_counted(std::int64_t refreshes) {
        const std::int64_t growth = method_.max_steps();
        const std::int64_t longest = *std::max_element(batch_.lengths.begin(), batch_.lengths.end());
        // After that many refreshes nothing can move any more, whatever the weights.
        if (longest <= std::numeric_limits<std::int32_t>::max() / slots_a_token_) {
            refreshes = std::min(refreshes, longest * growth);
        }
        known_count_ = halts_ ? 0 : 1;
        for (std::int64_t done = -growth; done < refreshes; ++done) {
            pass({}, Hear::nothing);
            const Movement moved = refresh({});
            if (done >= 0) {
                differences_.push_back(moved.distance);
            }
            if (known_count_ > 0) {
                known_count_ = std::min(known_count_ + 1, slots_a_token_);
            }
        }
        pass({}, Hear::all);
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

    /// A sequence on its way: everything before `next` is final, and its K/V are in their rows.
    struct Front {
        std::int64_t first, length;  ///< its tokens in the run
        std::int64_t next = 0;       ///< token
        std::int64_t waited = 0;     ///< passes over a window since `next` came to its front
        std::int64_t moved = 0;      ///< tokens since then that became final in windows,
        std::int64_t passes = 0;     ///< and how many passes those took
        std::int64_t one_by_one = 0; ///< so many tokens are to go one by one
    };

    /// Every sequence from its front on, until all of them are final.
    void run_exactly() {
        std::optional<StepCache> own;
        if (cache_ == nullptr) {
            const auto sequences = static_cast<std::int64_t>(batch_.lengths.size());
            own.emplace(make_step_cache(backbone_, method_, options_, batch_.size(), sequences));
            cache_ = &*own;
        }
        used_ = cache_->counts.select(0, 0).clone();
        std::vector<Front> fronts;
        std::int64_t first = 0;
        for (const std::int64_t length : batch_.lengths) {
            if (length > 0) {
                fronts.push_back({first, length});
            }
            first += length;
        }
        while (!fronts.empty()) {
            const std::int64_t window = window_of(static_cast<std::int64_t>(fronts.size()));
            std::vector<Front*> columns;
            std::vector<Front*> windows;
            for (Front& front : fronts) {
                (window == 1 || front.one_by_one > 0 ? columns : windows).push_back(&front);
            }
            if (!columns.empty()) {
                run_column(columns);
            }
            if (!windows.empty()) {
                run_windows(windows, window);
            }
            std::erase_if(fronts, [](const Front& front) { return front.next == front.length; });
        }
        cache_ = options_.cache;
        used_ = at::Tensor();
    }

    /// Tokens that the next pass takes of each of so many sequences. 1: a slot of each at a time costs less,
    /// or a cache remembers it: what a generation builds on is what decoding leaves, to the bit.
    [[nodiscard]] std::int64_t window_of(std::int64_t sequences) const {
        if (options_.cache != nullptr) {
            return 1;
        }
        const std::int64_t overhead = options_.pass_overhead.value_or(
            batch_.ids.device().is_cpu() ? pass_overhead_cpu : pass_overhead_gpu);
        return overhead < sequences * usual_passes
                   ? 1
                   : std::max<std::int64_t>(1, 4 * overhead / (sequences * slots_a_token_));
    }

    [[nodiscard]] at::Tensor there(const std::vector<std::int64_t>& numbers) const {
        return send(numbers, batch_.ids.device());
    }

    /// A pass over a window of each of these sequences. What is still, behind nothing that moves, is final.
    void run_windows(const std::vector<Front*>& fronts, std::int64_t window) {
        std::vector<std::int64_t> tokens;
        for (const Front* front : fronts) {
            for (std::int64_t t = front->next; t < std::min(front->next + window, front->length); ++t) {
                tokens.push_back(front->first + t);
            }
        }
        const at::Tensor some = there(tokens);
        const at::Tensor had = count_;
        pass(some, Hear::all_but_attention);
        const Movement moved = refresh(some);
        const at::Tensor answer = moved.still.index_select(0, some).to(at::kCPU);
        const bool* still = answer.const_data_ptr<bool>();
        std::vector<std::int64_t> final;
        for (Front* front : fronts) {
            const std::int64_t all = std::min(window, front->length - front->next);
            std::int64_t done = 0;
            while (done < all && still[done]) {
                ++done;
            }
            // Slots at the front become exact one after the other: what moves after that is rounding.
            if (++front->waited; done == 0 && front->waited == slots_a_token_) {
                done = 1;
            }
            if (done > 0) {
                front->waited = 0;
            }
            for (std::int64_t i = 0; i < done; ++i) {
                final.push_back(front->first + front->next++);
            }
            front->moved += done;
            if (++front->passes; front->moved >= window) {
                front->passes = front->moved = 0;
            } else if (front->passes >= window * slots_a_token_ / 4) {
                // In that time it would have come as far token by token.
                front->passes = front->moved = 0;
                front->one_by_one = window;
            }
            still += all;
        }
        if (!final.empty()) {
            const at::Tensor index = there(final);
            const at::Tensor slots = had.index_select(0, index);
            count_.index_copy_(0, index, slots);
            used_.index_add_(0, batch_.space.sequence.index_select(0, index), slots);
        }
    }

    /// The next token of each of these sequences, side by side, a slot of each at a time.
    void run_column(const std::vector<Front*>& fronts) {
        at::Tensor tokens;
        if (static_cast<std::int64_t>(fronts.size()) < batch_.size()) {
            std::vector<std::int64_t> numbers;
            for (const Front* front : fronts) {
                numbers.push_back(front->first + front->next);
            }
            tokens = there(numbers);
        }
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
            pass_flops_.index_add_(0, all, slot_flops(cost_, visible));
            walk.ran(states);
            if (slots.last || !walk.goes_on()) {
                break;
            }
            add_input_flops(slots.tokens, slots.step);
            walk.make_inputs();
        }
        for (Front* front : fronts) {
            ++front->next;
            front->waited = 0;
            front->one_by_one = std::max<std::int64_t>(0, front->one_by_one - 1);
        }
    }

    /// Goes through what the slots have become, step by step, as the other rules do while they compute.
    StepsResult tell() {
        StepsResult result;
        Walk walk(parts(options_.listener));
        walk.begin({}, inputs_.select(1, 0));
        while (true) {
            const Slots& slots = walk.slots();
            const Tap tap{options_.listener, slots.step};
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
    StepCache* cache_;             ///< where rows are kept; nullptr: a pass holds all there is to see
    at::Tensor used_;              ///< int64 [S], rows of final slots, while that changes
    at::Tensor inputs_, hidden_;   ///< [N, K + 1, d]
    at::Tensor bias_;              ///< fp32 [N, K + 1] or undefined
    at::Tensor count_;             ///< int64 [N]: slots that each token has
    std::int64_t known_count_ = 0; ///< the same number for all, where the host knows it; 0: it does not
    at::Tensor pass_flops_;        ///< int64 [N]
    std::vector<at::Tensor> differences_;
};

} // namespace

StepsResult run_interleaved(const Backbone& backbone, const Method& method, const TokenBatch& batch,
                            const StepsOptions& options) {
    return InterleavedRun(backbone, method, batch, options).run();
}

} // namespace ponderscope
