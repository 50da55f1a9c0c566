// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/text/find.h"

#include "core/base/utf8.h"

#include <QChar>
#include <QRegularExpression>

#include <algorithm>
#include <string>
#include <utility>

using namespace Qt::StringLiterals;

namespace ponderscope {

namespace {

/// UTF-8 with folded case, which changes the length of some characters.
struct FoldedText {
    std::string text;
    std::vector<std::pair<std::size_t, std::size_t>> moved{
        {0, 0}}; ///< offsets in `text` and in the original where the difference changes

    [[nodiscard]] std::size_t original(std::size_t at) const {
        const auto after = std::upper_bound(moved.begin(), moved.end(), std::pair(at, std::string::npos));
        const auto& [folded, before] = *std::prev(after);
        return before + (at - folded);
    }
};

FoldedText fold(std::string_view bytes) {
    FoldedText folded;
    folded.text.reserve(bytes.size());
    for (std::size_t at = 0; at < bytes.size();) {
        const auto byte = static_cast<unsigned char>(bytes[at]);
        if (byte < 0x80) {
            folded.text += byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte - 'A' + 'a') : bytes[at];
            ++at;
            continue;
        }
        const Utf8Character next = utf8_at(bytes, at);
        const char32_t lower = QChar::toCaseFolded(next.code);
        if (lower == next.code || next.bytes == 1) { // also a byte that is not UTF-8
            folded.text += bytes.substr(at, next.bytes);
            at += next.bytes;
            continue;
        }
        const std::size_t before = folded.text.size();
        append_utf8(folded.text, lower);
        at += next.bytes;
        if (folded.text.size() - before != next.bytes) {
            folded.moved.emplace_back(folded.text.size(), at);
        }
    }
    return folded;
}

} // namespace

std::vector<qint64> find_tokens(const SequenceData& data, const QString& query, std::size_t limit) {
    std::vector<qint64> hits;
    const TokenColumns& tokens = data.tokens;
    const std::string wanted = query.toStdString();
    if (wanted.empty() || data.text.empty()) {
        return hits;
    }
    const FoldedText lower = fold(wanted);
    const bool exact = lower.text != wanted;
    const FoldedText folded = exact ? FoldedText() : fold(data.text);
    const std::string& text = exact ? data.text : folded.text;
    const std::boyer_moore_horspool_searcher searcher(wanted.begin(), wanted.end());
    // Assumes ascending spans, as in all our traces. In other traces the search may miss tokens.
    std::size_t token = 0;
    auto from = text.begin();
    while (hits.size() < limit) {
        const auto found = std::search(from, text.end(), searcher);
        if (found == text.end()) {
            break;
        }
        const auto at = static_cast<std::size_t>(found - text.begin());
        const std::uint64_t byte = exact ? at : folded.original(at);
        while (token < tokens.size() && tokens.end[token] <= byte) {
            ++token;
        }
        if (token == tokens.size()) {
            break;
        }
        const auto here = static_cast<qint64>(token);
        if (hits.empty() || hits.back() != here) {
            hits.push_back(here);
        }
        from = found + 1;
    }
    return hits;
}

std::vector<qint64> find_pattern(const SequenceData& data, const QString& pattern, QString& problem,
                                 std::size_t limit) {
    problem.clear();
    std::vector<qint64> hits;
    const QRegularExpression expression(pattern, QRegularExpression::UseUnicodePropertiesOption);
    if (!expression.isValid()) {
        problem = expression.errorString();
        return hits;
    }
    const QString text = QString::fromUtf8(data.text.data(), static_cast<qsizetype>(data.text.size()));
    if (text.toUtf8().size() != static_cast<qsizetype>(data.text.size())) {
        problem = u"the text of this sequence is not UTF-8"_s;
        return hits;
    }
    // Converts offsets in characters to bytes along with the matches, in a single pass.
    qsizetype counted = 0;
    qsizetype ended = 0;
    std::uint64_t byte = 0;
    std::size_t token = 0;
    QRegularExpressionMatchIterator matches = expression.globalMatch(text);
    while (matches.hasNext() && hits.size() < limit) {
        const QRegularExpressionMatch match = matches.next();
        ended = match.capturedEnd();
        if (match.capturedLength() == 0) {
            continue; // empty matches, for example of x*, are not hits
        }
        byte += static_cast<std::uint64_t>(
            QStringView(text).mid(counted, match.capturedStart() - counted).toUtf8().size());
        counted = match.capturedStart();
        while (token < data.tokens.size() && data.tokens.end[token] <= byte) {
            ++token;
        }
        if (token == data.tokens.size()) {
            break;
        }
        const auto here = static_cast<qint64>(token);
        if (hits.empty() || hits.back() != here) {
            hits.push_back(here);
        }
    }
    // The iterator also ends early if Qt gives up a match. Then another match from here is invalid, too.
    if (hits.size() < limit && ended < text.size() && !matches.isValid() &&
        !expression.match(text, ended).isValid()) {
        problem = u"the search with this pattern takes too long: simplify the pattern"_s;
        hits.clear();
    }
    return hits;
}

} // namespace ponderscope
