// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/notice.h"
#include "core/base/progress.h"
#include "core/checkpoint/checkpoint.h"

#include <array>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace ponderscope {

/// Tests whether two checkpoints have a common origin, by two measures on the weights. AWM (arXiv 2510.06738)
/// compares query and key weights after an alignment of hidden dimensions. HuRef (arXiv 2312.04828) compares
/// invariant terms. Neither tells which model came first. Both ignore biases, norms, the output head,
/// pondering and depth mixing.

/// A layer of A and a layer of B.
struct LayerPair {
    std::int64_t a = 0;
    std::int64_t b = 0;
};

/// AWM: unbiased linear CKA of W_q and of W_k over the aligned input dimensions.
struct AttentionMatch {
    bool aligned = true; ///< dimensions aligned by shared tokens; false: no shared tokens, stored order
    std::int64_t shared_tokens = 0; ///< tokens with the same text in both vocabularies
    bool base_is_a = true;          ///< the base is the wider model; A if the widths are equal
    /// The model that is not the base is the target. Each of its n dimensions has an assigned dimension of
    /// the base and a sign (-1, 0, 1).
    std::vector<std::int64_t> base_dimension;
    std::vector<int> sign;
    double mean_cosine = 0; ///< mean |cosine| of the assigned embedding columns; 0 if not aligned
    struct Layer {
        LayerPair pair;
        double query = 0; ///< CKA of W_q
        double key = 0;
    };
    std::vector<Layer> layers; ///< in the order of A's layers
    double query_mean = 0;
    double key_mean = 0;
    double similarity = 0; ///< mean of the CKA of W_q and W_k
    /// Standard deviation of a layer's CKA under a random relabelling of the n dimensions: sqrt(2 / (n (n -
    /// 3))).
    double chance_deviation = 0;
    /// The similarity minus the published mean of independent models, in standard deviations.
    double z = 0;           ///< in units of the larger deviation (published or chance); decides the verdict
    double z_published = 0; ///< absolute; in units of the published deviation (90 independent pairs)

    [[nodiscard]] std::int64_t dimensions() const { return static_cast<std::int64_t>(base_dimension.size()); }
    [[nodiscard]] std::int64_t dimensions_in_place() const;
    [[nodiscard]] std::int64_t signs_flipped() const;
    [[nodiscard]] double similarity_at(double z) const; ///< the similarity that has this z
};

/// HuRef: correlations of W_q W_k, W_v W_o and W_u W_d, applied to token embeddings, in the last two layers.
struct InvariantTerms {
    std::int64_t tokens = 0;
    std::vector<LayerPair> layers;
    enum Term : std::uint8_t { query_key, value_output, up_down };
    /// Pearson correlation of each pair of layers; NaN if a term is constant.
    std::array<std::vector<double>, 3> correlation;
    double ics = 0; ///< mean of all correlations
};

enum class LineageVerdict : std::uint8_t { common_origin, undecided, none_found };
/// "common origin", "undecided", "no common origin found".
std::string to_string(LineageVerdict verdict);
inline constexpr double common_origin_z = 6; ///< this z or more: common origin
inline constexpr double undecided_z = 3;     ///< this z or more: undecided; less: no common origin found
LineageVerdict lineage_verdict(double z);

struct Lineage {
    AttentionMatch awm;
    std::optional<InvariantTerms> huref;
    std::string why_no_huref; ///< the reason if `huref` is absent
    LineageVerdict verdict = LineageVerdict::none_found;
    Notices notices; ///< reasons that weaken the result, one sentence each
};

struct LineageOptions {
    std::int64_t tokens = 4096; ///< the invariant terms use at most this many shared tokens: the rarest
};

/// The basis of the verdict, one sentence.
extern const char* const lineage_basis;

/// Memory depends on the largest matrix, not on the size of the models. If the numbers of layers differ, Gram
/// matrices take a further 512 MiB or so. InputError: weights that are missing, not finite or of another
/// shape; models that cannot be compared. Throws Cancelled.
Lineage compare_lineage(const Checkpoint& a, const Checkpoint& b, const LineageOptions& options = {},
                        const ProgressSink& progress = {}, const std::stop_token& stop = {});

} // namespace ponderscope
