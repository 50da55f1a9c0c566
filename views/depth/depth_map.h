// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trace/records.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ponderscope {

/// A signal with axes token, layer, source and optionally head: the weights by which a layer mixes the values
/// of earlier layers (methods.md section 3). NaN if a layer does not read a source.
class DepthMap {
public:
    /// Whether the signal has these axes.
    static bool fits(const SignalInfo& info);

    DepthMap() = default;
    /// \p chunk: values of a fitting signal, from TraceReader. \p executed: the last step of each row.
    DepthMap(const SignalChunk& chunk, const SignalInfo& info, std::vector<std::int32_t> executed);

    [[nodiscard]] std::int64_t rows() const { return rows_; } ///< number of recorded tokens
    [[nodiscard]] std::int64_t layers() const { return layers_; }
    [[nodiscard]] std::int64_t sources() const { return sources_; }
    [[nodiscard]] std::int64_t heads() const { return heads_; }                 ///< 1 without an axis `head`
    [[nodiscard]] std::int64_t steps() const { return steps_; }                 ///< 1 without an axis `step`
    [[nodiscard]] const std::string& layer_name() const { return layer_name_; } ///< "layer", "sublayer"
    [[nodiscard]] const std::string& source_name() const { return source_name_; } ///< "source", "stream"
    /// The label of each source column: from the signal's description, or else its number.
    [[nodiscard]] const std::vector<std::string>& source_labels() const { return source_labels_; }
    /// Whether the layer reads the source for some token.
    [[nodiscard]] bool reads(std::int64_t layer, std::int64_t source) const;
    /// The weight in a row. \p head -1: the mean over the heads. NaN: outside of the map, or source not read.
    [[nodiscard]] float at(std::int64_t row, std::int64_t step, std::int64_t layer, std::int64_t source,
                           std::int64_t head) const;
    /// The weights in one row, [layer * sources + source]; all NaN outside of the map.
    [[nodiscard]] std::vector<float> grid(std::int64_t row, std::int64_t step, std::int64_t head) const;
    /// The weight of a source in all rows, [row * layers + layer]: a layer × token map.
    [[nodiscard]] std::vector<float> over_tokens(std::int64_t source, std::int64_t step,
                                                 std::int64_t head) const;

    /// Mean and spread over tokens, from at most `most_rows` evenly spaced tokens.
    struct Averages {
        std::vector<float> mean;      ///< [layer * sources + source]; NaN if no token has a value
        std::vector<float> deviation; ///< standard deviation over tokens (and averaged heads)
        /// [layer]: how much the layer's weights depend on the token, 0 to 1
        /// (TokenDependence::share_between_tokens over sources and heads). NaN for a layer with a single
        /// source.
        std::vector<double> token_share;
        std::int64_t used_rows = 0;
    };
    static constexpr std::int64_t most_rows = 1024;
    [[nodiscard]] Averages averages(std::int64_t step, std::int64_t head) const;

private:
    [[nodiscard]] double token_share(std::int64_t layer, std::int64_t step, std::int64_t first_head,
                                     std::int64_t end_head) const;
    /// Index of the first value of a row and step.
    [[nodiscard]] std::size_t place_of(std::int64_t row, std::int64_t step) const {
        return static_cast<std::size_t>((row * steps_ + step) * layers_ * sources_ * heads_);
    }
    /// averages() reads every Nth row, where N is this number.
    [[nodiscard]] std::int64_t row_stride() const {
        return rows_ > 0 ? (rows_ + most_rows - 1) / most_rows : 1;
    }

    std::vector<float> values_;
    std::vector<std::int32_t> executed_;
    std::vector<bool> reads_; ///< [layer * sources + source]
    std::string layer_name_;
    std::string source_name_;
    std::vector<std::string> source_labels_;
    std::int64_t rows_ = 0;
    std::int64_t steps_ = 0;
    std::int64_t layers_ = 0;
    std::int64_t sources_ = 0;
    std::int64_t heads_ = 0;
};

} // namespace ponderscope
