// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/theme.h"

#include <QSize>
#include <QString>
#include <QStringList>

#include <optional>

namespace ponderscope {

/// The parsed command line of ponderscope-desktop.
struct Launch {
    QStringList paths;  ///< traces (TRACE or TRACE#RUN) and checkpoint folders
    QString screenshot; ///< PNG to write instead of showing a window
    QSize size{1440, 900};
    double scale = 1;                ///< scale factor of the screenshot
    std::optional<Appearance> theme; ///< light, dark or contrast
    std::optional<qint64> sequence;
    std::optional<qint64> token;
    QString quantity; ///< "nll", "entropy", … or empty
    bool difference = false;
    QStringList tabs;  ///< panels to bring to the front: "compare", "lab"
    QString message;   ///< text to print (help, version); then the program ends with `exitCode`
    int exitCode = -1; ///< -1: continue
};

/// \p arguments begin with the program's name. Never exits: an error becomes `message` with exit code 2.
Launch parse_launch(const QStringList& arguments);

/// Versions of this program and its libraries, one on each line.
QString version_text();

} // namespace ponderscope
