// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QCoreApplication>

namespace ponderscope {

/// Text outside of a QObject, in the user's language.
inline QString tr(const char* text) {
    return QCoreApplication::translate("Ponderscope", text);
}

} // namespace ponderscope
