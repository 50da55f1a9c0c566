// SPDX-License-Identifier: GPL-3.0-or-later
// Oniguruma's syntax, in the dialect of Ruby that Hugging Face tokenizers compile with, in the words of
// PCRE2.
#include "core/base/error.h"
#include "core/base/utf8.h"
#include "core/text/pattern.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <span>
#include <vector>

namespace ponderscope {

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
constexpr std::string_view white_space_set =
    "\\x09-\\x0d\\x20\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}"
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
                                   {"space", white_space_set},
                                   {"blank", "\\x09\\p{Zs}"},
                                   {"graph", "\\p{L}\\p{M}\\p{N}\\p{P}\\p{S}\\p{Cf}\\p{Co}"},
                                   {"print", "\\p{L}\\p{M}\\p{N}\\p{P}\\p{S}\\p{Cf}\\p{Co}\\p{Zs}"},
                                   {"word", word_characters},
                                   {"cntrl", "\\p{Cc}"},
                                   {"xdigit", "0-9A-Fa-f"}};

/// Unicode's long names of general category_sets, which PCRE2 does not know.
constexpr NamedSet category_sets[] = {{"letter", "\\p{L}"},
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
    std::string_view set = set_named(category_sets, name);
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
        return {std::string(white_space_set), letter == 'S'};
    case 'w':
    case 'W':
        return {in_class ? std::string(word_characters) : word_alone(), letter == 'W'};
    case 'h': // a hexadecimal digit there, a horizontal space here
    case 'H':
        return {"0-9A-Fa-f", letter == 'H'};
    case 'p':
    case 'P':
        if (const std::string_view name = property_of(expression); !name.empty()) {
            const std::size_t length = expression.find('}') + 1;
            const std::string set = set_of_property(name, in_class);
            const bool negated = (letter == 'P') != (expression[3] == '^');
            return {set.empty() ? "\\p{" + std::string(name) + "}" : set, negated, length};
        }
        return {};
    default:
        return {};
    }
}

bool is_single_property(std::string_view set) {
    return set.starts_with("\\p{") && set.find('}') + 1 == set.size();
}

std::string complement_of_property(std::string_view set) {
    return "\\P" + std::string(set.substr(2));
}

bool is_ascii_letter(char c) {
    return std::isalpha(static_cast<unsigned char>(c)) != 0;
}

/// A set of characters while it is read. PCRE2 has neither sets within sets nor intersections: what does not
/// fit between two brackets becomes a pattern of its own that matches one character.
struct Set {
    std::string inside;                ///< for PCRE2's [...]
    std::vector<std::string> patterns; ///< of one character each, in union with `inside`
    bool negated = false;

    [[nodiscard]] bool is_plain() const { return patterns.empty() && !inside.empty(); }
    /// A pattern that matches one character of the set.
    [[nodiscard]] std::string pattern() const {
        if (is_plain()) {
            return (negated ? "[^" : "[") + inside + ']';
        }
        std::string any = inside.empty() ? std::string() : '[' + inside + ']';
        for (const std::string& one : patterns) {
            any += (any.empty() ? "" : "|") + one;
        }
        if (any.empty()) {
            return negated ? "(?s:.)" : "(?!)";
        }
        return negated ? "(?:(?!" + any + ")(?s:.))" : "(?:" + any + ')';
    }
    void add(const Set& other) {
        if (other.is_plain() && !other.negated) {
            inside += other.inside;
        } else {
            patterns.push_back(other.pattern());
        }
    }
    void intersect(const Set& other) { *this = {{}, {"(?:(?=" + pattern() + ')' + other.pattern() + ')'}}; }
};

class Translator {
public:
    Translator(std::string_view expression, const std::filesystem::path& file)
        : expression_(expression), file_(file) {
        out_.reserve(expression.size() * 2);
    }

    std::string translate() {
        while (at_ < expression_.size()) {
            translate_next();
        }
        out_.append(groups_.front().options, ')');
        return std::move(out_);
    }

private:
    static constexpr std::size_t nothing = std::string::npos;

    struct Group {
        std::size_t begin = 0;    ///< in the output
        std::size_t options = 0;  ///< open groups of (?i), which reaches to the end of the group around it
        bool is_extended = false; ///< white space and comments mean nothing: (?x)
        bool is_caseless = false; ///< (?i)
    };
    struct Interval {
        std::string text;   ///< "{2,5}" for PCRE2
        std::size_t length; ///< in the expression
        bool is_fixed;      ///< "{2}": a ? or + behind it is a quantifier of its own
    };

    [[noreturn]] void refuse(const std::string& what) const {
        throw InputError(file_, "a regular expression without " + what,
                         "\"" + printable(expression_, 120) + "\"", "this syntax is not supported");
    }
    [[nodiscard]] std::string_view rest() const { return expression_.substr(at_); }
    [[nodiscard]] char next(std::size_t ahead = 1) const {
        return at_ + ahead < expression_.size() ? expression_[at_ + ahead] : '\0';
    }
    void put_atom(std::string_view text, std::size_t length) {
        atom_ = out_.size();
        out_ += text;
        at_ += length;
    }

    void translate_next() {
        const char c = expression_[at_];
        const bool is_extended = groups_.back().is_extended;
        if (c == '\\') {
            translate_escape();
        } else if (c == '[') {
            put_atom(read_set().pattern(), 0);
        } else if (c == '(') {
            open_group();
        } else if (c == ')') {
            close_group();
        } else if (c == '|') {
            out_ += c;
            atom_ = nothing;
            ++at_;
        } else if (c == '*' || c == '+' || c == '?' || c == '{') {
            translate_quantifier();
        } else if (is_extended && std::isspace(static_cast<unsigned char>(c)) != 0) {
            ++at_;
        } else if (is_extended && c == '#') {
            at_ = std::min(expression_.find('\n', at_), expression_.size() - 1) + 1;
        } else {
            const std::size_t bytes = utf8_at(expression_, at_).bytes;
            put_atom(expression_.substr(at_, bytes), bytes);
        }
    }

    // ---- escapes

    /// "\x{00e9}" of an escape \u00e9 at the beginning of \p text; empty of others.
    static std::string code_point(std::string_view text) {
        const auto is_hex = [](char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; };
        if (text.size() < 6 || text[1] != 'u' || !std::all_of(text.begin() + 2, text.begin() + 6, is_hex)) {
            return {};
        }
        return "\\x{" + std::string(text.substr(2, 4)) + '}';
    }

    /// The escape of one character at the place that is read; a letter that means nothing to Oniguruma means
    /// itself.
    std::string escaped_character(std::string_view meaningful) {
        if (std::string code = code_point(rest()); !code.empty()) {
            at_ += 6;
            return code;
        }
        const char e = next();
        at_ += 2;
        if (e == 'v') { // the vertical tab alone; in PCRE2 all that breaks lines
            return "\\x0b";
        }
        const char argument = at_ < expression_.size() ? expression_[at_] : '\0';
        const bool lacks_argument =
            ((e == 'p' || e == 'P') && argument != '{') ||
            (e == 'k' && argument != '<' && argument != '\'') ||
            (e == 'x' && argument != '{' && std::isxdigit(static_cast<unsigned char>(argument)) == 0);
        if (is_ascii_letter(e) && (lacks_argument || meaningful.find(e) == std::string_view::npos)) {
            return std::string(1, e);
        }
        std::string escape{'\\', e};
        if (static_cast<unsigned char>(e) >= 0x80) {
            const std::size_t bytes = utf8_at(expression_, at_ - 1).bytes;
            escape = expression_.substr(at_ - 1, bytes);
            at_ += bytes - 1;
        }
        return escape;
    }

    void translate_escape() {
        if (at_ + 1 == expression_.size()) {
            put_atom("\\", 1);
            return;
        }
        const char e = next();
        if (const EscapedSet set = escaped_set(rest(), false); !set.inside.empty()) {
            if (!is_single_property(set.inside)) {
                put_atom((set.negated ? "[^" : "[") + set.inside + ']', set.length);
            } else {
                put_atom(set.negated ? complement_of_property(set.inside) : set.inside, set.length);
            }
        } else if (e == 'b' || e == 'B') { // PCRE2's know its own \w
            const std::string here = "[" + word_alone() + "]";
            const bool edge = e == 'b';
            put_atom("(?:(?<=" + here + (edge ? ")(?!" : ")(?=") + here + ")|(?<!" + here +
                         (edge ? ")(?=" : ")(?!") + here + "))",
                     2);
        } else if (std::string_view("KyY").find(e) != std::string_view::npos ||
                   (e == 'g' && (next(2) == '<' || next(2) == '\''))) {
            refuse(std::string("\\") + e);
        } else if (e == 'O') {
            put_atom("(?s:.)", 2);
        } else {
            const std::size_t begin = out_.size();
            out_ += escaped_character("aAcCdDefGkMnNpPrRtxXzZ");
            atom_ = begin;
        }
    }

    // ---- sets

    /// Reads a set from its bracket on.
    Set read_set() {
        const bool negated = next() == '^';
        at_ += negated ? 2 : 1;
        Set set;
        std::optional<Set> left; ///< of &&
        bool is_first = true;
        bool behind_set = true; ///< a hyphen here is no range
        for (; at_ < expression_.size(); is_first = false) {
            const char c = expression_[at_];
            if (c == ']' && !is_first) {
                ++at_;
                if (left) {
                    left->intersect(set);
                    set = *std::move(left);
                }
                set.negated = negated;
                return set;
            }
            if (rest().starts_with("&&")) {
                if (groups_.back().is_caseless) { // where it would look at sets before case is ignored
                    refuse("an intersection of sets (&&) under (?i)");
                }
                at_ += 2;
                if (left) {
                    left->intersect(set);
                } else {
                    left = set;
                }
                set = {};
                behind_set = true;
            } else if (c == '[') {
                add_inner_set(set);
                behind_set = true;
            } else if (c == '\\' && at_ + 1 < expression_.size()) {
                behind_set = add_escape(set);
            } else if (c == '-') {
                ++at_;
                if (rest().starts_with('[') && !behind_set) {
                    refuse("a range that ends with a set");
                }
                const bool before_set =
                    rest().empty() || rest().starts_with(']') || rest().starts_with("&&") ||
                    (rest().size() > 1 && rest()[0] == '\\' &&
                     (!escaped_set(rest(), true).inside.empty() || rest()[1] == 'd' || rest()[1] == 'D'));
                set.inside += behind_set || before_set ? "\\-" : "-";
                behind_set = false;
            } else if (c == ']' || (c == '^' && set.inside.empty())) {
                set.inside += std::string{'\\', c};
                ++at_;
                behind_set = false;
            } else {
                const std::size_t bytes = utf8_at(expression_, at_).bytes;
                set.inside += expression_.substr(at_, bytes);
                at_ += bytes;
                behind_set = false;
            }
        }
        throw InputError(file_, "a regular expression that compiles",
                         "\"" + printable(expression_, 120) + "\", where a set does not end",
                         "take the tokenizer file from its source again");
    }

    void add_inner_set(Set& set) {
        const std::size_t close = rest().starts_with("[:") ? rest().find(":]") : nothing;
        if (close == nothing) {
            set.add(read_set());
            return;
        }
        const bool negated = rest().substr(2, 1) == "^";
        const std::string_view name = rest().substr(negated ? 3 : 2, close - (negated ? 3 : 2));
        if (const std::string_view named = set_named(posix_sets, name); !named.empty()) {
            add_named(set, named, negated);
        } else {
            set.inside += rest().substr(0, close + 2);
        }
        at_ += close + 2;
    }

    static void add_named(Set& set, std::string_view inside, bool negated) {
        if (negated && is_single_property(inside)) {
            set.inside += complement_of_property(inside);
        } else if (negated && inside == white_space_set) {
            set.inside += "\\P{White_Space}";
        } else {
            set.add({std::string(inside), {}, negated});
        }
    }

    /// Whether the escape is a set itself.
    bool add_escape(Set& set) {
        if (const EscapedSet escaped = escaped_set(rest(), true); !escaped.inside.empty()) {
            add_named(set, escaped.inside, escaped.negated);
            at_ += escaped.length;
            return true;
        }
        const char e = next();
        set.inside += escaped_character("abcCdDefMnrtx");
        return e == 'd' || e == 'D';
    }

    // ---- groups and quantifiers

    void open_group() {
        if (rest().starts_with("(*")) {
            refuse("a verb such as (*SKIP)");
        }
        if (rest().starts_with("(?#")) {
            at_ = std::min(expression_.find(')', at_), expression_.size() - 1) + 1;
            return;
        }
        Group group = groups_.back();
        group.begin = out_.size();
        group.options = 0;
        atom_ = nothing;
        if (!rest().starts_with("(?")) {
            groups_.push_back(group);
            out_ += '(';
            ++at_;
            return;
        }
        std::string flags = "(?";
        bool on = true;
        std::size_t k = 2;
        for (; next(k) != '\0' && std::string_view("imx-").find(next(k)) != std::string_view::npos; ++k) {
            if (next(k) == 'x') {
                group.is_extended = on;
                continue;
            }
            on = on && next(k) != '-';
            group.is_caseless = next(k) == 'i' ? on : group.is_caseless;
            flags += next(k) == 'm' ? 's' : next(k); // there the dot matches newlines by m
        }
        if (k > 2 && next(k) == ')') { // to the end of the group around it, alternatives and all
            group.begin = groups_.back().begin;
            group.options = groups_.back().options + 1;
            groups_.back() = group;
            out_ += flags + ':';
            at_ += k + 1;
            return;
        }
        groups_.push_back(group);
        const bool has_flags = k > 2 && next(k) == ':';
        out_ += has_flags ? flags + ':' : "(?";
        at_ += has_flags ? k + 1 : 2;
    }

    void close_group() {
        const Group group = groups_.back();
        out_.append(group.options + 1, ')');
        ++at_;
        atom_ = group.begin;
        if (groups_.size() > 1) {
            groups_.pop_back();
        } else {
            groups_.back().options = 0; // one bracket too many, of which PCRE2 complains
        }
    }

    [[nodiscard]] std::optional<Interval> read_interval() const {
        const std::size_t close = rest().find('}');
        if (close == nothing) {
            return std::nullopt;
        }
        const std::string inside(rest().substr(1, close - 1));
        const std::size_t comma = inside.find(',');
        const std::string low = inside.substr(0, comma);
        const std::string high = comma == nothing ? std::string() : inside.substr(comma + 1);
        const auto is_number = [](const std::string& text) {
            return text.size() <= 6 && text.find_first_not_of("0123456789") == nothing;
        };
        if (!is_number(low) || !is_number(high) || (low.empty() && high.empty())) {
            return std::nullopt;
        }
        if (comma == nothing) {
            return Interval{'{' + low + '}', close + 1, true};
        }
        if (!high.empty() && !low.empty() &&
            std::stoi(low) > std::stoi(high)) { // Ruby's way to be possessive
            return Interval{'{' + high + ',' + low + "}+", close + 1, true};
        }
        return Interval{'{' + (low.empty() ? "0" : low) + ',' + high + '}', close + 1, false};
    }

    /// One quantifier. PCRE2 reads "{1,3}+" as possessive and "{2}?" as lazy, where Oniguruma reads two
    /// quantifiers.
    void translate_quantifier() {
        const char c = expression_[at_];
        std::string quantifier(1, c);
        std::size_t length = 1;
        bool takes_lazy = true;
        bool takes_possessive = true;
        if (c == '{') {
            const std::optional<Interval> interval = read_interval();
            if (!interval) {
                put_atom("\\{", 1);
                return;
            }
            quantifier = interval->text;
            length = interval->length;
            takes_lazy = !interval->is_fixed;
            takes_possessive = false;
        }
        if ((takes_lazy && next(length) == '?') || (takes_possessive && next(length) == '+')) {
            quantifier += next(length++);
        }
        if (atom_ != nothing && quantified_ == out_.size()) {
            out_.insert(atom_, "(?:");
            out_ += ')';
        }
        out_ += quantifier;
        at_ += length;
        quantified_ = out_.size();
    }

    std::string_view expression_;
    const std::filesystem::path& file_;
    std::string out_;
    std::size_t at_ = 0;
    std::vector<Group> groups_{1};
    std::size_t atom_ = nothing;       ///< where in the output begins what a quantifier repeats
    std::size_t quantified_ = nothing; ///< where in the output the last quantifier ended
};

} // namespace

std::string translate_oniguruma(std::string_view expression, const std::filesystem::path& file) {
    return Translator(expression, file).translate();
}

} // namespace ponderscope
