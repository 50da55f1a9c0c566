// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/notice.h"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ponderscope {

/// `model_type` of a Hugging Face config.json. Each value is a line of architectures.def.
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

/// How a norm uses its stored weight w.
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
    half_relu_squared, ///< relu(x)² / 2 (Parcae)
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
    std::int64_t rotary_dims = 0; ///< number of rotated elements, at the start of a head
    bool pairs = false;           ///< rotates pairs (2i, 2i + 1); false: pairs (i, i + dims / 2)
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
    std::vector<double> short_factor;       ///< longrope, [rotary_dims / 2], up to original_max_positions
    std::vector<double> long_factor;        ///< longrope, [rotary_dims / 2], for longer sequences
    bool reversed = false;                  ///< rotates in the opposite direction (nanochat)

    /// Sequences up to this length share one table of angles. Each longer length has its own table.
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

/// Factors and limits that differ between Llama-like families. The defaults have no effect.
struct ScaleConfig {
    double embedding = 1.0;              ///< factor on embeddings
    std::optional<double> attention;     ///< factor on q·k; absent: head_dim^(-1/2)
    double attention_softcap = 0.0;      ///< c of c·tanh(score / c), before the mask; 0: none
    double residual = 1.0;               ///< factor on a sublayer's output before the residual sum
    double logits = 1.0;                 ///< factor on logits
    std::optional<double> logit_softcap; ///< c of c·tanh(logits / c)
    std::optional<double> qkv_limit;     ///< q, k and v are clipped to ± this, after their norms
};

/// The method: how the model computes several steps for a token. Each value is a line of methods.def. The
/// command line, the trace and our config section use the same names.
enum class MethodKind : std::uint8_t {
#define PONDERSCOPE_METHOD(name) name,
#include "core/checkpoint/methods/methods.def"
#undef PONDERSCOPE_METHOD
};

enum class EmbedScale : std::uint8_t { none, sqrt_d, sqrt_2_5_d };
enum class Remainder : std::uint8_t { last, drop };

/// The settings of a method, independent of the config key that they came from (methods.md sections 4 to 8).
struct PonderConfig {
    MethodKind method = MethodKind::vanilla;
    std::int64_t max_steps = 0; ///< K: further steps after step 0
    /// tau. 0 (ouro: infinity) means that no token halts. tah: another step runs if the gate exceeds tau.
    double threshold = 1e-4;
    EmbedScale embed_scale = EmbedScale::none;
    bool multiply_start = false; ///< multiplies step 0's input by K (the authors' `mutiply_pondering_steps`)
    std::int64_t top_k = 0;      ///< number of logits in the mixture; 0: the whole vocabulary
    double temperature = 1.0;    ///< temperature of the mixture's softmax (PonderLM)
    Remainder remainder = Remainder::last;
    bool residual_interpolated_embeds = false;     ///< ponderlm_reset
    bool interpolation = false;                    ///< ponderlm2
    bool interpolation_use_topk = false;           ///< ponderlm2
    std::int64_t interpolation_topk = 100;         ///< ponderlm2
    std::optional<std::int64_t> jacobi_iterations; ///< refreshes of Jacobi scoring; absent: exact scoring
    std::int64_t pause_token_id = 50288;           ///< pause
    bool loop_final_norm_each_pass = false;        ///< nanbeige, ouro
    /// Settings of a single method. The method's file in methods/ defines their names.
    std::map<std::string, double> own;
};

/// A stack whose steps run only the middle blocks, the core (methods-released.md section 1). The prelude runs
/// once for each token. Every step reads the prelude's output. The coda runs for the read-out. Prelude, core
/// and coda share one numbering of blocks, in this order.
struct SandwichConfig {
    std::int64_t prelude = 0, coda = 0; ///< number of blocks before and after the core
    enum class Injection : std::uint8_t { linear, diagonal, add };
    Injection injection = Injection::linear; ///< joins the state and the prelude's output
    bool injection_bias = false;
    bool norm_before_coda = false; ///< Huginn: the final norm also runs before the coda
    bool prelude_norm = false;     ///< Parcae
    /// The start state is normal with this standard deviation, truncated at three standard deviations, and
    /// multiplied by state_scale. 0: the start state is zero.
    double state_deviation = 0.0;
    double state_scale = 1.0;
};

/// Kinds of blocks in Huginn's family (methods-released.md sections 3 and 5).
enum class RavenBlock : std::uint8_t { sandwich, llama, olmo2 };

/// Settings of released recurrent-depth models, apart from the settings of their method.
struct ReleasedConfig {
    RavenBlock block = RavenBlock::sandwich; ///< huginn_raven
    bool qk_bias = false;                    ///< huginn_raven, parcae
    bool gated_mlp = true;                   ///< parcae: GatedMLP; false: BaseMLP
    std::int64_t core_intermediate_size = 0; ///< parcae: intermediate size in the core
    std::vector<bool> value_embeddings;      ///< parcae: whether each block has value embeddings
    bool positions_end = false;              ///< only the first max_positions positions have rotation angles
    double update_rate = 1.0;                ///< dory: factor on the stored update rates (lambda_1, lambda_2)
    double deviation = 1.0;         ///< dory: stored scales start at this value, and are divided by it
    bool last_loop_kv = false;      ///< dory: decoding reads the last loop's K and V of earlier tokens
    std::int64_t low_passes = 0;    ///< hrm_text: passes of the low stack in a cycle
    bool prefix_lm = false;         ///< hrm_text: trained with bidirectional attention in the prompt
    bool split_projections = false; ///< hrm_text: the file has separate tensors for q, k, v and gates
};

/// Think-at-Hard (methods-released.md section 6): the gate over several layers, and the adapters of later
/// iterations.
struct ThinkAtHardConfig {
    std::vector<std::int64_t> gate_layers; ///< i = 0: input; i = L: last norm; else: output of block i - 1
    std::vector<std::int64_t> gate_widths; ///< widths of the gate's blocks
    std::int64_t gate_expansion = 4;
    std::int64_t gate_logits = 100; ///< number of largest logits that the gate reads
    bool normalise_input = false;
    bool threshold_in_file = false; ///< the threshold comes from the gate's file, not from tah_config.json
    std::int64_t lora_rank = 0;
    double lora_alpha = 0;
    std::vector<std::string> adapted; ///< modules with adapters: "model.layers.0.self_attn.q_proj", ...
};

/// Mixtures of experts, which replace the MLPs of some layers.
struct ExpertsConfig {
    std::int64_t count = 0;             ///< E; 0: the model has no experts
    std::int64_t chosen = 0;            ///< k
    std::int64_t intermediate_size = 0; ///< m: intermediate size of one expert
    bool renormed = false;              ///< the weights of the chosen experts are rescaled to the sum 1
    bool clamped = false;               ///< gpt_oss: has biases; gate and up are interleaved and clamped
    double alpha = 1.702;               ///< gpt_oss: factor in the gate's sigmoid
    double limit = 7.0;                 ///< gpt_oss: limit of gate and up
    std::vector<std::int64_t> layers;   ///< the layers with experts, ascending
};

enum class DepthMixing : std::uint8_t { none, depth_attention, denseformer, attnres, mhc };

/// An intervention: Depth-Attention without one of its sources. The remaining weights are rescaled to the sum
/// 1.
struct DepthAblation {
    std::int64_t source = 0;
    std::int64_t layer = -1; ///< the layer without the source; -1: all layers
};

struct DepthMixingConfig {
    DepthMixing kind = DepthMixing::none;
    std::int64_t stride = 1;        ///< every layer mixes the earlier layers 0, stride, 2 * stride, ...
    std::int64_t recent_window = 0; ///< every layer also mixes this many layers directly before it
    /// The layers have q_norm and k_norm. Depth-Attention's Llama may have them without depth mixing.
    bool use_qk_norm = false;
    bool key_norm_after_rope = false;
    std::int64_t streams = 4;             ///< mhc
    std::int64_t sinkhorn_iters = 20;     ///< mhc
    std::int64_t block_size = 12;         ///< attnres, in sublayers
    std::int64_t dilation = 1;            ///< denseformer
    std::int64_t period = 1;              ///< denseformer
    std::vector<DepthAblation> ablations; ///< depth_attention; never from config.json
};

/// The typed contents of config.json, with the defaults of transformers' configuration classes. Sizes count
/// elements. Every number was checked: positive (norm_eps: not negative), finite in fp32, and small enough to
/// multiply without overflow.
struct ModelConfig {
    Architecture architecture = Architecture::gpt_neox;
    std::int64_t vocab_size = 0;      ///< rows of the embedding, including padding
    std::int64_t hidden_size = 0;     ///< d
    std::int64_t layers = 0;          ///< L
    std::int64_t layers_left_out = 0; ///< layers of the file that --layers drops
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
    bool qk_norm_all_heads = false; ///< with qk_norm: one norm over all heads
    RopeConfig rope;
    RopeConfig local_rope;             ///< for layers with LayerRope::local; rotary_dims as in `rope`
    std::vector<LayerRope> layer_rope; ///< one entry per layer; empty: `rope` in every layer
    ScaleConfig scales;
    std::vector<std::int64_t> sliding_windows; ///< tokens, for each layer; 0: no window
    /// Width of embeddings and of a step's input and state: opt's word_embed_proj_dim, otherwise hidden_size.
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
    /// A file of the folder that belongs to the model, besides config.json and the weights.
    struct Companion {
        std::string file;   ///< relative path with "/" separators
        std::string prefix; ///< prefix of its tensor names; empty: the file has no weights
    };
    std::vector<Companion> companions;
    std::optional<std::int64_t> bos_token_id;
    std::vector<std::int64_t> eos_token_ids;

    /// The methods that fit the keys; `ponder` has the settings of the first. If there are several, --method
    /// must choose one before the model runs (methods.md section 4).
    std::vector<MethodKind> candidate_methods;
    /// Notices for the user: unknown keys, and settings that the config does not determine.
    Notices notices;

    /// Whether every step reads the prelude's output (or the embedding, without a prelude).
    [[nodiscard]] bool recurs() const {
        return architecture == Architecture::huginn_raven || architecture == Architecture::parcae ||
               architecture == Architecture::dory;
    }
    /// Whether the steps begin with a random or given state (--initial-state).
    [[nodiscard]] bool has_start_state() const { return recurs() && architecture != Architecture::dory; }
    /// Whether a state before step 0 exists, so that step 0 can be compared with it.
    [[nodiscard]] bool has_state_before() const { return recurs() || architecture == Architecture::hrm_text; }
    [[nodiscard]] std::int64_t core_begin() const { return sandwich.prelude; }
    [[nodiscard]] std::int64_t core_end() const { return layers - sandwich.coda; }
};

/// The prefix of a block's tensor names in a recurrent stack: "transformer.core_block.0.". \p block numbers
/// the blocks of prelude, core and coda in this order.
std::string sandwich_block_name(const ModelConfig& config, std::int64_t block);

/// Returns the names of the checkpoint's tensors. Called only for architectures whose tensors differ between
/// checkpoints in a way that config.json does not record.
using TensorNames = std::function<std::vector<std::string>()>;

/// Reads and validates config.json. InputError names the path, the key and the value. \p method (--method)
/// overrides the config's method. If a flag of the config switches this method off, the method becomes
/// vanilla, with a notice, as in the authors' code. \p steps overrides the config's number of recurrences
/// (passes). InputError for \p steps: the method has parameters for each step.
ModelConfig read_model_config(const std::filesystem::path& config_json,
                              std::optional<MethodKind> method = std::nullopt,
                              std::optional<std::int64_t> steps = std::nullopt,
                              const TensorNames& tensors = {});
/// Like read_model_config(), but for a document in memory. \p source names the document in errors.
ModelConfig parse_model_config(const nlohmann::json& document, const std::filesystem::path& source,
                               std::optional<MethodKind> method = std::nullopt,
                               std::optional<std::int64_t> steps = std::nullopt,
                               const TensorNames& tensors = {});

/// Keeps the first \p layers layers of a plain stack. InputError: the model has fewer layers, the stack has
/// several parts, or tensors of the method or the depth mixing depend on the number of layers.
void keep_first_layers(ModelConfig& config, std::int64_t layers);

std::string to_string(Architecture architecture); ///< "gpt_neox"
std::string to_string(Activation activation);     ///< "gelu_tanh"
std::string to_string(MethodKind method);         ///< "ponderlm"
std::string to_string(DepthMixing mixing);        ///< "depth_attention"
std::string to_string(RopeConfig::Kind kind);     ///< the name in rope_type: "llama3"; "default": no scaling
std::optional<MethodKind> method_from_string(const std::string& name);

} // namespace ponderscope
