// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trace/column_labels.h"

#include "core/base/words.h"

#include <string_view>

namespace ponderscope {

namespace {

constexpr std::string_view opening = " Sources: ";
constexpr std::string_view between = ", ";

} // namespace

std::string with_column_labels(const std::string& description, const std::vector<std::string>& labels) {
    return labels.empty() ? description : description + std::string(opening) + joined(labels) + ".";
}

std::vector<std::string> column_labels(const std::string& description, std::size_t count) {
    std::vector<std::string> labels;
    const std::size_t begin = description.rfind(opening);
    if (begin != std::string::npos && description.back() == '.') {
        std::string_view rest(description);
        rest = rest.substr(begin + opening.size(), rest.size() - begin - opening.size() - 1);
        while (!rest.empty()) {
            const std::size_t end = rest.find(between);
            labels.emplace_back(rest.substr(0, end));
            rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + between.size());
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
