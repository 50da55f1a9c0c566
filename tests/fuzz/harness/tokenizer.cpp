// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/text/tokenizer.h"
#include "tests/fuzz/harness/harness.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace ponderscope;
    const auto path = fuzz::put("tokenizer.json", fuzz::text_of(data, size));
    constexpr std::string_view text = "The  r\xC3\xBC"
                                      "bezahl's 1234 \n\t\xF0\x9F\x91\x8D\xF0\x9F\x8F\xBD<s></s> a\xCC\x8A";
    fuzz::ask([&] {
        const Tokenizer tokenizer = Tokenizer::load(path);
        for (const bool special : {false, true}) {
            const Encoding encoding = tokenizer.encode(text, special);
            fuzz::require(encoding.begin.size() == encoding.ids.size() &&
                              encoding.end.size() == encoding.ids.size(),
                          "spans");
            std::uint64_t last = 0;
            for (std::size_t i = 0; i < encoding.ids.size(); ++i) {
                fuzz::require(encoding.ids[i] >= 0 && encoding.ids[i] < tokenizer.size(),
                              "an id beyond the vocabulary");
                fuzz::require(encoding.begin[i] >= last || encoding.begin[i] == encoding.end[i],
                              "token " + std::to_string(i) + " begins at " +
                                  std::to_string(encoding.begin[i]) + ", behind one that ends at " +
                                  std::to_string(last));
                fuzz::require(encoding.begin[i] <= encoding.end[i] && encoding.end[i] <= text.size(),
                              "a span outside");
                last = std::max(last, encoding.end[i]);
                (void)tokenizer.token_bytes(encoding.ids[i]);
            }
            (void)tokenizer.decode(encoding.ids, special);
        }
        tokenizer.require_vocabulary(1000);
    });
    return 0;
}
