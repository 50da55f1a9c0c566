// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/notice.h"
#include "core/base/progress.h"
#include "core/checkpoint/checkpoint.h"
#include "core/model/precision.h"
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
    /// "cpu", "cuda", "cuda:N" or "auto" (device_for in core/model/device.h). InputError: no such device.
    std::string device = "cpu";
    Precision precision = Precision::float32;
    ProgressSink progress = {};
    std::stop_token stop = {};
};

/// A dense row-major array for inspect_batch().
struct NamedArray {
    DType dtype = DType::f32;
    std::vector<std::int64_t> shape;
    std::vector<float> floats;          ///< the values if dtype is f32
    std::vector<std::int64_t> integers; ///< the values if dtype is i64
};
using ArrayMap = std::map<std::string, NamedArray>;

/// The numbers of captured and of replayed steps in a generation, and why a capture failed.
struct GraphUse {
    std::int64_t captures = 0;
    std::int64_t replays = 0;
    std::string failure; ///< empty: no capture failed. After a failure, no step is captured
};

struct GenerateOptions {
    std::int64_t max_new_tokens = 0;
    double temperature = 0; ///< 0: greedy, with the lowest id among equal logits
    std::int64_t top_k = 0; ///< number of most likely tokens to sample from; 0: all
    double top_p = 1;       ///< nucleus (top-p) sampling among these tokens; 1: all
    /// A random number depends on the seed, the sequence's number in the run and the position (token_draw).
    /// The composition of batches has no effect.
    std::uint64_t seed = 0;
    std::int64_t first_sequence = 0; ///< number of the first prompt in the run; the other prompts follow
    std::vector<std::int64_t> numbers = {}; ///< the prompts' numbers in the run, if not consecutive
    std::vector<std::int64_t> stop_ids = {};
    /// Called after every new token, with the prompt's index in the call and this prompt's new tokens so far.
    /// If it returns true, the prompt ends. May be empty.
    std::function<bool(std::size_t prompt, std::span<const std::int32_t> fresh)> is_finished = {};
    bool reports_sampling = false; ///< on_token of generate() also gets sampling_signals()
    bool use_cache = true; ///< false: computes the whole sequence again for each token, as a reference
    /// On a GPU, if no token can stop: capture a step once as a graph and replay it (decoder.h). False:
    /// launch the operations of each step.
    bool repeat_steps = true;
    GraphUse* graphs = nullptr; ///< receives counts and failures of captures; must outlive the call
    std::stop_token stop = {};  ///< a stop request ends the generation; the tokens so far are returned
    ProgressSink progress = {}; ///< reports every token of the longest continuation
};

/// The signals that GenerateOptions::reports_sampling adds to a read-out.
std::vector<SignalInfo> sampling_signals();

struct PolicySpec;

/// A model on a device, ready to run: backbone, depth mixing, method. This header does not include torch, so
/// that its users compile without torch. One thread at a time may use an engine.
class Engine {
public:
    /// Loads a model after checking all weights against the config. InputError, EnvironmentError.
    static Engine load(const Checkpoint& checkpoint, const LoadOptions& options = {});

    Engine(Engine&&) noexcept;
    Engine& operator=(Engine&&) noexcept;
    ~Engine();

    [[nodiscard]] const ModelConfig& config() const;
    [[nodiscard]] std::string device_name() const; ///< "cpu", "cuda:0 NVIDIA H200"
    [[nodiscard]] std::string dtype() const;       ///< "float32", "tf32", "bfloat16" or "float16"
    /// The plan of all later runs. The default plan has the method's own choices and the config's number of
    /// Jacobi refreshes. A public PonderLM-2 config without this number gets 3 refreshes, any other config
    /// exact scoring. Generation is always exact and records neither attention nor states.
    [[nodiscard]] const RunPlan& plan() const;
    /// Replaces the plan. InputError: the model or the rest of the plan excludes a choice. After an error the
    /// old plan stays.
    void use(RunPlan plan);
    /// Replaces one choice of the plan: `engine.choose(&RunPlan::kv, KvPolicy::full)`.
    template <typename T>
    void choose(T RunPlan::*choice, std::type_identity_t<T> value) {
        RunPlan changed = plan();
        changed.*choice = std::move(value);
        use(std::move(changed));
    }
    // The plan as texts, which are stored with a run.
    [[nodiscard]] std::string policy() const;             ///< "learned", "full", "fixed:n=2"
    [[nodiscard]] std::string scoring() const;            ///< "exact", "jacobi:3"
    [[nodiscard]] std::string kv() const;                 ///< "full", ...; empty: not applicable
    [[nodiscard]] std::string start_state() const;        ///< empty: the model has no start state
    [[nodiscard]] std::string start_state_digest() const; ///< digest of the states in a file; empty: no file
    /// InputError: the plan records attention, but runs of this level compute tokens one after the other.
    void check_attention(RecordLevel level) const;
    /// Bytes per token of recorded states, layer read-outs and routers; 0: none are recorded.
    [[nodiscard]] std::int64_t token_bytes() const;
    /// Memory in bytes per token for these records during the computation.
    [[nodiscard]] std::int64_t token_room() const;
    /// Replaces computed states by \p patches in later calls of score and inspect_batch. Empty: no
    /// replacement. Window::sequence identifies a sequence. InputError: a plan with a number of refreshes, an
    /// unknown location, or a state with another width, NaN or infinity.
    void use_patches(std::vector<StatePatch> patches);
    /// The states at these locations. Computes all windows in one batch, without patches. A state is empty if
    /// its token is not read out or did not run the step. InputError: an unknown location. MemoryExhausted:
    /// compute fewer windows together.
    [[nodiscard]] std::vector<std::vector<float>> states_at(std::span<const Window> windows,
                                                            std::span<const StatePlace> places) const;
    /// InputError: the model does not have this step or layer, or \p patched is true and the model allows no
    /// patch at this location.
    void check_place(const StatePlace& place, bool patched) const;
    /// Number of elements of a state after this layer.
    [[nodiscard]] std::int64_t state_width(std::int64_t layer) const;
    /// Bytes of the recorded attention weights per pair of tokens: all steps, layers and heads; 0: none.
    [[nodiscard]] std::int64_t attention_pair_bytes() const;
    [[nodiscard]] Notices notices() const;        ///< about weights and precision
    [[nodiscard]] std::int64_t max_steps() const; ///< K
    /// The FLOPs model (core/policy/flops_model.h) as JSON, which is stored with a run.
    [[nodiscard]] std::string flops_model() const;
    /// The signals that a run of this level records, in a fixed order.
    [[nodiscard]] std::vector<SignalInfo> signals(RecordLevel level) const;
    /// signals(level), each with its bytes per token before compression; for attention, its bytes per key.
    [[nodiscard]] std::vector<std::pair<SignalInfo, std::int64_t>> signal_bytes(RecordLevel level) const;

    /// Scores a batch of windows of any lengths. The last bits of a result depend on the batch
    /// (core/README.md). MemoryExhausted: a GPU has too little memory for the batch.
    [[nodiscard]] std::vector<WindowResult> score(std::span<const Window> windows, RecordLevel level) const;

    /// Returns the results of score(). Neighbouring windows that begin with the same tokens compute these
    /// tokens once. Windows share no tokens in these cases: results depend on the sequence's number or
    /// length; the plan has a prefix or KvPolicy::skip, or iterates() is true; there are patches; attention,
    /// states, layers or experts are recorded.
    [[nodiscard]] std::vector<WindowResult> score_sharing(std::span<const Window> windows,
                                                          RecordLevel level) const;

    /// The two halves of score(), so that a GPU computes a batch while the previous results are copied.
    /// submit queues the work and returns. collect waits for the results. At most two batches may be in
    /// flight.
    class Pending;
    using PendingPtr = std::shared_ptr<Pending>; ///< Pending is in engine_impl.h
    [[nodiscard]] PendingPtr submit(std::span<const Window> windows, RecordLevel level) const;
    [[nodiscard]] std::vector<WindowResult> collect(PendingPtr pending) const;

    /// All results for one rectangular batch of ids [B][T], with the names used in tests/golden: `logits`
    /// [B,T,V], `nll` [B,T-1], `steps`, `flops`, `hidden.step{k}`, `embeds.step{k}`,
    /// `expected_embedding.step{k}`, `layer_output.step{k}.layer{l}`, and signals as `signal.NAME`. Values of
    /// steps that did not run are NaN, or did_not_run in integer arrays. \p numbers: the sequences' numbers
    /// in the run (Window::sequence); empty: 0, 1, ...
    [[nodiscard]] ArrayMap inspect_batch(const std::vector<std::vector<std::int32_t>>& ids,
                                         const std::vector<std::int64_t>& numbers = {}) const;

    /// Continues prompts. The result of a prompt does not depend on other prompts. MemoryExhausted: a GPU has
    /// too little memory for all prompts. \p on_token, if set, is called for every new token. Its arguments
    /// are the prompt's index in \p prompts, the new id, and the read-out that chose the token, with the
    /// token's NLL and rank. If \p on_token returns false, the generation ends. Returns the new ids without
    /// the prompts.
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

/// The halting rule of a policy on an engine: `learned` is the model's own rule (nullptr), `full` never
/// halts. On a vanilla model any policy but `learned` turns the blocks into steps (layer_steps.h). Throws the
/// errors of policy_halting.
std::shared_ptr<const HaltingRule> rule_of(const PolicySpec& spec, Engine& engine);

} // namespace ponderscope
