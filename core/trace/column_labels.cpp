// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trace/column_labels.h"

#include "core/base/words.h"

#include <string_view>

namespace ponderscope {

namespace {

constexpr std::string_view opening = " Sources: ";

} // namespace

std::string with_column_labels(const std::string& description, const std::vector<std::string>& labels) {
    return labels.empty() ? description : description + std::string(opening) + joined(labels) + ".";
}

std::vector<std::string> column_labels(const std::string& description, std::size_t count) {
    std::vector<std::string> labels;
    const std::size_t begin = description.rfind(opening);
    if (begin != std::string::npos && description.back() == '.') {
        const std::string_view text = std::string_view(description).substr(begin + opening.size());
        for (const std::string_view label : split_at(text.substr(0, text.size() - 1), ',')) {
            labels.emplace_back(label.substr(label.starts_with(' ') ? 1 : 0));
        }
    }
    if (labels.size() != count) {
        labels.clear();
        for (std::size_t i = 0; i < count; ++i) {
            labels.push_back(std::to_string(i));
        }
    }
    return labels;
}

} // namespace ponderscope
