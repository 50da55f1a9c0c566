// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/figure/writer/shaping.h"

#include <QTextBoundaryFinder>

#include <fribidi.h>
#include <hb.h>

#include <algorithm>
#include <memory>
#include <new>
#include <numeric>

namespace ponderscope::figure {
namespace {

hb_script_t script_of(char32_t character) {
    return hb_unicode_script(hb_unicode_funcs_get_default(), character);
}

bool is_common(hb_script_t script) {
    return script == HB_SCRIPT_COMMON || script == HB_SCRIPT_INHERITED || script == HB_SCRIPT_UNKNOWN;
}

char32_t character_at(const QString& text, qsizetype at) {
    const QChar unit = text[at];
    return unit.isHighSurrogate() && at + 1 < text.size() && text[at + 1].isLowSurrogate()
               ? QChar::surrogateToUcs4(unit, text[at + 1])
               : unit.unicode();
}

/// The language, which changes ideographs. Found by kana and Hangul in the text, not by the user's locale.
const char* language_of(const QString& text) {
    for (const QChar unit : text) {
        const hb_script_t script = script_of(unit.unicode());
        if (script == HB_SCRIPT_HIRAGANA || script == HB_SCRIPT_KATAKANA) {
            return "ja";
        }
        if (script == HB_SCRIPT_HANGUL) {
            return "ko";
        }
    }
    return "zh-cn";
}

/// Characters with the same level, script and face.
struct Run {
    qsizetype from = 0;
    qsizetype to = 0;
    std::int8_t level = 0;
    hb_script_t script = HB_SCRIPT_COMMON;
    const FontFace* face = nullptr;
};

std::vector<Run> runs_of(const QString& text, const BidiLevels& bidi, const FaceOf& face_of,
                         const char* language) {
    std::vector<Run> runs;
    QTextBoundaryFinder finder(QTextBoundaryFinder::Grapheme, text);
    for (qsizetype from = 0, to = 0; from < text.size(); from = to) {
        to = finder.toNextBoundary();
        if (to <= from) {
            to = text.size();
        }
        hb_script_t script = script_of(character_at(text, from));
        const FontFace* face =
            face_of(text.mid(from, to - from), language, runs.empty() ? nullptr : runs.back().face);
        const std::int8_t level = bidi.levels[static_cast<std::size_t>(from)];
        if (!runs.empty()) {
            Run& last = runs.back();
            // Punctuation and marks belong to the letters around them.
            if (is_common(script)) {
                script = last.script;
            } else if (is_common(last.script)) {
                last.script = script;
            }
            if (last.level == level && last.script == script && last.face == face) {
                last.to = to;
                continue;
            }
        }
        runs.push_back({from, to, level, script, face});
    }
    return runs;
}

/// Appends the run's clusters at the right end of \p shaped.
void add_run(const QString& text, const Run& run, const char* language, ShapedText& shaped) {
    const std::unique_ptr<hb_buffer_t, decltype(&hb_buffer_destroy)> buffer(hb_buffer_create(),
                                                                            &hb_buffer_destroy);
    const bool backwards = run.level % 2 != 0;
    hb_buffer_add_utf16(buffer.get(), reinterpret_cast<const std::uint16_t*>(text.utf16()),
                        static_cast<int>(text.size()), static_cast<unsigned>(run.from),
                        static_cast<int>(run.to - run.from));
    hb_buffer_set_direction(buffer.get(), backwards ? HB_DIRECTION_RTL : HB_DIRECTION_LTR);
    hb_buffer_set_script(buffer.get(), is_common(run.script) ? HB_SCRIPT_LATIN : run.script);
    hb_buffer_set_language(buffer.get(), hb_language_from_string(language, -1));
    // No ligatures: a glyph of several letters could not be divided among tokens, or copied by letters.
    static const hb_feature_t features[] = {{HB_TAG('l', 'i', 'g', 'a'), 0, 0, static_cast<unsigned>(-1)},
                                            {HB_TAG('c', 'l', 'i', 'g'), 0, 0, static_cast<unsigned>(-1)}};
    hb_shape(run.face->font(), buffer.get(), features, 2);

    unsigned count = 0;
    const hb_glyph_info_t* infos = hb_buffer_get_glyph_infos(buffer.get(), &count);
    const hb_glyph_position_t* places = hb_buffer_get_glyph_positions(buffer.get(), &count);
    const double em = run.face->units_per_em();
    const std::size_t first = shaped.clusters.size();
    for (unsigned i = 0; i < count; ++i) {
        if (i == 0 || infos[i].cluster != infos[i - 1].cluster) {
            shaped.clusters.push_back({run.face, shaped.glyphs.size(), 0,
                                       static_cast<qsizetype>(infos[i].cluster), 0, shaped.width, 0,
                                       backwards});
        }
        shaped.glyphs.push_back(
            {infos[i].codepoint, shaped.width + places[i].x_offset / em, places[i].y_offset / em});
        shaped.width += places[i].x_advance / em;
        shaped.clusters.back().glyphs_end = shaped.glyphs.size();
        shaped.clusters.back().right = shaped.width;
    }
    for (std::size_t i = first; i < shaped.clusters.size(); ++i) { // a cluster ends where the next begins
        const std::size_t next = backwards ? i - 1 : i + 1;
        const bool last = backwards ? i == first : next == shaped.clusters.size();
        shaped.clusters[i].to = last ? run.to : shaped.clusters[next].from;
    }
}

} // namespace

BidiLevels bidi_levels(const QString& paragraph) {
    BidiLevels result;
    result.levels.assign(static_cast<std::size_t>(paragraph.size()), 0);
    const bool plain = std::ranges::none_of(paragraph, [](QChar unit) {
        return unit.unicode() >= 0x590 && !(unit.unicode() >= 0x2010 && unit.unicode() < 0x2028);
    });
    if (plain) {
        return result;
    }
    const QList<uint> characters = paragraph.toUcs4();
    const auto count = static_cast<FriBidiStrIndex>(characters.size());
    const std::vector<FriBidiChar> text(characters.begin(), characters.end());
    std::vector<FriBidiCharType> types(text.size());
    std::vector<FriBidiBracketType> brackets(text.size());
    std::vector<FriBidiLevel> levels(text.size());
    fribidi_get_bidi_types(text.data(), count, types.data());
    fribidi_get_bracket_types(text.data(), count, types.data(), brackets.data());
    FriBidiParType direction = FRIBIDI_PAR_ON;
    if (fribidi_get_par_embedding_levels_ex(types.data(), brackets.data(), count, &direction,
                                            levels.data()) == 0) {
        return result; // out of memory: unchanged order
    }
    result.right_to_left = FRIBIDI_IS_RTL(direction);
    std::size_t at = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        for (int unit = QChar::requiresSurrogates(text[i]) ? 2 : 1; unit > 0 && at < result.levels.size();
             --unit) {
            result.levels[at++] = levels[i];
        }
    }
    return result;
}

std::vector<std::size_t> visual_order(const std::vector<std::int8_t>& levels) {
    std::vector<FriBidiLevel> own(levels.begin(), levels.end());
    const std::vector<FriBidiCharType> types(
        own.size(),
        FRIBIDI_TYPE_LTR); // as if without spaces, whose levels FriBidi resets
    std::vector<FriBidiStrIndex> order(own.size());
    std::iota(order.begin(), order.end(), 0);
    if (fribidi_reorder_line(FRIBIDI_FLAGS_DEFAULT, types.data(), static_cast<FriBidiStrIndex>(own.size()), 0,
                             FRIBIDI_PAR_LTR, own.data(), nullptr, order.data()) == 0) {
        throw std::bad_alloc();
    }
    return {order.begin(), order.end()};
}

ShapedText shape_text(const QString& text, const FaceOf& face_of) {
    ShapedText shaped;
    const BidiLevels bidi = bidi_levels(text);
    shaped.right_to_left = bidi.right_to_left;
    const char* language = language_of(text);
    const std::vector<Run> runs = runs_of(text, bidi, face_of, language);
    std::vector<std::int8_t> levels;
    for (const Run& run : runs) {
        levels.push_back(run.level);
    }
    for (const std::size_t i : visual_order(levels)) {
        add_run(text, runs[i], language, shaped);
    }
    return shaped;
}

std::pair<double, double> ShapedText::extent(double from, double to) const {
    double left = width;
    double right = 0;
    for (const ShapedCluster& cluster : clusters) {
        const auto begin = static_cast<double>(cluster.from);
        const auto end = static_cast<double>(cluster.to);
        if (to <= begin || from >= end) {
            continue;
        }
        const double a = (std::max(from, begin) - begin) / (end - begin);
        const double b = (std::min(to, end) - begin) / (end - begin);
        const double wide = cluster.right - cluster.left;
        left = std::min(left, cluster.left + wide * (cluster.right_to_left ? 1 - b : a));
        right = std::max(right, cluster.left + wide * (cluster.right_to_left ? 1 - a : b));
    }
    return {std::min(left, right), right};
}

bool may_part(const QString& text, qsizetype at) {
    if (at <= 0 || at >= text.size()) {
        return true;
    }
    const auto apart = [](hb_script_t script) {
        return script == HB_SCRIPT_LATIN || script == HB_SCRIPT_GREEK || script == HB_SCRIPT_CYRILLIC ||
               script == HB_SCRIPT_HAN || script == HB_SCRIPT_HIRAGANA || script == HB_SCRIPT_KATAKANA ||
               script == HB_SCRIPT_HANGUL || script == HB_SCRIPT_COMMON;
    };
    const bool pair = at > 1 && text[at - 1].isLowSurrogate();
    if (!apart(script_of(character_at(text, at - (pair ? 2 : 1)))) ||
        !apart(script_of(character_at(text, at)))) {
        return false;
    }
    const QChar::Category kind = text[at].category();
    if (text[at].unicode() >= 0x3000 &&
        (kind == QChar::Punctuation_Close || kind == QChar::Punctuation_Other)) {
        return false;
    }
    QTextBoundaryFinder finder(QTextBoundaryFinder::Grapheme, text);
    finder.setPosition(at);
    return finder.isAtBoundary();
}

} // namespace ponderscope::figure
