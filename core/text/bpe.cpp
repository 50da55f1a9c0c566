// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/text/bpe.h"

#include "core/base/error.h"
#include "core/base/utf8.h"
#include "core/text/byte_level.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <queue>

namespace ponderscope {

namespace {

constexpr std::int64_t largest_id = (std::int64_t{1} << 24) - 1;
constexpr std::size_t longest_known = 96; ///< longest word in a workspace's cache, in bytes
constexpr std::size_t most_known = std::size_t{1} << 16;
constexpr std::uint32_t no_rank = std::numeric_limits<std::uint32_t>::max();

std::string in_quotes(std::string_view token) {
    return "\"" + printable(token) + "\"";
}

} // namespace

std::vector<std::int32_t> fallback_tokens(const TokenTexts& texts) {
    constexpr std::string_view digits = "0123456789ABCDEF";
    std::vector<std::int32_t> tokens;
    for (std::size_t b = 0; b < 256; ++b) {
        tokens.push_back(texts.find(std::string{'<', '0', 'x', digits[b >> 4], digits[b & 15], '>'}));
    }
    return tokens;
}

void TokenTexts::build(std::vector<std::pair<std::string_view, std::int64_t>> tokens,
                       const std::filesystem::path& file) {
    const std::string remedy = "take the tokenizer file from its source again";
    std::size_t bytes = 0;
    for (const auto& [text, id] : tokens) {
        if (id < 0 || id > largest_id) {
            throw InputError(ErrorId::tokenizer_file, file,
                             "token ids from 0 to " + std::to_string(largest_id),
                             std::to_string(id) + " for " + in_quotes(text), remedy);
        }
        bytes += text.size();
    }
    if (bytes > std::numeric_limits<std::uint32_t>::max()) {
        throw InputError(ErrorId::tokenizer_file, file, "less than 4 GiB of tokens", "more", remedy);
    }
    std::sort(tokens.begin(), tokens.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    const std::size_t count = tokens.empty() ? 0 : static_cast<std::size_t>(tokens.back().second) + 1;
    pool_.clear();
    pool_.reserve(bytes);
    begin_.assign(1, 0);
    begin_.reserve(count + 1);
    present_.assign(count, false);
    ids_.clear();
    ids_.reserve(tokens.size());
    count_ = static_cast<std::int32_t>(tokens.size());
    std::string_view previous;
    for (const auto& [text, id] : tokens) {
        const auto at = static_cast<std::size_t>(id);
        if (present_[at]) {
            throw InputError(
                ErrorId::tokenizer_file, file, "one token for each id",
                std::to_string(id) + " for both " + in_quotes(previous) + " and " + in_quotes(text), remedy);
        }
        previous = text;
        present_[at] = true;
        begin_.resize(at + 1, static_cast<std::uint32_t>(pool_.size()));
        pool_.insert(pool_.end(), text.begin(), text.end());
        begin_.push_back(static_cast<std::uint32_t>(pool_.size()));
        longest_ = std::max(longest_, text.size());
        // If two tokens have the same text, as in some Unigram models, the later one wins.
        ids_.insert_or_assign(this->text(static_cast<std::int32_t>(id)), static_cast<std::int32_t>(id));
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
    return {pool_.data() + begin, begin_[static_cast<std::size_t>(id) + 1] - begin};
}

std::int32_t TokenTexts::find(std::string_view text) const {
    const auto found = ids_.find(text);
    return found == ids_.end() ? -1 : found->second;
}

Bpe Bpe::build(std::vector<std::pair<std::string_view, std::int64_t>> vocabulary,
               const std::vector<std::pair<std::string_view, std::string_view>>& merges, Settings settings,
               const std::filesystem::path& file) {
    Bpe bpe;
    bpe.settings_ = std::move(settings);
    bpe.texts_.build(std::move(vocabulary), file);

    bpe.merges_.reserve(merges.size());
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
            throw InputError(ErrorId::tokenizer_file, file, "merges of known tokens",
                             "merge " + std::to_string(i + 1) + " of " + in_quotes(left) + " and " +
                                 in_quotes(right) + ", where " + in_quotes(missing) +
                                 " is not in the vocabulary",
                             "the file is damaged, or vocabulary and merges belong to different tokenizers");
        }
        // If a pair is listed twice, the later entry wins, as in the library tokenizers.
        bpe.merges_[pair_of(a, b)] = {static_cast<std::uint32_t>(i), c};
    }

    if (bpe.settings_.byte_level) {
        for (unsigned b = 0; b < 256; ++b) {
            const char byte = static_cast<char>(b);
            bpe.byte_symbols_.push_back(bpe.texts_.find(to_byte_level(std::string_view(&byte, 1))));
        }
    }
    if (bpe.settings_.byte_fallback) {
        bpe.byte_tokens_ = fallback_tokens(bpe.texts_);
    }
    const auto complete = [](const std::vector<std::int32_t>& table) {
        return !table.empty() && std::find(table.begin(), table.end(), -1) == table.end();
    };
    const bool all_bytes = bpe.settings_.byte_level && complete(bpe.byte_symbols_);
    if (bpe.settings_.byte_level && bpe.settings_.byte_fallback && !all_bytes) {
        throw InputError(ErrorId::tokenizer_file, file,
                         "a token for each byte, or a tokenizer without byte_fallback",
                         "byte_fallback and a byte-level vocabulary that lacks bytes",
                         "this combination is not supported");
    }
    if (bpe.settings_.unk_token && !all_bytes) { // otherwise no character is unknown
        bpe.unk_ = bpe.texts_.find(*bpe.settings_.unk_token);
        if (bpe.unk_ < 0 && !complete(bpe.byte_tokens_)) {
            throw InputError(ErrorId::tokenizer_file, file, "the unknown token in the vocabulary",
                             in_quotes(*bpe.settings_.unk_token) + ", which is not in it",
                             "take the tokenizer file from its source again");
        }
    }
    return bpe;
}

const Bpe::Merge* Bpe::find_merge(std::int32_t a, std::int32_t b) const {
    const auto found = merges_.find(pair_of(a, b));
    return found == merges_.end() ? nullptr : &found->second;
}

void Bpe::encode(std::string_view word, Workspace& w) const {
    if (const auto known = w.known_.find(word); known != w.known_.end()) {
        w.tokens = known->second;
        return;
    }
    w.tokens.clear();
    std::int32_t whole = -1;
    if (settings_.ignore_merges && word.size() <= texts_.longest()) {
        whole = settings_.byte_level ? texts_.find(to_byte_level(word)) : texts_.find(word);
    }
    if (whole >= 0) {
        w.tokens.push_back({whole, 0, static_cast<std::uint32_t>(word.size())});
    } else {
        make_symbols(word, w.tokens);
        merge(w.tokens);
    }
    if (word.size() <= longest_known) {
        if (w.known_.size() >= most_known) {
            w.known_.clear();
        }
        w.known_.emplace(word, w.tokens);
    }
}

void Bpe::make_symbols(std::string_view word, std::vector<Token>& symbols) const {
    // Delay an unknown token until no further character can join it.
    bool pending = false;
    Token unknown{unk_, 0, 0};
    const auto flush = [&] {
        if (pending) {
            symbols.push_back(unknown);
            pending = false;
        }
    };
    for (std::size_t i = 0; i < word.size();) {
        const std::size_t bytes = settings_.byte_level ? 1 : utf8_at(word, i).bytes;
        const std::int32_t symbol = settings_.byte_level ? byte_symbols_[static_cast<unsigned char>(word[i])]
                                                         : texts_.find(word.substr(i, bytes));
        const auto begin = static_cast<std::uint32_t>(i);
        i += bytes;
        const auto end = static_cast<std::uint32_t>(i);
        if (symbol >= 0) {
            flush();
            symbols.push_back({symbol, begin, end});
            continue;
        }
        if (!byte_tokens_.empty() && std::all_of(word.begin() + begin, word.begin() + end, [&](char b) {
                return byte_tokens_[static_cast<unsigned char>(b)] >= 0;
            })) {
            // A pending unknown token comes after these bytes, as in the library tokenizers. Its span then
            // includes theirs, and they get empty spans, so that spans stay in order.
            for (std::uint32_t b = begin; b < end; ++b) {
                symbols.push_back({byte_tokens_[static_cast<unsigned char>(word[b])],
                                   pending ? unknown.begin : b, pending ? unknown.begin : b + 1});
            }
            if (pending) {
                unknown.end = end;
            }
            continue;
        }
        if (unk_ < 0) {
            continue; // no token: the library tokenizers omits it, too
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

void Bpe::merge(std::vector<Token>& s) const {
    const std::size_t n = s.size();
    if (n > std::size_t{std::numeric_limits<std::int32_t>::max()}) {
        throw InputError(
            ErrorId::text_long,
            "The text: expected words of less than 2 GiB, found a longer word; split the text into parts.");
    }
    std::vector<std::int32_t> next(n);
    std::vector<std::int32_t> previous(n);
    std::vector<std::uint32_t> ranks(n, no_rank); // current rank of the pair that begins here
    // The smallest entry first: the best rank, and of equal ranks the leftmost pair.
    std::priority_queue<std::uint64_t, std::vector<std::uint64_t>, std::greater<>> pairs;
    const auto push = [&](std::size_t i) {
        const Merge* m = find_merge(s[i].id, s[static_cast<std::size_t>(next[i])].id);
        ranks[i] = m != nullptr ? m->rank : no_rank;
        if (m != nullptr) {
            pairs.push(std::uint64_t{m->rank} << 32 | i);
        }
    };
    for (std::size_t i = 0; i < n; ++i) {
        previous[i] = static_cast<std::int32_t>(i) - 1;
        next[i] = i + 1 < n ? static_cast<std::int32_t>(i) + 1 : -1;
        if (next[i] >= 0) {
            push(i);
        }
    }
    while (!pairs.empty()) {
        const std::uint64_t top = pairs.top();
        pairs.pop();
        const auto i = static_cast<std::size_t>(top & 0xFFFFFFFFu);
        if (ranks[i] != top >> 32) {
            continue; // the pair has changed since
        }
        const auto right = static_cast<std::size_t>(next[i]);
        s[i].id = find_merge(s[i].id, s[right].id)->id;
        s[i].end = s[right].end;
        s[right].id = -1;
        next[i] = next[right];
        ranks[right] = ranks[i] = no_rank;
        if (next[i] >= 0) {
            previous[static_cast<std::size_t>(next[i])] = static_cast<std::int32_t>(i);
            push(i);
        }
        if (previous[i] >= 0) {
            push(static_cast<std::size_t>(previous[i]));
        }
    }
    std::erase_if(s, [](const Token& t) { return t.id < 0; });
}

} // namespace ponderscope
