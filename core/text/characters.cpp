// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/text/characters.h"

#include "core/base/utf8.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <bitset>
#include <cstdlib>
#include <memory>
#include <new>

namespace ponderscope::characters {

namespace {

utf8proc_category_t category(char32_t c) {
    return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

// No character from here on decomposes or has a combining class.
constexpr char32_t end_of_tables = 0x30000;
using CharacterSet = std::bitset<end_of_tables>;

utf8proc_option_t options_of(Form form) {
    unsigned options = UTF8PROC_STABLE;
    options |= form == Form::nfc || form == Form::nfkc ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE;
    if (form == Form::nfkc || form == Form::nfkd) {
        options |= UTF8PROC_COMPAT;
    }
    return static_cast<utf8proc_option_t>(options);
}

std::string mapped(std::string_view text, Form form) {
    utf8proc_uint8_t* result = nullptr;
    const utf8proc_ssize_t size =
        utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                     static_cast<utf8proc_ssize_t>(text.size()), &result, options_of(form));
    const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(result, &std::free);
    if (size < 0) {
        throw std::bad_alloc(); // valid UTF-8 fails for no other reason
    }
    return {reinterpret_cast<const char*>(result), static_cast<std::size_t>(size)};
}

// The characters that must not begin a part that is normalised alone: characters that the form changes,
// characters with a combining class, and for composing forms characters that may be the second half of a
// composition.
CharacterSet make_unstable(Form form) {
    CharacterSet set;
    const bool composes = form == Form::nfc || form == Form::nfkc;
    std::array<utf8proc_int32_t, 32> parts{};
    for (char32_t c = 0x80; c < end_of_tables; ++c) {
        const auto code = static_cast<utf8proc_int32_t>(c);
        const bool hangul_syllable = c >= 0xAC00 && c <= 0xD7A3;
        const utf8proc_property_t* property = utf8proc_get_property(code);
        if (property->combining_class != 0) {
            set.set(c);
        }
        if ((c >= 0xD800 && c <= 0xDFFF) || (property->decomp_seqindex == UINT16_MAX && !hangul_syllable)) {
            continue;
        }
        if (hangul_syllable && composes) {
            continue; // composed already
        }
        std::string one;
        append_utf8(one, c);
        if (mapped(one, form) != one) {
            set.set(c);
        }
        if (composes) {
            int boundary = 0;
            const auto n =
                utf8proc_decompose_char(code, parts.data(), static_cast<utf8proc_ssize_t>(parts.size()),
                                        UTF8PROC_DECOMPOSE, &boundary);
            for (utf8proc_ssize_t i = 1;
                 i < std::min<utf8proc_ssize_t>(n, static_cast<utf8proc_ssize_t>(parts.size())); ++i) {
                if (static_cast<char32_t>(parts[static_cast<std::size_t>(i)]) < end_of_tables) {
                    set.set(static_cast<std::size_t>(parts[static_cast<std::size_t>(i)]));
                }
            }
        }
    }
    if (composes) { // vowels and final consonants join the Hangul syllable before them
        for (char32_t c = 0x1161; c <= 0x1175; ++c) {
            set.set(c);
        }
        for (char32_t c = 0x11A8; c <= 0x11C2; ++c) {
            set.set(c);
        }
    }
    return set;
}

const CharacterSet& unstable(Form form) {
    // Constant data, made once when first needed (a few milliseconds).
    static const CharacterSet nfc = make_unstable(Form::nfc);
    if (form == Form::nfc) {
        return nfc;
    }
    static const CharacterSet nfd = make_unstable(Form::nfd);
    static const CharacterSet nfkc = make_unstable(Form::nfkc);
    static const CharacterSet nfkd = make_unstable(Form::nfkd);
    return form == Form::nfd ? nfd : form == Form::nfkc ? nfkc : nfkd;
}

} // namespace

bool is_white_space(char32_t c) {
    return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
           c == 0x3000;
}

bool is_mark(char32_t c) {
    const auto cat = category(c);
    return cat >= UTF8PROC_CATEGORY_MN && cat <= UTF8PROC_CATEGORY_ME;
}

bool is_word(char32_t c) {
    if (c < 0x80) {
        return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
    }
    const auto cat = category(c);
    return (cat >= UTF8PROC_CATEGORY_LU && cat <= UTF8PROC_CATEGORY_LO) ||
           (cat >= UTF8PROC_CATEGORY_MN && cat <= UTF8PROC_CATEGORY_ME) || cat == UTF8PROC_CATEGORY_ND ||
           cat == UTF8PROC_CATEGORY_NL || cat == UTF8PROC_CATEGORY_PC || c == 0x200C || c == 0x200D ||
           (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) || (c >= 0x1F150 && c <= 0x1F169) ||
           (c >= 0x1F170 && c <= 0x1F189);
}

void append_lower_case(std::string& out, char32_t c) {
    if (c == 0x130) { // the only character whose lower case is two
        out += "i\xCC\x87";
        return;
    }
    append_utf8(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
}

void normalize(NormalizedText& normalized, Form form) {
    const CharacterSet& set = unstable(form);
    Rewriter rewriter(normalized);
    const std::string_view text = rewriter.input();
    std::size_t last = 0; // beginning of the last stable character
    for (std::size_t i = 0; i < text.size();) {
        if (static_cast<unsigned char>(text[i]) < 0x80) {
            last = i++;
            continue;
        }
        const Utf8Character c = utf8_at(text, i);
        if (c.code >= end_of_tables || !set.test(c.code)) {
            last = i;
            i += c.bytes;
            continue;
        }
        // From the last stable character up to the next one.
        const std::size_t begin = std::max(last, rewriter.position());
        std::size_t end = i;
        while (end < text.size()) {
            const Utf8Character d = utf8_at(text, end);
            if (d.code >= end_of_tables || !set.test(d.code)) {
                break;
            }
            end += d.bytes;
        }
        rewriter.keep_until(begin);
        rewriter.replace(end - begin, mapped(text.substr(begin, end - begin), form));
        last = i = end;
    }
    rewriter.finish();
}

} // namespace ponderscope::characters
