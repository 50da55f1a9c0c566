// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ponder/steps.h"

#include "core/ponder/interleaved.h"
#include "core/ponder/layers.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

namespace ponderscope {

namespace {

/// Where the slots' K/V go and what they see: nothing is kept where a pass holds all there is to see.
class KeptRows {
public:
    KeptRows(const Backbone& backbone, const Method& method, const TokenBatch& batch, StepCache* cache,
             const HaltingRule* rule)
        : batch_(batch), cache_(cache) {
        const bool halts = may_halt(method, rule);
        const bool every_step = cache != nullptr || method.visibility() == VisibilityRule::two_dimensional;
        if (cache == nullptr) {
            std::int64_t begin = 0;
            for (const std::int64_t length : batch.lengths) {
                causal_.push_back({begin, length, begin, 0});
                begin += length;
            }
            if (!keeps_rows(method, rule)) {
                return;
            }
        }
        copies_ = cache != nullptr && method.visibility() == VisibilityRule::per_step && halts;
        plain_ = cache != nullptr && method.visibility() == VisibilityRule::per_step && !halts;
        if (cache == nullptr) {
            const ModelConfig& config = backbone.config();
            own_segments_ = every_step ? method.max_steps() + 1 : 1;
            own_.emplace(
                config.layers, own_segments_ * batch.space.segment_rows, config.kv_heads, config.head_dim,
                at::TensorOptions(backbone.head().embedding.scalar_type()).device(batch.ids.device()));
        }
        planner_.emplace(method.visibility(), batch.space, every_step,
                         cache != nullptr ? cache->counts : at::Tensor());
    }

    void prepare(const Slots& slots, Pass& pass) {
        if (!planner_) {
            pass.visibility.causal = causal_;
            return;
        }
        pass.kv = cache_ != nullptr ? &cache_->rows : &*own_;
        if (copies_ && slots.step > 0) {
            carry_rows(*pass.kv, slots.step);
        }
        const StepRows rows = planner_->next(slots.tokens);
        if (cache_ != nullptr && cache_->counts.defined()) {
            const at::Tensor sequences = select_rows(batch_.space.sequence, slots.tokens);
            cache_->counts.select(0, slots.step).index_add_(0, sequences, at::ones_like(sequences));
        }
        pass.rows = rows.rows;
        if (cache_ == nullptr && !slots.tokens.defined() && (slots.step == 0 || own_segments_ == 1)) {
            // While everybody runs, rows lie as the tokens do: plainly causal.
            pass.visibility.causal = causal_;
            return;
        }
        if (!plain_) {
            pass.visibility.ranges = rows.ranges;
            return;
        }
        std::int64_t begin = 0;
        for (std::size_t i = 0; i < batch_.lengths.size(); ++i) {
            const std::int64_t row = planner_->segment(slots.step) + batch_.first_rows[i];
            pass.visibility.causal.push_back({begin, batch_.lengths[i], row, batch_.past[i]});
            begin += batch_.lengths[i];
        }
    }

    /// After the last step that ran: the steps that no token reached see the same rows.
    void finish(std::int64_t last_step, std::int64_t max_steps) {
        for (std::int64_t step = last_step + 1; copies_ && step <= max_steps; ++step) {
            carry_rows(cache_->rows, step);
        }
    }

private:
    /// A token that halted is seen by later steps with its last K/V: every new token's rows go on to the next
    /// segment, and those that are active overwrite theirs.
    void carry_rows(KvRows& kv, std::int64_t step) {
        for (std::size_t i = 0; i < batch_.lengths.size(); ++i) {
            const std::int64_t row = batch_.first_rows[i] + batch_.past[i];
            kv.copy(planner_->segment(step - 1) + row, planner_->segment(step) + row, batch_.lengths[i]);
        }
    }

    const TokenBatch& batch_;
    StepCache* cache_;
    std::vector<Visibility::CausalBlock> causal_;
    std::optional<KvRows> own_;
    std::int64_t own_segments_ = 0;
    std::optional<StepRowPlanner> planner_;
    bool copies_ = false;
    bool plain_ = false;
};

} // namespace

namespace {

/// Everything about a batch but its ids, which are written too where \p sequences has them.
TokenBatch index_tokens(const Backbone& backbone, std::vector<std::int64_t> lengths,
                        std::vector<std::int64_t> past, at::Device device, bool plan_rows,
                        const std::vector<std::span<const std::int32_t>>* sequences,
                        const std::vector<std::int64_t>& sequence_rows, std::int64_t segment_rows) {
    TokenBatch batch;
    std::vector<std::int64_t> whole(lengths);
    for (std::size_t i = 0; i < past.size(); ++i) {
        whole[i] += past[i];
    }
    past.resize(lengths.size(), 0);
    const RotationTable table = backbone.rotation(whole);
    const std::int64_t total = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
    // Rows: positions, rotation rows, [first row of the sequence, its number], [ids].
    const std::int64_t planes = 2 + (plan_rows ? 2 : 0) + (sequences != nullptr ? 1 : 0);
    at::Tensor host =
        at::empty({planes, total}, at::TensorOptions(at::kLong).pinned_memory(!device.is_cpu()));
    auto* positions = host.mutable_data_ptr<std::int64_t>();
    std::int64_t* rotation = positions + total;
    std::int64_t* sequence_row = rotation + total;
    std::int64_t* sequence = sequence_row + total;
    std::int64_t* ids = positions + (planes - 1) * total;
    std::int64_t first = 0;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
        batch.first_rows.push_back(sequence_rows.empty() ? first : sequence_rows[i]);
        std::iota(positions + first, positions + first + lengths[i], past[i]);
        std::iota(rotation + first, rotation + first + lengths[i], table.row_base[i] + past[i]);
        if (plan_rows) {
            std::fill_n(sequence_row + first, lengths[i], batch.first_rows[i]);
            std::fill_n(sequence + first, lengths[i], static_cast<std::int64_t>(i));
        }
        if (sequences != nullptr) {
            std::copy((*sequences)[i].begin(), (*sequences)[i].end(), ids + first);
        }
        first += lengths[i];
    }
    const at::Tensor there = host.to(device, at::kLong, /*non_blocking=*/true);
    batch.positions = there.select(0, 0);
    batch.rotation_rows = there.select(0, 1);
    batch.cos = table.cos;
    batch.sin = table.sin;
    if (plan_rows) {
        batch.space = {segment_rows > 0 ? segment_rows : total, there.select(0, 2), there.select(0, 3),
                       batch.positions};
    }
    if (sequences != nullptr) {
        batch.ids = there.select(0, planes - 1);
    }
    batch.lengths = std::move(lengths);
    batch.past = std::move(past);
    return batch;
}

} // namespace

TokenBatch TokenBatch::make(const Backbone& backbone,
                            const std::vector<std::span<const std::int32_t>>& sequences, at::Device device,
                            bool plan_rows, const std::vector<std::int64_t>& past,
                            const std::vector<std::int64_t>& sequence_rows, std::int64_t segment_rows) {
    std::vector<std::int64_t> lengths;
    for (const auto& sequence : sequences) {
        lengths.push_back(static_cast<std::int64_t>(sequence.size()));
    }
    return index_tokens(backbone, std::move(lengths), past, device, plan_rows, &sequences, sequence_rows,
                        segment_rows);
}

TokenBatch TokenBatch::from_ids(const Backbone& backbone, const at::Tensor& ids,
                                const std::vector<std::int64_t>& lengths, bool plan_rows) {
    TokenBatch batch = index_tokens(backbone, lengths, {}, ids.device(), plan_rows, nullptr, {}, 0);
    batch.ids = ids;
    return batch;
}

StepsResult run_steps(const Backbone& backbone, const Method& method, const TokenBatch& batch,
                      const StepsOptions& options) {
    if (method.visibility() == VisibilityRule::interleaved) {
        return run_interleaved(backbone, method, batch, options);
    }
    if (method.layers_are_steps()) {
        return run_layers(backbone, method, batch, options);
    }
    const double scale = method.embed_scale();
    KeptRows kept(backbone, method, batch, options.cache, options.choices.rule.get());
    Walk walk({method, backbone.head(), batch.size(), options.choices.rule.get(), &batch.places,
               options.observer, options.taps});
    const std::unique_ptr<ValueMixer> mixer = backbone.make_mixer();
    StepsResult result;
    if (may_halt(method, options.choices.rule.get())) {
        result.steps = at::zeros_like(batch.ids);
    }
    const at::Tensor embedded = backbone.embed(batch.ids);
    walk.begin({}, method.first_input(scale == 1.0 ? embedded : embedded * scale));
    for (const Slots& slots = walk.slots();;) {
        Pass pass;
        at::Tensor stream;
        pass.rotation_rows = select_rows(batch.rotation_rows, slots.tokens);
        pass.positions = select_rows(batch.positions, slots.tokens);
        pass.cos = batch.cos;
        pass.sin = batch.sin;
        pass.workspace = options.workspace;
        pass.recompute = options.recompute;
        pass.tokens = slots.tokens;
        pass.mixer = mixer.get();
        pass.tap = {options.taps, slots.step};
        pass.stream = method.wants_stream() ? &stream : nullptr;
        kept.prepare(slots, pass);
        pass.tap("embeds", slots.input);
        const at::Tensor hidden = backbone.run(slots.input, pass);
        pass.tap("hidden", hidden);
        if (result.steps.defined() && slots.step > 0) {
            slots.tokens.defined() ? result.steps.index_fill_(0, slots.tokens, slots.step)
                                   : result.steps.fill_(slots.step);
        }
        walk.ran(hidden, stream);
        if (options.keep_states) {
            result.states.push_back({slots.tokens, slots.input, slots.hidden, walk.decision().value});
        }
        if (slots.last) {
            break;
        }
        if (const at::Tensor go_on = walk.choose(); go_on.defined()) {
            const at::Tensor going =
                at::nonzero(go_on).view(-1); // the one place where the host waits for the device
            if (going.size(0) == 0) {
                break;
            }
            if (going.size(0) < slots.hidden.size(0)) {
                walk.keep(going);
            }
        }
        walk.make_inputs();
    }
    kept.finish(walk.slots().step, method.max_steps());
    result.readout = walk.readout().output(walk.slots().hidden.scalar_type());
    return result;
}

} // namespace ponderscope
