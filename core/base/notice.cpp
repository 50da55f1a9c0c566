// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/notice.h"

#include "core/base/utf8.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace ponderscope {

const char* name_of(NoticeId id) {
    static constexpr const char* names[] = {
#define PONDERSCOPE_NOTICE(area, name, meaning) #area "." #name,
#include "core/base/notice_ids.def"
#undef PONDERSCOPE_NOTICE
    };
    return names[static_cast<std::size_t>(id)];
}

void add_new(Notices& notices, const Notices& more) {
    for (const Notice& notice : more) {
        if (std::ranges::find(notices, notice) == notices.end()) {
            notices.push_back(notice);
        }
    }
}

std::vector<std::string> texts_of(const Notices& notices) {
    std::vector<std::string> texts;
    for (const Notice& notice : notices) {
        texts.push_back(notice.text);
    }
    return texts;
}

void write_notices(nlohmann::json& report, const Notices& notices) {
    nlohmann::json texts = nlohmann::json::array();
    nlohmann::json ids = nlohmann::json::array();
    for (const Notice& notice : notices) {
        texts.push_back(valid_utf8(notice.text));
        ids.push_back(name_of(notice.id));
    }
    report["notices"] = texts;
    report["notice_ids"] = ids;
}

} // namespace ponderscope
