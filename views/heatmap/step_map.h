// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trace/records.h"
#include "views/common/selection.h"
#include "views/common/trace_data.h"
#include "views/common/value_look.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace ponderscope {

/// The content of a heatmap for a signal with a value for each token and step: columns are tokens, rows are
/// steps. An immutable value, also for programs without a window.
class StepMap {
public:
    enum class Kind : std::uint8_t {
        value,
        halted, ///< the step did not run
        missing ///< no value: not recorded, not scored, or the token shows no row
    };
    struct Cell {
        Kind kind = Kind::missing;
        float value = 0; ///< for Kind::value
    };
    /// The meaning of the rows. Steps may halt; layers and experts have a value or none.
    enum class Rows : std::uint8_t { steps, layers, experts };

    StepMap() = default;
    /// \p chunk [tokens, steps] covers the whole \p sequence, or its beginning during a recording.
    StepMap(std::shared_ptr<const SequenceData> sequence, const SignalChunk& chunk, const SignalInfo& info,
            Attribution attribution);
    /// \p values [token * steps + step].
    StepMap(std::shared_ptr<const SequenceData> sequence, std::vector<float> values, std::int64_t steps,
            SignalInfo info, Attribution attribution, Rows rows);

    [[nodiscard]] bool isEmpty() const { return tokens_ == 0 || steps_ == 0; }
    [[nodiscard]] std::int64_t tokens() const { return tokens_; }
    [[nodiscard]] std::int64_t steps() const { return steps_; } ///< number of rows: steps, layers, experts
    [[nodiscard]] Rows rows() const { return rows_; }
    [[nodiscard]] const SignalInfo& info() const { return info_; }
    /// Kind::missing outside the map.
    [[nodiscard]] Cell at(std::int64_t token, std::int64_t step) const;
    [[nodiscard]] const ColourScale& scale() const { return look_.scale; }
    [[nodiscard]] const ValueLook& look() const { return look_; }
    [[nodiscard]] bool hasHalted() const { return has_halted_; }
    /// Cells of \p count columns over tokens [first, last), which may be fractions: [column * steps + step].
    /// A column shows the mean over the token under its left edge and all tokens that begin in the column. A
    /// cell is halted if none of its tokens ran the step. Time grows with the visible tokens.
    [[nodiscard]] std::vector<Cell> columns(double first, double last, int count) const;

private:
    static constexpr std::int64_t block_rows = 64; ///< wide columns add up sums of blocks, not rows
    struct Sum {
        double sum = 0;
        std::int64_t count = 0; ///< number of values
        bool ran = false;       ///< some row ran the step
    };
    void addRow(std::int64_t row, Sum* sums) const;
    [[nodiscard]] std::int32_t executed(std::int64_t row) const;

    SignalInfo info_;
    Attribution attribution_ = Attribution::predicted;
    Rows rows_ = Rows::steps;
    std::int64_t tokens_ = 0;
    std::int64_t steps_ = 0;
    std::int64_t recorded_ = 0; ///< number of recorded rows
    std::shared_ptr<const SequenceData> sequence_;
    std::vector<float> values_; ///< [row * steps + step]
    std::vector<Sum> blocks_;   ///< [block * steps + step]: sums of `block_rows` rows
    bool has_halted_ = false;
    ValueLook look_;
};

} // namespace ponderscope
