// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/figure/token_pieces.h"

#include "views/common/format.h"

#include <algorithm>
#include <string_view>

namespace ponderscope::figure {
namespace {

bool continues(char byte) {
    return (static_cast<unsigned char>(byte) & 0xc0) == 0x80;
}

std::size_t sequence_length(char lead) {
    const auto byte = static_cast<unsigned char>(lead);
    return byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
}

/// The span [begin, end) moved so that it holds whole characters: those that begin inside it.
std::string_view whole_characters(std::string_view text, std::size_t begin, std::size_t end) {
    while (begin < end && continues(text[begin])) {
        ++begin;
    }
    if (begin < end) {
        std::size_t lead = end - 1;
        while (lead > begin && continues(text[lead])) {
            --lead;
        }
        const std::size_t wanted = lead + sequence_length(text[lead]);
        while (end < wanted && end < text.size() && continues(text[end])) {
            ++end;
        }
    }
    return text.substr(begin, end - begin);
}

bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

QString blanks(std::string_view bytes) {
    QString shown;
    for (const char c : bytes) {
        shown += c == ' ' ? QChar(0x2423) : c == '\n' ? QChar(0x23ce) : c == '\t' ? QChar(0x21e5) : QChar();
    }
    shown.remove(QChar());
    return shown.isEmpty() ? QStringLiteral("⏎") : shown;
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
        std::string bytes = token_bytes_of(run, token);
        const bool has_span = !token_bytes(run.rows, run.text, row).empty();
        if (has_span) {
            bytes = whole_characters(run.text, run.rows.begin[row], run.rows.end[row]);
        }
        if (bytes.empty()) { // nothing but the middle of a character
            piece.text = QStringLiteral("·");
            piece.invisible = true;
            piece.starts_word = after_break;
            after_break = false;
            pieces.push_back(std::move(piece));
            continue;
        }
        const auto first = std::find_if_not(bytes.begin(), bytes.end(), is_blank);
        if (first == bytes.end()) {
            piece.text = blanks(bytes);
            piece.invisible = true;
            piece.starts_word = true;
            piece.breaks =
                static_cast<int>(std::min<std::ptrdiff_t>(2, std::count(bytes.begin(), bytes.end(), '\n')));
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
