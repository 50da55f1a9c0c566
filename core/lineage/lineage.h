// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/progress.h"
#include "core/checkpoint/checkpoint.h"

#include <array>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace ponderscope {

/// Do two checkpoints have a common origin? Two measures on weights alone, without running a model: AWM
/// (arXiv 2510.06738) on query and key weights after aligning the hidden dimensions, and HuRef's invariant
/// terms (arXiv 2312.04828). Both find "same origin", never which came first; neither reads biases, norms,
/// the output head, or anything of pondering and depth mixing.

/// A layer of A beside one of B.
struct LayerPair {
    std::int64_t a = 0;
    std::int64_t b = 0;
};

/// AWM: unbiased linear CKA of W_q and of W_k over the aligned input dimensions.
struct AttentionMatch {
    bool aligned = true;            ///< by shared tokens; false: dimensions as they lie (no tokenizer)
    std::int64_t shared_tokens = 0; ///< tokens that both vocabularies have, by their text
    bool base_is_a = true;          ///< the wider model; A where the widths are equal
    /// Dimension of the base for each of the target's n dimensions, and its sign (-1, 0, 1).
    std::vector<std::int64_t> base_dimension;
    std::vector<int> sign;
    double mean_cosine = 0; ///< mean |cosine| of the assigned embedding columns; 0 if not aligned
    struct Layer {
        LayerPair pair;
        double query = 0; ///< CKA of W_q
        double key = 0;
    };
    std::vector<Layer> layers; ///< by A's layer
    double query_mean = 0;
    double key_mean = 0;
    double similarity = 0; ///< mean of the two
    /// Deviation of a layer's CKA under a random relabelling of the n dimensions: sqrt(2 / (n (n - 3))).
    double chance_deviation = 0;
    double z = 0;           ///< against the larger of the published and the chance deviation; decides
    double z_published = 0; ///< |z| against the published deviation of 90 independent pairs of LLMs

    [[nodiscard]] std::int64_t dimensions() const { return static_cast<std::int64_t>(base_dimension.size()); }
    [[nodiscard]] std::int64_t dimensions_in_place() const;
    [[nodiscard]] std::int64_t signs_flipped() const;
    [[nodiscard]] double similarity_at(double z) const; ///< the similarity that has this z
};

/// HuRef: correlations of W_q W_k, W_v W_o and W_u W_d as token embeddings see them, in the last two layers.
struct InvariantTerms {
    std::int64_t tokens = 0;
    std::vector<LayerPair> layers;
    enum Term : std::uint8_t { query_key, value_output, up_down };
    /// Pearson correlation of each pair of layers; NaN if a term is the same number everywhere.
    std::array<std::vector<double>, 3> correlation;
    double ics = 0; ///< their mean
};

enum class LineageVerdict : std::uint8_t { common_origin, undecided, none_found };
/// "common origin", "undecided", "no common origin found".
std::string to_string(LineageVerdict verdict);
inline constexpr double common_origin_z = 6; ///< from here on: common origin
inline constexpr double undecided_z = 3;     ///< from here on: undecided; below: none found
LineageVerdict lineage_verdict(double z);

struct Lineage {
    AttentionMatch awm;
    std::optional<InvariantTerms> huref;
    std::string why_no_huref; ///< where `huref` is absent
    LineageVerdict verdict = LineageVerdict::none_found;
    std::vector<std::string> notices; ///< reasons that weaken the result, one sentence each
};

struct LineageOptions {
    std::int64_t tokens = 4096; ///< of the invariant terms: the rarest shared ones, at most so many
};

/// The basis of the verdict, one sentence.
extern const char* const lineage_basis;

/// Memory grows with single matrices (and a fixed store of Gram matrices where the models have different
/// numbers of layers), not with the models. InputError: weights that are missing, of another shape or not
/// finite; models that cannot be compared. Cancelled.
Lineage compare_lineage(const Checkpoint& a, const Checkpoint& b, const LineageOptions& options = {},
                        const ProgressSink& progress = {}, const std::stop_token& stop = {});

} // namespace ponderscope
