// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

namespace ponderscope {

/// The kinds of notices, for programs and tests. notice_ids.def has their names and meanings.
enum class NoticeId {
#define PONDERSCOPE_NOTICE(area, name, meaning) area##_##name,
#include "core/base/notice_ids.def"
#undef PONDERSCOPE_NOTICE
};

/// The id as "area.name", for example "run.partial".
const char* name_of(NoticeId id);

/// A fact that the user should know and that is not an error.
struct Notice {
    NoticeId id;
    std::string text; ///< one or two sentences
    friend bool operator==(const Notice&, const Notice&) = default;
};
using Notices = std::vector<Notice>;

/// Appends the notices of \p more that are not yet in \p notices.
void add_new(Notices& notices, const Notices& more);
std::vector<std::string> texts_of(const Notices& notices);
/// Sets the keys "notices" (texts) and "notice_ids" of \p report. Both lists have the same order.
void write_notices(nlohmann::json& report, const Notices& notices);

} // namespace ponderscope
