// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/paths.h"
#include "views/figure/spec.h"

#include <QString>

#include <filesystem>
#include <string_view>

namespace ponderscope {

/// What an item of the workbench's lists is of.
enum ExportRole { name_role = Qt::UserRole, trace_role = Qt::UserRole + 1 };

/// A colour of tokens as the data of an item.
inline int code_of(figure::TokenColour colour) {
    return 2 * static_cast<int>(colour.of) + (colour.minus_b ? 1 : 0);
}

inline QString text_of(std::string_view name) {
    return QString::fromUtf8(name.data(), static_cast<qsizetype>(name.size()));
}

} // namespace ponderscope
