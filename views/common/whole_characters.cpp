// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/whole_characters.h"

#include "core/base/utf8.h"
#include "views/common/format.h"

#include <QCoreApplication>
#include <QStringList>

#include <algorithm>

namespace ponderscope {
namespace {

/// How many bytes in front of \p at the character there begins; 0 where one begins at \p at.
std::size_t begun_before(std::string_view text, std::size_t at) {
    for (std::size_t back = 1; back < 4 && back <= at; ++back) {
        if (at < text.size() && utf8_at(text, at - back).bytes > back) {
            return back;
        }
    }
    return 0;
}

} // namespace

CharacterSpan whole_characters(std::string_view text, std::size_t begin, std::size_t end) {
    CharacterSpan span;
    const auto inside = [&](std::size_t at) { // ASCII needs no look around
        return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80;
    };
    if (begin < end && inside(begin)) {
        if (const std::size_t back = begun_before(text, begin); back > 0) {
            span.before = std::min(utf8_at(text, begin - back).bytes - back, end - begin);
        }
    }
    if (begin + span.before == end) {
        return span;
    }
    if (inside(end)) {
        if (const std::size_t back = begun_before(text, end); back > 0) {
            span.after = utf8_at(text, end - back).bytes - back;
        }
    }
    span.bytes = text.substr(begin + span.before, end + span.after - begin - span.before);
    return span;
}

CharacterSpan characters_of(const TokenColumns& tokens, std::string_view text, std::size_t row,
                            bool follows) {
    if (token_bytes(tokens, text, row).empty()) {
        return {};
    }
    const auto begin = static_cast<std::size_t>(tokens.begin[row]);
    const auto end = static_cast<std::size_t>(tokens.end[row]);
    CharacterSpan span = whole_characters(text, begin, end);
    if (!follows || tokens.end[row - 1] != begin) {
        span.bytes = text.substr(begin, end + span.after - begin);
        span.before = 0;
    }
    return span;
}

QString visible_token_of(const TokenColumns& tokens, std::string_view text, std::size_t row, int limit) {
    const std::string_view bytes = token_bytes(tokens, text, row);
    if (bytes.empty()) {
        return {};
    }
    const auto begin = static_cast<std::size_t>(tokens.begin[row]);
    const auto end = static_cast<std::size_t>(tokens.end[row]);
    const CharacterSpan span = whole_characters(text, begin, end);
    QStringList cut;
    const auto add = [&](std::size_t at) { cut << visible_text(text.substr(at, utf8_at(text, at).bytes)); };
    if (span.before > 0) {
        add(begin - begun_before(text, begin));
    }
    if (span.after > 0) {
        add(end - begun_before(text, end));
    }
    const QString shown = visible_token(bytes, limit);
    return cut.isEmpty()
               ? shown
               : QCoreApplication::translate("Token", "%1 of %2").arg(shown, cut.join(QStringLiteral(", ")));
}

} // namespace ponderscope
