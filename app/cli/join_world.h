// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/cli/progress_option.h"
#include "core/dist/collectives.h"

#include <CLI/CLI.hpp>

#include <memory>
#include <string>

namespace ponderscope::cli {

/// The processes that were started together with this one.
struct JoinWorld {
    World world;
    std::unique_ptr<Collectives> collectives; ///< null: alone, or they do not talk
    std::int64_t timeout = 300;               ///< seconds, for all of them to come

    void add_to(CLI::App& verb);
    /// Looks at the environment, takes the GPU of the local rank where \p device is "cuda", connects, and
    /// says on stderr what was found, by rank 0 alone, which also keeps the line of progress for itself. \p
    /// purpose stands at the end of that line. InputError: \p must_talk, and they cannot.
    void enter(std::string& device, ProgressStyle& style, bool must_talk, const std::string& purpose);
};

} // namespace ponderscope::cli
