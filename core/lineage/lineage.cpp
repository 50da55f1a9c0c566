// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/lineage/lineage.h"

#include "core/lineage/measures.h"
#include "core/lineage/stored_weights.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <numeric>

namespace ponderscope {

const char* const lineage_basis =
    "Mean 0.00375 and deviation 0.0028 of 90 independent pairs of LLMs (AWM, arXiv 2510.06738), or the "
    "chance deviation at this width where that is larger; z from 6: common origin, from 3: undecided.";

namespace {

void note_what_weakens(Lineage& lineage, const StoredWeights& a, const StoredWeights& b,
                       const std::optional<SharedTokens>& shared) {
    const AttentionMatch& awm = lineage.awm;
    if (!awm.aligned) {
        lineage.notices.push_back(
            {NoticeId::lineage_unaligned, std::string(shared ? "The two vocabularies share no token"
                                                             : "There is no tokenizer.json in both folders") +
                                              ": hidden dimensions were compared as they lie, and a "
                                              "permutation of them would go unseen."});
    } else if (awm.shared_tokens < awm.dimensions()) {
        lineage.notices.push_back(
            {NoticeId::lineage_few_tokens,
             "Only " + std::to_string(awm.shared_tokens) + " tokens are shared, fewer than the " +
                 std::to_string(awm.dimensions()) + " dimensions that they align: the alignment is poor."});
    }
    for (const StoredWeights* model : {&a, &b}) {
        const auto without =
            model->checkpoint().config.layers - static_cast<std::int64_t>(model->layers().size());
        if (without > 0) {
            lineage.notices.push_back({NoticeId::lineage_layers,
                                       model->checkpoint().folder.string() + ": " + std::to_string(without) +
                                           " layers without query and key weights were left out."});
        }
    }
}

} // namespace

std::int64_t AttentionMatch::dimensions_in_place() const {
    std::int64_t own = 0;
    return std::ranges::count_if(base_dimension, [&](std::int64_t base) { return base == own++; });
}

std::int64_t AttentionMatch::signs_flipped() const {
    return std::count(sign.begin(), sign.end(), -1);
}

std::string to_string(LineageVerdict verdict) {
    static constexpr const char* names[] = {"common origin", "undecided", "no common origin found"};
    return names[static_cast<std::size_t>(verdict)];
}

LineageVerdict lineage_verdict(double z) {
    return z >= common_origin_z ? LineageVerdict::common_origin
           : z >= undecided_z   ? LineageVerdict::undecided
                                : LineageVerdict::none_found;
}

Lineage compare_lineage(const Checkpoint& a, const Checkpoint& b, const LineageOptions& options,
                        const ProgressSink& progress, const std::stop_token& stop) {
    const at::NoGradGuard no_gradients;
    const StoredWeights weights_a(a);
    const StoredWeights weights_b(b);
    const std::optional<SharedTokens> shared =
        shared_tokens(a, weights_a.vocabulary(), b, weights_b.vocabulary());
    Lineage lineage;
    lineage.awm = match_attention(weights_a, weights_b, shared, progress, stop);
    lineage.verdict = lineage_verdict(lineage.awm.z);
    note_what_weakens(lineage, weights_a, weights_b, shared);

    SharedTokens rows;
    if (shared) {
        rows = *shared;
    } else { // no tokenizer: equal ids are equal tokens
        rows.a.resize(static_cast<std::size_t>(std::min(weights_a.vocabulary(), weights_b.vocabulary())));
        std::iota(rows.a.begin(), rows.a.end(), 0);
        rows.b = rows.a;
    }
    if (rows.a.size() < 2) {
        lineage.why_no_huref = "The two vocabularies share fewer than two tokens.";
        return lineage;
    }
    const std::size_t count = std::min(rows.a.size(), static_cast<std::size_t>(options.tokens));
    lineage.huref = invariant_terms(weights_a, std::span(rows.a).last(count), weights_b,
                                    std::span(rows.b).last(count), lineage.why_no_huref, progress, stop);
    return lineage;
}

} // namespace ponderscope
