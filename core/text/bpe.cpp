// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/text/bpe.h"

#include "core/base/error.h"
#include "core/base/utf8.h"
#include "core/text/byte_level.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <limits>
#include <unordered_set>

namespace ponderscope {

namespace {

constexpr std::int64_t largest_id = (std::int64_t{1} << 24) - 1;
constexpr std::size_t cut_above = 40;   // bytes; shorter words are looked up whole
constexpr std::size_t cached_word = 96; // longest word that is remembered
constexpr std::size_t few_symbols = 40; // up to here, scanning beats a heap
constexpr std::size_t most_entries = std::size_t{1} << 17;
constexpr std::size_t most_arena = std::size_t{12} << 20;
constexpr std::uint32_t no_rank = std::numeric_limits<std::uint32_t>::max();
constexpr unsigned join_bits = 20;

std::uint64_t mix(std::uint64_t x) {
    x *= 0x9E3779B97F4A7C15u;
    return x ^ (x >> 32);
}

template <class T>
T load(const char* p) {
    T value;
    std::memcpy(&value, p, sizeof value);
    return value;
}

std::uint64_t hash_bytes(std::string_view s) {
    const char* p = s.data();
    std::size_t n = s.size();
    std::uint64_t h = n * 0xD6E8FEB86659FD93u;
    for (; n > 8; n -= 8, p += 8) {
        h = mix(h ^ load<std::uint64_t>(p));
    }
    // The last one to eight bytes, by loads that overlap.
    std::uint64_t last = 0;
    if (n == 8) {
        last = load<std::uint64_t>(p);
    } else if (n >= 4) {
        last = load<std::uint32_t>(p) | std::uint64_t{load<std::uint32_t>(p + n - 4)} << 32;
    } else if (n > 0) {
        const auto byte = [&](std::size_t i) { return std::uint64_t{static_cast<unsigned char>(p[i])}; };
        last = byte(0) | byte(n / 2) << 8 | byte(n - 1) << 16;
    }
    return mix(mix(h ^ last));
}

// memcmp costs a call, which is much for words of five bytes.
bool equal_bytes(const char* a, const char* b, std::size_t n) {
    if (n >= 8) {
        for (std::size_t i = 0; i + 8 < n; i += 8) {
            if (load<std::uint64_t>(a + i) != load<std::uint64_t>(b + i)) {
                return false;
            }
        }
        return load<std::uint64_t>(a + n - 8) == load<std::uint64_t>(b + n - 8);
    }
    if (n >= 4) {
        return load<std::uint32_t>(a) == load<std::uint32_t>(b) &&
               load<std::uint32_t>(a + n - 4) == load<std::uint32_t>(b + n - 4);
    }
    return n == 0 || (a[0] == b[0] && a[n / 2] == b[n / 2] && a[n - 1] == b[n - 1]);
}

std::size_t table_size(std::size_t entries) {
    return std::bit_ceil(std::max<std::size_t>(16, entries * 2));
}

std::uint64_t join_hash(std::int32_t a, std::int32_t b) {
    const std::uint64_t pair =
        std::uint64_t{static_cast<std::uint32_t>(a)} << 32 | static_cast<std::uint32_t>(b);
    return (pair * 0x9E3779B97F4A7C15u) >> (64 - join_bits);
}

std::string in_quotes(std::string_view token) {
    return "\"" + printable(token) + "\"";
}

} // namespace

void TokenTexts::build(std::vector<std::pair<std::string_view, std::int64_t>> tokens,
                       const std::filesystem::path& file) {
    const std::string remedy = "take the tokenizer file from its source again";
    std::size_t bytes = 0;
    for (const auto& [text, id] : tokens) {
        if (id < 0 || id > largest_id) {
            throw InputError(file, "token ids from 0 to " + std::to_string(largest_id),
                             std::to_string(id) + " for " + in_quotes(text), remedy);
        }
        bytes += text.size();
    }
    if (bytes > std::numeric_limits<std::uint32_t>::max()) {
        throw InputError(file, "less than 4 GiB of tokens", "more", remedy);
    }
    std::sort(tokens.begin(), tokens.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    const std::size_t count = tokens.empty() ? 0 : static_cast<std::size_t>(tokens.back().second) + 1;
    pool_.clear();
    pool_.reserve(bytes);
    begin_.assign(1, 0);
    begin_.reserve(count + 1);
    present_.assign(count, false);
    slots_.assign(table_size(tokens.size()), -1);
    count_ = static_cast<std::int32_t>(tokens.size());
    const std::size_t mask = slots_.size() - 1;
    std::string_view previous;
    for (const auto& [text, id] : tokens) {
        const auto at = static_cast<std::size_t>(id);
        if (present_[at]) {
            throw InputError(
                file, "a token for each id",
                std::to_string(id) + " for both " + in_quotes(previous) + " and " + in_quotes(text), remedy);
        }
        previous = text;
        present_[at] = true;
        begin_.resize(at + 1, static_cast<std::uint32_t>(pool_.size()));
        pool_ += text;
        begin_.push_back(static_cast<std::uint32_t>(pool_.size()));
        longest_ = std::max(longest_, text.size());
        std::size_t slot = hash_bytes(text) & mask;
        while (slots_[slot] >= 0) {
            slot = (slot + 1) & mask;
        }
        slots_[slot] = static_cast<std::int32_t>(id);
    }
}

bool TokenTexts::has(std::int32_t id) const {
    return id >= 0 && id < size() && present_[static_cast<std::size_t>(id)];
}

std::string_view TokenTexts::text(std::int32_t id) const {
    if (id < 0 || id >= size()) {
        return {};
    }
    const std::uint32_t begin = begin_[static_cast<std::size_t>(id)];
    return std::string_view(pool_).substr(begin, begin_[static_cast<std::size_t>(id) + 1] - begin);
}

std::int32_t TokenTexts::find(std::string_view text) const {
    if (slots_.empty() || text.size() > longest_) {
        return -1;
    }
    const std::size_t mask = slots_.size() - 1;
    for (std::size_t slot = hash_bytes(text) & mask; slots_[slot] >= 0; slot = (slot + 1) & mask) {
        if (this->text(slots_[slot]) == text) {
            return slots_[slot];
        }
    }
    return -1;
}

Bpe Bpe::build(std::vector<std::pair<std::string_view, std::int64_t>> vocabulary,
               const std::vector<std::pair<std::string_view, std::string_view>>& merges, Settings settings,
               const std::filesystem::path& file) {
    Bpe bpe;
    bpe.settings_ = std::move(settings);
    bpe.texts_.build(std::move(vocabulary), file);

    const std::size_t slots = table_size(merges.size());
    bpe.merges_.assign(slots, {});
    bpe.merge_shift_ = 64 - static_cast<unsigned>(std::countr_zero(slots));
    std::string joined;
    for (std::size_t i = 0; i < merges.size(); ++i) {
        const auto& [left, right] = merges[i];
        joined.assign(left);
        joined += right;
        const std::int32_t a = bpe.texts_.find(left);
        const std::int32_t b = bpe.texts_.find(right);
        const std::int32_t c = bpe.texts_.find(joined);
        if (a < 0 || b < 0 || c < 0 || left.empty() || right.empty()) {
            const std::string_view missing = left.empty() || right.empty() ? std::string_view()
                                             : a < 0                       ? left
                                             : b < 0                       ? right
                                                                           : std::string_view(joined);
            throw InputError(file, "merges of tokens that are in the vocabulary",
                             "merge " + std::to_string(i + 1) + " of " + in_quotes(left) + " and " +
                                 in_quotes(right) + ", where " + in_quotes(missing) + " is not in it",
                             "the file is damaged, or vocabulary and merges belong to different tokenizers");
        }
        const std::uint64_t pair = pair_of(a, b);
        std::size_t slot = (pair * 0x9E3779B97F4A7C15u) >> bpe.merge_shift_;
        while (bpe.merges_[slot].pair != ~std::uint64_t{0} && bpe.merges_[slot].pair != pair) {
            slot = (slot + 1) & (slots - 1);
        }
        // Of a pair that stands twice, the original keeps the later one.
        bpe.merges_[slot] = {pair, static_cast<std::uint32_t>(i), c};
    }

    bpe.prepare_symbols();
    const auto complete = [](const std::vector<std::int32_t>& table) {
        return !table.empty() && std::find(table.begin(), table.end(), -1) == table.end();
    };
    const bool all_bytes = bpe.settings_.byte_level && complete(bpe.symbols_);
    if (bpe.settings_.byte_level && bpe.settings_.byte_fallback && !all_bytes) {
        throw InputError(file, "a token for each byte, or no byte_fallback",
                         "a byte-level vocabulary with holes and both", "this combination is not supported");
    }
    if (bpe.settings_.unk_token && !all_bytes) { // else nothing is unknown
        bpe.unk_ = bpe.texts_.find(*bpe.settings_.unk_token);
        if (bpe.unk_ < 0 && !complete(bpe.byte_tokens_)) {
            throw InputError(file, "the unknown token in the vocabulary",
                             in_quotes(*bpe.settings_.unk_token) + ", which is not",
                             "take the tokenizer file from its source again");
        }
    }
    bpe.vanishes_ = bpe.unk_ < 0 && !complete(bpe.byte_tokens_);
    bpe.prepare_cuts();
    return bpe;
}

void Bpe::prepare_symbols() {
    if (settings_.byte_level) {
        symbols_.assign(256, -1);
        for (unsigned b = 0; b < 256; ++b) {
            symbols_[b] = texts_.find(to_byte_level(std::string_view(reinterpret_cast<const char*>(&b), 1)));
        }
    } else {
        symbols_.assign(0x10000, -1);
        for (std::int32_t id = 0; id < texts_.size(); ++id) {
            const std::string_view text = texts_.text(id);
            if (!text.empty() && text.size() <= 3) {
                const Utf8Character c = utf8_at(text, 0);
                if (c.bytes == text.size()) {
                    symbols_[c.code] = id;
                }
            }
        }
    }
    if (settings_.byte_fallback) {
        constexpr std::string_view digits = "0123456789ABCDEF";
        byte_tokens_.assign(256, -1);
        for (std::size_t b = 0; b < 256; ++b) {
            byte_tokens_[b] = texts_.find(std::string{'<', '0', 'x', digits[b >> 4], digits[b & 15], '>'});
        }
    }
}

// A word may be cut between two symbols that no merge ever brings together: the parts are then encoded alone,
// with the same result, and short parts are found in the cache. That is what makes SentencePiece-style
// vocabularies, which see a text as one word, as fast as the others. A merge of A and B joins the last symbol
// of A with the first of B.
void Bpe::prepare_cuts() {
    std::unordered_set<std::int32_t> odd(byte_tokens_.begin(), byte_tokens_.end());
    odd.insert(unk_);
    odd.erase(-1);
    joins_.assign((std::size_t{1} << join_bits) / 64, 0);
    std::string bytes;
    const auto end_symbol = [&](std::int32_t id, bool last) {
        const std::string_view text = texts_.text(id);
        if (settings_.byte_level) {
            std::size_t at = last ? text.size() - 1 : 0;
            while (last && at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) {
                --at;
            }
            const auto byte = byte_level_byte(utf8_at(text, at).code);
            return byte ? symbols_[*byte] : -1;
        }
        return symbol_of(utf8_at(text, last ? utf8_boundary_before(text, text.size() - 1) : 0).code);
    };
    for (const Merge& merge : merges_) {
        if (merge.pair == ~std::uint64_t{0}) {
            continue;
        }
        const auto a = static_cast<std::int32_t>(merge.pair >> 32);
        const auto b = static_cast<std::int32_t>(merge.pair & 0xFFFFFFFFu);
        // Tokens that stand for something else than their text would need an analysis of their own.
        if (odd.contains(a) || odd.contains(b) || odd.contains(merge.id)) {
            return;
        }
        const std::int32_t x = end_symbol(a, true);
        const std::int32_t y = end_symbol(b, false);
        if (x >= 0 && y >= 0) {
            const std::uint64_t h = join_hash(x, y);
            joins_[h / 64] |= std::uint64_t{1} << (h % 64);
        }
    }
    cuts_ = true;
}

const Bpe::Merge* Bpe::find_merge(std::int32_t a, std::int32_t b) const {
    const std::uint64_t pair = pair_of(a, b);
    const std::size_t mask = merges_.size() - 1;
    for (std::size_t slot = (pair * 0x9E3779B97F4A7C15u) >> merge_shift_;; slot = (slot + 1) & mask) {
        const Merge& m = merges_[slot];
        if (m.pair == pair) {
            return &m;
        }
        if (m.pair == ~std::uint64_t{0}) {
            return nullptr;
        }
    }
}

std::int32_t Bpe::symbol_of(char32_t character) const {
    if (character < 0x10000) {
        return symbols_[character];
    }
    std::string text;
    append_utf8(text, character);
    return texts_.find(text);
}

bool Bpe::may_join(std::int32_t a, std::int32_t b) const {
    const std::uint64_t h = join_hash(a, b);
    return (joins_[h / 64] >> (h % 64) & 1) != 0;
}

void Bpe::encode(std::string_view word, Workspace& w) const {
    w.tokens.clear();
    if (word.empty()) {
        return;
    }
    if (word.size() <= cut_above || !cuts_ || (settings_.ignore_merges && word.size() <= texts_.longest())) {
        encode_part(word, 0, true, w);
        return;
    }
    std::size_t begin = 0;
    std::int32_t previous = -1;
    for (std::size_t i = 0; i < word.size();) {
        std::int32_t symbol = 0;
        std::size_t bytes = 1;
        if (settings_.byte_level) {
            symbol = symbols_[static_cast<unsigned char>(word[i])];
        } else {
            const Utf8Character c = utf8_at(word, i);
            symbol = symbol_of(c.code);
            bytes = c.bytes;
        }
        i += bytes;
        if (symbol < 0 && vanishes_) {
            continue; // its neighbours will be neighbours
        }
        // Unknown characters stay together, because they may be one token.
        const bool cut = symbol >= 0 ? previous < 0 || !may_join(previous, symbol) : previous >= 0;
        previous = symbol;
        if (cut && i - bytes > begin) {
            encode_part(word.substr(begin, i - bytes - begin), static_cast<std::uint32_t>(begin), false, w);
            begin = i - bytes;
        }
    }
    encode_part(word.substr(begin), static_cast<std::uint32_t>(begin), false, w);
}

void Bpe::encode_part(std::string_view part, std::uint32_t offset, bool is_word, Workspace& w) const {
    // With ignore_merges a word and the same bytes as a part of a longer one may differ.
    const bool cached = part.size() <= cached_word && (is_word || !settings_.ignore_merges);
    std::uint64_t hash = 0;
    std::size_t slot = 0;
    if (cached) {
        if (w.entries_.empty()) {
            w.entries_.resize(std::size_t{1} << 12);
        }
        hash = hash_bytes(part);
        const std::size_t mask = w.entries_.size() - 1;
        for (slot = hash & mask; w.entries_[slot].key_size != 0; slot = (slot + 1) & mask) {
            const Workspace::Entry& e = w.entries_[slot];
            if (e.hash == hash && e.key_size == part.size() &&
                equal_bytes(w.arena_.data() + e.key, part.data(), part.size())) {
                const char* p = w.arena_.data() + e.key + part.size();
                for (unsigned i = 0; i < e.count; ++i, p += 6) {
                    std::int32_t id = 0;
                    std::memcpy(&id, p, 4);
                    w.tokens.push_back({id, offset + static_cast<unsigned char>(p[4]),
                                        offset + static_cast<unsigned char>(p[5])});
                }
                return;
            }
        }
    }

    std::int32_t whole = -1;
    if (settings_.ignore_merges && is_word && part.size() <= texts_.longest()) {
        whole = texts_.find(settings_.byte_level ? to_byte_level(part) : std::string(part));
    }
    w.symbols_.clear();
    if (whole >= 0) {
        w.symbols_.push_back({whole, 0, static_cast<std::uint32_t>(part.size())});
    } else {
        make_symbols(part, w.symbols_);
        if (w.symbols_.size() <= few_symbols) {
            merge_few(w);
        } else {
            merge_many(w);
        }
    }
    for (const Token& t : w.symbols_) {
        w.tokens.push_back({t.id, t.begin + offset, t.end + offset});
    }

    if (cached) {
        if (w.arena_.size() > most_arena || w.used_ * 2 >= most_entries) {
            std::fill(w.entries_.begin(), w.entries_.end(), Workspace::Entry{});
            w.arena_.clear();
            w.used_ = 0;
            slot = hash & (w.entries_.size() - 1);
        } else if (w.used_ * 2 >= w.entries_.size()) {
            std::vector<Workspace::Entry> larger(w.entries_.size() * 4);
            const std::size_t mask = larger.size() - 1;
            const auto place = [&](std::uint64_t h) {
                std::size_t s = h & mask;
                while (larger[s].key_size != 0) {
                    s = (s + 1) & mask;
                }
                return s;
            };
            for (const Workspace::Entry& e : w.entries_) {
                if (e.key_size != 0) {
                    larger[place(e.hash)] = e;
                }
            }
            slot = place(hash);
            w.entries_ = std::move(larger);
        }
        w.entries_[slot] = {hash, static_cast<std::uint32_t>(w.arena_.size()),
                            static_cast<std::uint16_t>(part.size()),
                            static_cast<std::uint16_t>(w.symbols_.size())};
        ++w.used_;
        w.arena_.insert(w.arena_.end(), part.begin(), part.end());
        for (const Token& t : w.symbols_) {
            char packed[6];
            std::memcpy(packed, &t.id, 4);
            packed[4] = static_cast<char>(t.begin);
            packed[5] = static_cast<char>(t.end);
            w.arena_.insert(w.arena_.end(), packed, packed + sizeof packed);
        }
    }
}

void Bpe::make_symbols(std::string_view part, std::vector<Token>& symbols) const {
    // An unknown token is held back until it is known that no further character joins it.
    bool pending = false;
    Token unknown{unk_, 0, 0};
    const auto flush = [&] {
        if (pending) {
            symbols.push_back(unknown);
            pending = false;
        }
    };
    for (std::size_t i = 0; i < part.size();) {
        std::int32_t symbol = 0;
        std::size_t bytes = 1;
        if (settings_.byte_level) {
            symbol = symbols_[static_cast<unsigned char>(part[i])];
        } else {
            const Utf8Character c = utf8_at(part, i);
            symbol = symbol_of(c.code);
            bytes = c.bytes;
        }
        const auto begin = static_cast<std::uint32_t>(i);
        i += bytes;
        const auto end = static_cast<std::uint32_t>(i);
        if (symbol >= 0) {
            flush();
            symbols.push_back({symbol, begin, end});
            continue;
        }
        if (!byte_tokens_.empty() && std::all_of(part.begin() + begin, part.begin() + end, [&](char b) {
                return byte_tokens_[static_cast<unsigned char>(b)] >= 0;
            })) {
            // An unknown token that is pending comes after these bytes: so does the original's, and ids are
            // to be equal. It then owns their part of the text too, so that spans stay in order.
            for (std::uint32_t b = begin; b < end; ++b) {
                symbols.push_back({byte_tokens_[static_cast<unsigned char>(part[b])],
                                   pending ? unknown.begin : b, pending ? unknown.begin : b + 1});
            }
            if (pending) {
                unknown.end = end;
            }
            continue;
        }
        if (unk_ < 0) {
            continue; // nothing stands for it: the original leaves it out
        }
        if (pending && settings_.fuse_unk) {
            unknown.end = end;
        } else {
            flush();
            unknown = {unk_, begin, end};
            pending = true;
        }
    }
    flush();
}

void Bpe::merge_few(Workspace& w) const {
    std::vector<Token>& s = w.symbols_;
    std::uint32_t ranks[few_symbols];
    std::int32_t ids[few_symbols];
    std::size_t n = s.size();
    const auto look = [&](std::size_t i) {
        const Merge* m = find_merge(s[i].id, s[i + 1].id);
        ranks[i] = m != nullptr ? m->rank : no_rank;
        ids[i] = m != nullptr ? m->id : -1;
    };
    for (std::size_t i = 0; i + 1 < n; ++i) {
        look(i);
    }
    while (n > 1) {
        const auto best = static_cast<std::size_t>(std::min_element(ranks, ranks + n - 1) - ranks);
        if (ranks[best] == no_rank) {
            break;
        }
        s[best].id = ids[best];
        s[best].end = s[best + 1].end;
        for (std::size_t i = best + 1; i + 1 < n; ++i) {
            s[i] = s[i + 1];
            ranks[i] = ranks[i + 1];
            ids[i] = ids[i + 1];
        }
        --n;
        if (best + 1 < n) {
            look(best);
        }
        if (best > 0) {
            look(best - 1);
        }
    }
    s.resize(n);
}

void Bpe::merge_many(Workspace& w) const {
    std::vector<Token>& s = w.symbols_;
    const std::size_t n = s.size();
    if (n > std::size_t{std::numeric_limits<std::int32_t>::max()}) {
        throw InputError(
            "The text: expected words of less than 2 GiB, found a longer one; split the text into parts.");
    }
    w.next_.resize(n);
    w.previous_.resize(n);
    w.ranks_.assign(n, no_rank); // of the pair that begins here, as of now
    w.heap_.clear();
    const auto look = [&](std::size_t i) {
        const Merge* m = find_merge(s[i].id, s[static_cast<std::size_t>(w.next_[i])].id);
        w.ranks_[i] = m != nullptr ? m->rank : no_rank;
        return m != nullptr;
    };
    const auto entry = [&](std::size_t i) { return std::uint64_t{w.ranks_[i]} << 32 | i; };
    for (std::size_t i = 0; i < n; ++i) {
        w.previous_[i] = static_cast<std::int32_t>(i) - 1;
        w.next_[i] = i + 1 < n ? static_cast<std::int32_t>(i) + 1 : -1;
    }
    for (std::size_t i = 0; i + 1 < n; ++i) {
        if (look(i)) {
            w.heap_.push_back(entry(i));
        }
    }
    // The smallest first: the best rank, and of equal ones the leftmost.
    std::make_heap(w.heap_.begin(), w.heap_.end(), std::greater<>());
    const auto push = [&](std::size_t i) {
        if (look(i)) {
            w.heap_.push_back(entry(i));
            std::push_heap(w.heap_.begin(), w.heap_.end(), std::greater<>());
        }
    };
    while (!w.heap_.empty()) {
        std::pop_heap(w.heap_.begin(), w.heap_.end(), std::greater<>());
        const std::uint64_t top = w.heap_.back();
        w.heap_.pop_back();
        const auto i = static_cast<std::size_t>(top & 0xFFFFFFFFu);
        if (w.ranks_[i] != top >> 32) {
            continue; // the pair has changed since
        }
        const auto right = static_cast<std::size_t>(w.next_[i]);
        s[i].id = find_merge(s[i].id, s[right].id)->id;
        s[i].end = s[right].end;
        w.ranks_[right] = no_rank;
        s[right].id = -1;
        w.next_[i] = w.next_[right];
        w.ranks_[i] = no_rank;
        if (w.next_[i] >= 0) {
            w.previous_[static_cast<std::size_t>(w.next_[i])] = static_cast<std::int32_t>(i);
            push(i);
        }
        if (w.previous_[i] >= 0) {
            push(static_cast<std::size_t>(w.previous_[i]));
        }
    }
    std::erase_if(s, [](const Token& t) { return t.id < 0; });
}

} // namespace ponderscope
