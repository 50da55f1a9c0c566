// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ponder/schedule/steps.h"

#include "core/model/device.h"
#include "core/ponder/schedule/layer_steps.h"
#include "core/ponder/schedule/run_patches.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

namespace ponderscope {

KvPolicy RunPlan::kv_policy(const Method& method) const {
    return kv ? *kv : method.exits_select() && !rule ? KvPolicy::full : KvPolicy::per_step;
}

bool RunPlan::selects(const Method& method) const {
    return may_halt(method, rule.get()) && !method.layers_are_steps() &&
           method.visibility() == VisibilityRule::per_step && kv_policy(method) == KvPolicy::full;
}

bool RunPlan::stops(const Method& method) const {
    return may_halt(method, rule.get()) && !selects(method);
}

bool RunPlan::keeps_rows(const Method& method) const {
    return stops(method) || method.visibility() != VisibilityRule::per_step || sequential(method);
}

bool RunPlan::sequential(const Method& method) const {
    return method.max_steps() > 0 && !method.layers_are_steps() &&
           method.visibility() == VisibilityRule::per_step && kv_policy(method) == KvPolicy::shared;
}

bool RunPlan::iterates(const Method& method) const {
    return method.visibility() == VisibilityRule::interleaved && method.max_steps() > 0 &&
           (!method.knows_inputs() || may_halt(method, rule.get()));
}

bool RunPlan::counts_refreshes(const Method& method) const {
    return iterates(method) || (rule && method.knows_inputs());
}

namespace {

/// The sliding windows of the steps' layers, without repeats.
std::vector<std::int64_t> windows_of(const ModelConfig& config) {
    std::vector<std::int64_t> windows;
    for (std::int64_t l = config.core_begin(); l < config.core_end(); ++l) {
        const std::int64_t window = config.sliding_windows[static_cast<std::size_t>(l)];
        if (window > 0 && std::find(windows.begin(), windows.end(), window) == windows.end()) {
            windows.push_back(window);
        }
    }
    return windows;
}

/// The K/V rows that a pass writes, and the rows that its slots see. None if slots see only their own pass.
class KeptRows {
public:
    KeptRows(const Backbone& backbone, const Method& method, const TokenBatch& batch, StepCache* cache,
             const RunPlan& plan)
        : batch_(batch),
          cache_(cache),
          config_(backbone.config()),
          longest_(batch.longest()),
          on_device_(batch.single() && !batch.ids.device().is_cpu()) {
        const bool halts = plan.stops(method);
        const bool per_step = method.visibility() == VisibilityRule::per_step;
        const KvPolicy kv = plan.kv_policy(method);
        const bool skips = per_step && halts && kv == KvPolicy::skip;
        const bool shares = plan.sequential(method);
        const bool every_step =
            (cache != nullptr && !shares) || method.visibility() == VisibilityRule::two_dimensional;
        if (std::any_of(batch.prefix.begin(), batch.prefix.end(), [](auto tokens) { return tokens > 0; })) {
            TORCH_CHECK(per_step && !skips, "a prefix is seen step by step");
            std::vector<std::int64_t> all;
            for (std::size_t i = 0; i < batch.lengths.size(); ++i) {
                all.insert(all.end(), static_cast<std::size_t>(batch.lengths[i]), batch.prefix[i]);
            }
            prefix_ = send(all, batch.ids.device());
        }
        if (cache == nullptr && !plan.keeps_rows(method)) {
            return;
        }
        copies_ = cache != nullptr && per_step && halts && kv == KvPolicy::per_step;
        plain_ = cache != nullptr && per_step && !(halts && kv != KvPolicy::shared);
        if (cache == nullptr) {
            own_segments_ = every_step ? method.max_steps() + 1 : 1;
            std::vector<std::int64_t> rows(static_cast<std::size_t>(config_.layers), 0);
            for (std::int64_t l = config_.core_begin(); l < config_.core_end(); ++l) {
                rows[static_cast<std::size_t>(l)] = own_segments_ * batch.space.segment_rows;
            }
            own_ = backbone.kv_rows(rows);
        }
        at::Tensor seen = cache != nullptr ? cache->seen : at::Tensor();
        const std::vector<std::int64_t> windows = skips ? windows_of(config_) : std::vector<std::int64_t>();
        if (cache == nullptr && !windows.empty()) {
            seen = at::zeros({own_segments_, batch.space.segment_rows}, batch.space.position.options());
        }
        planner_.emplace(method.visibility(), batch.space, every_step,
                         cache != nullptr ? cache->counts : at::Tensor(), skips, windows, seen);
    }

    /// For the prelude's and the coda's blocks. A token has one row in a segment. \p step: the segment; 0
    /// unless the coda has one for each step. \p tokens: int64 [n]; undefined: all.
    void prepare_outside(const at::Tensor& tokens, std::int64_t step, Pass& pass) const {
        if (cache_ == nullptr) {
            TORCH_CHECK(!tokens.defined(), "blocks outside of the steps run all tokens together");
            pass.visibility.causal = batch_.causal_blocks();
            return;
        }
        const std::int64_t segment = step * cache_->segment_rows;
        pass.kv = &cache_->rows;
        const at::Tensor begin = select_rows(batch_.space.sequence_row, tokens) + segment;
        pass.rows = begin + select_rows(batch_.space.position, tokens);
        if (tokens.defined() || on_device_) {
            see(pass, at::stack({begin, pass.rows + 1}, 1).unsqueeze(1).to(at::kInt));
        } else {
            pass.visibility.causal = batch_.causal_blocks(segment);
        }
    }

    void prepare(const Slots& slots, Pass& pass) {
        if (!planner_) {
            see_all_in_order(pass);
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
            // As long as all tokens run, rows are in the order of tokens: causal, also with sliding windows.
            see_all_in_order(pass);
            return;
        }
        if (!plain_ || slots.tokens.defined() || on_device_ || prefix_.defined()) {
            see(pass, with_prefix(rows.ranges, slots.tokens));
            pass.window_ranges = rows.window_ranges;
            return;
        }
        pass.visibility.causal = batch_.causal_blocks(planner_->segment(slots.step));
    }

    /// Call it after the last step that ran. Prepares the segments of steps that no token reached.
    void finish(std::int64_t last_step, std::int64_t max_steps) {
        for (std::int64_t step = last_step + 1; step <= max_steps; ++step) {
            if (copies_) {
                carry_rows(cache_->rows, step);
            } else if (planner_ && cache_ != nullptr) {
                planner_->skip_step(step);
            }
        }
    }

private:
    /// For rows in the order of tokens.
    void see_all_in_order(Pass& pass) const {
        Visibility plain;
        plain.causal = batch_.causal_blocks();
        if (!prefix_.defined()) {
            pass.visibility = plain;
            return;
        }
        see(pass, with_prefix(visible_ranges(plain, batch_.size(), prefix_.device()).to(at::kInt), {}));
    }

    /// Extends the ranges of a prefix's tokens to the end of the prefix.
    [[nodiscard]] at::Tensor with_prefix(const at::Tensor& ranges, const at::Tensor& tokens) const {
        if (!prefix_.defined()) {
            return ranges;
        }
        const at::Tensor begin = ranges.select(2, 0);
        const at::Tensor reach = begin + select_rows(prefix_, tokens).to(at::kInt).unsqueeze(1);
        return at::stack({begin, at::maximum(ranges.select(2, 1), reach)}, 2);
    }

    void see(Pass& pass, const at::Tensor& ranges) const {
        pass.visibility.ranges = ranges;
        pass.visibility.most_rows = longest_ * ranges.size(1);
    }

    /// Copies the rows of this run's tokens from the previous segment. Active tokens overwrite theirs; halted
    /// tokens keep their last K/V.
    void carry_rows(KvRows& kv, std::int64_t step) {
        for (std::size_t i = 0; i < batch_.lengths.size(); ++i) {
            const std::int64_t row = batch_.first_rows[i] + batch_.past[i];
            kv.copy(config_.core_begin(), config_.core_end(), planner_->segment(step - 1) + row,
                    planner_->segment(step) + row, batch_.lengths[i]);
        }
    }

    const TokenBatch& batch_;
    StepCache* cache_;
    const ModelConfig& config_;
    std::optional<KvRows> own_;
    std::int64_t own_segments_ = 0;
    std::optional<StepRowPlanner> planner_;
    at::Tensor prefix_; ///< int64 [N]: tokens of the token's sequence that see each other; undefined: none
    std::int64_t longest_;
    /// In decoding on a GPU: ranges are tensors on the device, so that a captured step can read new ones.
    bool on_device_;
    bool copies_ = false;
    bool plain_ = false;
};

} // namespace

bool TokenBatch::single() const {
    return std::all_of(lengths.begin(), lengths.end(), [](std::int64_t length) { return length == 1; });
}

std::int64_t TokenBatch::longest() const {
    std::int64_t most = room;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
        most = std::max(most, past[i] + lengths[i]);
    }
    return most;
}

TokenBatch TokenBatch::make(const Backbone& backbone,
                            const std::vector<std::span<const std::int32_t>>& sequences, at::Device device,
                            bool plan_rows, const std::vector<std::int64_t>& past,
                            const std::vector<std::int64_t>& sequence_rows, std::int64_t segment_rows) {
    TokenBatch batch;
    std::vector<std::int64_t> whole;
    std::int64_t total = 0;
    batch.past = past;
    batch.past.resize(sequences.size(), 0);
    for (std::size_t i = 0; i < sequences.size(); ++i) {
        const auto length = static_cast<std::int64_t>(sequences[i].size());
        batch.lengths.push_back(length);
        batch.first_rows.push_back(sequence_rows.empty() ? total : sequence_rows[i]);
        whole.push_back(batch.past[i] + length);
        total += length;
    }
    const RotationTable table = backbone.rotation(whole);
    // Planes: positions, rotation rows, ids, and with plan_rows the sequence's first row and number.
    at::Tensor host =
        at::empty({plan_rows ? 5 : 3, total}, at::TensorOptions(at::kLong).pinned_memory(!device.is_cpu()));
    auto* next = host.mutable_data_ptr<std::int64_t>();
    for (std::size_t i = 0; i < sequences.size(); ++i) {
        const std::int64_t length = batch.lengths[i];
        std::iota(next, next + length, batch.past[i]);
        std::iota(next + total, next + total + length, table.row_base[i] + batch.past[i]);
        std::copy(sequences[i].begin(), sequences[i].end(), next + 2 * total);
        if (plan_rows) {
            std::fill_n(next + 3 * total, length, batch.first_rows[i]);
            std::fill_n(next + 4 * total, length, static_cast<std::int64_t>(i));
        }
        next += length;
    }
    batch.numbers = host.to(device, at::kLong, /*non_blocking=*/true);
    batch.positions = batch.numbers.select(0, 0);
    batch.rotation_rows = batch.numbers.select(0, 1);
    batch.ids = batch.numbers.select(0, 2);
    batch.cos = table.cos;
    batch.sin = table.sin;
    if (plan_rows) {
        batch.space = {segment_rows > 0 ? segment_rows : total, batch.numbers.select(0, 3),
                       batch.numbers.select(0, 4), batch.positions};
    }
    return batch;
}

std::vector<Visibility::CausalBlock> TokenBatch::causal_blocks(std::int64_t first_row) const {
    std::vector<Visibility::CausalBlock> blocks;
    std::int64_t begin = 0;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
        blocks.push_back({begin, lengths[i], first_row + first_rows[i], past[i]});
        begin += lengths[i];
    }
    return blocks;
}

Schedule schedule_of(const Backbone& backbone, const Method& method, const StepsOptions& options) {
    if (method.visibility() == VisibilityRule::interleaved) {
        return Schedule::interleaved;
    }
    if (method.layers_are_steps()) {
        return Schedule::layers;
    }
    // A token's coda attends to the coda's rows of earlier tokens, which exist after these tokens stopped.
    const HaltingRule* rule = options.plan.rule.get();
    const bool by_token = options.plan.sequential(method)
                              ? !options.chunks
                              : backbone.config().recurs() && options.plan.stops(method) &&
                                    (options.read_out_every_step || (rule != nullptr && rule->reads_head()));
    return by_token ? Schedule::token_by_token : Schedule::by_step;
}

namespace {

/// Whether a model with a coda runs the coda after every step, for a read-out.
bool reads_each_step(const Backbone& backbone, const Method& method, const StepsOptions& options) {
    const RunPlan& plan = options.plan;
    return backbone.config().recurs() && (options.read_out_every_step || plan.selects(method) ||
                                          (plan.rule != nullptr && plan.rule->reads_head()));
}

} // namespace

StepCache make_step_cache(const Backbone& backbone, const Method& method, const StepsOptions& options,
                          std::int64_t total, std::int64_t sequences) {
    const ModelConfig& config = backbone.config();
    const RunPlan& plan = options.plan;
    const bool per_step = method.visibility() == VisibilityRule::per_step;
    const bool interleaved = method.visibility() == VisibilityRule::interleaved;
    // One segment is enough if slots are interleaved, if layers are steps (a block writes only rows of its
    // own layer), or if later tokens see only a token's last step. Otherwise each step has a segment.
    const bool one = interleaved || method.layers_are_steps() || plan.sequential(method);
    const std::int64_t steps = method.max_steps() + 1;
    const std::int64_t segments = one ? 1 : steps;
    const std::int64_t room = total * (interleaved ? steps : 1);
    const bool coda_each_step = reads_each_step(backbone, method, options) && !plan.stops(method) &&
                                schedule_of(backbone, method, options) != Schedule::token_by_token;
    std::vector<std::int64_t> rows(static_cast<std::size_t>(config.layers), segments * room);
    for (std::int64_t l = 0; l < config.layers; ++l) {
        if (l < config.core_begin() || l >= config.core_end()) {
            rows[static_cast<std::size_t>(l)] = (l >= config.core_end() && coda_each_step ? steps : 1) * room;
        }
    }
    at::Tensor counts;
    const bool skips = per_step && plan.stops(method) && plan.kv_policy(method) == KvPolicy::skip;
    if (!per_step || skips) {
        counts = at::zeros({segments, sequences},
                           at::TensorOptions(at::kLong).device(backbone.head().head.device()));
    }
    at::Tensor seen;
    if (skips && !windows_of(config).empty()) {
        seen = at::zeros({segments, room}, counts.options());
    }
    return {backbone.kv_rows(rows), room, std::move(counts), {}, std::move(seen), coda_each_step};
}

namespace {

/// A pass over tokens of one step.
Pass pass_over(const TokenBatch& batch, const at::Tensor& tokens, std::int64_t step,
               const StepsOptions& options) {
    Pass pass = pass_of(batch, tokens, options);
    pass.tokens = tokens;
    pass.tap = {options.listener, step};
    return pass;
}

} // namespace

Pass pass_of(const TokenBatch& batch, const at::Tensor& tokens, const StepsOptions& options) {
    Pass pass;
    pass.rotation_rows = select_rows(batch.rotation_rows, tokens);
    pass.positions = select_rows(batch.positions, tokens);
    pass.ids = select_rows(batch.ids, tokens);
    pass.cos = batch.cos;
    pass.sin = batch.sin;
    pass.stop = options.stop;
    return pass;
}

StepsResult run_steps(const Backbone& backbone, const Method& method, const TokenBatch& batch,
                      const StepsOptions& options) {
    switch (schedule_of(backbone, method, options)) {
    case Schedule::interleaved:
        return run_interleaved(backbone, method, batch, options);
    case Schedule::layers:
        return run_layers(backbone, method, batch, options);
    case Schedule::token_by_token:
        if (options.cache == nullptr || !batch.single()) {
            return run_token_by_token(backbone, method, batch, options);
        }
        break;
    case Schedule::by_step:
        break;
    }
    return run_by_step(backbone, method, batch, options);
}

StepsResult run_by_step(const Backbone& backbone, const Method& method, const TokenBatch& batch,
                        const StepsOptions& options) {
    const double scale = method.embed_scale();
    const RunPlan& plan = options.plan;
    const bool sandwich = backbone.config().recurs();
    const bool selects = plan.selects(method);
    KeptRows kept(backbone, method, batch, options.cache, plan);
    const auto coda = [&](const at::Tensor& state, const at::Tensor& tokens, std::int64_t step) {
        Pass pass = pass_over(batch, tokens, step, options);
        kept.prepare_outside(tokens, options.cache != nullptr && options.cache->coda_each_step ? step : 0,
                             pass);
        const at::Tensor hidden = backbone.coda(state, pass);
        pass.tap("hidden", hidden);
        return hidden;
    };
    const bool reads_each = reads_each_step(backbone, method, options);
    WalkParts parts{method, backbone.head(), batch.size(),   plan.rule.get(), &batch.places, options.listener,
                    {},     selects,         options.numbers};
    if (reads_each) {
        parts.read = [&](const at::Tensor& state, const Slots& slots) {
            return coda(state, slots.tokens, slots.step);
        };
    }
    Walk walk(std::move(parts));
    const std::unique_ptr<ValueMixer> mixer = backbone.make_mixer();
    StepsResult result;
    result.all_ran = selects;
    if (may_halt(method, plan.rule.get())) {
        result.steps = at::zeros_like(batch.ids);
    }
    const at::Tensor rows = backbone.embed(batch.ids);
    at::Tensor embedded = scale == 1.0 ? rows : rows * scale;
    if (sandwich) {
        Pass pass = pass_over(batch, {}, 0, options);
        kept.prepare_outside({}, 0, pass);
        embedded = backbone.prelude(embedded, pass);
        pass.tap("prelude", embedded);
        if (batch.start.defined()) {
            pass.tap("initial_state", batch.start);
        }
    }
    walk.begin({}, method.first_input(embedded, batch.start), sandwich ? embedded : at::Tensor(),
               method.state_before(embedded, batch.start));
    for (const Slots& slots = walk.slots();;) {
        Pass pass = pass_over(batch, slots.tokens, slots.step, options);
        at::Tensor stream;
        std::vector<at::Tensor> blocks(method.wanted_blocks().size());
        pass.mixer = mixer.get();
        pass.stream = method.wants_stream() ? &stream : nullptr;
        pass.adapted = method.adapts(slots.step);
        if (!blocks.empty()) {
            pass.wanted_blocks = &method.wanted_blocks();
            pass.block_outputs = &blocks;
        }
        kept.prepare(slots, pass);
        pass.tap("embeds", slots.input);
        const auto patched = [&](std::int64_t layer, const at::Tensor& states) {
            const at::Tensor& numbers = options.numbers;
            return options.patches->apply(
                states, numbers.defined() ? select_rows(numbers, slots.tokens) : slots.tokens, slots.step,
                layer);
        };
        if (options.patches != nullptr) {
            pass.edit = patched;
        }
        at::Tensor hidden = backbone.run(slots.input, pass);
        if (options.patches != nullptr) {
            hidden = patched(StatePlace::end_of_step, hidden);
        }
        pass.tap(sandwich ? "latent" : "hidden", hidden);
        if (result.steps.defined() && slots.step > 0) {
            if (walk.running().defined()) {
                result.steps.masked_fill_(walk.running(), slots.step);
            } else if (slots.tokens.defined()) {
                result.steps.index_fill_(0, slots.tokens, slots.step);
            } else {
                result.steps.fill_(slots.step);
            }
        }
        walk.take_blocks(std::move(blocks));
        walk.ran(hidden, stream);
        if (options.keep_states) {
            result.states.push_back({slots.tokens, slots.input, slots.hidden, walk.decision().value});
        }
        if (slots.last || !walk.goes_on()) {
            break;
        }
        walk.make_inputs();
    }
    kept.finish(walk.slots().step, method.max_steps());
    result.readout = walk.readout().output(walk.slots().hidden.scalar_type());
    if (sandwich && !reads_each) {
        result.readout = coda(result.readout, {}, 0);
    }
    return result;
}

} // namespace ponderscope
