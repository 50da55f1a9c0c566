// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/figure/token_pieces.h"

#include "core/base/utf8.h"
#include "views/common/format.h"

#include <algorithm>
#include <string_view>

using namespace Qt::StringLiterals;

namespace ponderscope::figure {
namespace {

bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

QString blanks(std::string_view bytes) {
    QString shown;
    for (const char c : bytes) {
        shown += c == ' ' ? QChar(0x2423) : c == '\n' ? QChar(0x23ce) : c == '\t' ? QChar(0x21e5) : QChar();
    }
    shown.remove(QChar());
    return shown.isEmpty() ? u"⏎"_s : shown;
}

} // namespace

std::string token_bytes_of(const RunRows& run, std::int64_t token) {
    const std::size_t row = run.local(token);
    const std::string_view span = token_bytes(run.rows, run.text, row);
    if (!span.empty()) {
        return std::string(span);
    }
    std::string bytes = run.bytes_of_id ? run.bytes_of_id(run.rows.id[row]) : std::string();
    return bytes.empty() ? "#" + std::to_string(run.rows.id[row]) : bytes;
}

std::vector<TokenPiece> token_pieces(const RunRows& run) {
    std::vector<TokenPiece> pieces;
    pieces.reserve(static_cast<std::size_t>(run.count()));
    bool after_break = true;
    for (std::int64_t token = run.first; token < run.last; ++token) {
        const std::size_t row = run.local(token);
        TokenPiece piece;
        piece.token = token;
        const CharacterSpan span = characters_of(run.rows, run.text, row, !pieces.empty());
        const bool has_span = !span.bytes.empty() || span.before > 0;
        const auto end = static_cast<std::size_t>(run.rows.end[row]);
        const std::size_t lead = has_span ? utf8_boundary_before(run.text, end) : 0;
        if (has_span && lead < end && lead + utf8_at(run.text, lead).bytes > end) { // ends inside a character
            const std::string_view character(run.text.data() + lead, utf8_at(run.text, lead).bytes);
            piece.last = static_cast<int>(visible_text(character).size());
            piece.share = static_cast<double>(end - lead) / static_cast<double>(character.size());
        }
        if (has_span && span.bytes.empty()) {
            pieces.push_back(std::move(piece));
            continue;
        }
        const std::string bytes = has_span ? std::string(span.bytes) : token_bytes_of(run, token);
        const auto first = std::ranges::find_if_not(bytes, is_blank);
        if (first == bytes.end()) {
            piece.text = blanks(bytes);
            piece.invisible = true;
            piece.starts_word = true;
            piece.breaks = static_cast<int>(std::min<std::ptrdiff_t>(2, std::ranges::count(bytes, '\n')));
        } else {
            const auto last = std::find_if_not(bytes.rbegin(), bytes.rend(), is_blank).base();
            piece.starts_word = after_break || first != bytes.begin() || !has_span;
            piece.text = visible_text(std::string_view(&*first, static_cast<std::size_t>(last - first)));
            piece.breaks = static_cast<int>(std::min<std::ptrdiff_t>(2, std::count(last, bytes.end(), '\n')));
            piece.invisible = !has_span;
        }
        after_break = piece.breaks > 0 || is_blank(bytes.back());
        pieces.push_back(std::move(piece));
    }
    return pieces;
}

} // namespace ponderscope::figure
