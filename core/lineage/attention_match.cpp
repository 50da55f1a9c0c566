// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/error.h"
#include "core/lineage/assignment.h"
#include "core/lineage/measures.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

namespace ponderscope {
namespace {

using Matrix = StoredWeights::Matrix;

/// Number of embedding rows in one product.
constexpr std::size_t piece = 4096;
/// Bytes for Gram matrices while all pairs of layers are compared; at least the two of one layer fit.
constexpr std::int64_t store_bytes = std::int64_t{512} << 20;
/// Mean and standard deviation of the similarity of 90 independent pairs of LLMs, from the AWM paper.
constexpr double published_mean = 0.00375;
constexpr double published_deviation = 0.0028;

double deviation_of(const AttentionMatch& match) {
    return std::max(published_deviation, match.chance_deviation);
}

/// The cosines of the embeddings' columns over the shared tokens, fp64 [d of the target, d of the base].
at::Tensor column_cosines(const StoredWeights& base, std::span<const std::int64_t> base_rows,
                          const StoredWeights& target, std::span<const std::int64_t> target_rows,
                          const ProgressSink& progress, const std::stop_token& stop) {
    const auto fp64 = at::TensorOptions(at::kDouble);
    at::Tensor products = at::zeros({target.width(), base.width()}, fp64);
    at::Tensor base_squares = at::zeros({base.width()}, fp64);
    at::Tensor target_squares = at::zeros({target.width()}, fp64);
    for (std::size_t begin = 0; begin < base_rows.size(); begin += piece) {
        throw_if_stopped(stop);
        const std::size_t count = std::min(piece, base_rows.size() - begin);
        const at::Tensor of_base = base.embedding(base_rows.subspan(begin, count));
        const at::Tensor of_target = target.embedding(target_rows.subspan(begin, count));
        products += at::mm(of_target.t(), of_base); // sums in fp32 within a piece, in fp64 over pieces
        base_squares += of_base.to(at::kDouble).square_().sum(0);
        target_squares += of_target.to(at::kDouble).square_().sum(0);
        report_progress(progress, {"aligning dimensions", static_cast<std::int64_t>(begin + count),
                                   static_cast<std::int64_t>(base_rows.size()), "tokens"});
    }
    // A zero column has cosine 0 with everything.
    const at::Tensor scale = target_squares.sqrt().unsqueeze(1) * base_squares.sqrt().unsqueeze(0);
    at::Tensor cosines = at::where(scale > 0, products / scale, at::zeros_like(products));
    if (!at::isfinite(cosines).all().item<bool>()) {
        throw InputError(ErrorId::checkpoint_numbers, base.checkpoint().folder,
                         "embeddings whose products are finite in fp32", "products that are not finite",
                         "scale the weights down, or use undamaged checkpoints");
    }
    return cosines;
}

void align(AttentionMatch& match, const StoredWeights& base, std::span<const std::int64_t> base_rows,
           const StoredWeights& target, std::span<const std::int64_t> target_rows,
           const ProgressSink& progress, const std::stop_token& stop) {
    const at::Tensor cosines = column_cosines(base, base_rows, target, target_rows, progress, stop);
    const at::Tensor cost = (1.0 - cosines.abs()).contiguous();
    match.base_dimension =
        assign_rows({cost.const_data_ptr<double>(), static_cast<std::size_t>(cost.numel())}, target.width(),
                    base.width(), stop);
    double sum = 0;
    for (std::int64_t j = 0; j < target.width(); ++j) {
        const double cosine =
            cosines.const_data_ptr<double>()[j * base.width() +
                                             match.base_dimension[static_cast<std::size_t>(j)]];
        match.sign.push_back(cosine > 0 ? 1 : cosine < 0 ? -1 : 0);
        sum += std::abs(cosine);
    }
    match.mean_cosine = sum / static_cast<double>(target.width());
}

/// A Gram matrix without diagonal, centred without bias (Szekely and Rizzo 2014), and its squared norm.
struct Gram {
    at::Tensor centred; ///< fp32 [n, n], diagonal 0
    double square = 0;
};

/// Σ x · y over all elements, in fp64.
double product_sum(const at::Tensor& x, const at::Tensor& y) {
    return at::dot(x.flatten().to(at::kDouble), y.flatten().to(at::kDouble)).item<double>();
}

/// The Gram matrix of W over the input dimensions \p columns, multiplied by \p signs. Undefined \p columns:
/// all dimensions in order.
Gram gram_of(at::Tensor weight, const at::Tensor& columns, const at::Tensor& signs) {
    if (columns.defined()) {
        weight = weight.index_select(1, columns).mul_(signs);
    }
    const double largest = weight.abs().max().item<double>();
    if (largest > 0) { // CKA ignores the scale; this one avoids overflow of squares
        weight = weight / largest;
    }
    at::Tensor gram = at::mm(weight.t(), weight);
    const std::int64_t n = gram.size(0);
    gram.fill_diagonal_(0);
    at::Tensor means = gram.sum(0, false, at::kDouble) / static_cast<double>(n - 2);
    means -= means.sum() / (2.0 * static_cast<double>(n - 1));
    gram.sub_(means.unsqueeze(0) + means.unsqueeze(1)); // computed in fp64, rounded once
    gram.fill_diagonal_(0);
    const double square = product_sum(gram, gram);
    return {gram, square};
}

double cka(const Gram& a, const Gram& b) {
    const double scale = std::sqrt(a.square) * std::sqrt(b.square);
    return scale > 0 ? product_sum(a.centred, b.centred) / scale : 0.0;
}

/// The Gram matrices of W_q and W_k of one layer.
struct LayerGrams {
    Gram query;
    Gram key;
};

class Side {
public:
    Side(const StoredWeights& weights, at::Tensor columns, at::Tensor signs)
        : weights_(weights), columns_(std::move(columns)), signs_(std::move(signs)) {}

    [[nodiscard]] std::size_t layers() const { return weights_.layers().size(); }
    [[nodiscard]] std::int64_t number(std::size_t layer) const { return weights_.layers()[layer]; }
    [[nodiscard]] LayerGrams grams(std::size_t layer) const {
        return {gram_of(weights_.matrix(number(layer), Matrix::query), columns_, signs_),
                gram_of(weights_.matrix(number(layer), Matrix::key), columns_, signs_)};
    }

private:
    const StoredWeights& weights_;
    at::Tensor columns_;
    at::Tensor signs_;
};

class LayerMatching {
public:
    LayerMatching(const Side& a, const Side& b, std::int64_t n, const ProgressSink& progress,
                  const std::stop_token& stop)
        : a_(a), b_(b), n_(n), progress_(progress), stop_(stop) {}

    std::vector<AttentionMatch::Layer> run() {
        if (a_.layers() == b_.layers()) {
            std::vector<AttentionMatch::Layer> layers;
            for (std::size_t l = 0; l < a_.layers(); ++l) {
                layers.push_back(compare(l, a_.grams(l), l, b_.grams(l)));
                report(static_cast<std::int64_t>(l + 1), static_cast<std::int64_t>(a_.layers()), "layers");
            }
            return layers;
        }
        return best_pairs(all_pairs());
    }

private:
    AttentionMatch::Layer compare(std::size_t layer_a, const LayerGrams& a, std::size_t layer_b,
                                  const LayerGrams& b) const {
        return {{a_.number(layer_a), b_.number(layer_b)}, cka(a.query, b.query), cka(a.key, b.key)};
    }

    /// All pairs, row-major [layers of A, layers of B]. Keeps as many layers of B in memory as store_bytes
    /// allows, and runs through A for each such group.
    std::vector<AttentionMatch::Layer> all_pairs() const {
        std::vector<AttentionMatch::Layer> pairs(a_.layers() * b_.layers());
        const std::int64_t layer_bytes = 2 * n_ * n_ * static_cast<std::int64_t>(sizeof(float));
        const auto kept =
            static_cast<std::size_t>(std::max<std::int64_t>(std::int64_t{1}, store_bytes / layer_bytes));
        std::int64_t done = 0;
        for (std::size_t begin = 0; begin < b_.layers(); begin += kept) {
            const std::size_t end = std::min(begin + kept, b_.layers());
            std::vector<LayerGrams> store;
            for (std::size_t l = begin; l < end; ++l) {
                store.push_back(b_.grams(l));
            }
            for (std::size_t at = 0; at < a_.layers(); ++at) {
                const LayerGrams one = a_.grams(at);
                for (std::size_t l = begin; l < end; ++l) {
                    pairs[at * b_.layers() + l] = compare(at, one, l, store[l - begin]);
                }
                done += static_cast<std::int64_t>(end - begin);
                report(done, static_cast<std::int64_t>(pairs.size()), "pairs of layers");
            }
        }
        return pairs;
    }

    /// The pairs with the largest sum of similarities. Each layer of the smaller model is in one pair.
    std::vector<AttentionMatch::Layer> best_pairs(const std::vector<AttentionMatch::Layer>& pairs) const {
        const bool rows_are_a = a_.layers() < b_.layers();
        const std::size_t rows = std::min(a_.layers(), b_.layers());
        const std::size_t columns = std::max(a_.layers(), b_.layers());
        const auto at = [&](std::size_t row, std::size_t column) {
            return pairs[rows_are_a ? row * columns + column : column * rows + row];
        };
        std::vector<double> cost;
        for (std::size_t row = 0; row < rows; ++row) {
            for (std::size_t column = 0; column < columns; ++column) {
                cost.push_back(-(at(row, column).query + at(row, column).key) / 2);
            }
        }
        const std::vector<std::int64_t> column_of =
            assign_rows(cost, static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns), stop_);
        std::vector<AttentionMatch::Layer> layers;
        for (std::size_t row = 0; row < rows; ++row) {
            layers.push_back(at(row, static_cast<std::size_t>(column_of[row])));
        }
        std::sort(layers.begin(), layers.end(),
                  [](const auto& x, const auto& y) { return x.pair.a < y.pair.a; });
        return layers;
    }

    void report(std::int64_t done, std::int64_t total, const char* unit) const {
        throw_if_stopped(stop_);
        report_progress(progress_, {"comparing attention", done, total, unit});
    }

    const Side& a_;
    const Side& b_;
    std::int64_t n_;
    const ProgressSink& progress_;
    const std::stop_token& stop_;
};

void summarise(AttentionMatch& match) {
    for (const AttentionMatch::Layer& layer : match.layers) {
        match.query_mean += layer.query / static_cast<double>(match.layers.size());
        match.key_mean += layer.key / static_cast<double>(match.layers.size());
    }
    match.similarity = (match.query_mean + match.key_mean) / 2;
    const auto n = static_cast<double>(match.dimensions());
    match.chance_deviation = std::sqrt(2.0 / (n * (n - 3)));
    match.z = (match.similarity - published_mean) / deviation_of(match);
    match.z_published = std::abs(match.similarity - published_mean) / published_deviation;
}

} // namespace

double AttentionMatch::similarity_at(double wanted) const {
    return published_mean + wanted * deviation_of(*this);
}

AttentionMatch match_attention(const StoredWeights& a, const StoredWeights& b,
                               const std::optional<SharedTokens>& shared, const ProgressSink& progress,
                               const std::stop_token& stop) {
    AttentionMatch match;
    match.base_is_a = a.width() >= b.width();
    const StoredWeights& base = match.base_is_a ? a : b;
    const StoredWeights& target = match.base_is_a ? b : a;
    if (target.width() < 4) {
        throw InputError(ErrorId::lineage_unaligned, target.checkpoint().folder,
                         "a hidden_size of at least 4", std::to_string(target.width()),
                         "compare larger models: fewer dimensions are no evidence of an origin");
    }
    match.aligned = shared && !shared->a.empty();
    match.shared_tokens = shared ? static_cast<std::int64_t>(shared->a.size()) : 0;
    if (match.aligned) {
        align(match, base, match.base_is_a ? shared->a : shared->b, target,
              match.base_is_a ? shared->b : shared->a, progress, stop);
    } else {
        const ModelConfig& x = a.checkpoint().config;
        const ModelConfig& y = b.checkpoint().config;
        if (a.width() != b.width() || x.query_heads * x.head_dim != y.query_heads * y.head_dim) {
            throw InputError(
                ErrorId::lineage_unaligned,
                (shared                      ? b
                 : a.checkpoint().vocabulary ? b
                                             : a)
                    .checkpoint()
                    .folder,
                shared ? "tokens that are also in the other model's vocabulary, or query weights of the "
                         "other model's shape"
                       : "a tokenizer.json to align the hidden dimensions by, or query weights of the other "
                         "model's shape",
                "query weights of another shape and no common tokens",
                shared ? "models without a common token can be compared only if their weights have the "
                         "same shape"
                       : "put the model's tokenizer.json into its folder");
        }
        for (std::int64_t j = 0; j < target.width(); ++j) {
            match.base_dimension.push_back(j);
            match.sign.push_back(1);
        }
    }
    at::Tensor columns;
    at::Tensor signs;
    if (match.aligned) {
        columns = at::tensor(match.base_dimension, at::kLong);
        signs = at::tensor(match.sign, at::kInt).to(at::kFloat);
    }
    const Side of_base(base, columns, signs);
    const Side of_target(target, {}, {});
    match.layers = LayerMatching(match.base_is_a ? of_base : of_target, match.base_is_a ? of_target : of_base,
                                 target.width(), progress, stop)
                       .run();
    summarise(match);
    return match;
}

} // namespace ponderscope
