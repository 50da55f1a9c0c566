// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/figure/figure.h"

#include <QByteArray>

#include <filesystem>
#include <vector>

namespace ponderscope::figure {

inline constexpr const char* formats[] = {"pdf", "svg", "png", "tex", "csv"};

/// The bytes of a figure in the format that \p extension names (with or without a full stop, any case).
/// InputError for others and for "csv", which has no one file.
QByteArray encode(const Figure& figure, const Fonts& fonts, const std::string& extension, double dpi);

/// Writes the figure in the format that the ending of \p path names, and its numbers beside it (FIGURE.csv,
/// FIGURE.tokens.csv): each file whole or not at all. Returns what was written, the figure first. InputError
/// for another ending; errors of AtomicFile.
std::vector<std::filesystem::path> write_figure(const Figure& figure, const Fonts& fonts,
                                                const std::filesystem::path& path, double dpi);

/// The program behind `ponderscope figure`, which starts `ponderscope-desktop --figure SPEC.json -o FILE`
/// with exactly these arguments. Needs neither a window nor a display: makes an application on Qt's offscreen
/// platform unless there is one. Prints the names of the written files; one sentence on stderr when something
/// is wrong. Returns the exit code: 0 done, 2 wrong use or input.
int run_figure_command(int argc, char** argv);

/// Whether the arguments ask for run_figure_command; to be asked before any application object is made.
bool asks_for_figure(int argc, char** argv);

} // namespace ponderscope::figure
