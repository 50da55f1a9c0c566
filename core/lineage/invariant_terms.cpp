// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/error.h"
#include "core/lineage/measures.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace ponderscope {
namespace {

using Matrix = StoredWeights::Matrix;
using Term = InvariantTerms::Term;

/// \p values in fp64, scaled to a largest absolute value of 1. Correlations ignore the scale, and products
/// then stay in range.
at::Tensor scaled(const at::Tensor& values) {
    at::Tensor wide = values.to(at::kDouble);
    const double largest = wide.abs().max().item<double>();
    return largest > 0 ? wide.div_(largest) : wide;
}

/// Every term is x A x^T. Returns A [d, d], a product of weights. Undefined if a matrix is missing.
at::Tensor core_of(const StoredWeights& weights, std::int64_t layer, Term term) {
    static constexpr Matrix factors[][2] = {
        {Matrix::query, Matrix::key}, {Matrix::value, Matrix::output}, {Matrix::up, Matrix::down}};
    at::Tensor left = weights.matrix(layer, factors[term][0]);
    at::Tensor right = weights.matrix(layer, factors[term][1]);
    if (!left.defined() || !right.defined()) {
        return {};
    }
    if (term == InvariantTerms::query_key) {
        return at::mm(scaled(left).t(), scaled(weights.repeated(right)));
    }
    left = scaled(term == InvariantTerms::value_output ? weights.repeated(left) : left);
    if (term == InvariantTerms::up_down) {
        if (const at::Tensor gate = weights.matrix(layer, Matrix::gate); gate.defined()) {
            left = scaled(left.mul_(scaled(gate)));
        }
    }
    return at::mm(left.t(), scaled(right).t());
}

double sum_of_products(const at::Tensor& x, const at::Tensor& y) {
    return at::dot(x.reshape({-1}), y.reshape({-1})).item<double>();
}

/// Correlations of x_A A x_A^T with x_B B x_B^T. With more tokens than dimensions, avoids the T x T matrices:
/// <x_A A x_A^T, x_B B x_B^T> = <A, G B G^T> with G = x_A^T x_B.
class TokenView {
public:
    TokenView(const at::Tensor& x_a, const at::Tensor& x_b)
        : tokens_(static_cast<double>(x_a.size(0))),
          whole_(x_a.size(0) <= std::max(x_a.size(1), x_b.size(1))) {
        if (whole_) {
            x_a_ = x_a;
            x_b_ = x_b;
        } else {
            aa_ = at::mm(x_a.t(), x_a);
            ab_ = at::mm(x_a.t(), x_b);
            bb_ = at::mm(x_b.t(), x_b);
            sum_a_ = x_a.sum(0);
            sum_b_ = x_b.sum(0);
        }
    }

    [[nodiscard]] double correlation(const at::Tensor& a, const at::Tensor& b) const {
        if (whole_) {
            at::Tensor of_a = at::mm(at::mm(x_a_, a), x_a_.t());
            of_a -= of_a.mean();
            at::Tensor of_b = at::mm(at::mm(x_b_, b), x_b_.t());
            of_b -= of_b.mean();
            return ratio(sum_of_products(of_a, of_b), sum_of_products(of_a, of_a),
                         sum_of_products(of_b, of_b), 0, 0);
        }
        const double mean_a = at::dot(sum_a_, at::mv(a, sum_a_)).item<double>() / tokens_;
        const double mean_b = at::dot(sum_b_, at::mv(b, sum_b_)).item<double>() / tokens_;
        return ratio(inner(a, ab_, b), inner(a, aa_, a), inner(b, bb_, b), mean_a, mean_b);
    }

private:
    static double inner(const at::Tensor& a, const at::Tensor& between, const at::Tensor& b) {
        return sum_of_products(a, at::mm(at::mm(between, b), between.t()));
    }
    /// The correlation from sums over the T^2 entries: \p ab, \p aa, \p bb of products; \p mean_a, \p mean_b
    /// of entries, divided by T.
    static double ratio(double ab, double aa, double bb, double mean_a, double mean_b) {
        const double of_a = aa - mean_a * mean_a;
        const double of_b = bb - mean_b * mean_b;
        // Equal entries have no variance, except for rounding errors.
        constexpr double none = 1e-13;
        if (!(of_a > none * aa) || !(of_b > none * bb)) {
            return std::numeric_limits<double>::quiet_NaN();
        }
        return std::clamp((ab - mean_a * mean_b) / std::sqrt(of_a) / std::sqrt(of_b), -1.0, 1.0);
    }

    double tokens_;
    bool whole_; ///< use the T x T matrices, because T is small
    at::Tensor x_a_, x_b_;
    at::Tensor aa_, ab_, bb_, sum_a_, sum_b_;
};

} // namespace

std::optional<InvariantTerms> invariant_terms(const StoredWeights& a, std::span<const std::int64_t> rows_a,
                                              const StoredWeights& b, std::span<const std::int64_t> rows_b,
                                              std::string& why, const ProgressSink& progress,
                                              const std::stop_token& stop) {
    InvariantTerms result;
    result.tokens = static_cast<std::int64_t>(rows_a.size());
    const std::size_t layers = std::min<std::size_t>({2, a.layers().size(), b.layers().size()});
    const TokenView view(scaled(a.embedding(rows_a)), scaled(b.embedding(rows_b)));
    double sum = 0;
    std::int64_t done = 0;
    for (std::size_t back = layers; back > 0; --back) {
        const LayerPair pair{a.layers()[a.layers().size() - back], b.layers()[b.layers().size() - back]};
        result.layers.push_back(pair);
        for (const Term term :
             {InvariantTerms::query_key, InvariantTerms::value_output, InvariantTerms::up_down}) {
            throw_if_stopped(stop);
            const at::Tensor of_a = core_of(a, pair.a, term);
            const at::Tensor of_b = core_of(b, pair.b, term);
            if (!of_a.defined() || !of_b.defined()) {
                why = (of_a.defined() ? b : a).checkpoint().folder.string() + " has no " +
                      (term == InvariantTerms::value_output ? "value and output" : "feed-forward") +
                      " weights in layer " + std::to_string(of_a.defined() ? pair.b : pair.a) + ".";
                return std::nullopt;
            }
            result.correlation[term].push_back(view.correlation(of_a, of_b));
            sum += result.correlation[term].back();
            report_progress(progress, {"comparing invariant terms", ++done,
                                       static_cast<std::int64_t>(3 * layers), "terms"});
        }
    }
    result.ics = sum / static_cast<double>(3 * layers);
    return result;
}

} // namespace ponderscope
