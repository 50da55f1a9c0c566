// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/checkpoint/model_config.h"
#include "core/kernels/attend.h"
#include "core/kernels/head.h"
#include "core/model/parameters.h"
#include "core/model/tap.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace ponderscope {

class ResidualStructure;
struct Pass;

/// K and V of every layer as rows, for several passes: halted tokens' last entries, or the past of a
/// generation. Layers hold [rows, g, d_h]. With gradients the rows are replaced, not overwritten, so that
/// earlier passes can be differentiated.
class KvRows {
public:
    /// \p rows: of each layer.
    KvRows(const std::vector<std::int64_t>& rows, std::int64_t kv_heads, std::int64_t head_dim,
           const at::TensorOptions& options);
    [[nodiscard]] const at::Tensor& k(std::int64_t layer) const {
        return k_[static_cast<std::size_t>(layer)];
    }
    [[nodiscard]] const at::Tensor& v(std::int64_t layer) const {
        return v_[static_cast<std::size_t>(layer)];
    }
    /// Puts the rows of \p k and \p v at \p rows (int64 [n]).
    void put(std::int64_t layer, const at::Tensor& rows, const at::Tensor& k, const at::Tensor& v);
    /// Copies rows [from, from + count) of layers [first, last) to [to, to + count).
    void copy(std::int64_t first, std::int64_t last, std::int64_t from, std::int64_t to, std::int64_t count);

private:
    std::vector<at::Tensor> k_, v_;
};

/// Depth mixing, a small answer beside those of a method: given a layer's q, k, v, which value goes to
/// attention and into the K/V rows. One for all passes over the same tokens.
class ValueMixer {
public:
    virtual ~ValueMixer() = default;
    /// Before the first layer of every pass.
    virtual void begin_pass(const Pass& pass) = 0;
    /// q [n, n_q, d_h], k and v [n, g, d_h] of layer \p layer after rotation; returns the value rows [n, g,
    /// d_h].
    virtual at::Tensor mix(std::int64_t layer, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                           const Pass& pass) = 0;
};

/// One pass of the stack over n packed slots: everything that is not a weight.
struct Pass {
    at::Tensor rotation_rows; ///< int64 [n]: each slot's row of cos and sin (its position, where the angles
                              ///< depend on nothing else)
    at::Tensor positions;     ///< int64 [n]: position in the sequence, for learned position embeddings
    at::Tensor ids;           ///< int64 [n]: the slots' tokens, where blocks look them up (value embeddings)
    at::Tensor cos, sin;      ///< fp32 [rows, rotary_dims / 2], of two kinds of layers (config.layer_rope)
                              ///< [2, rows, rotary_dims / 2]; undefined without rotary embedding
    Visibility visibility;
    /// Each sliding window and its ranges, which its layers use instead of the ranges of `visibility`. Filled
    /// only if rows are not at their tokens' positions.
    std::vector<std::pair<std::int64_t, at::Tensor>> window_ranges;
    KvRows* kv = nullptr; ///< nullptr: the rows are the slots of this pass only
    at::Tensor rows;      ///< int64 [n], with `kv`: where each slot's K/V go
    at::Tensor row_bias;  ///< fp32 [R] or undefined, added to every logit of a key row
    at::Tensor queries; ///< int64 [m], ascending, of block(): the slots that go through it; the others leave
                        ///< their keys and values there and nothing else. Undefined: all
    at::Tensor tokens;  ///< int64 [n], ascending: whose slots these are, where `mixer` lives on from pass to
                        ///< pass; undefined: all tokens in order
    ValueMixer* mixer = nullptr;  ///< make_mixer's; nullptr: this pass mixes by itself, if the model mixes
    at::Tensor* stream = nullptr; ///< when given: the residual stream before the final norm is put there
    /// When given: receives the outputs of these blocks, in their order, [n, d] each.
    const std::vector<std::int64_t>* wanted_blocks = nullptr;
    std::vector<at::Tensor>* block_outputs = nullptr;
    /// When given: returns other states for the output of a layer, [n, d], or the output itself. Only if
    /// the residual is the usual one.
    std::function<at::Tensor(std::int64_t layer, const at::Tensor& stream)> edit = {};
    bool adapted = false; ///< by the weights with adapters, if the model has both (Think-at-Hard)
    const std::stop_token* stop = nullptr; ///< when given: requested, the pass ends before the next block
    Tap tap;

    void check_stop() const; ///< Cancelled
};

/// Rotation tables for sequences of the given lengths, on which they depend with dynamic scaling and
/// longrope.
struct RotationTable {
    at::Tensor cos, sin;                ///< as in Pass
    std::vector<std::int64_t> row_base; ///< a sequence: the row of its position 0
};

/// A decoder stack in a Hugging Face layout. One file an architecture; each declares its tensors and computes
/// a layer. Immutable after construction; holds references to the parameters' tensors.
class Backbone {
public:
    virtual ~Backbone();

    [[nodiscard]] const ModelConfig& config() const { return config_; }
    /// Tokens that a sequence may have: learned positions end, rotations do not.
    [[nodiscard]] std::int64_t longest_sequence() const;
    /// int64 [n] -> [n, d], as the backbone itself scales it; a method's own scale comes on top.
    [[nodiscard]] at::Tensor embed(const at::Tensor& ids) const;
    // Stacks of prelude, core and coda (methods-released.md section 1), where config().recurs(): run() goes
    // through the core alone and returns the state that its blocks leave.
    /// What enters every step: embeddings through the prelude, once a token.
    [[nodiscard]] at::Tensor prelude(const at::Tensor& embedded, const Pass& pass) const;
    /// A step's input, of the state before it and the prelude's output, [n, d] both.
    [[nodiscard]] virtual at::Tensor inject(const at::Tensor& state, const at::Tensor& entering) const;
    /// h of a state: what the head reads, [n, d]. The coda's blocks have K/V of their own.
    [[nodiscard]] at::Tensor coda(const at::Tensor& state, const Pass& pass) const;
    /// FLOPs of inject, and of the operations between a state and the coda's blocks.
    [[nodiscard]] virtual std::int64_t injection_flops() const { return 0; }
    [[nodiscard]] virtual std::int64_t before_coda_flops() const { return 0; }
    /// Elements of the matrices of each part's blocks.
    struct PartElements {
        std::int64_t prelude = 0, core = 0, coda = 0;
    };
    [[nodiscard]] const PartElements& part_elements() const { return part_elements_; }
    /// Runs all layers and the final norm over the slots' inputs [n, d]; returns h [n, d], a tensor of its
    /// own. \p x is left alone.
    [[nodiscard]] at::Tensor run(const at::Tensor& x, const Pass& pass) const;
    /// run() in parts, for callers that stop in between: the input of the first block, made of the slots'
    /// inputs; block \p l alone, [n, d] -> the residual stream of the pass's queries [m, d], a tensor of its
    /// own; and h of a residual stream. Only if the residual is the usual one.
    [[nodiscard]] virtual at::Tensor enter(const at::Tensor& x, const Pass& pass) const;
    at::Tensor block(std::int64_t l, const at::Tensor& x, const Pass& pass) const;
    [[nodiscard]] virtual at::Tensor final_norm(const at::Tensor& x) const = 0;
    /// The mixing of values across layers, for all passes of one forward; nullptr: none.
    [[nodiscard]] std::unique_ptr<ValueMixer> make_mixer() const;
    /// Keys and values beside the blocks, with this number of rows each.
    [[nodiscard]] KvRows kv_rows(const std::vector<std::int64_t>& rows) const;
    [[nodiscard]] HeadWeights head() const;
    /// Elements of the matrices of all blocks: a slot costs twice that in FLOPs, without attention
    /// (methods.md section 11).
    [[nodiscard]] std::int64_t block_matrix_elements() const { return block_matrix_elements_; }
    [[nodiscard]] RotationTable rotation(const std::vector<std::int64_t>& lengths) const;

protected:
    explicit Backbone(ModelConfig config);
    /// Layer \p l: the residual stream in, that of the pass's queries out.
    [[nodiscard]] virtual at::Tensor layer(std::int64_t l, const at::Tensor& x, const Pass& pass) const = 0;
    /// F_c(x) of residual.h; only if the structure of the residual may differ.
    [[nodiscard]] virtual at::Tensor sublayer(std::int64_t c, const at::Tensor& x, const Pass& pass) const;
    /// Between the prelude's blocks and what enters the steps; between a state and the coda's blocks.
    [[nodiscard]] virtual at::Tensor after_prelude(const at::Tensor& x) const { return x; }
    [[nodiscard]] virtual at::Tensor before_coda(const at::Tensor& x) const { return x; }
    /// What the blocks of the steps leave, as a state.
    [[nodiscard]] virtual at::Tensor after_core(const at::Tensor& x) const { return x; }

    ModelConfig config_;
    at::Tensor embedding_, head_, head_bias_; ///< as the family declares it

private:
    friend std::unique_ptr<Backbone> make_backbone(const ModelConfig& config, const Parameters& parameters);
    /// Counts the matrices of each part's blocks.
    void count_elements(const ParameterLayout& layout, const std::vector<std::string>& blocks);
    at::Tensor run_layers(at::Tensor stream, const Pass& pass) const;
    at::Tensor run_blocks(at::Tensor stream, std::int64_t first, std::int64_t last, const Pass& pass) const;

    std::unique_ptr<ResidualStructure> residual_; ///< nullptr: x + F(x)
    PartElements part_elements_;
    std::int64_t block_matrix_elements_ = 0;
    mutable RotationTable cached_rotation_; ///< of position-only kinds; grows
};

/// The tensors of a backbone, without the method's own. InputError for a depth mixing or a loop that the
/// architecture does not allow.
ParameterLayout backbone_layout(const ModelConfig& config);
std::unique_ptr<Backbone> make_backbone(const ModelConfig& config, const Parameters& parameters);

} // namespace ponderscope
