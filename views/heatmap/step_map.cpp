// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/heatmap/step_map.h"

#include "core/trace/reader.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

namespace ponderscope {

StepMap::StepMap(std::shared_ptr<const SequenceData> sequence, const SignalChunk& chunk,
                 const SignalInfo& info, Attribution attribution)
    : StepMap(std::move(sequence), to_floats(chunk), chunk.shape[1], info, attribution, Rows::steps) {}

StepMap::StepMap(std::shared_ptr<const SequenceData> sequence, std::vector<float> values, std::int64_t steps,
                 SignalInfo info, Attribution attribution, Rows rows_are)
    : info_(std::move(info)),
      attribution_(attribution),
      rows_(rows_are),
      tokens_(static_cast<std::int64_t>(sequence->tokens.size())),
      steps_(steps),
      recorded_(std::min(static_cast<std::int64_t>(values.size()) / steps, tokens_)),
      sequence_(std::move(sequence)),
      values_(std::move(values)) {
    if (info_.of_target && !is_real(info_.dtype)) {
        // A rank of 0: the token was not scored. Below 0: the step did not run.
        std::ranges::replace_if(
            values_, [](float rank) { return rank < 1; }, std::numeric_limits<float>::quiet_NaN());
    }
    values_.resize(static_cast<std::size_t>(recorded_ * steps_));
    for (std::int64_t row = 0; row < recorded_; ++row) {
        const auto ran = std::clamp<std::int64_t>(executed(row) + std::int64_t{1}, 0, steps_);
        has_halted_ = has_halted_ || ran < steps_;
        std::fill(values_.begin() + row * steps_ + ran, values_.begin() + (row + 1) * steps_,
                  std::numeric_limits<float>::quiet_NaN());
    }
    blocks_.resize(static_cast<std::size_t>((recorded_ + block_rows - 1) / block_rows * steps_));
    for (std::int64_t row = 0; row < recorded_; ++row) {
        addRow(row, blocks_.data() + row / block_rows * steps_);
    }
    look_ = look_of(kind_of_signal(info_), spread_of(std::span<const float>(values_)));
}

void StepMap::addRow(std::int64_t row, Sum* sums) const {
    const std::int64_t end = std::min<std::int64_t>(executed(row) + std::int64_t{1}, steps_);
    for (std::int64_t step = 0; step < end; ++step) {
        const float value = values_[static_cast<std::size_t>(row * steps_ + step)];
        sums[step].ran = true;
        if (!std::isnan(value)) {
            sums[step].sum += static_cast<double>(value);
            ++sums[step].count;
        }
    }
}

std::int32_t StepMap::executed(std::int64_t row) const {
    return rows_ == Rows::steps ? sequence_->tokens.steps[static_cast<std::size_t>(row)]
                                : std::numeric_limits<std::int32_t>::max() - 1;
}

StepMap::Cell StepMap::at(std::int64_t token, std::int64_t step) const {
    if (token < 0 || token >= tokens_ || step < 0 || step >= steps_) {
        return {};
    }
    const std::int64_t row = attribution_ == Attribution::predicted ? token - 1 : token;
    if (row < 0 || row >= recorded_) {
        return {};
    }
    if (step > executed(row)) {
        return {Kind::halted, 0};
    }
    const float value = values_[static_cast<std::size_t>(row * steps_ + step)];
    return std::isnan(value) ? Cell{} : Cell{Kind::value, value};
}

std::vector<StepMap::Cell> StepMap::columns(double first, double last, int count) const {
    std::vector<Cell> cells;
    if (count < 1 || isEmpty() || !(last > first)) {
        return cells;
    }
    cells.resize(static_cast<std::size_t>(count) * static_cast<std::size_t>(steps_));
    const double per_column = (last - first) / count;
    const std::int64_t shift = attribution_ == Attribution::predicted ? 1 : 0;
    std::vector<Sum> sums(static_cast<std::size_t>(steps_));
    for (int column = 0; column < count; ++column) {
        const auto begin = static_cast<std::int64_t>(std::floor(first + column * per_column));
        const auto end =
            std::max(begin + 1, static_cast<std::int64_t>(std::floor(first + (column + 1) * per_column)));
        // Only existing rows count: the token before the first row, and those after the last, stay missing.
        const std::int64_t row_begin = std::max<std::int64_t>(begin - shift, 0);
        const std::int64_t row_end = std::min({end - shift, recorded_, tokens_ - shift});
        if (row_begin >= row_end) {
            continue;
        }
        std::ranges::fill(sums, Sum{});
        for (std::int64_t row = row_begin; row < row_end;) {
            if (row % block_rows != 0 || row + block_rows > row_end) {
                addRow(row++, sums.data());
                continue;
            }
            const Sum* block = blocks_.data() + row / block_rows * steps_;
            for (std::size_t step = 0; step < sums.size(); ++step) {
                sums[step].sum += block[step].sum;
                sums[step].count += block[step].count;
                sums[step].ran = sums[step].ran || block[step].ran;
            }
            row += block_rows;
        }
        Cell* cell = cells.data() + column * steps_;
        for (const Sum& one : sums) {
            *cell++ = one.count > 0
                          ? Cell{Kind::value, static_cast<float>(one.sum / static_cast<double>(one.count))}
                          : Cell{one.ran ? Kind::missing : Kind::halted, 0};
        }
    }
    return cells;
}

} // namespace ponderscope
