// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/depth/depth_map.h"

#include "core/base/error.h"
#include "core/stats/token_dependence.h"
#include "core/trace/column_labels.h"
#include "core/trace/reader.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ponderscope {
namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

std::ptrdiff_t axis_of(const SignalInfo& info, const char* name) {
    const auto found = std::find(info.axes.begin(), info.axes.end(), name);
    return found == info.axes.end() ? -1 : found - info.axes.begin();
}

} // namespace

bool DepthMap::fits(const SignalInfo& info) {
    std::size_t known = 1;
    for (const char* optional : {"step", "head"}) {
        known += axis_of(info, optional) > 0 ? 1 : 0;
    }
    const bool layer = axis_of(info, "layer") > 0 || axis_of(info, "sublayer") > 0;
    const bool source = axis_of(info, "source") > 0 || axis_of(info, "stream") > 0;
    return axis_of(info, "token") == 0 && layer && source && info.axes.size() == known + 2;
}

DepthMap::DepthMap(const SignalChunk& chunk, const SignalInfo& info, std::vector<std::int32_t> executed)
    : executed_(std::move(executed)) {
    const std::vector<std::int64_t>& shape = chunk.shape;
    constexpr std::int64_t most = 1 << 20; // of an axis: what a stranger's trace may claim
    if (!fits(info) || shape.size() != info.axes.size() || chunk.first != 0 || shape[0] < 0 ||
        std::any_of(shape.begin() + 1, shape.end(),
                    [](std::int64_t size) { return size < 1 || size > most; })) {
        throw InputError("The signal \"" + info.name +
                         "\" is not one value a token, layer and source; record the trace again.");
    }
    std::vector<std::size_t> strides(shape.size(), 1);
    for (std::size_t axis = shape.size() - 1; axis > 0; --axis) {
        strides[axis - 1] = strides[axis] * static_cast<std::size_t>(shape[axis]);
    }
    const auto place = [&](const std::string& name, std::int64_t& size, std::size_t& stride) {
        const std::ptrdiff_t axis = axis_of(info, name.c_str());
        size = axis < 0 ? 1 : shape[static_cast<std::size_t>(axis)];
        stride = axis < 0 ? 0 : strides[static_cast<std::size_t>(axis)];
    };
    layer_name_ = axis_of(info, "layer") > 0 ? "layer" : "sublayer";
    source_name_ = axis_of(info, "source") > 0 ? "source" : "stream";
    place("token", rows_, row_stride_);
    place("step", steps_, step_stride_);
    place(layer_name_, layers_, layer_stride_);
    place(source_name_, sources_, source_stride_);
    source_labels_ = column_labels(info.description, static_cast<std::size_t>(sources_));
    place("head", heads_, head_stride_);
    if (!is_real(chunk.dtype)) {
        throw InputError("The signal \"" + info.name + "\": expected F16, BF16 or F32, found " +
                         std::string(name_of(chunk.dtype)) + "; record the trace again.");
    }
    values_ = to_floats(chunk);
    if (values_.size() < static_cast<std::size_t>(rows_) * row_stride_) {
        throw InputError("The signal \"" + info.name + "\" is shorter than it says; record the trace again.");
    }
    rows_ = std::min(rows_, static_cast<std::int64_t>(executed_.size()));
    // A source counts as read if any token of a sample reads it, in any step and head.
    reads_.assign(static_cast<std::size_t>(layers_ * sources_), false);
    for (std::int64_t layer = 0; layer < layers_; ++layer) {
        for (std::int64_t source = 0; source < sources_; ++source) {
            const auto cell = static_cast<std::size_t>(layer * sources_ + source);
            for (std::int64_t row = 0; row < rows_ && !reads_[cell]; row += row_stride()) {
                for (std::int64_t part = 0; part < steps_ * heads_ && !reads_[cell]; ++part) {
                    const float value = values_.at(static_cast<std::size_t>(row) * row_stride_ +
                                                   static_cast<std::size_t>(part / heads_) * step_stride_ +
                                                   static_cast<std::size_t>(layer) * layer_stride_ +
                                                   static_cast<std::size_t>(source) * source_stride_ +
                                                   static_cast<std::size_t>(part % heads_) * head_stride_);
                    reads_[cell] = !std::isnan(value) && value != 0;
                }
            }
        }
    }
}

std::int64_t DepthMap::row_stride() const {
    return std::max<std::int64_t>(1, (rows_ + most_rows - 1) / most_rows);
}

bool DepthMap::reads(std::int64_t layer, std::int64_t source) const {
    return layer >= 0 && layer < layers_ && source >= 0 && source < sources_ &&
           reads_[static_cast<std::size_t>(layer * sources_ + source)];
}

float DepthMap::at(std::int64_t row, std::int64_t step, std::int64_t layer, std::int64_t source,
                   std::int64_t head) const {
    if (row < 0 || row >= rows_ || !reads(layer, source) || head >= heads_) {
        return nan;
    }
    const std::int64_t ran =
        std::clamp<std::int64_t>(executed_[static_cast<std::size_t>(row)], 0, steps_ - 1);
    const std::int64_t chosen = step < 0 || steps_ == 1 ? ran : step;
    if (chosen > ran) {
        return nan;
    }
    const std::size_t start =
        static_cast<std::size_t>(row) * row_stride_ + static_cast<std::size_t>(chosen) * step_stride_ +
        static_cast<std::size_t>(layer) * layer_stride_ + static_cast<std::size_t>(source) * source_stride_;
    if (head >= 0) {
        return values_.at(start + static_cast<std::size_t>(head) * head_stride_);
    }
    double sum = 0;
    for (std::int64_t h = 0; h < heads_; ++h) {
        sum += static_cast<double>(values_.at(start + static_cast<std::size_t>(h) * head_stride_));
    }
    return static_cast<float>(sum / static_cast<double>(heads_));
}

std::vector<float> DepthMap::grid(std::int64_t row, std::int64_t step, std::int64_t head) const {
    std::vector<float> values;
    values.reserve(static_cast<std::size_t>(layers_ * sources_));
    for (std::int64_t layer = 0; layer < layers_; ++layer) {
        for (std::int64_t source = 0; source < sources_; ++source) {
            values.push_back(at(row, step, layer, source, head));
        }
    }
    return values;
}

std::vector<float> DepthMap::over_tokens(std::int64_t source, std::int64_t step, std::int64_t head) const {
    std::vector<float> values;
    values.reserve(static_cast<std::size_t>(rows_ * layers_));
    for (std::int64_t row = 0; row < rows_; ++row) {
        for (std::int64_t layer = 0; layer < layers_; ++layer) {
            values.push_back(at(row, step, layer, source, head));
        }
    }
    return values;
}

double DepthMap::token_share(std::int64_t layer, std::int64_t step, std::int64_t first_head,
                             std::int64_t end_head) const {
    std::vector<std::int64_t> read;
    for (std::int64_t source = 0; source < sources_; ++source) {
        if (reads(layer, source)) {
            read.push_back(source);
        }
    }
    if (read.size() < 2) {
        return nan;
    }
    TokenDependence dependence;
    std::vector<float> weights;
    for (std::int64_t row = 0; row < rows_; row += row_stride()) {
        weights.clear();
        for (const std::int64_t source : read) {
            for (std::int64_t h = first_head; h < end_head; ++h) {
                weights.push_back(at(row, step, layer, source, h));
            }
        }
        if (std::all_of(weights.begin(), weights.end(), [](float value) { return std::isfinite(value); })) {
            dependence.add(weights);
        }
    }
    return dependence.share_between_tokens();
}

DepthMap::Averages DepthMap::averages(std::int64_t step, std::int64_t head) const {
    Averages all;
    const std::int64_t stride = row_stride();
    const std::int64_t first_head = head < 0 ? 0 : head;
    const std::int64_t end_head = head < 0 ? heads_ : head + 1;
    for (std::int64_t row = 0; row < rows_; row += stride) {
        ++all.used_rows;
    }
    for (std::int64_t layer = 0; layer < layers_; ++layer) {
        all.token_share.push_back(token_share(layer, step, first_head, end_head));
        for (std::int64_t source = 0; source < sources_; ++source) {
            double sum = 0;
            double squares = 0;
            std::int64_t count = 0;
            for (std::int64_t h = first_head; h < end_head; ++h) {
                for (std::int64_t row = 0; row < rows_; row += stride) {
                    const auto value = static_cast<double>(at(row, step, layer, source, h));
                    if (std::isfinite(value)) {
                        sum += value;
                        squares += value * value;
                        ++count;
                    }
                }
            }
            const double mean = sum / static_cast<double>(count); // NaN without a value
            all.mean.push_back(static_cast<float>(mean));
            // Over tokens and heads: what a reader sees scatter about the mean.
            all.deviation.push_back(static_cast<float>(
                std::sqrt(std::max(0.0, squares / static_cast<double>(count) - mean * mean)) +
                (count == 0 ? std::nan("") : 0)));
        }
    }
    return all;
}

} // namespace ponderscope
