// SPDX-License-Identifier: GPL-3.0-or-later
// TraceChecker: texts, tokens and labels of a sequence.
#include "core/base/utf8.h"
#include "core/trace/check_impl.h"
#include "core/trace/digests.h"
#include "core/trace/packed_values.h"
#include "core/trace/schema.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace ponderscope {
namespace {

/// Rounding of what was computed in fp16 or fp32, as probabilities and logarithms of them.
constexpr double slack = 2e-2;

/// What a tokenizer may leave out between two tokens.
bool is_space(char32_t c) {
    return c <= 0x20 || c == 0x7F || (c >= 0x80 && c <= 0xA0) || c == 0xAD || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200F) || (c >= 0x2028 && c <= 0x202F) || (c >= 0x205F && c <= 0x2060) ||
           c == 0x3000 || c == 0xFEFF;
}

} // namespace

std::string TraceChecker::shown(double value) {
    return std::isfinite(value) ? nlohmann::json(value).dump()
           : value > 0          ? "infinity"
           : value < 0          ? "-infinity"
                                : "NaN";
}

bool TraceChecker::is_word_at(const Run& run, const Sequence& sequence, const std::string& text,
                              std::size_t offset) {
    Statement find = database_.prepare(
        "SELECT t.text_begin, t.text_end, v.bytes FROM token_row t JOIN vocabulary v ON v.tokenizer = ?3 AND "
        "v.id "
        "= t.id WHERE t.row >= ?1 AND t.row < ?2 AND t.text_begin <= ?4 AND t.text_end > ?4 LIMIT 1");
    find.bind(1, sequence.id << schema::position_bits).bind(2, (sequence.id + 1) << schema::position_bits);
    find.bind(3, run.tokenizer).bind(4, static_cast<std::int64_t>(offset));
    if (!find.step() || find.integer(0) < 0 || find.integer(1) > static_cast<std::int64_t>(text.size())) {
        return false;
    }
    const std::span<const std::byte> word = find.blob(2);
    const auto begin = static_cast<std::size_t>(find.integer(0));
    return std::string_view(text).substr(begin, static_cast<std::size_t>(find.integer(1)) - begin) ==
           std::string_view(reinterpret_cast<const char*>(word.data()), word.size());
}

std::string TraceChecker::check_text(const Run& run, const Sequence& sequence) {
    Statement rows =
        database_.prepare("SELECT row & 4294967295, bytes FROM text WHERE row >= ? AND row < ? ORDER BY row");
    rows.bind(1, sequence.id << schema::position_bits).bind(2, (sequence.id + 1) << schema::position_bits);
    std::string text;
    std::int64_t piece = 0;
    for (; rows.step(); ++piece) {
        const std::span<const std::byte> bytes = rows.blob(1);
        const auto size = static_cast<std::int64_t>(bytes.size());
        const std::int64_t want =
            std::min(schema::text_piece, sequence.text_bytes - piece * schema::text_piece);
        if (rows.integer(0) != piece) {
            fault(sequence.place, "its text has piece " + std::to_string(rows.integer(0)) + " where piece " +
                                      std::to_string(piece) + " is due");
            return text;
        }
        if (size != want || size == 0) {
            fault(sequence.place, "piece " + std::to_string(piece) + " of its text has " +
                                      std::to_string(size) + " bytes where " +
                                      std::to_string(std::max<std::int64_t>(want, 0)) + " are due");
            return text;
        }
        text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
    if (static_cast<std::int64_t>(text.size()) != sequence.text_bytes) {
        fault(sequence.place, "text_bytes is " + std::to_string(sequence.text_bytes) + " and its text has " +
                                  std::to_string(text.size()));
    } else if (const std::size_t invalid = first_invalid_utf8(text);
               invalid != std::string::npos && !is_word_at(run, sequence, text, invalid)) {
        fault(sequence.place, "its text is no UTF-8");
    }
    if (!text.empty()) {
        check_digest(sequence.place, "its text is", sequence.text_crc,
                     crc32_of(std::as_bytes(std::span(text))));
    }
    return text;
}

void TraceChecker::check_span(const std::string& place, std::int64_t begin, std::int64_t end,
                              std::int64_t previous, const Sequence& sequence, const std::string& text) {
    if (begin < 0 || end < begin || end > sequence.text_bytes) {
        fault(place, "it spans bytes " + std::to_string(begin) + " to " + std::to_string(end) +
                         " of a text of " + std::to_string(sequence.text_bytes));
        return;
    }
    if (begin == end) {
        return; // a token that a template added
    }
    if (begin < previous) {
        fault(place, "it begins at byte " + std::to_string(begin) + ", before the end " +
                         std::to_string(previous) + " of the tokens before it");
        return;
    }
    if (end > static_cast<std::int64_t>(text.size())) {
        return; // the text is short, which was said
    }
    for (auto at = static_cast<std::size_t>(previous); at < static_cast<std::size_t>(begin);) {
        const Utf8Character character = utf8_at(text, at);
        if (!is_space(character.code)) {
            fault(place, "bytes " + std::to_string(previous) + " to " + std::to_string(begin) +
                             " before it are under no token and are not white space");
            return;
        }
        at += character.bytes;
    }
}

void TraceChecker::check_word(const Run& run, const std::string& place, std::int64_t id) {
    // Beyond the largest known id, nothing says that the tokenizer goes so far: models have more rows.
    if (id < run.largest_word && !words_.contains(id) && missing_words_.insert(id).second) {
        fault(place, "token id " + std::to_string(id) + " has no row in vocabulary");
    }
}

template <class Each>
void TraceChecker::for_each_token(const Run& run, const Sequence& sequence, const Each& each) {
    if (!run.packed) {
        Statement rows = database_.prepare("SELECT row & 4294967295, id, text_begin, text_end, rank, steps, "
                                           "flops, nll, entropy, max_probability FROM "
                                           "token_row WHERE row >= ? AND row < ? ORDER BY row");
        rows.bind(1, sequence.id << schema::position_bits)
            .bind(2, (sequence.id + 1) << schema::position_bits);
        while (rows.step() &&
               each(Token{rows.integer(0), rows.integer(1), rows.integer(2), rows.integer(3), rows.integer(4),
                          rows.integer(5), rows.integer(6), rows.real(7), rows.real(8), rows.real(9)})) {
        }
        return;
    }
    Statement rows =
        database_.prepare("SELECT c.first_token, c.tokens, c.dtype, c.data FROM signal g JOIN chunk c "
                          "ON c.signal = g.id WHERE g.run = ? AND g.name = ? AND c.sequence = ? "
                          "ORDER BY c.first_token");
    rows.bind(1, run.id).bind(2, std::string_view(packed_token_signal)).bind(3, sequence.id);
    while (rows.step()) {
        const std::optional<SignalChunk> chunk =
            stored_chunk(rows.text(2), {rows.integer(1), packed_token_bytes}, rows.blob(3));
        const std::optional<TokenColumns> tokens = chunk ? unpack_tokens(*chunk) : std::nullopt;
        if (!tokens) {
            fault(sequence.place, "its tokens from " + std::to_string(rows.integer(0)) +
                                      " on are no packed tokens of " + std::to_string(packed_token_bytes) +
                                      " bytes");
            return;
        }
        for (std::size_t i = 0; i < tokens->size(); ++i) {
            if (!each(Token{rows.integer(0) + static_cast<std::int64_t>(i), tokens->id[i],
                            static_cast<std::int64_t>(tokens->begin[i]),
                            static_cast<std::int64_t>(tokens->end[i]), tokens->rank[i], tokens->steps[i],
                            tokens->flops[i], double{tokens->nll[i]}, double{tokens->entropy[i]},
                            double{tokens->max_probability[i]}})) {
                return;
            }
        }
    }
}

TraceChecker::Totals TraceChecker::check_tokens(const Run& run, const Sequence& sequence,
                                                const std::string& text, std::vector<std::int32_t>& steps) {
    Totals totals;
    RowDigest digest;
    bool target_open = false;
    bool ranked = false;
    std::vector<std::int64_t> unranked; // scored, without a rank
    std::int64_t covered = 0;
    const double most_entropy =
        std::log(static_cast<double>(std::max<std::int64_t>(run.vocab_size, 1))) + slack;
    for_each_token(run, sequence, [&](const Token& token) {
        const std::int64_t position = token.position;
        const std::string place = sequence.place + ", token " + std::to_string(position);
        if (position != totals.tokens) {
            fault(place, "token " + std::to_string(totals.tokens) + " is due in its place");
            return false;
        }
        const auto& [unused, id, begin, end, rank, step, flops, nll, entropy, max_probability] = token;
        if (id < 0 || id >= run.vocab_size) {
            fault(place,
                  "its id is " + std::to_string(id) + " and vocab_size is " + std::to_string(run.vocab_size));
        } else {
            check_word(run, place, id);
        }
        check_span(place, begin, end, covered, sequence, text);
        covered = begin < end ? std::max(covered, end) : covered;
        const bool scored = !std::isnan(nll);
        if (scored && !(nll >= -slack)) {
            fault(place, "nll is " + shown(nll) + ", and no probability is above 1");
        }
        ranked = ranked || (scored && rank > 0);
        if (scored && rank == 0) {
            unranked.push_back(position);
        } else if (scored != (rank > 0)) {
            fault(place, std::string("nll is ") + (scored ? "there" : "NULL") + " and rank is " +
                             std::to_string(rank));
        } else if (rank < 0 || rank > run.vocab_size) {
            fault(place, "rank is " + std::to_string(rank) + " of " + std::to_string(run.vocab_size));
        }
        if (!std::isnan(entropy) && !(entropy >= -slack && entropy <= most_entropy)) {
            fault(place, "entropy is " + shown(entropy) + ", not between 0 and ln vocab_size");
        }
        if (!std::isnan(max_probability) && !(max_probability > 0 && max_probability <= 1 + slack)) {
            fault(place, "max_probability is " + shown(max_probability));
        }
        if (step < 0 || step > run.max_steps) {
            fault(place, "steps is " + std::to_string(step) + " and the run's max_steps is " +
                             std::to_string(run.max_steps));
        }
        if (flops < 0) {
            fault(place, "flops is " + std::to_string(flops));
        }
        if (scored && sequence.complete && position + 1 == sequence.tokens) {
            fault(place, "it is the last of its sequence and has an nll, though nothing follows that it "
                         "could predict");
        }
        for (const std::int64_t value : {id, begin, end}) {
            digest.add(value);
        }
        for (const double value : {nll, entropy, max_probability}) {
            digest.add(value);
        }
        for (const std::int64_t value : {rank, step, flops}) {
            digest.add(value);
        }
        totals.scored_bytes += target_open ? end - begin : 0;
        target_open = scored;
        if (scored) {
            ++totals.scored_tokens;
            totals.nll_sum += nll;
            totals.steps_sum += static_cast<double>(step);
        }
        totals.flops_sum += static_cast<double>(flops);
        steps.push_back(static_cast<std::int32_t>(std::clamp<std::int64_t>(step, 0, run.max_steps)));
        ++totals.tokens;
        return true;
    });
    for (const std::int64_t position : unranked) {
        if (ranked) { // of a sequence without any, nobody knew them
            fault(sequence.place + ", token " + std::to_string(position), "nll is there and rank is 0");
        }
    }
    if (totals.tokens == sequence.tokens && !run.packed) { // the array that they are packed in has its own
        check_digest(sequence.place, "the rows of its tokens are", sequence.tokens_crc, digest.value());
    }
    if (sequence.complete && sequence.text_bytes > 0 &&
        static_cast<std::int64_t>(text.size()) == sequence.text_bytes) {
        for (auto at = static_cast<std::size_t>(std::clamp<std::int64_t>(covered, 0, sequence.text_bytes));
             at < text.size();) {
            const Utf8Character character = utf8_at(text, at);
            if (!is_space(character.code)) {
                fault(sequence.place,
                      "its text from byte " + std::to_string(covered) + " on is under no token");
                break;
            }
            at += character.bytes;
        }
    }
    return totals;
}

void TraceChecker::check_labels(const Sequence& sequence) {
    Statement rows =
        database_.prepare("SELECT text_begin, text_end FROM label WHERE sequence = ? ORDER BY text_begin");
    rows.bind(1, sequence.id);
    std::int64_t previous = 0;
    while (rows.step()) {
        const std::int64_t begin = rows.integer(0);
        const std::int64_t end = rows.integer(1);
        if (begin < previous || end <= begin || end > sequence.text_bytes) {
            fault(sequence.place, "its label of bytes " + std::to_string(begin) + " to " +
                                      std::to_string(end) + " is empty, overlaps another or leaves the text");
        }
        previous = std::max(previous, end);
    }
}

} // namespace ponderscope
