// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/progress.h"
#include "core/checkpoint/checkpoint.h"
#include "core/model/precision.h"
#include "core/ponder/choices/patch.h"
#include "core/ponder/choices/request.h"
#include "core/ponder/choices/run_plan.h"
#include "core/trace/records.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace ponderscope {

struct LoadOptions {
    /// "cpu", "cuda", "cuda:N" or "auto" (device_for in core/model/device.h); InputError when there is none.
    std::string device = "cpu";
    Precision precision = Precision::float32;
    ProgressSink progress;
    std::stop_token stop;
};

/// A dense array for `logits`. Row-major.
struct NamedArray {
    DType dtype = DType::f32;
    std::vector<std::int64_t> shape;
    std::vector<float> floats;          ///< when dtype is f32
    std::vector<std::int64_t> integers; ///< when dtype is i64
};
using ArrayMap = std::map<std::string, NamedArray>;

/// How often a generation captured a step and replayed it, and why a capture failed.
struct GraphUse {
    std::int64_t captures = 0;
    std::int64_t replays = 0;
    std::string failure; ///< empty: none failed. After a failure the steps are launched one by one
};

struct GenerateOptions {
    std::int64_t max_new_tokens = 0;
    double temperature = 0; ///< 0 = greedy (lowest id of equals)
    std::int64_t top_k = 0; ///< sample from this number of most likely ids; 0: all
    double top_p = 1;       ///< then from their smallest set with this share of the probability
    /// A draw depends on seed, number of the sequence in the run and position (token_draw), so that the
    /// composition of batches does not matter.
    std::uint64_t seed = 0;
    std::int64_t first_sequence = 0;        ///< number in the run of the first prompt; the others follow
    std::vector<std::int64_t> numbers = {}; ///< of the prompts, where they do not follow each other
    std::vector<std::int64_t> stop_ids;
    /// When given: called after every new token of a prompt (its index in the call) with all new tokens so
    /// far; true ends that prompt.
    std::function<bool(std::size_t prompt, std::span<const std::int32_t> fresh)> is_finished = {};
    bool use_cache =
        true; ///< false: the whole sequence is computed again for each token (the reference of the cache)
    /// On a GPU, where no token can stop: capture a step once as a graph and replay it (decoder.h). False:
    /// launch the operations of each step.
    bool repeat_steps = true;
    GraphUse* graphs = nullptr; ///< receives what became of the captures; outlives the call
    std::stop_token stop = {};  ///< requested: the tokens generated so far are returned
    ProgressSink progress = {}; ///< called for every token of the longest continuation
};

struct PolicySpec;

/// A model on a device, ready to run: backbone, depth mixing, method. This header has no torch in it, on
/// purpose. Not thread-safe: one thread at a time drives an engine.
class Engine {
public:
    /// Validates all weights against the config before anything is computed. InputError, EnvironmentError.
    static Engine load(const Checkpoint& checkpoint, const LoadOptions& options = {});

    Engine(Engine&&) noexcept;
    Engine& operator=(Engine&&) noexcept;
    ~Engine();

    [[nodiscard]] const ModelConfig& config() const;
    [[nodiscard]] std::string device_name() const; ///< "cpu", "cuda:0 NVIDIA H200"
    [[nodiscard]] std::string dtype() const;       ///< "float32", "tf32", "bfloat16" or "float16"
    /// The plan of all later runs. At first: the config's number of refreshes; without one 3 for public
    /// configs, exact for our own section; and the method's own choices. Generation is always exact and
    /// records neither attention nor states.
    [[nodiscard]] const RunPlan& plan() const;
    /// Replaces the plan. InputError if the model or another choice of the plan excludes a choice; the old
    /// plan then stays.
    void use(RunPlan plan);
    /// Replaces one choice: `engine.choose(&RunPlan::kv, KvPolicy::full)`.
    template <typename T>
    void choose(T RunPlan::*choice, std::type_identity_t<T> value) {
        RunPlan changed = plan();
        changed.*choice = std::move(value);
        use(std::move(changed));
    }
    // As stored with a run.
    [[nodiscard]] std::string policy() const;      ///< "learned", "full", "fixed:n=2"
    [[nodiscard]] std::string scoring() const;     ///< "exact", "jacobi:3"
    [[nodiscard]] std::string kv() const;          ///< "full", ...; empty: no such choice
    [[nodiscard]] std::string start_state() const; ///< empty: the model has none
    [[nodiscard]] std::string start_state_digest() const; ///< of the states in a file; empty: of no file
    /// InputError: attention is requested, and a run of this level computes tokens one after the other.
    void check_attention(RecordLevel level) const;
    /// Bytes of states, read-outs of layers and routers for one token; 0: none are recorded.
    [[nodiscard]] std::int64_t token_bytes() const;
    /// Bytes of memory for them during the computation, a token.
    [[nodiscard]] std::int64_t token_room() const;
    /// Replaces computed states of score and inspect_batch by these from now on; empty: stops replacing.
    /// Sequences go by Window::sequence. InputError: counted refreshes, a place that the model does not have,
    /// a state of another width, or with NaN or infinity.
    void use_patches(std::vector<StatePatch> patches);
    /// The states at these places of windows that are computed together; of all_tokens the sum over the
    /// sequence's tokens that are read out and ran the step. Patches do not count. InputError: a place that
    /// the model does not have. MemoryExhausted: compute fewer windows together.
    [[nodiscard]] std::vector<StateSum> states_at(std::span<const Window> windows,
                                                  std::span<const StatePlace> places) const;
    /// InputError unless the model has such a step and layer (and allows a patch there: \p patched).
    void check_place(const StatePlace& place, bool patched) const;
    /// Elements of a state of that layer.
    [[nodiscard]] std::int64_t state_width(std::int64_t layer) const;
    /// Bytes of the attention weights between two tokens, in all steps; 0: nothing is recorded.
    [[nodiscard]] std::int64_t attention_pair_bytes() const;
    [[nodiscard]] std::vector<std::string> notices() const; ///< unused tensors, ties broken, precision hints
    [[nodiscard]] std::int64_t max_steps() const;           ///< K
    /// JSON of core/policy/flops_model.h, as stored with a run.
    [[nodiscard]] std::string flops_model() const;
    /// The signals that a run of this level records, in a fixed order.
    [[nodiscard]] std::vector<SignalInfo> signals(RecordLevel level) const;
    /// The same, each with its bytes a token before compression; those of attention are of one key.
    [[nodiscard]] std::vector<std::pair<SignalInfo, std::int64_t>> signal_bytes(RecordLevel level) const;

    /// Scores a batch of windows of any lengths. The others of a batch change the last bits of a result
    /// (core/README.md). MemoryExhausted if a GPU has too little memory for the batch.
    [[nodiscard]] std::vector<WindowResult> score(std::span<const Window> windows, RecordLevel level) const;

    /// The same results as score. Neighbouring windows that begin with the same tokens compute these tokens
    /// once. Nothing is shared if that would not be exact: where a token's result depends on the number or
    /// length of its sequence, where slots are refreshed in passes, and where attention, states or layers are
    /// recorded.
    [[nodiscard]] std::vector<WindowResult> score_sharing(std::span<const Window> windows,
                                                          RecordLevel level) const;

    /// score() in two halves, so that a GPU computes the next batch while the results of the last one are
    /// copied: submit returns when the work is queued, collect waits for its results. At most two batches
    /// under way.
    class Pending;
    using PendingPtr = std::shared_ptr<Pending>; ///< callers know Pending by name only
    [[nodiscard]] PendingPtr submit(std::span<const Window> windows, RecordLevel level) const;
    [[nodiscard]] std::vector<WindowResult> collect(PendingPtr pending) const;

    /// For a window that alone does not fit into the GPU's memory: tries its first half, then a quarter, and
    /// so on.
    struct MemoryAdvice {
        std::int64_t fits = 0; ///< tokens that fit; 0: not even two
        std::int64_t needed =
            0; ///< estimated bytes of the whole window, scaled from the shorter one; 0: unknown
    };
    [[nodiscard]] MemoryAdvice advise(const Window& window, RecordLevel level) const;

    /// All results for one rectangular batch of ids [B][T], named as in the reference files: `logits`
    /// [B,T,V], `nll` [B,T-1], `steps`, `flops`, `hidden.step{k}`, `embeds.step{k}`,
    /// `expected_embedding.step{k}`, `layer_output.step{k}.layer{l}`, signals as `signal.NAME`. Steps that
    /// did not run are NaN, or did_not_run in whole numbers. \p numbers: of the sequences in the run, if a
    /// halting rule needs places; empty: 0, 1, ...
    [[nodiscard]] ArrayMap inspect_batch(const std::vector<std::vector<std::int32_t>>& ids,
                                         const std::vector<std::int64_t>& numbers = {}) const;

    /// Continues prompts. The result of a prompt does not depend on the others. MemoryExhausted if a GPU has
    /// too little memory for all. \p on_token, if given, is called for every new token with the number of its
    /// prompt in \p prompts and the read-out that chose it, with NLL and rank of the token; returning false
    /// stops. Returns the new ids, prompts excluded.
    using TokenCallback =
        std::function<bool(std::int64_t sequence, std::int32_t id, const WindowResult& readout)>;
    [[nodiscard]] std::vector<std::vector<std::int32_t>>
    generate(const std::vector<std::vector<std::int32_t>>& prompts, const GenerateOptions& options,
             RecordLevel level = RecordLevel::basic, const TokenCallback& on_token = {}) const;

private:
    struct Impl;
    explicit Engine(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

/// The rule that a policy means on an engine: `learned` is the model's own rule (nullptr), `full` never
/// halts. On a vanilla model any policy but `learned` makes the blocks the steps (layer_steps.h). Errors as
/// policy_halting.
std::shared_ptr<const HaltingRule> rule_of(const PolicySpec& spec, Engine& engine);

} // namespace ponderscope
