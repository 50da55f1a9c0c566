// SPDX-License-Identifier: GPL-3.0-or-later
// Before Qt, whose keyword `signals` is a name there.
#include "core/trace/reader.h"

#include "views/heatmap/step_map.h"

#include "core/base/error.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace ponderscope {

StepMap::StepMap(const SequenceData& sequence, const SignalChunk& chunk, SignalInfo info,
                 Attribution attribution, Rows rows_are)
    : info_(std::move(info)), attribution_(attribution), rows_(rows_are) {
    if (chunk.shape.size() != 2 || chunk.shape[0] < 0 || chunk.shape[1] < 1 || chunk.first != 0) {
        throw InputError("The signal \"" + info_.name +
                         "\" is not one value a token and step; record the trace again.");
    }
    values_ = to_floats(chunk);
    steps_ = chunk.shape[1];
    const std::int64_t rows = std::min(chunk.shape[0], static_cast<std::int64_t>(sequence.tokens.size()));
    if (static_cast<std::int64_t>(values_.size()) < rows * steps_) {
        throw InputError("The signal \"" + info_.name +
                         "\" is shorter than it says; record the trace again.");
    }
    tokens_ = static_cast<std::int64_t>(sequence.tokens.size());
    if (rows_ == Rows::layers) {
        executed_.assign(static_cast<std::size_t>(rows), std::numeric_limits<std::int32_t>::max() - 1);
    } else {
        executed_.assign(sequence.tokens.steps.begin(), sequence.tokens.steps.begin() + rows);
    }
    has_halted_ =
        std::any_of(executed_.begin(), executed_.end(), [&](std::int32_t last) { return last + 1 < steps_; });
    if (info_.name == signal::rank) {
        // A rank of 0 says that the token was not scored.
        std::replace(values_.begin(), values_.end(), 0.0F, std::numeric_limits<float>::quiet_NaN());
    }
    findScale();
}

StepMap::Cell StepMap::rowCell(std::int64_t row, std::int64_t step) const {
    if (row < 0 || row >= static_cast<std::int64_t>(executed_.size())) {
        return {};
    }
    if (step > executed_[static_cast<std::size_t>(row)]) {
        return {Kind::halted, 0};
    }
    const float value = values_[static_cast<std::size_t>(row * steps_ + step)];
    return std::isnan(value) ? Cell{} : Cell{Kind::value, value};
}

StepMap::Cell StepMap::at(std::int64_t token, std::int64_t step) const {
    if (token < 0 || token >= tokens_ || step < 0 || step >= steps_) {
        return {};
    }
    return rowCell(attribution_ == Attribution::predicted ? token - 1 : token, step);
}

std::vector<StepMap::Cell> StepMap::columns(double first, double last, int count, Merge merge) const {
    std::vector<Cell> cells;
    if (count < 1 || isEmpty() || !(last > first)) {
        return cells;
    }
    cells.resize(static_cast<std::size_t>(count) * static_cast<std::size_t>(steps_));
    const double per_column = (last - first) / count;
    const std::int64_t shift = attribution_ == Attribution::predicted ? 1 : 0;
    const auto rows = static_cast<std::int64_t>(executed_.size());
    for (int column = 0; column < count; ++column) {
        const auto begin = static_cast<std::int64_t>(std::floor(first + column * per_column));
        const auto end =
            std::max(begin + 1, static_cast<std::int64_t>(std::floor(first + (column + 1) * per_column)));
        // Only rows that exist: the token before the first row, and those after the last, stay missing.
        const std::int64_t row_begin = std::max<std::int64_t>(begin - shift, 0);
        const std::int64_t row_end = std::min({end - shift, rows, tokens_ - shift});
        if (row_begin >= row_end) {
            continue;
        }
        for (std::int64_t step = 0; step < steps_; ++step) {
            double sum = 0;
            float largest = 0;
            std::int64_t with_value = 0;
            bool ran = false;
            for (std::int64_t row = row_begin; row < row_end; ++row) {
                if (step > executed_[static_cast<std::size_t>(row)]) {
                    continue;
                }
                ran = true;
                const float value = values_[static_cast<std::size_t>(row * steps_ + step)];
                if (!std::isnan(value)) {
                    largest = with_value == 0 ? value : std::max(largest, value);
                    sum += value;
                    ++with_value;
                }
            }
            Cell& cell = cells[static_cast<std::size_t>(column) * static_cast<std::size_t>(steps_) +
                               static_cast<std::size_t>(step)];
            if (with_value > 0) {
                cell = {Kind::value, merge == Merge::largest
                                         ? largest
                                         : static_cast<float>(sum / static_cast<double>(with_value))};
            } else {
                cell = {ran ? Kind::missing : Kind::halted, 0};
            }
        }
    }
    return cells;
}

void StepMap::findScale() {
    // A sample is enough for the end of a colour scale; sorting millions of values would be felt.
    constexpr std::size_t enough = 200'000;
    std::vector<float> sample;
    const std::size_t total = executed_.size() * static_cast<std::size_t>(steps_);
    const std::size_t stride = total / enough + 1;
    for (std::size_t i = 0; i < total; i += stride) {
        const auto row = i / static_cast<std::size_t>(steps_);
        const auto step = static_cast<std::int32_t>(i % static_cast<std::size_t>(steps_));
        if (step <= executed_[row] && std::isfinite(values_[i])) {
            sample.push_back(values_[i]);
        }
    }
    if (sample.empty()) {
        scale_ = {0, 1, false};
        return;
    }
    const auto place =
        sample.begin() + static_cast<std::ptrdiff_t>(static_cast<double>(sample.size() - 1) * 0.99);
    std::nth_element(sample.begin(), place, sample.end());
    const double high = *place;
    const double low = *std::min_element(sample.begin(), sample.end());
    if (info_.name == signal::rank) {
        scale_ = {1, std::pow(10, std::ceil(std::log10(std::max(10.0, high)))), true};
    } else if (low < 0) {
        scale_ = {-nice_ceiling(-low), high > 0 ? nice_ceiling(high) : 0, false};
    } else if (info_.unit == "probability") {
        scale_ = {0, 1, false};
    } else {
        scale_ = {0, high > 0 ? nice_ceiling(high) : 1, false};
    }
}

} // namespace ponderscope
