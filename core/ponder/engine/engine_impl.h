// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/ponder/engine/engine.h"
#include "core/ponder/engine/model.h"
#include "core/ponder/halting/halting.h"
#include "core/ponder/recording/transfer.h"
#include "core/ponder/schedule/flops.h"
#include "core/ponder/schedule/run_patches.h"
#include "core/ponder/schedule/start_state.h"
#include "core/ponder/schedule/steps.h"

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace ponderscope {

/// Tokens that earlier runs computed before the windows of a run. Vectors have one entry per window.
struct EarlierTokens {
    StepCache* cache = nullptr;          ///< K/V of the earlier tokens; nullptr: no earlier tokens
    std::vector<std::int64_t> past = {}; ///< number of earlier tokens
    std::vector<std::int64_t> rows = {}; ///< first row of each window in a segment of the cache
    std::vector<std::vector<std::int32_t>> steps = {}; ///< K_t of the earlier tokens, if the method halts
};

/// The parts of an engine, for the files that implement its functions.
struct EngineParts {
    Model model;
    at::Device device;
    Precision precision;
    Notices notices;
    RunPlan plan;
    mutable int batches_under_way = 0;
    std::unique_ptr<const Method> layer_steps; ///< replaces a vanilla model's method; null: no layer steps

    StartState start;
    std::filesystem::path folder; ///< the checkpoint's folder

    std::vector<StatePatch> patches = {}; ///< patches for score and inspect_batch

    /// Fills in the positions of a batch's tokens in their texts, and the start states if the method has
    /// them. InputError: the file of start states is too short.
    void place(TokenBatch& batch, std::span<const Window> windows) const;
    [[nodiscard]] const Backbone& backbone() const { return model.backbone(); }
    [[nodiscard]] const Method& method() const { return layer_steps ? *layer_steps : model.method(); }
    [[nodiscard]] bool halts() const { return may_halt(method(), plan.rule.get()); }
    [[nodiscard]] FlopsModel cost() const { return flops_model(backbone(), method(), plan); }
    [[nodiscard]] bool decides_by_head() const { return plan.rule && plan.rule->reads_head(); }
    [[nodiscard]] bool plans_rows() const { return plan.keeps_rows(method()); }
    /// The patches for the tokens of these windows.
    [[nodiscard]] RunPatches patches_of(std::span<const Window> windows) const {
        return {patches, windows, device};
    }
    /// InputError: the plan records sequence attention, but tokens are computed one after the other.
    void refuse_attention_by_token(RecordLevel level) const;
    /// The options of all runs of this engine.
    [[nodiscard]] StepsOptions steps_options() const;
    /// The options of a generation. \p cached: earlier tokens are in a cache. Then a config with last_loop_kv
    /// selects KvPolicy::shared, unless the plan has `kv` or tokens may halt.
    [[nodiscard]] StepsOptions generation_options(bool cached) const;
    /// Length of a prompt's bidirectional prefix (RunPlan::prefix).
    [[nodiscard]] std::int64_t prefix_of_prompt(std::int64_t tokens) const;
    /// InputError: an id outside of the vocabulary, or a sequence without tokens or with too many.
    void check_ids(std::span<const std::int32_t> ids) const;
    /// Engine::submit. \p listen may change the options, for example replace the recorder by another
    /// listener. \p result receives the result of the run.
    [[nodiscard]] Engine::PendingPtr submit(std::span<const Window> windows, RecordLevel level,
                                            const std::function<void(StepsOptions& options)>& listen = {},
                                            StepsResult* result = nullptr,
                                            const EarlierTokens& earlier = {}) const;
};

struct Engine::Impl : EngineParts {};

/// InputError: the plan has Jacobi refreshes, with which patches are not exact.
void refuse_patches_of_passes(const RunPlan& plan, const Method& method);

class Engine::Pending {
public:
    Pending(ScoreTransfer transfer, const EngineParts& parts)
        : transfer_(std::move(transfer)), parts_(parts) {
        ++parts_.batches_under_way;
    }
    ~Pending() { --parts_.batches_under_way; }
    Pending(const Pending&) = delete;
    Pending& operator=(const Pending&) = delete;
    std::vector<WindowResult> collect() { return transfer_.collect(parts_.cost(), parts_.decides_by_head()); }

private:
    ScoreTransfer transfer_;
    const EngineParts& parts_;
};

} // namespace ponderscope
