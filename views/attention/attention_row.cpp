// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/attention/attention_row.h"

#include "core/trace/reader.h"

#include <QRegularExpression>

#include <algorithm>
#include <numeric>

using namespace Qt::StringLiterals;

namespace ponderscope {
namespace {

bool has_key_step(const SignalInfo& info) {
    return info.axes.size() == 6;
}

/// The numbers of a list such as "0, 3-5" after \p word; 0, 1, ... if there are not exactly \p count numbers.
std::vector<int> numbers_after(const std::string& text, const QString& word, std::int64_t count) {
    constexpr int most = 4096; // a limit for untrusted traces
    static const QRegularExpression range(u"(\\d{1,4})(?:-(\\d{1,4}))?"_s);
    const QRegularExpression list(word + u"([\\d ,-]*)"_s);
    std::vector<int> numbers;
    for (const auto& found : range.globalMatch(list.match(QString::fromStdString(text)).captured(1))) {
        const int last = found.captured(found.hasCaptured(2) ? 2 : 1).toInt();
        for (int i = found.captured(1).toInt(); i <= last && numbers.size() < most; ++i) {
            numbers.push_back(i);
        }
    }
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
    return {numbers_after(info.description, u"layers "_s, layers),
            numbers_after(info.description, u"heads "_s, heads)};
}

} // namespace ponderscope
