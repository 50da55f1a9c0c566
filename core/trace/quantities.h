// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trace/records.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

namespace ponderscope {

/// The scale and the printed form of a column of numbers.
enum class NumberKind { plain, nats, probability, count, rank, operations, category };

/// A number that every token of a trace has. To add one, add a value here and a row in `token_quantities`.
enum class Quantity : std::uint8_t { nll, entropy, rank, steps, maxProbability, flops };

struct QuantityInfo {
    Quantity quantity;
    std::string_view key;        ///< name in Find and on the command line
    std::string_view column;     ///< column in the trace and in figure specifications
    std::string_view difference; ///< name of run A - run B in figure specifications
    std::string_view name;
    std::string_view unit; ///< empty for counts
    NumberKind number;
    std::string_view meaning;      ///< tooltip if views show the value at the predicted token
    std::string_view meaning_next; ///< tooltip if views show the value at the token before
    std::string_view lower;        ///< what a negative A - B means, for tooltips
    std::string_view label;        ///< label of a figure's scale; "%1" stands for "step" or "layer"
    std::string_view label_next;
    /// The value in a row of the trace. NaN: the token was not scored or not read out.
    double (*value)(const TokenColumns& tokens, std::size_t row);
};

/// In the order of enum Quantity. Menus and tables have the same order.
inline constexpr QuantityInfo token_quantities[] = {
    {Quantity::nll, "nll", "nll", "nll_difference", "NLL", "nats", NumberKind::nats,
     "surprise at the token, −ln p; 0 is certain", "surprise at the next token, −ln p; 0 is certain",
     "A is better", "NLL of each token (nats)", "NLL of the next token (nats)",
     [](const TokenColumns& tokens, std::size_t row) { return static_cast<double>(tokens.nll[row]); }},
    {Quantity::entropy, "entropy", "entropy", "entropy_difference", "Entropy", "nats", NumberKind::nats,
     "entropy of the prediction of it", "entropy of the prediction of the next token", "A is surer",
     "entropy before each token (nats)", "entropy after each token (nats)",
     [](const TokenColumns& tokens, std::size_t row) { return static_cast<double>(tokens.entropy[row]); }},
    {Quantity::rank, "rank", "rank", "rank_difference", "Rank", "", NumberKind::rank,
     "rank of the token by logit; 1 is the model’s first choice",
     "rank of the next token by logit; 1 is the model’s first choice", "A is better", "rank of each token",
     "rank of the next token",
     [](const TokenColumns& tokens, std::size_t row) {
         return tokens.rank[row] > 0 ? static_cast<double>(tokens.rank[row])
                                     : std::numeric_limits<double>::quiet_NaN();
     }},
    {Quantity::steps, "steps", "steps", "steps_difference", "Steps", "", NumberKind::count,
     "pondering steps that predicted it", "pondering steps spent at it", "A takes fewer",
     "%1 spent on predicting each token", "%1 at each token",
     [](const TokenColumns& tokens, std::size_t row) { return static_cast<double>(tokens.steps[row]); }},
    {Quantity::maxProbability, "probability", "max_probability", "max_probability_difference",
     "Max probability", "", NumberKind::probability, "highest probability of any token in its place",
     "highest probability of any next token", "A is less sure", "highest probability", "highest probability",
     [](const TokenColumns& tokens, std::size_t row) {
         return static_cast<double>(tokens.max_probability[row]);
     }},
    {Quantity::flops, "flops", "flops", "flops_difference", "FLOPs", "", NumberKind::operations,
     "operations spent on predicting it", "operations spent at it", "A takes fewer", "FLOPs", "FLOPs",
     [](const TokenColumns& tokens, std::size_t row) { return static_cast<double>(tokens.flops[row]); }},
};

constexpr const QuantityInfo& info_of(Quantity quantity) {
    return token_quantities[static_cast<std::size_t>(quantity)];
}

} // namespace ponderscope
