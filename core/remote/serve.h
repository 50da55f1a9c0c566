// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <stop_token>

namespace ponderscope {

struct ServeOptions {
    int input = 0;
    int output = 1;
    std::filesystem::path root; ///< refuses paths outside of it; empty: all files that the user may read
};

/// Answers questions for files (core/remote/frames.h) until the input ends: what another machine's
/// ponderscope reads traces through. Nothing is written but answers; files are opened read-only, and a
/// transaction ends after a tenth of a second without a question, at the latest after one second, so that a
/// recording does not wait. InputError: a question that breaks the rules of the protocol; nothing is answered
/// then.
void serve(const ServeOptions& options, const std::stop_token& stop);

} // namespace ponderscope
