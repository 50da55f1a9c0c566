// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/text/tokenizer.h"

#include "core/base/error.h"
#include "core/base/hub_cache.h"
#include "core/base/utf8.h"
#include "core/text/tokenizer_config.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

namespace ponderscope {

struct Tokenizer::Impl {
    TokenizerParts parts;
    AddedTokenFinder raw_tokens;        // searched in the given text
    AddedTokenFinder normalized_tokens; // searched in the normalised text
    std::unordered_map<std::int32_t, std::size_t> added_by_id;
    std::unordered_map<std::string_view, std::size_t> added_by_content;
    std::vector<std::string> added_forms; // texts of added tokens as decode() returns them
    std::int32_t size = 0;

    explicit Impl(TokenizerParts p);
    [[nodiscard]] std::string_view text_of(std::int32_t id) const;
    [[nodiscard]] std::string_view form_of(std::int32_t id) const;
    [[nodiscard]] bool has(std::int32_t id) const {
        return added_by_id.find(id) != added_by_id.end() || parts.texts().has(id);
    }
    void encode_segment(std::string_view segment, std::uint64_t base, bool parse_special,
                        Bpe::Workspace& workspace, Encoding& out) const;
    void encode_text(const NormalizedText& whole, NormalizedText::Cursor& cursor, AddedTokenFinder::Part part,
                     std::uint64_t base, Bpe::Workspace& workspace, Encoding& out) const;
};

Tokenizer::Impl::Impl(TokenizerParts p) : parts(std::move(p)) {
    size = parts.texts().size();
    for (std::size_t i = 0; i < parts.added.size(); ++i) {
        const AddedToken& token = parts.added[i];
        size = std::max(size, token.id + 1);
        added_by_id.emplace(token.id, i);
        added_by_content.emplace(token.content, i);
        if (token.normalized) {
            NormalizedText content(token.content);
            parts.normalizer.apply(content);
            normalized_tokens.add(content.text(), token);
            added_forms.emplace_back(content.text());
        } else {
            raw_tokens.add(token.content, token);
            added_forms.push_back(token.content);
        }
    }
}

std::string_view Tokenizer::Impl::text_of(std::int32_t id) const {
    const auto added = added_by_id.find(id);
    return added != added_by_id.end() ? std::string_view(parts.added[added->second].content)
                                      : parts.texts().text(id);
}

std::string_view Tokenizer::Impl::form_of(std::int32_t id) const {
    const auto added = added_by_id.find(id);
    return added != added_by_id.end() ? std::string_view(added_forms[added->second]) : parts.texts().text(id);
}

void Tokenizer::Impl::encode_segment(std::string_view segment, std::uint64_t base, bool parse_special,
                                     Bpe::Workspace& workspace, Encoding& out) const {
    NormalizedText text(segment);
    parts.normalizer.apply(text);
    NormalizedText::Cursor cursor(text);
    normalized_tokens.split(text.text(), parse_special, [&](AddedTokenFinder::Part part) {
        if (part.id < 0) {
            encode_text(text, cursor, part, base, workspace, out);
            return;
        }
        out.ids.push_back(part.id);
        out.begin.push_back(base + cursor.source_offset(part.begin));
        out.end.push_back(base + cursor.source_offset(part.end));
    });
}

void Tokenizer::Impl::encode_text(const NormalizedText& whole, NormalizedText::Cursor& cursor,
                                  AddedTokenFinder::Part part, std::uint64_t base, Bpe::Workspace& workspace,
                                  Encoding& out) const {
    const std::string_view text = whole.text().substr(part.begin, part.end - part.begin);
    const bool at_begin = base == 0 && cursor.source_offset(part.begin) == 0;
    NormalizedText rewritten(text);
    const std::vector<Piece> pieces = parts.pre_tokenizer.split(rewritten, at_begin);
    NormalizedText::Cursor inner(rewritten);
    // Converts an offset in `rewritten` to an offset in the given text.
    const auto offset_of = [&](std::size_t offset) {
        return base + cursor.source_offset(part.begin + inner.source_offset(offset));
    };
    for (const Piece piece : pieces) {
        parts.encode_word(rewritten.text().substr(piece.begin, piece.end - piece.begin), workspace);
        for (const Bpe::Token& token : workspace.tokens) {
            out.ids.push_back(token.id);
            out.begin.push_back(offset_of(piece.begin + token.begin));
            out.end.push_back(offset_of(piece.begin + token.end));
        }
    }
}

Tokenizer Tokenizer::load(const std::filesystem::path& tokenizer_json) {
    const nlohmann::json document = read_json_file(tokenizer_json, {.python = true});
    return Tokenizer(std::make_unique<const Impl>(parts_of(document, tokenizer_json, tokenizer_json)));
}

Tokenizer Tokenizer::load_folder(const std::filesystem::path& place) {
    namespace fs = std::filesystem;
    const fs::path folder = local_model_folder(place);
    if (fs::is_regular_file(folder)) {
        return load(folder);
    }
    const fs::path json = folder / "tokenizer.json";
    if (fs::exists(fs::symlink_status(json))) { // a broken link is reported as such
        const nlohmann::json document = read_json_file(json, {.python = true});
        TokenizerParts parts = parts_of(document, json, json);
        const TokenizerConfig config(folder);
        config.add_to(parts);
        config.follow_class(parts, document);
        config.name_start_and_end(parts);
        return Tokenizer(std::make_unique<const Impl>(std::move(parts)));
    }
    if (fs::exists(folder / "vocab.json") && fs::exists(folder / "merges.txt")) {
        return Tokenizer(std::make_unique<const Impl>(read_vocabulary_and_merges(folder)));
    }
    const std::string expected = "tokenizer.json, or vocab.json and merges.txt";
    const std::string remedy =
        "save the tokenizer with transformers' save_pretrained, or give token ids instead of text";
    if (!fs::exists(folder)) {
        throw InputError(ErrorId::text_tokenizer, folder, "a folder with " + expected, "no such folder",
                         "check the path");
    }
    if (fs::exists(folder / "tokenizer.model")) {
        throw InputError(ErrorId::text_tokenizer, folder, expected, "a SentencePiece model (tokenizer.model)",
                         remedy);
    }
    if (fs::exists(folder / "vocab.txt")) {
        throw InputError(ErrorId::text_tokenizer, folder, expected, "a WordPiece vocabulary (vocab.txt)",
                         "this kind is not supported; give token ids instead of text");
    }
    throw InputError(ErrorId::text_tokenizer, folder, expected, "none of these files", remedy);
}

Tokenizer::Tokenizer(std::unique_ptr<const Impl> impl) : impl_(std::move(impl)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Encoding Tokenizer::encode(std::string_view text, bool add_special, bool parse_special) const {
    if (const std::size_t bad = first_invalid_utf8(text); bad != std::string_view::npos) {
        throw InputError(ErrorId::text_bytes, "The text: expected UTF-8, found an invalid byte at offset " +
                                                  std::to_string(bad) + "; save the text as UTF-8.");
    }
    if (text.size() > std::numeric_limits<std::uint32_t>::max()) {
        throw InputError(ErrorId::text_long, "The text: expected less than 4 GiB, found " +
                                                 std::to_string(text.size()) +
                                                 " bytes; split the text into parts.");
    }
    Encoding out;
    const std::size_t guess = text.size() / 4 + 8;
    out.ids.reserve(guess);
    out.begin.reserve(guess);
    out.end.reserve(guess);
    const auto add = [&](const std::vector<std::int32_t>& ids, std::uint64_t offset) {
        for (const std::int32_t id : ids) {
            out.ids.push_back(id);
            out.begin.push_back(offset);
            out.end.push_back(offset);
        }
    };
    if (add_special) {
        add(impl_->parts.prefix, 0);
    }
    Bpe::Workspace workspace;
    impl_->raw_tokens.split(text, parse_special, [&](AddedTokenFinder::Part part) {
        if (part.id < 0) {
            impl_->encode_segment(text.substr(part.begin, part.end - part.begin), part.begin, parse_special,
                                  workspace, out);
            return;
        }
        out.ids.push_back(part.id);
        out.begin.push_back(part.begin);
        out.end.push_back(part.end);
    });
    if (add_special) {
        add(impl_->parts.suffix, text.size());
    }
    return out;
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids, bool skip_special) const {
    std::vector<std::string> tokens;
    tokens.reserve(ids.size());
    for (const std::int32_t id : ids) {
        if (impl_->has(id) && !(skip_special && is_special(id))) {
            tokens.emplace_back(impl_->form_of(id));
        }
    }
    return impl_->parts.decoder.decode(std::move(tokens));
}

std::string Tokenizer::token_bytes(std::int32_t id) const {
    return impl_->has(id) ? impl_->parts.decoder.decode_one(impl_->form_of(id)) : std::string();
}

std::string_view Tokenizer::token_text(std::int32_t id) const {
    return impl_->text_of(id);
}

std::optional<std::int32_t> Tokenizer::id_of(std::string_view token) const {
    if (const auto added = impl_->added_by_content.find(token); added != impl_->added_by_content.end()) {
        return impl_->parts.added[added->second].id;
    }
    const std::int32_t id = impl_->parts.texts().find(token);
    return id >= 0 ? std::optional(id) : std::nullopt;
}

std::int32_t Tokenizer::size() const {
    return impl_->size;
}

bool Tokenizer::is_special(std::int32_t id) const {
    const auto added = impl_->added_by_id.find(id);
    return added != impl_->added_by_id.end() && impl_->parts.added[added->second].special;
}

std::optional<std::int32_t> Tokenizer::start_token() const {
    const std::vector<std::int32_t>& prefix = impl_->parts.prefix;
    return prefix.empty() ? std::nullopt : std::optional(prefix.back());
}

std::optional<std::int32_t> Tokenizer::bos_token() const {
    return impl_->parts.bos;
}

std::optional<std::int32_t> Tokenizer::eos_token() const {
    return impl_->parts.eos;
}

const Notices& Tokenizer::notices() const {
    return impl_->parts.notices;
}

std::string Tokenizer::content_digest() const {
    return ponderscope::content_digest(impl_->parts.texts(), impl_->parts.added, impl_->parts.rules);
}

const std::vector<std::filesystem::path>& Tokenizer::files() const {
    return impl_->parts.files;
}

void Tokenizer::require_vocabulary(std::int64_t vocabulary_size) const {
    const auto fail = [&](std::int64_t id, std::string_view what) {
        throw InputError(
            ErrorId::text_tokenizer, impl_->parts.file(),
            "token ids below " + std::to_string(vocabulary_size) + ", the size of the model's vocabulary",
            std::string(what) + " \"" + printable(impl_->text_of(static_cast<std::int32_t>(id))) +
                "\" with id " + std::to_string(id),
            "use the tokenizer that belongs to this checkpoint");
    };
    if (const std::int32_t last = impl_->parts.texts().size() - 1; last >= vocabulary_size) {
        fail(last, "token");
    }
    for (const auto* ids : {&impl_->parts.prefix, &impl_->parts.suffix}) {
        for (const std::int32_t id : *ids) {
            if (id >= vocabulary_size) {
                fail(id, "special token");
            }
        }
    }
}

void Tokenizer::require_vocabulary(std::int64_t vocabulary_size, const Encoding& encoding) const {
    require_vocabulary(vocabulary_size);
    for (std::size_t i = 0; i < encoding.ids.size(); ++i) {
        if (encoding.ids[i] >= vocabulary_size) {
            throw InputError(
                ErrorId::text_tokenizer, impl_->parts.file(),
                "token ids below " + std::to_string(vocabulary_size) + ", the size of the model's vocabulary",
                "\"" + printable(impl_->text_of(encoding.ids[i])) + "\" with id " +
                    std::to_string(encoding.ids[i]) + " at byte " + std::to_string(encoding.begin[i]) +
                    " of the text",
                "remove this token from the text, or use the tokenizer that belongs to this checkpoint");
        }
    }
}

} // namespace ponderscope
