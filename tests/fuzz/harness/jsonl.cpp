// SPDX-License-Identifier: GPL-3.0-or-later
// A corpus in JSON Lines, plain or compressed, with groups and labels.
#include "core/record/jsonl.h"
#include "tests/fuzz/harness/harness.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace ponderscope;
    static const Tokenizer tokenizer =
        Tokenizer::load(testing::source_tree() / "sample_models" / "tokenizer" / "tokenizer.json");
    const auto path = fuzz::put("corpus.jsonl", fuzz::text_of(data, size));
    for (const bool skip_bad : {false, true}) {
        fuzz::ask([&] {
            JsonlSource source({.file = path,
                                .text_field = "text",
                                .group_field = skip_bad ? "" : "meta.author",
                                .label_field = skip_bad ? "label" : "",
                                .skip_bad = skip_bad},
                               tokenizer, tokenizer.size());
            while (const auto sequence = source.next()) {
                fuzz::require(sequence->ids.size() >= 2 && sequence->begin.size() == sequence->ids.size(),
                              "tokens");
                fuzz::require(sequence->end.back() <= sequence->text.size(), "a span outside of the text");
                for (const TextLabel& label : sequence->labels) {
                    fuzz::require(label.begin < label.end && label.end <= sequence->text.size(),
                                  "a label outside");
                }
            }
            (void)source.left_out();
        });
    }
    return 0;
}
