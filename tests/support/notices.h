// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/notice.h"

#include <vector>

namespace ponderscope::testing {

using NoticeIds = std::vector<NoticeId>;

inline NoticeIds ids_of(const Notices& notices) {
    NoticeIds ids;
    for (const Notice& notice : notices) {
        ids.push_back(notice.id);
    }
    return ids;
}

} // namespace ponderscope::testing
