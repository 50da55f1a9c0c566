// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ponder/schedule/layer_steps.h"

#include "core/base/error.h"
#include "core/ponder/halting/halting.h"
#include "core/ponder/schedule/run_patches.h"

#include <ATen/ATen.h>

namespace ponderscope {

namespace {

std::int64_t last_block(const ModelConfig& config) {
    if (config.ponder.method != MethodKind::vanilla) {
        throw InputError(ErrorId::usage_unsuited,
                         "Exits over layers need a vanilla model, and this one (method " +
                             to_string(config.ponder.method) + ") ponders; choose a policy over its steps.");
    }
    if (config.depth.kind != DepthMixing::none && config.depth.kind != DepthMixing::depth_attention) {
        throw InputError(ErrorId::usage_unsuited,
                         "Exits over layers read the residual stream after each block, and a model with " +
                             to_string(config.depth.kind) +
                             " has no single stream; leave --record layers and --policy out.");
    }
    return config.layers - 1;
}

/// The K/V rows that a block writes, and the rows that its queries see.
class LayerRows {
public:
    LayerRows(const TokenBatch& batch, StepCache* cache, bool halts) : causal_(batch.causal_blocks()) {
        if (cache == nullptr && !halts) {
            return;
        }
        const at::Tensor rows = batch.space.sequence_row + batch.space.position;
        ranges_ = at::stack({batch.space.sequence_row, rows + 1}, 1).unsqueeze(1).to(at::kInt);
        if (cache != nullptr) {
            kv_ = &cache->rows;
            rows_ = rows;
        }
    }

    /// \p queries: int64 [m], the tokens that have not exited; undefined: all.
    void prepare(const at::Tensor& queries, Pass& pass) const {
        pass.queries = queries;
        pass.kv = kv_;
        pass.rows = rows_;
        pass.visibility = {};
        if (queries.defined()) {
            pass.visibility.ranges = ranges_.index_select(0, queries);
        } else {
            pass.visibility.causal = causal_;
        }
    }

private:
    std::vector<Visibility::CausalBlock> causal_;
    at::Tensor ranges_;
    KvRows* kv_ = nullptr;
    at::Tensor rows_;
};

} // namespace

LayerSteps::LayerSteps(const ModelConfig& config) : Method(config, last_block(config)) {}

StepsResult run_layers(const Backbone& backbone, const Method& method, const TokenBatch& batch,
                       const StepsOptions& options) {
    const HaltingRule* rule = options.plan.rule.get();
    const bool halts = may_halt(method, rule);
    const LayerRows rows(batch, options.cache, halts);
    const std::unique_ptr<ValueMixer> mixer = backbone.make_mixer();
    StepsResult result;
    if (halts) {
        result.steps = at::zeros_like(batch.ids);
    }
    Pass pass;
    pass.rotation_rows = batch.rotation_rows;
    pass.positions = batch.positions;
    pass.cos = batch.cos;
    pass.sin = batch.sin;
    pass.stop = options.stop;
    pass.mixer = mixer.get();
    if (mixer) {
        mixer->begin_pass(pass);
    }
    Walk walk({method, backbone.head(), batch.size(), rule, &batch.places, options.listener,
               [&](const at::Tensor& state, const Slots&) { return backbone.final_norm(state); }});
    // A token's row stays unchanged after its exit: later blocks compute its keys and values from this row.
    at::Tensor stream = backbone.enter(backbone.embed(batch.ids), pass);
    walk.begin({}, stream);
    bool anybody = true;
    for (std::int64_t l = 0; l <= method.max_steps(); ++l) {
        const Slots& slots = walk.slots();
        pass.tap = {options.listener, l};
        if (!anybody) {
            rows.prepare(at::empty({0}, batch.ids.options()), pass);
            backbone.block(l, stream, pass);
            continue;
        }
        rows.prepare(slots.tokens, pass);
        pass.tap("embeds", slots.input);
        at::Tensor state = backbone.block(l, stream, pass);
        if (options.patches != nullptr) {
            state = options.patches->apply(state, slots.tokens, l, StatePlace::end_of_step);
        }
        pass.tap("hidden", state);
        stream = slots.tokens.defined() ? stream.index_copy(0, slots.tokens, state) : state;
        if (halts && l > 0) {
            slots.tokens.defined() ? result.steps.index_fill_(0, slots.tokens, l) : result.steps.fill_(l);
        }
        walk.ran(state);
        if (options.keep_states) {
            result.states.push_back({slots.tokens, slots.input, slots.hidden, walk.decision().value});
        }
        if (slots.last) {
            break;
        }
        anybody = walk.goes_on();
        if (!anybody) {
            if (options.cache == nullptr) {
                break; // no later token needs keys of later blocks
            }
            continue;
        }
        walk.make_inputs();
    }
    result.readout = walk.readout().output(stream.scalar_type());
    return result;
}

} // namespace ponderscope
