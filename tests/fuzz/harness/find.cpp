// SPDX-License-Identifier: GPL-3.0-or-later
// What is typed into the search field, over a text: the pattern is the first line of the input, the text the
// rest.
#include "views/text/find.h"
#include "tests/fuzz/harness/harness.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace ponderscope;
    const std::string_view all = fuzz::text_of(data, size);
    const std::size_t line = std::min(all.find('\n'), all.size());
    SequenceData sequence;
    sequence.text = all.substr(std::min(line + 1, all.size()));
    for (std::uint64_t at = 0; at < sequence.text.size(); at += 3) { // also within characters
        sequence.tokens.id.push_back(static_cast<std::int32_t>(at));
        sequence.tokens.begin.push_back(at);
        sequence.tokens.end.push_back(std::min<std::uint64_t>(at + 3, sequence.text.size()));
    }
    const QString pattern = QString::fromUtf8(all.data(), static_cast<qsizetype>(line));
    QString problem;
    const auto require_ascending = [&](const std::vector<qint64>& hits) {
        fuzz::require(hits.size() <= 1000, "more hits than were asked for");
        for (std::size_t i = 0; i < hits.size(); ++i) {
            fuzz::require(hits[i] >= 0 && static_cast<std::size_t>(hits[i]) < sequence.tokens.size() &&
                              (i == 0 || hits[i] > hits[i - 1]),
                          "hits out of order");
        }
    };
    require_ascending(find_tokens(sequence, pattern, 1000));
    const auto hits = find_pattern(sequence, pattern, problem, 1000);
    require_ascending(hits);
    return 0;
}
