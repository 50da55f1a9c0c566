// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/error.h"
#include "tests/support/sample_trace.h"
#include "tests/support/test_data.h"

#include <filesystem>
#include <functional>
#include <string>

/// What tests of figures start from.
namespace ponderscope::figure {

/// Writes story.ponder, two texts with signals, and basic.ponder, one without them and without its text; the
/// first one's path.
inline std::filesystem::path write_story(const testing::TemporaryFolder& folder) {
    testing::SampleTrace story;
    story.sequences = 2;
    story.tokens = 300;
    testing::write_sample_trace(folder / "story.ponder", story);
    testing::SampleTrace basic;
    basic.sequences = 1;
    basic.tokens = 50;
    basic.withSignals = false;
    basic.withText = false;
    basic.seed = 7;
    testing::write_sample_trace(folder / "basic.ponder", basic);
    return folder / "story.ponder";
}

/// What was said of something wrong.
inline std::string thrown(const std::function<void()>& what) {
    try {
        what();
    } catch (const Error& error) {
        return error.what();
    }
    return "(nothing was thrown)";
}

} // namespace ponderscope::figure
