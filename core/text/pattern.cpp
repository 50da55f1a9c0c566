// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/text/pattern.h"

#include "core/base/error.h"
#include "core/base/utf8.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <cctype>
#include <limits>
#include <new>
#include <span>

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

namespace {

/// The name in an expression that begins with \p{Name}, \P{Name} or \p{^Name}; empty of others.
std::string_view property_of(std::string_view expression) {
    if (!expression.starts_with("\\p{") && !expression.starts_with("\\P{")) {
        return {};
    }
    const std::size_t begin = expression.substr(3, 1) == "^" ? 4 : 3;
    const std::size_t end = expression.find('}');
    return end == std::string_view::npos ? std::string_view() : expression.substr(begin, end - begin);
}

// PCRE2's \s includes U+180E, and its \w leaves out marks before 10.43.
constexpr std::string_view space = "\\x09-\\x0d\\x20\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}"
                                   "\\x{2029}\\x{202f}\\x{205f}\\x{3000}";

struct NamedSet {
    std::string_view name;
    std::string_view inside; ///< of a set
};

/// What Oniguruma means by [[:name:]], where PCRE2 means less (its letters are no marks and no letter-like
/// numbers, its punctuation no symbols beyond ASCII). The same of \p{name}, but for punctuation.
constexpr NamedSet posix_sets[] = {{"alpha", "\\p{Alphabetic}"},
                                   {"digit", "\\p{Nd}"},
                                   {"alnum", "\\p{Alphabetic}\\p{Nd}"},
                                   {"upper", "\\p{Uppercase}"},
                                   {"lower", "\\p{Lowercase}"},
                                   {"punct", "\\p{P}\\p{S}"},
                                   {"space", space},
                                   {"blank", "\\x09\\p{Zs}"},
                                   {"graph", "\\p{L}\\p{M}\\p{N}\\p{P}\\p{S}\\p{Cf}\\p{Co}"},
                                   {"print", "\\p{L}\\p{M}\\p{N}\\p{P}\\p{S}\\p{Cf}\\p{Co}\\p{Zs}"},
                                   {"word", word_characters},
                                   {"cntrl", "\\p{Cc}"},
                                   {"xdigit", "0-9A-Fa-f"}};

/// Unicode's long names of general categories, which PCRE2 does not know.
constexpr NamedSet categories[] = {{"letter", "\\p{L}"},
                                   {"uppercaseletter", "\\p{Lu}"},
                                   {"lowercaseletter", "\\p{Ll}"},
                                   {"titlecaseletter", "\\p{Lt}"},
                                   {"modifierletter", "\\p{Lm}"},
                                   {"otherletter", "\\p{Lo}"},
                                   {"mark", "\\p{M}"},
                                   {"nonspacingmark", "\\p{Mn}"},
                                   {"spacingmark", "\\p{Mc}"},
                                   {"enclosingmark", "\\p{Me}"},
                                   {"number", "\\p{N}"},
                                   {"decimalnumber", "\\p{Nd}"},
                                   {"letternumber", "\\p{Nl}"},
                                   {"othernumber", "\\p{No}"},
                                   {"punct", "\\p{P}"},
                                   {"punctuation", "\\p{P}"},
                                   {"connectorpunctuation", "\\p{Pc}"},
                                   {"dashpunctuation", "\\p{Pd}"},
                                   {"openpunctuation", "\\p{Ps}"},
                                   {"closepunctuation", "\\p{Pe}"},
                                   {"initialpunctuation", "\\p{Pi}"},
                                   {"finalpunctuation", "\\p{Pf}"},
                                   {"otherpunctuation", "\\p{Po}"},
                                   {"symbol", "\\p{S}"},
                                   {"mathsymbol", "\\p{Sm}"},
                                   {"currencysymbol", "\\p{Sc}"},
                                   {"modifiersymbol", "\\p{Sk}"},
                                   {"othersymbol", "\\p{So}"},
                                   {"separator", "\\p{Z}"},
                                   {"spaceseparator", "\\p{Zs}"},
                                   {"lineseparator", "\\p{Zl}"},
                                   {"paragraphseparator", "\\p{Zp}"},
                                   {"other", "\\p{C}"},
                                   {"control", "\\p{Cc}"},
                                   {"format", "\\p{Cf}"},
                                   {"unassigned", "\\p{Cn}"},
                                   {"privateuse", "\\p{Co}"}};

/// Empty where the table has no such name. Letters' case, spaces, - and _ do not count.
std::string_view set_named(std::span<const NamedSet> table, std::string_view name) {
    std::string plain;
    for (const char c : name) {
        if (c != ' ' && c != '-' && c != '_') {
            plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
        }
    }
    const auto found =
        std::find_if(table.begin(), table.end(), [&](const NamedSet& set) { return set.name == plain; });
    return found == table.end() ? std::string_view() : found->inside;
}

// With the numbers that Oniguruma takes from Latin-1, where it stands alone.
const std::string& word_alone() {
    static const std::string set = std::string(word_characters) + "\\x{b2}\\x{b3}\\x{b9}\\x{bc}-\\x{be}";
    return set;
}

/// The inside of the set that \p{name} is, where PCRE2 does not know the name or means something else by it.
std::string set_of_property(std::string_view name, bool in_class) {
    // PCRE2 takes a bare name of a script for all characters that such texts use.
    constexpr std::string_view scripts[] = {
        "Arabic",  "Armenian", "Bengali",  "Cyrillic", "Devanagari", "Ethiopic",  "Georgian",
        "Greek",   "Gujarati", "Gurmukhi", "Han",      "Hangul",     "Hebrew",    "Hiragana",
        "Kannada", "Katakana", "Khmer",    "Lao",      "Latin",      "Malayalam", "Mongolian",
        "Myanmar", "Oriya",    "Sinhala",  "Tamil",    "Telugu",     "Thai",      "Tibetan"};
    if (std::find(std::begin(scripts), std::end(scripts), name) != std::end(scripts)) {
        return "\\p{sc:" + std::string(name) + "}";
    }
    std::string_view set = set_named(categories, name);
    if (set.empty()) {
        set = set_named(posix_sets, name);
    }
    return set == word_characters && !in_class ? word_alone() : std::string(set);
}

struct EscapedSet {
    std::string inside; ///< empty: the escape is no set, or PCRE2 means the same by it
    bool negated = false;
    std::size_t length = 2; ///< of the escape, in bytes
};

/// \p expression begins with a backslash and a letter.
EscapedSet escaped_set(std::string_view expression, bool in_class) {
    const char letter = expression[1];
    switch (letter) {
    case 's':
    case 'S':
        return {std::string(space), letter == 'S'};
    case 'w':
    case 'W':
        return {in_class ? std::string(word_characters) : word_alone(), letter == 'W'};
    case 'h': // a hexadecimal digit there, a horizontal space here
    case 'H':
        return {"0-9A-Fa-f", letter == 'H'};
    case 'p':
    case 'P':
        if (const std::string_view name = property_of(expression); !name.empty()) {
            return {set_of_property(name, in_class), (letter == 'P') != (expression[3] == '^'),
                    expression.find('}') + 1};
        }
        return {};
    default:
        return {};
    }
}

} // namespace

std::string translate_oniguruma(std::string_view expression, const std::filesystem::path& file) {
    const auto refuse = [&](const std::string& what) {
        throw InputError(file, "a regular expression without " + what,
                         "\"" + printable(expression, 120) + "\"", "this syntax is not supported");
    };
    const auto is_hex = [](char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; };
    std::string out;
    out.reserve(expression.size() * 2);
    bool in_class = false;
    const auto put_set = [&](std::string_view set, bool negated) {
        if (set.starts_with("\\p{") && set.find('}') + 1 == set.size()) {
            out += negated ? "\\P" : "\\p";
            out += set.substr(2);
        } else if (!in_class) {
            out += negated ? "[^" : "[";
            out += set;
            out += ']';
        } else if (!negated) {
            out += set;
        } else if (set == space) {
            out += "\\P{White_Space}";
        } else {
            refuse("the complement of " + std::string(set) + " inside a set");
        }
    };
    for (std::size_t i = 0; i < expression.size(); ++i) {
        const char c = expression[i];
        const std::string_view rest = expression.substr(i);
        if (c == '\\') {
            if (i + 1 == expression.size()) {
                out += c;
                break;
            }
            const char e = expression[++i];
            if (const EscapedSet set = escaped_set(rest, in_class); !set.inside.empty()) {
                put_set(set.inside, set.negated);
                i += set.length - 2;
            } else if ((e == 'b' || e == 'B') && !in_class) { // PCRE2's know its own \w
                const std::string here = "[" + word_alone() + "]";
                const bool edge = e == 'b';
                out += "(?:(?<=" + here + (edge ? ")(?!" : ")(?=") + here + ")|(?<!" + here +
                       (edge ? ")(?=" : ")(?!") + here + "))";
            } else if (e == 'u' && rest.size() >= 6 &&
                       std::all_of(rest.begin() + 2, rest.begin() + 6, is_hex)) {
                out += "\\x{";
                out += rest.substr(2, 4);
                out += '}';
                i += 4;
            } else if (e == 'g' || e == 'K' || e == 'G') {
                refuse(std::string("\\") + e);
            } else {
                out += '\\';
                out += e;
            }
        } else if (in_class) {
            if (rest.starts_with("[:")) {
                const std::size_t close = rest.find(":]");
                if (close == std::string_view::npos) {
                    refuse("a set inside a set");
                }
                const bool apart = rest.substr(2, 1) == "^";
                const std::string_view name = rest.substr(apart ? 3 : 2, close - (apart ? 3 : 2));
                if (const std::string_view set = set_named(posix_sets, name); !set.empty()) {
                    put_set(set, apart);
                } else {
                    out += rest.substr(0, close + 2);
                }
                i += close + 1;
                continue;
            }
            if (c == '[') {
                refuse("a set inside a set");
            }
            if (rest.starts_with("&&")) {
                refuse("an intersection of sets (&&)");
            }
            in_class = c != ']';
            out += c;
        } else if (c == '[') {
            in_class = true;
            out += c;
            if (rest.size() > 1 && rest[1] == '^') {
                out += '^';
                ++i;
            }
            if (i + 1 < expression.size() && expression[i + 1] == ']') { // a bracket first in a set is itself
                out += "\\]";
                ++i;
            }
        } else if (rest.starts_with("(?")) {
            // Oniguruma's m lets the dot match newlines, which is s here.
            std::size_t k = 2;
            while (k < rest.size() &&
                   (rest[k] == 'i' || rest[k] == 'm' || rest[k] == 'x' || rest[k] == '-')) {
                ++k;
            }
            if (k > 2 && k < rest.size() && (rest[k] == ':' || rest[k] == ')')) {
                std::string flags(rest.substr(0, k));
                std::replace(flags.begin(), flags.end(), 'm', 's');
                out += flags;
                i += k - 1;
            } else {
                out += "(?";
                ++i;
            }
        } else if (rest.starts_with("(*")) {
            refuse("a verb such as (*SKIP)");
        } else if (rest.starts_with("{,")) {
            out += "{0,";
            ++i;
        } else {
            out += c;
        }
    }
    return out;
}

} // namespace ponderscope
