// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/depth/depth_map.h"

#include "core/stats/token_dependence.h"
#include "core/trace/column_labels.h"
#include "core/trace/reader.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ponderscope {
namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

bool has_axis(const SignalInfo& info, const char* name) {
    return std::ranges::find(info.axes, name) != info.axes.end();
}

} // namespace

bool DepthMap::fits(const SignalInfo& info) {
    std::vector<std::string> axes{"token"};
    if (has_axis(info, "step")) {
        axes.emplace_back("step");
    }
    axes.emplace_back(has_axis(info, "sublayer") ? "sublayer" : "layer");
    axes.emplace_back(has_axis(info, "stream") ? "stream" : "source");
    if (has_axis(info, "head")) {
        axes.emplace_back("head");
    }
    return info.axes == axes;
}

DepthMap::DepthMap(const SignalChunk& chunk, const SignalInfo& info, std::vector<std::int32_t> executed)
    : executed_(std::move(executed)) {
    auto size = chunk.shape.begin();
    rows_ = *size++;
    steps_ = has_axis(info, "step") ? *size++ : 1;
    layers_ = *size++;
    sources_ = *size++;
    heads_ = has_axis(info, "head") ? *size : 1;
    layer_name_ = has_axis(info, "sublayer") ? "sublayer" : "layer";
    source_name_ = has_axis(info, "stream") ? "stream" : "source";
    source_labels_ = column_labels(info.description, static_cast<std::size_t>(sources_));
    values_ = to_floats(chunk);
    rows_ = std::min(rows_, static_cast<std::int64_t>(executed_.size()));
    // A source counts as read if any token of a sample reads it, in any step and head.
    reads_.assign(static_cast<std::size_t>(layers_ * sources_), false);
    for (std::int64_t row = 0; row < rows_; row += row_stride()) {
        for (std::int64_t step = 0; step < steps_; ++step) {
            for (std::size_t cell = 0; cell < reads_.size(); ++cell) {
                const auto begin =
                    values_.begin() + static_cast<std::ptrdiff_t>(place_of(row, step) +
                                                                  cell * static_cast<std::size_t>(heads_));
                reads_[cell] = reads_[cell] || std::any_of(begin, begin + heads_, [](float value) {
                                   return !std::isnan(value) && value != 0;
                               });
            }
        }
    }
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
    const auto start = values_.begin() + static_cast<std::ptrdiff_t>(place_of(row, chosen)) +
                       (layer * sources_ + source) * heads_;
    if (head >= 0) {
        return start[head];
    }
    double sum = 0;
    for (std::int64_t h = 0; h < heads_; ++h) {
        sum += static_cast<double>(start[h]);
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
        if (std::ranges::all_of(weights, [](float value) { return std::isfinite(value); })) {
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
    all.used_rows = (rows_ + stride - 1) / stride;
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
            // Over tokens and, if averaged, heads.
            all.deviation.push_back(static_cast<float>(
                std::sqrt(std::max(0.0, squares / static_cast<double>(count) - mean * mean)) +
                (count == 0 ? std::nan("") : 0)));
        }
    }
    return all;
}

} // namespace ponderscope
