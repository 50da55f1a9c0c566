// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/attention/attention_row.h"

#include "core/trace/reader.h"

#include <algorithm>
#include <numeric>
#include <string_view>

namespace ponderscope {
namespace {

bool has_key_step(const SignalInfo& info) {
    return info.axes.size() == 6;
}

/// "0, 3-5" from the beginning of \p text, up to what is no number.
std::vector<int> numbers_at(std::string_view text) {
    constexpr int most = 4096; // of a stranger's trace
    std::vector<int> numbers;
    int value = -1;
    int first = -1; // of a range
    const auto take = [&] {
        for (int i = first < 0 ? value : first; value >= 0 && i <= value && numbers.size() < most; ++i) {
            numbers.push_back(i);
        }
        value = first = -1;
    };
    for (const char c : text) {
        if (c >= '0' && c <= '9') {
            value = std::min(std::max(value, 0) * 10 + (c - '0'), most);
        } else if (c == '-') {
            first = value;
            value = -1;
        } else if (c == ',') {
            take();
        } else if (c != ' ') {
            break;
        }
    }
    take();
    return numbers;
}

std::vector<int> numbers_after(std::string_view text, std::string_view word, std::int64_t count) {
    const std::size_t at = text.find(word);
    std::vector<int> numbers =
        at == std::string_view::npos ? std::vector<int>{} : numbers_at(text.substr(at + word.size()));
    if (static_cast<std::int64_t>(numbers.size()) != count) {
        numbers.resize(static_cast<std::size_t>(count));
        std::iota(numbers.begin(), numbers.end(), 0);
    }
    return numbers;
}

} // namespace

bool AttentionRow::fits(const SignalInfo& info) {
    const std::vector<std::string> axes{"token", "step", "layer", "head"};
    return (info.axes.size() == 5 || (has_key_step(info) && info.axes[4] == "key_step")) &&
           std::equal(axes.begin(), axes.end(), info.axes.begin()) && info.axes.back() == "back";
}

AttentionRow::AttentionRow(const SignalChunk& chunk, const SignalInfo& info, std::int64_t row) : row_(row) {
    steps_ = chunk.shape[1];
    layers_ = chunk.shape[2];
    heads_ = chunk.shape[3];
    key_steps_ = has_key_step(info) ? chunk.shape[4] : 1;
    back_ = chunk.shape.back();
    values_ = to_floats(chunk);
}

std::vector<float> AttentionRow::weights(std::int64_t step, std::int64_t layer, std::int64_t head) const {
    std::vector<float> result(static_cast<std::size_t>(row_) + 1, 0.0F);
    step = std::clamp<std::int64_t>(step, 0, steps_ - 1);
    const std::int64_t first_layer = layer < 0 ? 0 : layer;
    const std::int64_t end_layer = layer < 0 ? layers_ : layer + 1;
    const std::int64_t first_head = head < 0 ? 0 : head;
    const std::int64_t end_head = head < 0 ? heads_ : head + 1;
    const auto share = static_cast<float>((end_layer - first_layer) * (end_head - first_head));
    for (std::int64_t l = first_layer; l < end_layer; ++l) {
        for (std::int64_t h = first_head; h < end_head; ++h) {
            for (std::int64_t k = 0; k < key_steps_; ++k) {
                const std::int64_t start = (((step * layers_ + l) * heads_ + h) * key_steps_ + k) * back_;
                for (std::int64_t back = 0; back < std::min(back_, row_ + 1); ++back) {
                    result[static_cast<std::size_t>(row_ - back)] +=
                        values_[static_cast<std::size_t>(start + back)] / share;
                }
            }
        }
    }
    return result;
}

AttentionChoiceNumbers chosen_numbers(const SignalInfo& info, std::int64_t layers, std::int64_t heads) {
    // AttentionChoice::text: "layers 0, 3-5; heads 1, 2".
    return {numbers_after(info.description, "layers ", layers),
            numbers_after(info.description, "heads ", heads)};
}

} // namespace ponderscope
