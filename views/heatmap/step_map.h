// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trace/records.h"
#include "views/common/colour_map.h"
#include "views/common/selection.h"
#include "views/common/trace_data.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace ponderscope {

/// A signal with a value a token and step, as a heatmap shows it: columns are tokens of the window, rows are
/// steps. Needs no window; a value, never changed after it was made.
class StepMap {
public:
    enum class Kind : std::uint8_t {
        value,
        halted, ///< the step did not run
        missing ///< no value: not recorded, not scored, or a token that shows no row
    };
    struct Cell {
        Kind kind = Kind::missing;
        float value = 0; ///< of Kind::value
    };
    /// What stands for several tokens in one column of pixels.
    enum class Merge { largest, mean };

    /// What the rows are. Layers run for every token; steps may halt.
    enum class Rows : std::uint8_t { steps, layers };

    StepMap() = default;
    /// \p chunk [tokens, steps] over the whole \p sequence (shorter is possible while a run is being
    /// recorded). InputError when the shape is another one, or when the element type is none that can be
    /// shown.
    StepMap(const SequenceData& sequence, const SignalChunk& chunk, SignalInfo info, Attribution attribution,
            Rows rows = Rows::steps);

    [[nodiscard]] bool isEmpty() const { return tokens_ == 0 || steps_ == 0; }
    [[nodiscard]] std::int64_t tokens() const { return tokens_; }
    [[nodiscard]] std::int64_t steps() const { return steps_; } ///< rows: steps or layers
    [[nodiscard]] Rows rows() const { return rows_; }
    [[nodiscard]] const SignalInfo& info() const { return info_; }
    /// Kind::missing outside the map.
    [[nodiscard]] Cell at(std::int64_t token, std::int64_t step) const;
    /// A scale for the values: from 0 for what has no negative values, 0 to 1 for probabilities, logarithmic
    /// for ranks; its upper end is a round number above 99 % of the values.
    [[nodiscard]] const ColourScale& scale() const { return scale_; }
    [[nodiscard]] bool hasHalted() const { return has_halted_; }

    /// Cells of \p count columns over tokens [first, last), which may be fractions of tokens: [column * steps
    /// + step]. A column holds the tokens that begin in it, and at least the one under its left edge; several
    /// tokens are merged over those that have a value. It is halted when none of its tokens ran the step.
    /// Time grows with the tokens in view.
    [[nodiscard]] std::vector<Cell> columns(double first, double last, int count, Merge merge) const;

private:
    [[nodiscard]] Cell rowCell(std::int64_t row, std::int64_t step) const;
    void findScale();

    SignalInfo info_;
    Attribution attribution_ = Attribution::predicted;
    Rows rows_ = Rows::steps;
    std::int64_t tokens_ = 0;
    std::int64_t steps_ = 0;
    std::vector<float> values_;          ///< [row * steps + step]
    std::vector<std::int32_t> executed_; ///< [row]: the last step that ran
    ColourScale scale_;
    bool has_halted_ = false;
};

} // namespace ponderscope
