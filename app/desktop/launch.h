// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QSize>
#include <QString>
#include <QStringList>

#include <optional>

namespace ponderscope {

/// The parsed command line of ponderscope-desktop.
struct Launch {
    QStringList paths;   ///< traces (TRACE or TRACE#RUN) and checkpoint folders
    QString screenshot;  ///< PNG to write instead of showing a window
    QSize size{1440, 900};
    double scale = 1; ///< pixels of the screenshot per pixel of the window
    QString theme;    ///< "light", "dark" or empty
    std::optional<qint64> sequence;
    std::optional<qint64> token;
    QString quantity; ///< "nll", "entropy", … or empty
    bool difference = false;
    QStringList tabs;  ///< panels to be raised: "compare", "lab"
    QString message;   ///< to be printed (help, version); then the program ends with `exitCode`
    int exitCode = -1; ///< -1: go on
};

/// \p arguments with the program's name first. Never exits; errors are a sentence in `message` with exit
/// code 2.
Launch parse_launch(const QStringList& arguments);

/// Versions of this program and of its libraries, one a line.
QString version_text();

} // namespace ponderscope
