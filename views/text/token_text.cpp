// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/text/token_text.h"

#include "views/common/format.h"

#include <algorithm>

using namespace Qt::StringLiterals;

namespace ponderscope {

namespace {

/// Longer tokens (lines of "=", base64 in one token) are shortened. The inspector shows them whole.
constexpr qsizetype longest_shown = 96;

bool is_ideograph(char32_t c) {
    return (c >= 0x2e80 && c <= 0x9fff) || (c >= 0xac00 && c <= 0xd7a3) || (c >= 0x20000 && c <= 0x3ffff);
}

/// Whether a line may break before any token: scripts without spaces, except closing punctuation.
bool breaks_anywhere(char32_t c) {
    const QChar::Category kind = QChar::category(c);
    if (kind == QChar::Punctuation_Close || kind == QChar::Punctuation_FinalQuote ||
        kind == QChar::Punctuation_Other) {
        return false;
    }
    return (c >= 0x0e00 && c <= 0x0eff) || (c >= 0x1000 && c <= 0x109f) || (c >= 0x1780 && c <= 0x17ff) ||
           (c >= 0x2e80 && c <= 0xd7ff) || (c >= 0xf900 && c <= 0xfaff) || (c >= 0xfe30 && c <= 0xfe4f) ||
           (c >= 0xff00 && c <= 0xffef) || (c >= 0x1f000 && c <= 0x1faff) || (c >= 0x20000 && c <= 0x3ffff);
}

} // namespace

TokenText token_text(std::string_view bytes, std::int32_t id, bool idsOnly, const QString& label) {
    TokenText shown;
    if (idsOnly) {
        shown.text = QString::number(id);
        shown.spaceBefore = true;
        shown.breakBefore = true;
        return shown;
    }
    if (bytes.empty()) {
        // A space, because the next token may begin without a space.
        shown.text = (label.isEmpty() ? u"‹id %1›"_s.arg(id) : label) + QChar(0x00a0);
        shown.special = true;
        shown.breakBefore = true;
        return shown;
    }
    shown.breakAfter = bytes.find('\n') != std::string_view::npos;
    const bool blank =
        std::ranges::all_of(bytes, [](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; });
    if (!blank && bytes.front() == ' ') {
        shown.spaceBefore = true;
        bytes.remove_prefix(1);
    }
    shown.spaceBefore = shown.spaceBefore || (blank && bytes.front() == ' ');
    QString text = visible_text(bytes);
    // Spaces beyond the gap between words are content, so they are visible.
    qsizetype leading = 0;
    while (leading < text.size() && text[leading] == u' ') {
        text[leading++] = QChar(0x00b7);
    }
    for (qsizetype i = text.size() - 1; i >= leading && text[i] == u' '; --i) {
        text[i] = QChar(0x00b7);
    }
    const bool cut = text.startsWith(QChar(0x2039)) && text.endsWith(QChar(0x203a)) &&
                     bytes.find("\xe2\x80\xb9") == std::string_view::npos;
    shown.special = blank || cut;
    const char32_t first = text.left(2).toUcs4().value(0);
    shown.breakBefore = cut || blank || breaks_anywhere(first);
    shown.ideograph = is_ideograph(first);
    if (text.size() > longest_shown) {
        qsizetype head = longest_shown / 2;
        if (text[head - 1].isHighSurrogate()) {
            --head;
        }
        qsizetype tail = text.size() - longest_shown / 2 + 1;
        if (text[tail].isLowSurrogate()) {
            ++tail;
        }
        text = text.left(head) + QChar(0x2026) + text.mid(tail);
    }
    shown.text = text;
    return shown;
}

} // namespace ponderscope
