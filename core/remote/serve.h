// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <stop_token>

namespace ponderscope {

struct ServeOptions {
    int input = 0;
    int output = 1;
    std::filesystem::path root; ///< paths outside are refused; empty: all paths are allowed
};

/// Answers questions about files (core/remote/frames.h) until the input ends. Programs on other machines read
/// traces through this server. Opens files read-only, and writes only answers. A transaction ends a tenth of
/// a second after the last question, and at the latest after one second. So recordings do not wait for
/// readers. InputError: a question that breaks the protocol. Such a question gets no answer.
void serve(const ServeOptions& options, const std::stop_token& stop);

} // namespace ponderscope
