// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/text/pattern.h"

#include "core/base/error.h"

#define ONIG_ESCAPE_REGEX_T_COLLISION // POSIX has a regex_t, too
#include <oniguruma.h>

#include <algorithm>
#include <cctype>
#include <limits>
#include <new>
#include <utility>

namespace ponderscope {

namespace {

template <auto Free>
struct Deleter {
    template <class T>
    void operator()(T* p) const {
        Free(p);
    }
};

constexpr unsigned long base_retry_limit = 10'000'000;
constexpr unsigned stack_limit = 1U << 24; ///< entries of some 40 bytes

const OnigUChar* onig_text(const char* text) {
    return reinterpret_cast<const OnigUChar*>(text);
}

std::string onig_message(int code, OnigErrorInfo* info = nullptr) {
    OnigUChar buffer[ONIG_MAX_ERROR_MESSAGE_LEN];
    const int length =
        info != nullptr ? onig_error_code_to_str(buffer, code, info) : onig_error_code_to_str(buffer, code);
    return {reinterpret_cast<const char*>(buffer), static_cast<std::size_t>(std::max(length, 0))};
}

/// Ruby's syntax with \O and \N, which Oniguruma before 6.9.9 supports only in other syntaxes.
OnigSyntaxType* onig_syntax() {
    static OnigSyntaxType syntax = [] {
        OnigEncoding utf8 = ONIG_ENCODING_UTF8;
        onig_initialize(&utf8, 1);
        OnigSyntaxType ruby;
        onig_copy_syntax(&ruby, ONIG_SYNTAX_RUBY);
        onig_set_syntax_op2(&ruby, onig_get_syntax_op2(&ruby) | ONIG_SYN_OP2_ESC_CAPITAL_N_O_SUPER_DOT);
        return ruby;
    }();
    return &syntax;
}

/// Corrects two classes of Oniguruma before 6.9.9. [[:punct:]] lacks symbols. \p{word} outside of brackets
/// lacks Latin-1's superscripts and fractions. The library tokenizers includes both.
std::string corrected_names(std::string_view expression) {
    constexpr std::pair<std::string_view, std::string_view> sets[] = {{"[:punct:]", "\\p{P}\\p{S}"},
                                                                      {"[:^punct:]", "[^\\p{P}\\p{S}]"}};
    std::string corrected;
    int brackets = 0;
    while (!expression.empty()) {
        std::string_view part = expression.substr(0, expression.front() == '\\' ? 2 : 1);
        std::string text(part);
        for (const auto& [name, set] : sets) {
            if (expression.starts_with(name)) {
                part = name;
                text = set;
            }
        }
        brackets += part == "[" ? 1 : part == "]" ? -1 : 0;
        const std::size_t end = expression.find('}');
        if (brackets <= 0 && (part == "\\p" || part == "\\P") && end != std::string_view::npos) {
            std::string name(expression.substr(2, end - 1));
            std::transform(name.begin(), name.end(), name.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
            if (name == "{word}" || name == "{^word}") {
                const bool negated = (part == "\\P") != (name == "{^word}");
                part = expression.substr(0, end + 1);
                text = std::string(negated ? "[^" : "[") + "\\p{word}\u00b2\u00b3\u00b9\u00bc\u00bd\u00be]";
            }
        }
        corrected += text;
        expression.remove_prefix(part.size());
    }
    return corrected;
}

void free_region(OnigRegion* region) {
    onig_region_free(region, 1);
}

/// Memory for matches; one object per thread.
struct MatchState {
    std::unique_ptr<OnigRegion, Deleter<free_region>> region{onig_region_new()};
    std::unique_ptr<OnigMatchParam, Deleter<onig_free_match_param>> limits{onig_new_match_param()};

    MatchState() {
        if (!region || !limits) {
            throw std::bad_alloc();
        }
        onig_set_match_stack_limit_size_of_match_param(limits.get(), stack_limit);
    }
};

} // namespace

struct Pattern::Code {
    std::unique_ptr<OnigRegexType, Deleter<onig_free>> code;
    std::filesystem::path file;
};

Pattern Pattern::literal(std::string text) {
    Pattern p;
    p.text_ = std::move(text);
    return p;
}

Pattern Pattern::regex(std::string_view expression, const std::filesystem::path& file) {
    const std::string corrected = corrected_names(expression);
    OnigRegex compiled = nullptr;
    OnigErrorInfo info{};
    const OnigUChar* const begin = onig_text(corrected.data());
    const int error = onig_new(&compiled, begin, begin + corrected.size(), ONIG_OPTION_NONE,
                               ONIG_ENCODING_UTF8, onig_syntax(), &info);
    if (error != ONIG_NORMAL) {
        throw InputError(ErrorId::tokenizer_file, file, "a regular expression that compiles",
                         "\"" + printable(expression, 120) + "\" (" + onig_message(error, &info) + ")",
                         "take the tokenizer file from its source again");
    }
    auto code = std::make_shared<Code>();
    code->code.reset(compiled);
    code->file = file;
    Pattern p;
    p.text_ = std::string(expression);
    p.code_ = std::move(code);
    return p;
}

Pattern Pattern::parse(const JsonObject& object) {
    const nlohmann::json* pattern = object.find("pattern");
    if (pattern != nullptr && pattern->is_string()) {
        return literal(pattern->get<std::string>());
    }
    const JsonObject choice = object.required_object("pattern");
    if (const auto text = choice.text("String")) {
        return literal(*text);
    }
    if (const auto text = choice.text("Regex")) {
        return regex(*text, object.source());
    }
    object.fail("pattern", "{\"String\": …} or {\"Regex\": …}");
}

bool Pattern::find(std::string_view text, std::size_t from, std::size_t& begin, std::size_t& end) const {
    if (!code_) {
        const std::size_t at = text_.empty() ? std::string_view::npos : text.find(text_, from);
        if (at == std::string_view::npos) {
            return false;
        }
        begin = at;
        end = at + text_.size();
        return true;
    }
    if (text.size() > std::size_t{std::numeric_limits<int>::max()}) {
        throw InputError(ErrorId::text_long, "The text: expected less than 2 GiB, found " +
                                                 std::to_string(text.size()) +
                                                 " bytes; split the text into parts.");
    }
    static thread_local const MatchState state;
    // The limit grows with the text, because a pattern may backtrack over a million spaces one by one. Only
    // matches whose cost grows faster than the text exceed it.
    const unsigned long limit = base_retry_limit + 16 * text.size();
    onig_set_retry_limit_in_match_of_match_param(state.limits.get(), limit);
    onig_set_retry_limit_in_search_of_match_param(state.limits.get(), limit);
    const OnigUChar* const first = onig_text(text.data());
    const OnigUChar* const last = first + text.size();
    const OnigRegion* const region = state.region.get();
    const int found = onig_search_with_param(code_->code.get(), first, last, first + from, last,
                                             state.region.get(), ONIG_OPTION_NONE, state.limits.get());
    if (found == ONIG_MISMATCH) {
        return false;
    }
    if (found < 0) {
        throw InputError(ErrorId::tokenizer_file, code_->file,
                         "a regular expression that splits the text in reasonable time",
                         "\"" + printable(text_, 120) + "\", which gives up at byte " + std::to_string(from) +
                             " of " + std::to_string(text.size()) + " (" + onig_message(found) + ")",
                         "take the tokenizer file from its source again");
    }
    begin = static_cast<std::size_t>(region->beg[0]);
    end = std::max(begin, static_cast<std::size_t>(region->end[0]));
    return true;
}

std::string one_character(const JsonObject& object, std::string_view key, std::string text) {
    if (utf8_length(text) != 1) {
        object.fail(key, "one character");
    }
    return text;
}

} // namespace ponderscope
