// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ponderscope {

/// `model_type` of a Hugging Face config.json: the lines of architectures.def.
enum class Architecture : std::uint8_t {
#define PONDERSCOPE_ARCHITECTURE(name) name,
#include "core/checkpoint/architectures.def"
#undef PONDERSCOPE_ARCHITECTURE
};

enum class NormKind : std::uint8_t {
    layer_norm,
    rms_norm,
    unit ///< x / sqrt(sum of squares + eps): length 1
};

/// How a norm's stored weight w is meant.
enum class NormWeight : std::uint8_t {
    as_stored,
    one_plus, ///< the factor is 1 + w (Gemma)
    none      ///< the norm has no weight
};

enum class Activation : std::uint8_t {
    gelu,
    gelu_tanh,
    quick_gelu,
    relu,
    relu_squared,
    half_relu_squared, ///< relu(x)² / 2, of Parcae
    silu,
    sigmoid,
    tanh,
    mish,
    linear
};

/// Rotary position embedding. Kinds and formulas as in transformers' modeling_rope_utils.
struct RopeConfig {
    enum class Kind : std::uint8_t { none, standard, linear, dynamic, llama3, yarn, longrope };
    Kind kind = Kind::none;
    double theta = 10000.0;
    std::int64_t rotary_dims = 0; ///< leading elements of a head that rotate; the rest pass through
    bool pairs = false;           ///< neighbours (2i, 2i + 1) rotate together, not halves (i, i + dims / 2)
    double factor = 1.0;
    std::int64_t original_max_positions = 0;
    double low_freq_factor = 1.0;           ///< llama3
    double high_freq_factor = 4.0;          ///< llama3
    std::optional<double> attention_factor; ///< yarn
    double beta_fast = 32.0;                ///< yarn
    double beta_slow = 1.0;                 ///< yarn
    std::optional<double> mscale;           ///< yarn
    std::optional<double> mscale_all_dim;   ///< yarn
    bool truncate = true;                   ///< yarn
    std::vector<double> short_factor;       ///< longrope, rotary_dims / 2: up to original_max_positions
    std::vector<double> long_factor;        ///< longrope, rotary_dims / 2: longer sequences
    bool reversed = false;                  ///< turns the other way round (nanochat)

    /// Sequences up to this length share one table of angles. A longer one has a table of its own.
    [[nodiscard]] std::int64_t longest_shared(std::int64_t max_positions) const {
        return kind == Kind::dynamic    ? max_positions
               : kind == Kind::longrope ? original_max_positions
                                        : std::numeric_limits<std::int64_t>::max();
    }
    [[nodiscard]] bool depends_on_length() const { return kind == Kind::dynamic || kind == Kind::longrope; }
    bool operator==(const RopeConfig&) const = default;
};

/// Which rotation a layer uses: ModelConfig::rope, ModelConfig::local_rope, or none.
enum class LayerRope : std::uint8_t { main, local, none };

/// Numbers by which families of Llama's kind differ. The defaults change nothing.
struct ScaleConfig {
    double embedding = 1.0;              ///< what an embedding is multiplied with
    std::optional<double> attention;     ///< what q·k is multiplied with; absent: head_dim^(-1/2)
    double attention_softcap = 0.0;      ///< c of c·tanh(score / c), before the mask; 0: none
    double residual = 1.0;               ///< what a sublayer's output is multiplied with before the sum
    double logits = 1.0;                 ///< what logits are multiplied with
    std::optional<double> logit_softcap; ///< c of c·tanh(logits / c)
    std::optional<double> qkv_limit;     ///< q, k and v are clipped to ± this, after their norms
};

/// The recurrence in the token dimension. Names are those of the command line, the trace and our config
/// section: the lines of methods.def.
enum class MethodKind : std::uint8_t {
#define PONDERSCOPE_METHOD(name) name,
#include "core/checkpoint/methods/methods.def"
#undef PONDERSCOPE_METHOD
};

enum class EmbedScale : std::uint8_t { none, sqrt_d, sqrt_2_5_d };
enum class Remainder : std::uint8_t { last, drop };

/// Everything a method needs to know, whichever public key it came from (methods.md sections 4 to 8).
struct PonderConfig {
    MethodKind method = MethodKind::vanilla;
    std::int64_t max_steps = 0; ///< K: further steps after step 0
    /// tau. 0: never halt. ouro: infinity: never halt. tah: another step runs if the gate exceeds tau.
    double threshold = 1e-4;
    EmbedScale embed_scale = EmbedScale::none;
    bool multiply_start = false; ///< E_0 times K (their `mutiply_pondering_steps`)
    std::int64_t top_k = 0;      ///< 0 = the whole vocabulary
    double temperature = 1.0;    ///< of the mixture's softmax, PonderLM
    Remainder remainder = Remainder::last;
    bool residual_interpolated_embeds = false;     ///< ponderlm_reset
    bool interpolation = false;                    ///< ponderlm2
    bool interpolation_use_topk = false;           ///< ponderlm2
    std::int64_t interpolation_topk = 100;         ///< ponderlm2
    std::optional<std::int64_t> jacobi_iterations; ///< passes of Jacobi scoring; absent: exact scoring
    std::int64_t pause_token_id = 50288;           ///< pause
    bool loop_final_norm_each_pass = false;        ///< nanbeige, ouro
    /// Numbers of a single method, by the names of its own file.
    std::map<std::string, double> own;
};

/// Stacks whose steps cover the middle only (methods-released.md section 1): the prelude runs once a token
/// and its output enters every step, the coda belongs to the read-out. Prelude, core and coda share one
/// numbering of blocks, in this order.
struct SandwichConfig {
    std::int64_t prelude = 0, coda = 0; ///< blocks before and after those of the steps
    enum class Injection : std::uint8_t { linear, diagonal, add };
    Injection injection = Injection::linear; ///< how the state and the prelude's output become a step's input
    bool injection_bias = false;
    bool norm_before_coda = false; ///< Huginn: the final norm is applied before the coda, too
    bool prelude_norm = false;     ///< Parcae
    /// The start state: normal with this deviation, cut at three deviations, times a scale. 0: zeros.
    double state_deviation = 0.0;
    double state_scale = 1.0;
};

/// Kinds of blocks in Huginn's family (methods-released.md sections 3 and 5).
enum class RavenBlock : std::uint8_t { sandwich, llama, olmo2 };

/// What only released recurrent-depth models have, beside their method.
struct ReleasedConfig {
    RavenBlock block = RavenBlock::sandwich; ///< huginn_raven
    bool qk_bias = false;                    ///< huginn_raven, parcae
    bool gated_mlp = true;                   ///< parcae: GatedMLP, else BaseMLP
    std::int64_t core_intermediate_size = 0; ///< parcae: of the MLPs of the steps' blocks
    std::vector<bool> value_embeddings;      ///< parcae, per block: whether it has value embeddings
    bool positions_end = false;              ///< there are angles for max_positions tokens and no more
    double update_rate = 1.0;                ///< dory: factor on the stored update rates (lambda_1, lambda_2)
    double deviation = 1.0;                  ///< dory: initial deviation; stored scales are divided by it
    bool last_loop_kv = false; ///< dory: while decoding, earlier tokens are seen as their last loop left them
    std::int64_t low_passes = 0;    ///< hrm_text: passes of the low stack in a cycle
    bool prefix_lm = false;         ///< hrm_text: trained to see its prompt in both directions
    bool split_projections = false; ///< hrm_text: q, k, v and gates are tensors of their own in the file
};

/// Think-at-Hard (methods-released.md section 6): the gate over several layers, and the adapters of later
/// iterations.
struct ThinkAtHardConfig {
    std::vector<std::int64_t> gate_layers; ///< 0: the slot's input; i: after block i - 1; L: after the norm
    std::vector<std::int64_t> gate_widths; ///< of the gate's blocks
    std::int64_t gate_expansion = 4;
    std::int64_t gate_logits = 100; ///< number of largest logits that the gate reads
    bool normalise_input = false;
    bool threshold_in_file = false; ///< the gate's file has it, not tah_config.json
    std::int64_t lora_rank = 0;
    double lora_alpha = 0;
    std::vector<std::string> adapted; ///< "model.layers.0.self_attn.q_proj", ...: what has an adapter
};

/// Mixtures of experts: what is in the place of some layers' MLPs.
struct ExpertsConfig {
    std::int64_t count = 0;             ///< E; 0: the model has none
    std::int64_t chosen = 0;            ///< k
    std::int64_t intermediate_size = 0; ///< m, of one expert
    bool renormed = false;              ///< the weights of the chosen add up to 1
    bool clamped = false;               ///< gpt_oss: biases, gate and up interleaved and clamped
    double alpha = 1.702;               ///< gpt_oss: of the gate's sigmoid
    double limit = 7.0;                 ///< gpt_oss: of gate and up
    std::vector<std::int64_t> layers;   ///< the layers that have them, ascending
};

enum class DepthMixing : std::uint8_t { none, depth_attention, denseformer, attnres, mhc };

/// A source of Depth-Attention that is left out, as an intervention: the other weights add up to 1 without
/// it.
struct DepthAblation {
    std::int64_t source = 0;
    std::int64_t layer = -1; ///< the layer that does without it; -1: all
};

struct DepthMixingConfig {
    DepthMixing kind = DepthMixing::none;
    std::int64_t stride = 1;
    std::int64_t recent_window = 0;
    /// There are q_norm and k_norm. The authors' Llama has them also if nothing is mixed.
    bool use_qk_norm = false;
    bool key_norm_after_rope = false;
    std::int64_t streams = 4;             ///< mhc
    std::int64_t sinkhorn_iters = 20;     ///< mhc
    std::int64_t block_size = 12;         ///< attnres, in sublayers
    std::int64_t dilation = 1;            ///< denseformer
    std::int64_t period = 1;              ///< denseformer
    std::vector<DepthAblation> ablations; ///< depth_attention; never from config.json
};

/// config.json as one typed structure: the data of a backbone, with the defaults of transformers'
/// configuration classes. Sizes are elements; every number has been checked to be positive (norm_eps: not
/// negative), finite in fp32 and small enough to multiply without overflow.
struct ModelConfig {
    Architecture architecture = Architecture::gpt_neox;
    std::int64_t vocab_size = 0;      ///< rows of the embedding, padding included
    std::int64_t hidden_size = 0;     ///< d
    std::int64_t layers = 0;          ///< L
    std::int64_t layers_left_out = 0; ///< layers of the file after the first L (--layers)
    std::int64_t query_heads = 0;     ///< n_q
    std::int64_t kv_heads = 0;        ///< g
    std::int64_t head_dim = 0;        ///< d_h
    std::int64_t intermediate_size = 0;
    std::int64_t max_positions = 0;
    NormKind norm = NormKind::layer_norm;
    NormWeight norm_weight = NormWeight::as_stored;
    double norm_eps = 1e-5;
    Activation activation = Activation::gelu;
    bool parallel_residual = false;
    bool attention_bias = false;
    bool mlp_bias = false;
    bool tied_embeddings = false;
    bool qk_norm = false;           ///< norms on q and k before RoPE, over each head
    bool qk_norm_all_heads = false; ///< with qk_norm: over all heads together
    RopeConfig rope;
    RopeConfig local_rope;             ///< of layers with LayerRope::local; rotary_dims as in `rope`
    std::vector<LayerRope> layer_rope; ///< one entry per layer; empty: `rope` in every layer
    ScaleConfig scales;
    std::vector<std::int64_t> sliding_windows; ///< a layer; 0 = none
    /// Width of embeddings and of a slot's input and state: opt's word_embed_proj_dim, otherwise hidden_size.
    std::int64_t embed_dim = 0;
    bool pre_norm = true;                         ///< opt: do_layer_norm_before
    bool remove_final_norm = false;               ///< opt
    bool scale_attn_weights = true;               ///< gpt2
    bool scale_attn_by_inverse_layer_idx = false; ///< gpt2
    SandwichConfig sandwich;
    ReleasedConfig released;
    ThinkAtHardConfig tah;
    ExpertsConfig experts;
    PonderConfig ponder;
    DepthMixingConfig depth;
    /// Files of the folder, beside config.json and the weights, that belong to the model.
    struct Companion {
        std::string file;   ///< relative; "/" between parts
        std::string prefix; ///< before the names of its tensors; empty: the file has no weights
    };
    std::vector<Companion> companions;
    std::optional<std::string> declared_dtype; ///< torch_dtype / dtype, as text
    std::optional<std::int64_t> bos_token_id;
    std::vector<std::int64_t> eos_token_ids;

    /// One entry: the method of `ponder`. More: the keys fit several methods, `ponder` holds the first, and
    /// --method must choose before anything runs (methods.md section 4).
    std::vector<MethodKind> candidate_methods;
    /// Sentences for the user: unknown keys, and choices that the config leaves open.
    std::vector<std::string> notices;

    /// Whether the steps read the prelude's output (or the embedding, without a prelude) again and again.
    [[nodiscard]] bool recurs() const {
        return architecture == Architecture::huginn_raven || architecture == Architecture::parcae ||
               architecture == Architecture::dory;
    }
    /// Whether the steps start from a state that is drawn or set (--initial-state).
    [[nodiscard]] bool has_start_state() const { return recurs() && architecture != Architecture::dory; }
    /// Whether there is a state before step 0 to compare step 0 with.
    [[nodiscard]] bool has_state_before() const { return recurs() || architecture == Architecture::hrm_text; }
    [[nodiscard]] std::int64_t core_begin() const { return sandwich.prelude; }
    [[nodiscard]] std::int64_t core_end() const { return layers - sandwich.coda; }
};

/// The prefix of the tensor names of a block in a stack that recurs: "transformer.core_block.0.". \p block is
/// its number over prelude, core and coda.
std::string sandwich_block_name(const ModelConfig& config, std::int64_t block);

/// Names of the tensors beside a config, for configs whose meaning depends on them. Read only for
/// architectures whose blocks differ by tensors.
using TensorNames = std::function<std::vector<std::string>()>;

/// Reads and validates config.json. InputError names the path, the key and the value. \p method (--method)
/// overrides the method of the config. A flag in the config that switches this method off still
/// applies, as in the authors' code: the method becomes vanilla, with a notice. \p steps: recurrences
/// (passes) in the place of the config's number; InputError for a method whose steps have parameters of
/// their own.
ModelConfig read_model_config(const std::filesystem::path& config_json,
                              std::optional<MethodKind> method = std::nullopt,
                              std::optional<std::int64_t> steps = std::nullopt,
                              const TensorNames& tensors = {});

/// Keeps the first \p layers of a plain stack and leaves out the rest of the file. InputError if the model
/// has fewer layers, if its stack has several parts, or if tensors of its method or mixture depend on the
/// number of layers.
void keep_first_layers(ModelConfig& config, std::int64_t layers);

std::string to_string(Architecture architecture); ///< "gpt_neox"
std::string to_string(Activation activation);     ///< "gelu_tanh"
std::string to_string(MethodKind method);         ///< "ponderlm"
std::string to_string(DepthMixing mixing);        ///< "depth_attention"
std::string to_string(RopeConfig::Kind kind);     ///< "llama3", as rope_type; "default" without scaling
std::optional<MethodKind> method_from_string(const std::string& name);

} // namespace ponderscope
