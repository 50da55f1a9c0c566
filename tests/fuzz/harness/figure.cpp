// SPDX-License-Identifier: GPL-3.0-or-later
// The specification of a figure.
#include "tests/fuzz/harness/harness.h"
#include "views/figure/spec.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace ponderscope;
    const std::filesystem::path source = fuzz::folder() / "figure.json";
    fuzz::ask([&] {
        const figure::FigureSpec spec = figure::parse_figure_spec(fuzz::text_of(data, size), source);
        // What is written reads back as what writes the same.
        const std::string written = figure::write_figure_spec(spec, fuzz::folder());
        try {
            const figure::FigureSpec again = figure::parse_figure_spec(written, source);
            fuzz::require(figure::write_figure_spec(again, fuzz::folder()) == written, written);
        } catch (const InputError& error) {
            fuzz::fail(written + " is refused: " + error.what());
        }
    });
    return 0;
}
