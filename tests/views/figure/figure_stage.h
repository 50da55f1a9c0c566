// SPDX-License-Identifier: GPL-3.0-or-later
// What tests of figures start from.
#pragma once

#include "tests/support/errors.h"
#include "tests/support/sample_trace.h"
#include "tests/support/test_data.h"
#include "views/figure/figure.h"

#include <QStringList>

#include <filesystem>
#include <functional>
#include <string>

namespace ponderscope::figure {

/// Fonts, and a folder with the traces that specifications name.
struct FigureStage {
    [[nodiscard]] FigureSpec parsed(const std::string& json) const {
        return parse_figure_spec(json, folder_ / "spec.json");
    }
    [[nodiscard]] Figure made(const FigureSpec& spec) const { return compose(spec, gather(spec), fonts_); }
    [[nodiscard]] Figure made(const std::string& json) const { return made(parsed(json)); }
    [[nodiscard]] FigureSpec read_back(const FigureSpec& spec) const {
        return parsed(write_figure_spec(spec, folder_.path()));
    }
    /// Writes story.ponder (two texts with signals) and basic.ponder (one without signals and text).
    void write_story() const {
        testing::write_sample_trace(trace_, {.sequences = 2, .tokens = 300});
        testing::write_sample_trace(
            folder_ / "basic.ponder",
            {.seed = 7, .sequences = 1, .tokens = 50, .withSignals = false, .withText = false});
    }

    testing::TemporaryFolder folder_;
    std::filesystem::path trace_ = folder_ / "story.ponder";
    Fonts fonts_ = Fonts::load();
};

/// The words on a page, in the order of drawing.
inline QStringList texts_of(const DisplayList& page) {
    QStringList texts;
    for (const Item& item : page.items()) {
        if (const auto* text = std::get_if<TextItem>(&item)) {
            texts << text->text;
        }
    }
    return texts;
}

/// The error's sentence and id; empty where none was thrown.
inline QString thrown(const std::function<void()>& call) {
    return QString::fromStdString(testing::error_of<Error>(call));
}

} // namespace ponderscope::figure
