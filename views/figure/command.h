// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/figure/figure.h"

#include <QByteArray>

#include <filesystem>
#include <vector>

namespace ponderscope::figure {

inline constexpr const char* formats[] = {"pdf", "svg", "png", "tex", "csv"};

/// The bytes of a figure in the format \p extension (with or without a dot, any case). InputError: another
/// format, or "csv", which may need several files.
QByteArray encode(const Figure& figure, const Fonts& fonts, const std::string& extension, double dpi);

/// Writes the figure in the format of \p path's extension, and its numbers beside it (FIGURE.csv,
/// FIGURE.tokens.csv). Each file is written atomically. Returns the written files, the figure first.
/// InputError: another extension. Throws the errors of AtomicFile.
std::vector<std::filesystem::path> write_figure(const Figure& figure, const Fonts& fonts,
                                                const std::filesystem::path& path, double dpi);

/// Implements `ponderscope figure`, which starts `ponderscope-desktop --figure SPEC.json -o FILE` with
/// exactly these arguments. Needs no display. If no application object exists, creates one on Qt's offscreen
/// platform. Prints the names of the written files; prints errors to stderr. Returns the exit code: 0
/// success, 2 wrong use or input.
int run_figure_command(int argc, char** argv);

/// Whether the arguments ask for run_figure_command(). Call it before an application object exists.
bool asks_for_figure(int argc, char** argv);

} // namespace ponderscope::figure
