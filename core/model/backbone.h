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

/// K and V of every layer as rows that outlive a pass: the last rows of halted tokens, or the past of a
/// generation. Each layer has [rows, g, d_h]. With gradients, put() makes new tensors instead of overwriting
/// rows, so that earlier passes stay differentiable.
class KvRows {
public:
    /// \p rows: number of rows for each layer.
    KvRows(const std::vector<std::int64_t>& rows, std::int64_t kv_heads, std::int64_t head_dim,
           const at::TensorOptions& options);
    [[nodiscard]] const at::Tensor& k(std::int64_t layer) const {
        return k_[static_cast<std::size_t>(layer)];
    }
    [[nodiscard]] const at::Tensor& v(std::int64_t layer) const {
        return v_[static_cast<std::size_t>(layer)];
    }
    /// Stores \p k and \p v in rows \p rows (int64 [n]).
    void put(std::int64_t layer, const at::Tensor& rows, const at::Tensor& k, const at::Tensor& v);
    /// Copies rows [from, from + count) of layers [first, last) to [to, to + count).
    void copy(std::int64_t first, std::int64_t last, std::int64_t from, std::int64_t to, std::int64_t count);

private:
    std::vector<at::Tensor> k_, v_;
};

/// Depth mixing: computes, from a layer's q, k and v, the values for its attention and its K/V rows. One
/// object serves all passes over the same tokens.
class ValueMixer {
public:
    virtual ~ValueMixer() = default;
    /// Called before the first layer of every pass.
    virtual void begin_pass(const Pass& pass) = 0;
    /// q [n, n_q, d_h], k and v [n, g, d_h] of layer \p layer after rotation. Returns the mixed v.
    virtual at::Tensor mix(std::int64_t layer, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                           const Pass& pass) = 0;
};

/// One pass of the stack over n packed slots: all data except the weights.
struct Pass {
    at::Tensor rotation_rows; ///< int64 [n]: each slot's row of cos and sin (RotationTable)
    at::Tensor positions;     ///< int64 [n]: position in the sequence, for learned position embeddings
    at::Tensor ids;           ///< int64 [n]: the slots' token ids, for blocks with value embeddings
    at::Tensor cos, sin;      ///< fp32 [rows, rotary_dims / 2]; with two kinds of layers (config.layer_rope)
                              ///< [2, rows, rotary_dims / 2]; undefined without rotary embedding
    Visibility visibility;
    /// For each sliding window: its length, and ranges that replace visibility.ranges in layers with this
    /// window. Filled only if rows are not in the order of positions.
    std::vector<std::pair<std::int64_t, at::Tensor>> window_ranges;
    KvRows* kv = nullptr; ///< nullptr: the K/V rows are the slots of this pass
    at::Tensor rows;      ///< int64 [n], with `kv`: the row for each slot's K and V
    at::Tensor row_bias;  ///< fp32 [R] or undefined, added to every logit of a key row
    at::Tensor queries;   ///< int64 [m], ascending, for block(): the slots that run through the block. The
                          ///< other slots only store their keys and values. Undefined: all slots
    at::Tensor tokens;    ///< int64 [n], ascending: the tokens of the slots, if `mixer` outlives the pass;
                          ///< undefined: all tokens in order
    ValueMixer* mixer = nullptr;  ///< from make_mixer(); nullptr: run() makes one if needed
    at::Tensor* stream = nullptr; ///< if not null: receives the residual stream before the final norm
    /// If not null: block_outputs receives the outputs of wanted_blocks, in their order, [n, d] each.
    const std::vector<std::int64_t>* wanted_blocks = nullptr;
    std::vector<at::Tensor>* block_outputs = nullptr;
    /// If set: may replace the output of a layer, [n, d]. Only for the residual x + F(x).
    std::function<at::Tensor(std::int64_t layer, const at::Tensor& stream)> edit = {};
    bool adapted = false; ///< use the weights with adapters, if the model has them (Think-at-Hard)
    const std::stop_token* stop = nullptr; ///< if not null: a request ends the pass before the next block
    Tap tap;

    void check_stop() const; ///< Cancelled
};

/// Rotation tables for sequences of the given lengths. The angles depend on the length only with dynamic
/// scaling and longrope.
struct RotationTable {
    at::Tensor cos, sin;                ///< as in Pass
    std::vector<std::int64_t> row_base; ///< for each sequence: the row of its position 0
};

/// A decoder stack in a Hugging Face layout. Each architecture has a file, which declares the tensors and
/// computes a layer. Immutable after construction. Shares the tensors of the parameters.
class Backbone {
public:
    virtual ~Backbone();

    [[nodiscard]] const ModelConfig& config() const { return config_; }
    /// The largest number of tokens in a sequence. Learned positions have a limit, rotations have none.
    [[nodiscard]] std::int64_t longest_sequence() const;
    /// The embeddings of \p ids: int64 [n] -> [n, d], with the backbone's scale. The method multiplies by its
    /// own scale (Method::embed_scale).
    [[nodiscard]] at::Tensor embed(const at::Tensor& ids) const;
    // Stacks of prelude, core and coda (methods-released.md section 1), if config().recurs(). run() runs the
    // core alone and returns the state after its blocks.
    /// Runs embeddings through the prelude, once for each token. Every step reads the output.
    [[nodiscard]] at::Tensor prelude(const at::Tensor& embedded, const Pass& pass) const;
    /// A step's input from the previous state and the prelude's output, both [n, d].
    [[nodiscard]] virtual at::Tensor inject(const at::Tensor& state, const at::Tensor& entering) const;
    /// Returns h, the input of the head, [n, d], for a state. The coda's blocks have their own K/V.
    [[nodiscard]] at::Tensor coda(const at::Tensor& state, const Pass& pass) const;
    /// FLOPs of inject() and of before_coda().
    [[nodiscard]] virtual std::int64_t injection_flops() const { return 0; }
    [[nodiscard]] virtual std::int64_t before_coda_flops() const { return 0; }
    /// Number of matrix elements in the blocks of each part.
    struct PartElements {
        std::int64_t prelude = 0, core = 0, coda = 0;
    };
    [[nodiscard]] const PartElements& part_elements() const { return part_elements_; }
    /// Runs all layers and the final norm over the slots' inputs [n, d]. Returns h [n, d] in new memory; \p x
    /// does not change.
    [[nodiscard]] at::Tensor run(const at::Tensor& x, const Pass& pass) const;
    /// The parts of run(), for callers that stop between blocks. enter() makes the first block's input from
    /// the slots' inputs. block() runs only block \p l: [n, d] -> the residual stream of the pass's queries
    /// [m, d], in new memory. final_norm() returns h for a residual stream. Only for the residual x + F(x).
    [[nodiscard]] virtual at::Tensor enter(const at::Tensor& x, const Pass& pass) const;
    at::Tensor block(std::int64_t l, const at::Tensor& x, const Pass& pass) const;
    [[nodiscard]] virtual at::Tensor final_norm(const at::Tensor& x) const = 0;
    /// The mixing of values across layers, for all passes of one forward; nullptr: none.
    [[nodiscard]] std::unique_ptr<ValueMixer> make_mixer() const;
    /// Keys and values of the blocks, with this number of rows for each layer.
    [[nodiscard]] KvRows kv_rows(const std::vector<std::int64_t>& rows) const;
    [[nodiscard]] HeadWeights head() const;
    /// Number of matrix elements in all blocks. Without attention, a slot costs twice this number in FLOPs
    /// (methods.md section 11).
    [[nodiscard]] std::int64_t block_matrix_elements() const { return block_matrix_elements_; }
    [[nodiscard]] RotationTable rotation(const std::vector<std::int64_t>& lengths) const;

protected:
    explicit Backbone(ModelConfig config);
    /// Layer \p l: takes the residual stream, returns the residual stream of the pass's queries.
    [[nodiscard]] virtual at::Tensor layer(std::int64_t l, const at::Tensor& x, const Pass& pass) const = 0;
    /// F_c(x) of residual.h; only if the backbone supports other residual structures.
    [[nodiscard]] virtual at::Tensor sublayer(std::int64_t c, const at::Tensor& x, const Pass& pass) const;
    /// after_prelude() runs between the prelude's blocks and the steps. before_coda() runs before the coda's
    /// blocks.
    [[nodiscard]] virtual at::Tensor after_prelude(const at::Tensor& x) const { return x; }
    [[nodiscard]] virtual at::Tensor before_coda(const at::Tensor& x) const { return x; }
    /// Turns the output of the core's blocks into a state.
    [[nodiscard]] virtual at::Tensor after_core(const at::Tensor& x) const { return x; }

    ModelConfig config_;
    at::Tensor embedding_, head_, head_bias_; ///< the input and output tables

private:
    friend std::unique_ptr<Backbone> make_backbone(const ModelConfig& config, const Parameters& parameters);
    /// Counts the matrix elements.
    void count_elements(const ParameterLayout& layout, const std::vector<std::string>& blocks);
    at::Tensor run_layers(at::Tensor stream, const Pass& pass) const;
    at::Tensor run_blocks(at::Tensor stream, std::int64_t first, std::int64_t last, const Pass& pass) const;

    std::unique_ptr<ResidualStructure> residual_; ///< nullptr: x + F(x)
    PartElements part_elements_;
    std::int64_t block_matrix_elements_ = 0;
    mutable RotationTable cached_rotation_; ///< if angles ignore the length; grows with the longest sequence
};

/// The tensors of a backbone, without the method's tensors. InputError: the architecture does not support the
/// depth mixing or the loop.
ParameterLayout backbone_layout(const ModelConfig& config);
std::unique_ptr<Backbone> make_backbone(const ModelConfig& config, const Parameters& parameters);

} // namespace ponderscope
