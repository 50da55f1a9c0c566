// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/dtype.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ponderscope {

/// Sums over the tokens of a sequence or a run. The writer computes them when sequences end.
struct TokenTotals {
    std::int64_t tokens = 0;
    std::int64_t scored_tokens = 0; ///< tokens with a target
    double nll_sum = 0;             ///< nats, over the scored tokens
    double steps_sum = 0;           ///< over the scored tokens
    double flops_sum = 0;           ///< over all tokens
    std::int64_t scored_bytes = 0;  ///< bytes of text that the scored targets cover, for bits per byte

    TokenTotals& operator+=(const TokenTotals& other);
};

/// One run: a checkpoint, a method and a policy over a set of sequences. Most members of the structs below
/// have the name of their column in the trace (rows.h).
struct RunInfo : TokenTotals {
    std::int64_t id = 0;    ///< the writer assigns it; unique in the file, starts at 1
    std::string name;       ///< unique in the file; the part after '#' in TRACE.ponder#RUN
    std::string checkpoint; ///< folder as the user gave it
    std::string checkpoint_digest;
    std::string architecture;
    std::string method;
    std::string depth_mixing;
    std::string policy;       ///< "learned", "full", "calm_margin:lambda=0.9"
    std::string scoring;      ///< "exact", "jacobi:3"
    std::string device;       ///< "cpu", "cuda:0 NVIDIA H200"
    std::string dtype;        ///< "float32"
    std::string record_level; ///< "basic", "steps"
    std::string text_source;
    std::string text_digest;      ///< SHA-256 of the text; without a text, of the ids (little-endian int32)
    std::string tokenizer_digest; ///< empty without a tokenizer
    std::int64_t tokenizer = 0;   ///< key into the table vocabulary; the writer assigns it
    std::string versions;         ///< JSON: ponderscope, torch, sqlite
    std::string config;           ///< config.json, unchanged
    std::string notices;          ///< JSON array of notices, as sentences
    /// JSON of core/policy/flops_model.h, to compute the cost of other step counts. Empty: unknown.
    std::string flops_model;
    /// Meaning of a step: "step" (a pondering step), or "layer" (a block of a vanilla model with its exit).
    std::string step_unit = "step";
    /// JSON of the run's other options and model values (recorded_choices.h): `kv`, `initial_state`,
    /// `threshold` and more. Empty: unknown.
    std::string choices;
    std::uint64_t seed = 0;
    std::int64_t max_steps = 0; ///< K
    std::int64_t layers = 0;
    std::int64_t vocab_size = 0;
    std::int64_t context = 0; ///< tokens per window
    std::int64_t stride = 0;
    std::string started;        ///< ISO 8601, UTC
    double seconds = 0;         ///< wall time so far
    bool complete = false;      ///< false: ended early, or still recording
    std::int64_t sequences = 0; ///< begun sequences; the writer counts them
};

struct SequenceInfo : TokenTotals {
    std::int64_t id = 0; ///< unique in the file
    std::int64_t run = 0;
    std::int64_t number = 0; ///< number in the run, from 0
    std::string title;       ///< file name, or beginning of the prompt
    std::int64_t text_bytes = 0;
    bool complete = false;
    /// The group of the sequence (an author, a source). Statistics treat the sequences of a group as
    /// dependent. Empty: unknown.
    std::string group;
    std::int64_t text_crc32 = -1;    ///< CRC-32 of the text; -1: not stored
    std::int64_t tokens_crc32 = -1;  ///< CRC-32 of the token rows (digests.h); -1: not stored
    std::int64_t joined_number = -1; ///< in a shard: number in the joined run; -1: equal to `number`
};

/// A class ("easy", "a name") for bytes [begin, end) of a sequence's text.
struct TextLabel {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::string name;
};

/// The columns of consecutive tokens; all vectors have the same length. nll, rank, entropy, max_probability
/// and steps of token t describe the prediction of token t+1, which the model makes at token t.
struct TokenColumns {
    std::int64_t first = 0; ///< the first entry's position in the sequence
    std::vector<std::int32_t> id;
    std::vector<std::uint64_t> begin; ///< byte span in the sequence's text; empty spans without a text
    std::vector<std::uint64_t> end;
    std::vector<float> nll;             ///< NLL of the next token, nats; NaN: not scored
    std::vector<float> entropy;         ///< nats; NaN: not read out
    std::vector<float> max_probability; ///< NaN: not read out
    std::vector<std::int32_t> rank;  ///< rank of the next token: 1 + number of larger logits; 0: not scored
    std::vector<std::int32_t> steps; ///< K_t, the last step that ran
    std::vector<std::int64_t> flops;
    [[nodiscard]] std::size_t size() const { return id.size(); }
};

/// A packed array of a signal for consecutive tokens. The first axis is always "token", so that chunks can be
/// joined.
struct SignalChunk {
    std::int64_t first = 0; ///< the first entry's position in the sequence
    DType dtype = DType::f32;
    std::vector<std::int64_t> shape; ///< [tokens, ...], matching SignalInfo::axes
    std::vector<std::byte> data;     ///< row-major, little-endian
};

/// The value of an integer signal with an axis "step" (ranks, token ids) at a step that did not run. Float
/// signals have NaN there. A rank of 0 means that the step ran, but there is no target.
inline constexpr std::int32_t did_not_run = -1;

/// How a signal's values are stored in the file.
enum class SignalStorage : std::uint8_t {
    plain,      ///< unchanged, unless the writer compresses all signals
    compressed, ///< always compressed by zstd
    /// Stored without the zeros at the end of the last axis, so chunks differ in the length of this axis. The
    /// axis counts tokens back from the token itself, so early tokens have few values. A reader pads all
    /// tokens with zeros to the same length.
    trimmed
};

/// Description of a signal. Views read descriptions and know no method, so they show the signals of a new
/// method without changes.
struct SignalInfo {
    std::string name;              ///< "nll", "kl_previous_current", "candidate_ids", "gate", "depth_weights"
    std::vector<std::string> axes; ///< {"token","step"}, {"token","layer","source","head"}
    std::string unit;              ///< "nats", "probability", "" for none
    std::string title;             ///< title for display: "NLL by step"
    std::string description;       ///< meaning of the values; may end with labels (column_labels.h)
    DType dtype = DType::f32;      ///< type of all chunks
    SignalStorage storage = SignalStorage::plain;
    /// true: the method computes the values of all steps in advance, also of steps that do not run. false:
    /// steps that did not run have NaN, or did_not_run in integer signals.
    bool every_step = false;
    /// true: the signal compares the prediction with the next token. Its value without a target is NaN, or 0
    /// in integer signals.
    bool of_target = false;

    [[nodiscard]] const std::string& shown_name() const { return title.empty() ? name : title; }
    [[nodiscard]] bool is_by_step() const {
        return axes.size() == 2 && axes[0] == "token" && axes[1] == "step";
    }
};

/// A fault during the recording, stored in the trace.
struct FaultInfo {
    std::int64_t run = 0;
    std::int64_t sequence = -1; ///< number in the run; -1 = the run itself
    std::string time;           ///< ISO 8601, UTC
    std::string message;        ///< one sentence
};

/// Names of the per-step signals that every method provides (methods.md section 10).
namespace signal {
inline constexpr const char* nll = "nll";
inline constexpr const char* entropy = "entropy";
inline constexpr const char* max_probability = "max_probability";
inline constexpr const char* margin = "margin"; ///< p1 - p2 of the two likeliest tokens
inline constexpr const char* rank = "rank";
inline constexpr const char* argmax = "argmax";
inline constexpr const char* kl_previous_current = "kl_previous_current"; ///< KL(P_{k-1} || P_k), 0 at k = 0
inline constexpr const char* kl_current_previous = "kl_current_previous";
inline constexpr const char* cosine = "cosine"; ///< cosine of h^k and h^{k-1}, 0 at k = 0
inline constexpr const char* latent_difference = "latent_difference";
inline constexpr const char* state_norm = "state_norm";       ///< |h^k|
inline constexpr const char* update_cosine = "update_cosine"; ///< cosine of two successive h^k - h^{k-1}
inline constexpr const char* acceleration = "acceleration"; ///< relative change of h^k - h^{k-1}; 0 at k < 2
inline constexpr const char* prediction_depth = "prediction_depth";               ///< i32 [token]
inline constexpr const char* answer_flips = "answer_flips";                       ///< i32 [token]
inline constexpr const char* candidate_ids = "candidate_ids";                     ///< i32 [token, step, 10]
inline constexpr const char* candidate_probabilities = "candidate_probabilities"; ///< f16 or f32, same shape
// For generated tokens, [token, candidate]: the likeliest ids and the chosen id, with their probabilities
// before and after temperature, top-k and top-p.
inline constexpr const char* sampling_ids = "sampling_ids"; ///< i32; did_not_run if no new token follows
inline constexpr const char* sampling_before = "sampling_before";
inline constexpr const char* sampling_after = "sampling_after"; ///< 0: cut off by top-k or top-p
inline constexpr const char* gate = "gate";
inline constexpr const char* halting_mass = "halting_mass";
inline constexpr const char* expected_nll = "expected_nll"; ///< [token], NLL of the expected logits
inline constexpr const char* reach = "reach";               ///< product of adaptive latent CoT's gates so far
inline constexpr const char* jacobi_difference = "jacobi_difference"; ///< [token, iteration]
inline constexpr const char* attention = "attention"; ///< fp16 [token, step, layer, head, back], on request
inline constexpr const char* state = "state";         ///< fp16 [token, step(, layer), dim], on request
// Read-outs of every layer, [token, step, layer], on request.
inline constexpr const char* layer_nll = "layer_nll";
inline constexpr const char* layer_entropy = "layer_entropy";
inline constexpr const char* layer_max_probability = "layer_max_probability";
inline constexpr const char* layer_rank = "layer_rank";     ///< i32
inline constexpr const char* layer_argmax = "layer_argmax"; ///< i32
// Signals of mixtures of experts, [token, step, layer(, choice or expert)], fp16, recorded on request.
inline constexpr const char* router_experts = "router_experts"; ///< i8 or i16 [..., choice]
inline constexpr const char* router_weights = "router_weights"; ///< [..., choice]
inline constexpr const char* router_entropy = "router_entropy";
inline constexpr const char* router_mass = "router_mass"; ///< sum of the probabilities of the chosen experts
inline constexpr const char* router_margin = "router_margin"; ///< p_k - p_(k+1) for k chosen experts
inline constexpr const char* router_probabilities = "router_probabilities"; ///< [..., expert]
// Signals of depth mixing, fp16, recorded without a request (methods.md section 3).
inline constexpr const char* depth_weights = "depth_weights";     ///< [token, step, layer, source, head]
inline constexpr const char* mhc_read = "mhc_read";               ///< [token, step, sublayer, stream]
inline constexpr const char* mhc_write = "mhc_write";             ///< [token, step, sublayer, stream]
inline constexpr const char* attnres_weights = "attnres_weights"; ///< [token, step, sublayer, source]
} // namespace signal

/// A training without its curves.
struct TrainingInfo {
    std::int64_t id = 0; ///< the writer assigns it; unique in the file, starts at 1
    std::string name;    ///< unique in the file
    std::string description;
    std::string architecture;
    std::string method;
    std::string depth_mixing;
    std::string recipe;          ///< JSON: the recipe with its defaults
    std::string config;          ///< config.json of the model
    std::string device;          ///< "cpu", "cuda:0"
    std::string precision;       ///< of matrix products: "float32", "bfloat16"
    std::string versions;        ///< JSON: ponderscope, torch
    std::int64_t parameters = 0; ///< number of weights; a tied table counts once
    std::int64_t max_steps = 0;  ///< K; 0: the model has no pondering steps
    std::int64_t planned_steps = 0;
    std::int64_t planned_tokens = 0;
    std::string started; ///< ISO 8601, UTC
    // The writer updates these members with every point:
    std::int64_t step = 0;
    std::int64_t tokens = 0;
    double seconds = 0;
    bool complete = false; ///< false: stopped, or still training
    std::string fault;     ///< why the training ended early, one sentence; empty: it did not
};

/// Description of a curve. Views read descriptions, so they show new quantities of a trace without changes.
struct TrainingQuantity {
    std::string name; ///< letters, digits and underscores
    std::string axis; ///< axis of TrainingValue::place, such as "step" (of pondering); empty: no axis
    std::string unit; ///< "nats"; empty for none
    std::string title;
    std::string description; ///< one sentence
};

/// The progress of a training at one of its points.
struct TrainingMoment {
    std::int64_t step = 0;   ///< optimiser steps so far
    std::int64_t tokens = 0; ///< training tokens so far
    double seconds = 0;      ///< training time so far, without interruptions
};

struct TrainingValue {
    std::string quantity;
    std::int64_t place = 0; ///< index on the quantity's axis; 0 without an axis
    double value = 0;
};

/// The points of one quantity at one place of its axis, in the order of steps. All columns have the same
/// length.
struct TrainingCurve {
    std::string quantity;
    std::int64_t place = 0;
    std::vector<std::int64_t> step;
    std::vector<std::int64_t> tokens;
    std::vector<double> seconds;
    std::vector<double> value;
    [[nodiscard]] std::size_t size() const { return step.size(); }
};

/// Names of quantities that `ponderscope train` writes.
namespace training_quantity {
inline constexpr const char* loss = "loss";
inline constexpr const char* learning_rate = "learning_rate";
inline constexpr const char* gradient_norm = "gradient_norm";
inline constexpr const char* penalty = "penalty";
inline constexpr const char* mean_steps = "mean_steps";
inline constexpr const char* held_out_nll = "held_out_nll";
inline constexpr const char* held_out_mean_steps = "held_out_mean_steps";
inline constexpr const char* held_out_gate = "held_out_gate";               ///< axis "step"
inline constexpr const char* held_out_steps_share = "held_out_steps_share"; ///< axis "step"
} // namespace training_quantity

/// Upper bound (exclusive) for a quantity's places.
inline constexpr std::int64_t max_training_places = 4096;

} // namespace ponderscope
