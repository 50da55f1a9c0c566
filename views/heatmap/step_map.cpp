// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/heatmap/step_map.h"

#include "core/base/error.h"
#include "core/trace/reader.h"
#include "views/heatmap/mip_pyramid.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace ponderscope {

namespace {

std::vector<float> values_of(const SequenceData& sequence, const SignalChunk& chunk, const SignalInfo& info) {
    if (chunk.shape.size() != 2 || chunk.shape[0] < 0 || chunk.shape[1] < 1 || chunk.first != 0) {
        throw InputError("The signal \"" + info.name +
                         "\" is not one value a token and step; record the trace again.");
    }
    std::vector<float> values = to_floats(chunk);
    const std::int64_t rows = std::min(chunk.shape[0], static_cast<std::int64_t>(sequence.tokens.size()));
    if (static_cast<std::int64_t>(values.size()) < rows * chunk.shape[1]) {
        throw InputError("The signal \"" + info.name + "\" is shorter than it says; record the trace again.");
    }
    return values;
}

} // namespace

StepMap::StepMap(const SequenceData& sequence, const SignalChunk& chunk, const SignalInfo& info,
                 Attribution attribution, Rows rows_are)
    : StepMap(sequence, values_of(sequence, chunk, info), chunk.shape[1], info, attribution, rows_are) {}

StepMap::StepMap(const SequenceData& sequence, std::vector<float> values, std::int64_t steps, SignalInfo info,
                 Attribution attribution, Rows rows_are)
    : info_(std::move(info)),
      attribution_(attribution),
      rows_(rows_are),
      steps_(steps),
      values_(std::move(values)) {
    const auto recorded = static_cast<std::int64_t>(values_.size()) / steps_;
    const std::int64_t rows = std::min(recorded, static_cast<std::int64_t>(sequence.tokens.size()));
    tokens_ = static_cast<std::int64_t>(sequence.tokens.size());
    recorded_ = rows;
    if (rows_ != Rows::steps) {
        executed_.assign(static_cast<std::size_t>(rows), std::numeric_limits<std::int32_t>::max() - 1);
    } else {
        executed_.assign(sequence.tokens.steps.begin(), sequence.tokens.steps.begin() + rows);
    }
    has_halted_ =
        std::any_of(executed_.begin(), executed_.end(), [&](std::int32_t last) { return last + 1 < steps_; });
    if (info_.of_target && !is_real(info_.dtype)) {
        // 0 says that the token was not scored, below that, that the step did not run.
        std::replace_if(
            values_.begin(), values_.end(), [](float rank) { return rank < 1; },
            std::numeric_limits<float>::quiet_NaN());
    }
    sampleValues();
    findScale();
}

StepMap::StepMap(std::shared_ptr<const SequenceData> sequence, std::shared_ptr<const MipPyramid> mips,
                 std::shared_ptr<const Page> page, SignalInfo info, Attribution attribution, Rows rows_are)
    : info_(std::move(info)),
      attribution_(attribution),
      rows_(rows_are),
      tokens_(static_cast<std::int64_t>(sequence->tokens.size())),
      steps_(mips->steps()),
      recorded_(std::min(mips->rows(), tokens_)),
      sequence_(std::move(sequence)),
      mips_(std::move(mips)),
      page_(std::move(page)),
      has_halted_(mips_->hasHalted()) {
    findScale();
}

std::int32_t StepMap::executed(std::int64_t row) const {
    const auto place = static_cast<std::size_t>(row);
    if (!mips_) {
        return executed_[place];
    }
    return rows_ == Rows::steps ? sequence_->tokens.steps[place]
                                : std::numeric_limits<std::int32_t>::max() - 1;
}

bool StepMap::paged(std::int64_t begin, std::int64_t end) const {
    return !mips_ || (page_ && begin >= page_->first &&
                      end <= page_->first + static_cast<std::int64_t>(page_->values.size()) / steps_);
}

bool StepMap::exact(std::int64_t first, std::int64_t last) const {
    const std::int64_t shift = attribution_ == Attribution::predicted ? 1 : 0;
    return paged(std::clamp<std::int64_t>(first - shift, 0, recorded_),
                 std::clamp<std::int64_t>(last - shift, 0, recorded_));
}

StepMap::Cell StepMap::rowCell(std::int64_t row, std::int64_t step) const {
    if (row < 0 || row >= recorded_) {
        return {};
    }
    return step > executed(row) ? Cell{Kind::halted, 0} : merged(row, row + 1, step, Merge::largest);
}

StepMap::Cell StepMap::at(std::int64_t token, std::int64_t step) const {
    if (token < 0 || token >= tokens_ || step < 0 || step >= steps_) {
        return {};
    }
    return rowCell(attribution_ == Attribution::predicted ? token - 1 : token, step);
}

/// Merges rows [begin, end), which must exist.
StepMap::Cell StepMap::merged(std::int64_t begin, std::int64_t end, std::int64_t step, Merge merge) const {
    MipPyramid::Block block;
    double sum = 0;
    if (paged(begin, end) && (!mips_ || end - begin < 4 * MipPyramid::base)) {
        const std::vector<float>& values = mips_ ? page_->values : values_;
        const std::int64_t first = mips_ ? page_->first : 0;
        for (std::int64_t row = begin; row < end; ++row) {
            if (step > executed(row)) {
                continue;
            }
            block.count |= MipPyramid::Block::ran_bit;
            const float value = values[static_cast<std::size_t>((row - first) * steps_ + step)];
            if (!std::isnan(value)) {
                block.largest = block.values() == 0 ? value : std::max(block.largest, value);
                sum += static_cast<double>(value);
                ++block.count;
            }
        }
    } else {
        block = mips_->over(begin, end, step);
        sum = static_cast<double>(block.sum);
    }
    if (block.values() > 0) {
        return {Kind::value, merge == Merge::largest
                                 ? block.largest
                                 : static_cast<float>(sum / static_cast<double>(block.values()))};
    }
    return {block.ran() ? Kind::missing : Kind::halted, 0};
}

std::vector<StepMap::Cell> StepMap::columns(double first, double last, int count, Merge merge) const {
    std::vector<Cell> cells;
    if (count < 1 || isEmpty() || !(last > first)) {
        return cells;
    }
    cells.resize(static_cast<std::size_t>(count) * static_cast<std::size_t>(steps_));
    const double per_column = (last - first) / count;
    const std::int64_t shift = attribution_ == Attribution::predicted ? 1 : 0;
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
        for (std::int64_t step = 0; step < steps_; ++step) {
            cells[static_cast<std::size_t>(column) * static_cast<std::size_t>(steps_) +
                  static_cast<std::size_t>(step)] = merged(row_begin, row_end, step, merge);
        }
    }
    return cells;
}

double StepMap::quantile(double share) const {
    if (mips_) {
        return mips_->quantile(share);
    }
    if (sample_.empty()) {
        return std::numeric_limits<double>::quiet_NaN();
    }
    const double place = std::clamp(share, 0.0, 1.0) * static_cast<double>(sample_.size() - 1);
    return static_cast<double>(sample_[static_cast<std::size_t>(place)]);
}

void StepMap::sampleValues() {
    // A sample is enough for the end of a colour scale; sorting millions of values would be felt.
    constexpr std::size_t enough = 200'000;
    const std::size_t total = executed_.size() * static_cast<std::size_t>(steps_);
    const std::size_t stride = total / enough + 1;
    for (std::size_t i = 0; i < total; i += stride) {
        const auto row = i / static_cast<std::size_t>(steps_);
        const auto step = static_cast<std::int32_t>(i % static_cast<std::size_t>(steps_));
        if (step <= executed_[row] && std::isfinite(values_[i])) {
            sample_.push_back(values_[i]);
        }
    }
    std::sort(sample_.begin(), sample_.end());
}

void StepMap::findScale() {
    const double high = quantile(0.99);
    look_ =
        look_of(kind_of_signal(info_), {quantile(0), std::isnan(high) ? 0 : std::max(high, -quantile(0.01))});
}

} // namespace ponderscope
