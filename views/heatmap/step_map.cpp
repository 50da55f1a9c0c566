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

StepMap::StepMap(std::shared_ptr<const SequenceData> sequence, const SignalChunk& chunk,
                 const SignalInfo& info, Attribution attribution)
    : StepMap(sequence, values_of(*sequence, chunk, info), chunk.shape[1], info, attribution, Rows::steps) {}

StepMap::StepMap(std::shared_ptr<const SequenceData> sequence, std::vector<float> values, std::int64_t steps,
                 SignalInfo info, Attribution attribution, Rows rows_are)
    : info_(std::move(info)),
      attribution_(attribution),
      rows_(rows_are),
      tokens_(static_cast<std::int64_t>(sequence->tokens.size())),
      steps_(steps),
      recorded_(std::min(static_cast<std::int64_t>(values.size()) / steps, tokens_)),
      sequence_(std::move(sequence)),
      whole_(true) {
    if (info_.of_target && !is_real(info_.dtype)) {
        // 0 says that the token was not scored, below that, that the step did not run.
        std::replace_if(
            values.begin(), values.end(), [](float rank) { return rank < 1; },
            std::numeric_limits<float>::quiet_NaN());
    }
    if (recorded_ > 0) {
        std::vector<std::int32_t> ran;
        for (std::int64_t row = 0; row < recorded_; ++row) {
            ran.push_back(executed(row));
        }
        MipPyramid::Builder builder(recorded_, steps_);
        builder.add(values, ran);
        mips_ = std::make_shared<const MipPyramid>(std::move(builder).finish());
    }
    page_ = std::make_shared<const Page>(Page{0, std::move(values)});
    look_ = fitted();
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
      look_(fitted()) {}

bool StepMap::hasHalted() const {
    return mips_ && mips_->hasHalted();
}

std::int32_t StepMap::executed(std::int64_t row) const {
    return rows_ == Rows::steps ? sequence_->tokens.steps[static_cast<std::size_t>(row)]
                                : std::numeric_limits<std::int32_t>::max() - 1;
}

bool StepMap::paged(std::int64_t begin, std::int64_t end) const {
    return whole_ || (page_ && begin >= page_->first &&
                      end <= page_->first + static_cast<std::int64_t>(page_->values.size()) / steps_);
}

bool StepMap::exact(std::int64_t first, std::int64_t last) const {
    const std::int64_t shift = attribution_ == Attribution::predicted ? 1 : 0;
    return paged(std::clamp<std::int64_t>(first - shift, 0, recorded_),
                 std::clamp<std::int64_t>(last - shift, 0, recorded_));
}

StepMap::Cell StepMap::at(std::int64_t token, std::int64_t step) const {
    if (token < 0 || token >= tokens_ || step < 0 || step >= steps_) {
        return {};
    }
    const std::int64_t row = attribution_ == Attribution::predicted ? token - 1 : token;
    return row < 0 || row >= recorded_ ? Cell{}
           : step > executed(row)      ? Cell{Kind::halted, 0}
                                       : merged(row, row + 1, step);
}

StepMap::Cell StepMap::merged(std::int64_t begin, std::int64_t end, std::int64_t step) const {
    MipPyramid::Block block;
    double sum = 0;
    if (paged(begin, end) && (whole_ || end - begin < 4 * MipPyramid::base)) {
        for (std::int64_t row = begin; row < end; ++row) {
            if (step > executed(row)) {
                continue;
            }
            block.count |= MipPyramid::Block::ran_bit;
            const float value = page_->values[static_cast<std::size_t>((row - page_->first) * steps_ + step)];
            if (!std::isnan(value)) {
                sum += static_cast<double>(value);
                ++block.count;
            }
        }
    } else {
        block = mips_->over(begin, end, step);
        sum = static_cast<double>(block.sum);
    }
    if (block.values() > 0) {
        return {Kind::value, static_cast<float>(sum / static_cast<double>(block.values()))};
    }
    return {block.ran() ? Kind::missing : Kind::halted, 0};
}

std::vector<StepMap::Cell> StepMap::columns(double first, double last, int count) const {
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
                  static_cast<std::size_t>(step)] = merged(row_begin, row_end, step);
        }
    }
    return cells;
}

ValueLook StepMap::fitted() const {
    const auto quantile = [&](double share) {
        return mips_ ? mips_->quantile(share) : std::numeric_limits<double>::quiet_NaN();
    };
    const double high = quantile(0.99);
    return look_of(kind_of_signal(info_),
                   {quantile(0), std::isnan(high) ? 0 : std::max(high, -quantile(0.01))});
}

} // namespace ponderscope
