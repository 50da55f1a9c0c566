// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/text/pattern.h"

#include "core/base/error.h"
#include "core/base/utf8.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <limits>
#include <new>

namespace ponderscope {

namespace {

template <auto Free>
struct Deleter {
    template <class T>
    void operator()(T* p) const {
        Free(p);
    }
};

constexpr std::uint32_t base_match_limit = 10'000'000;
constexpr std::size_t jit_stack_bytes = std::size_t{1} << 20;

std::string pcre2_message(int code) {
    PCRE2_UCHAR buffer[256];
    pcre2_get_error_message(code, buffer, sizeof buffer);
    return reinterpret_cast<const char*>(buffer);
}

} // namespace

struct MatchState::Impl {
    std::unique_ptr<pcre2_match_context, Deleter<pcre2_match_context_free>> context{
        pcre2_match_context_create(nullptr)};
    std::unique_ptr<pcre2_match_data, Deleter<pcre2_match_data_free>> data{
        pcre2_match_data_create(1, nullptr)};
    std::unique_ptr<pcre2_jit_stack, Deleter<pcre2_jit_stack_free>> stack{
        pcre2_jit_stack_create(std::size_t{32} << 10, jit_stack_bytes, nullptr)};
};

MatchState::MatchState() : impl_(std::make_unique<Impl>()) {
    if (!impl_->context || !impl_->data || !impl_->stack) {
        throw std::bad_alloc();
    }
    pcre2_jit_stack_assign(impl_->context.get(), nullptr, impl_->stack.get());
}

MatchState::~MatchState() = default;

struct Pattern::Code {
    std::unique_ptr<pcre2_code, Deleter<pcre2_code_free>> code;
    bool jit = false;
    std::filesystem::path file;
};

Pattern Pattern::literal(std::string text) {
    Pattern p;
    p.text_ = std::move(text);
    return p;
}

Pattern Pattern::regex(std::string_view expression, const std::filesystem::path& file) {
    const std::string translated = translate_oniguruma(expression, file);
    int error = 0;
    PCRE2_SIZE where = 0;
    auto code = std::make_shared<Code>();
    code->file = file;
    // ^ and $ match at lines, as in Oniguruma; \C would split characters.
    constexpr std::uint32_t options = PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C;
    code->code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                                   options, &error, &where, nullptr));
    if (!code->code) {
        throw InputError(file, "a regular expression that compiles",
                         "\"" + printable(expression, 120) + "\" (" + pcre2_message(error) +
                             " near character " + std::to_string(where) + ")",
                         "take the tokenizer file from its source again");
    }
    // Without JIT (not every processor has it) the interpreter does the same work, slower.
    code->jit = pcre2_jit_compile(code->code.get(), PCRE2_JIT_COMPLETE) == 0;
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

bool Pattern::find(std::string_view text, std::size_t from, MatchState& state, Match& match) const {
    if (!code_) {
        const std::size_t at = text_.empty() ? std::string_view::npos : text.find(text_, from);
        if (at == std::string_view::npos) {
            return false;
        }
        match = {at, at + text_.size()};
        return true;
    }
    const auto& s = *state.impl_;
    const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
    int rc = code_->jit ? pcre2_jit_match(code_->code.get(), subject, text.size(), from, PCRE2_NO_UTF_CHECK,
                                          s.data.get(), s.context.get())
                        : PCRE2_ERROR_JIT_STACKLIMIT;
    if (rc == PCRE2_ERROR_JIT_STACKLIMIT) {
        rc = pcre2_match(code_->code.get(), subject, text.size(), from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT,
                         s.data.get(), s.context.get());
    }
    if (rc == PCRE2_ERROR_NOMATCH) {
        return false;
    }
    if (rc < 0) {
        throw InputError(code_->file, "a regular expression that splits the text in reasonable time",
                         "\"" + printable(text_, 120) + "\", which gives up at byte " + std::to_string(from) +
                             " of " + std::to_string(text.size()) + " (" + pcre2_message(rc) + ")",
                         "take the tokenizer file from its source again");
    }
    const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(s.data.get());
    match = {ends[0], std::max(ends[0], ends[1])};
    return true;
}

Pattern::Search::Search(const Pattern& pattern, std::string_view text, MatchState& state)
    : pattern_(&pattern), text_(text), state_(&state) {
    if (pattern.code_) {
        // Runs of a million spaces are backed over one by one; only what grows faster than the text is
        // refused.
        const std::uint64_t limit = base_match_limit + 16 * std::uint64_t{text.size()};
        pcre2_set_match_limit(state.impl_->context.get(),
                              static_cast<std::uint32_t>(
                                  std::min<std::uint64_t>(limit, std::numeric_limits<std::uint32_t>::max())));
    }
}

bool Pattern::Search::next(Match& match) {
    while (from_ <= text_.size() && pattern_->find(text_, from_, *state_, match)) {
        if (match.begin == match.end && match.end == last_end_) {
            from_ = match.end + (match.end < text_.size() ? utf8_at(text_, match.end).bytes : 1);
            continue;
        }
        from_ = last_end_ = match.end;
        return true;
    }
    return false;
}

} // namespace ponderscope
