// SPDX-License-Identifier: GPL-3.0-or-later
// What tests of figures start from.
#pragma once

#include "tests/support/errors.h"
#include "tests/support/sample_trace.h"
#include "tests/support/test_data.h"
#include "views/figure/figure.h"

#include <QProcess>
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
    /// A figure of runs of story.ponder.
    [[nodiscard]] FigureSpec about(FigureKind kind,
                                   const std::vector<std::string>& runs = {"adaponderlm-1m"}) const {
        FigureSpec spec;
        spec.kind = kind;
        for (const std::string& run : runs) {
            spec.runs.push_back({trace_, run});
        }
        return spec;
    }
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

/// What a program prints.
inline QString output_of(const QString& program, const QStringList& arguments) {
    QProcess process;
    process.start(program, arguments);
    process.waitForFinished();
    return QString::fromUtf8(process.readAllStandardOutput());
}

} // namespace ponderscope::figure
