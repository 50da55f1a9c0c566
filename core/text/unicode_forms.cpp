// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/text/unicode_forms.h"

#include "core/base/utf8.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <bitset>
#include <cstdlib>
#include <memory>
#include <new>

namespace ponderscope {

namespace {

// No character from here on decomposes or has a combining class.
constexpr char32_t end_of_tables = 0x30000;
using CharacterSet = std::bitset<end_of_tables>;

utf8proc_option_t options_of(UnicodeForm form) {
    unsigned options = UTF8PROC_STABLE;
    options |= form == UnicodeForm::nfc || form == UnicodeForm::nfkc ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE;
    if (form == UnicodeForm::nfkc || form == UnicodeForm::nfkd) {
        options |= UTF8PROC_COMPAT;
    }
    return static_cast<utf8proc_option_t>(options);
}

std::string mapped(std::string_view text, UnicodeForm form) {
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
// characters of a combining class, and for composing forms characters that may be the second half of a
// composition.
CharacterSet make_unstable(UnicodeForm form) {
    CharacterSet set;
    const bool composes = form == UnicodeForm::nfc || form == UnicodeForm::nfkc;
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

const CharacterSet& unstable(UnicodeForm form) {
    // Constant data, made once when first needed (a few milliseconds).
    static const CharacterSet nfc = make_unstable(UnicodeForm::nfc);
    if (form == UnicodeForm::nfc) {
        return nfc;
    }
    static const CharacterSet nfd = make_unstable(UnicodeForm::nfd);
    static const CharacterSet nfkc = make_unstable(UnicodeForm::nfkc);
    static const CharacterSet nfkd = make_unstable(UnicodeForm::nfkd);
    return form == UnicodeForm::nfd ? nfd : form == UnicodeForm::nfkc ? nfkc : nfkd;
}

} // namespace

void normalize_unicode(NormalizedText& normalized, UnicodeForm form) {
    const CharacterSet& set = unstable(form);
    Rewriter rewriter(normalized);
    const std::string_view text = rewriter.input();
    std::size_t last = 0; // where the last character began
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

} // namespace ponderscope
