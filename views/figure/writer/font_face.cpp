// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/figure/writer/font_face.h"

#include "core/base/error.h"
#include "views/figure/writer/fonts.h"

#include <ft2build.h>
#include FT_FREETYPE_H
#include FT_CID_H
#include <hb-ot.h>
#include <hb-subset.h>

#include <utility>

namespace ponderscope::figure {
namespace {

/// Releases a HarfBuzz object.
template <auto destroy>
struct Destroy {
    template <typename T>
    void operator()(T* object) const {
        destroy(object);
    }
};
using Blob = std::unique_ptr<hb_blob_t, Destroy<hb_blob_destroy>>;
using Face = std::unique_ptr<hb_face_t, Destroy<hb_face_destroy>>;
using Input = std::unique_ptr<hb_subset_input_t, Destroy<hb_subset_input_destroy>>;
using Plan = std::unique_ptr<hb_subset_plan_t, Destroy<hb_subset_plan_destroy>>;

QByteArray bytes_of(const Blob& blob) {
    unsigned size = 0;
    const char* data = hb_blob_get_data(blob.get(), &size);
    return {data, static_cast<qsizetype>(size)};
}

QByteArray table(hb_face_t* face, const char (&tag)[5]) {
    return bytes_of(Blob(hb_face_reference_table(face, HB_TAG(tag[0], tag[1], tag[2], tag[3]))));
}

/// The path that receives an outline. The callbacks below negate y, because y grows downwards in figures.
QPainterPath& path_of(void* data) {
    return *static_cast<QPainterPath*>(data);
}
void move_to(hb_draw_funcs_t*, void* path, hb_draw_state_t*, float x, float y, void*) {
    path_of(path).moveTo(static_cast<qreal>(x), static_cast<qreal>(-y));
}
void line_to(hb_draw_funcs_t*, void* path, hb_draw_state_t*, float x, float y, void*) {
    path_of(path).lineTo(static_cast<qreal>(x), static_cast<qreal>(-y));
}
void quadratic_to(hb_draw_funcs_t*, void* path, hb_draw_state_t*, float cx, float cy, float x, float y,
                  void*) {
    path_of(path).quadTo(static_cast<qreal>(cx), static_cast<qreal>(-cy), static_cast<qreal>(x),
                         static_cast<qreal>(-y));
}
void cubic_to(hb_draw_funcs_t*, void* path, hb_draw_state_t*, float ax, float ay, float bx, float by, float x,
              float y, void*) {
    path_of(path).cubicTo(static_cast<qreal>(ax), static_cast<qreal>(-ay), static_cast<qreal>(bx),
                          static_cast<qreal>(-by), static_cast<qreal>(x), static_cast<qreal>(-y));
}
void close_path(hb_draw_funcs_t*, void* path, hb_draw_state_t*, void*) {
    path_of(path).closeSubpath();
}

hb_draw_funcs_t* into_path() {
    static hb_draw_funcs_t* const functions = [] {
        hb_draw_funcs_t* made = hb_draw_funcs_create();
        hb_draw_funcs_set_move_to_func(made, move_to, nullptr, nullptr);
        hb_draw_funcs_set_line_to_func(made, line_to, nullptr, nullptr);
        hb_draw_funcs_set_quadratic_to_func(made, quadratic_to, nullptr, nullptr);
        hb_draw_funcs_set_cubic_to_func(made, cubic_to, nullptr, nullptr);
        hb_draw_funcs_set_close_path_func(made, close_path, nullptr, nullptr);
        hb_draw_funcs_make_immutable(made);
        return made;
    }();
    return functions;
}

/// In a CID-keyed CFF font, glyphs have CIDs, which a PDF uses. FreeType reads the CIDs.
void use_cids(const QByteArray& font, std::map<std::uint32_t, std::uint32_t>& codes) {
    FT_Library library = nullptr;
    FT_Face face = nullptr;
    FT_Bool keyed = 0;
    if (FT_Init_FreeType(&library) == 0 &&
        FT_New_Memory_Face(library, reinterpret_cast<const FT_Byte*>(font.constData()),
                           static_cast<FT_Long>(font.size()), 0, &face) == 0 &&
        FT_Get_CID_Is_Internally_CID_Keyed(face, &keyed) == 0 && keyed != 0) {
        for (auto& entry : codes) {
            FT_UInt cid = 0;
            if (FT_Get_CID_From_Glyph_Index(face, entry.second, &cid) == 0) {
                entry.second = cid;
            }
        }
    }
    FT_Done_Face(face);
    FT_Done_FreeType(library);
}

} // namespace

void FontFace::unusable(const char* why) const {
    throw EnvironmentError(ErrorId::environment_program,
                           "The font \"" + family_.toStdString() + "\" cannot be put into a figure: " + why +
                               "; choose another font, such as " + default_family + ".");
}

void FontFace::damaged() const {
    throw EnvironmentError(
        ErrorId::environment_program,
        "The font \"" + family_.toStdString() +
            "\" is damaged on this machine; install the font again, or choose another font.");
}

FontFace::FontFace(const std::string& path, unsigned index, QString family) : family_(std::move(family)) {
    const Blob blob(hb_blob_create_from_file_or_fail(path.c_str()));
    const Face face(blob ? hb_face_create(blob.get(), index) : nullptr);
    if (!face || table(face.get(), "head").isEmpty() || table(face.get(), "hmtx").isEmpty() ||
        hb_face_get_glyph_count(face.get()) == 0) {
        damaged();
    }
    cff_ = !table(face.get(), "CFF ").isEmpty();
    if (!cff_ && (table(face.get(), "glyf").isEmpty() || table(face.get(), "loca").isEmpty())) {
        unusable("it has no outlines");
    }
    if (!table(face.get(), "fvar").isEmpty()) {
        unusable("it is a variable font");
    }
    const QByteArray os2 = table(face.get(), "OS/2");
    constexpr int restricted = 0x0002; // fsType: embedding needs permission
    if (os2.size() >= 10 && (static_cast<unsigned char>(os2[9]) & restricted) != 0) {
        unusable("its licence forbids embedding");
    }
    font_.reset(hb_font_create(face.get()), hb_font_destroy);
    const double em = units_per_em();
    hb_font_extents_t extents;
    hb_font_get_h_extents(font_.get(), &extents);
    ascender_ = extents.ascender / em;
    descender_ = extents.descender / em;
    // Older OS/2 tables, for example DejaVu's, lack these heights. Default: the proportions of DejaVu.
    const auto metric = [&](hb_ot_metrics_tag_t tag, double otherwise) {
        hb_position_t value = 0;
        return hb_ot_metrics_get_position(font_.get(), tag, &value) != 0 && value > 0 ? value / em
                                                                                      : otherwise;
    };
    cap_height_ = metric(HB_OT_METRICS_TAG_CAP_HEIGHT, 0.729);
    x_height_ = metric(HB_OT_METRICS_TAG_X_HEIGHT, 0.547);
    char name[64] = "";
    unsigned size = sizeof name;
    hb_ot_name_get_utf8(face.get(), HB_OT_NAME_ID_POSTSCRIPT_NAME, HB_LANGUAGE_INVALID, &size, name);
    for (const char one : QByteArray(name)) {
        if ((one >= '0' && one <= '9') || (one >= 'A' && one <= 'Z') || (one >= 'a' && one <= 'z') ||
            one == '-') {
            name_ += one;
        }
    }
    if (name_.isEmpty()) {
        name_ = "Font";
    }
}

int FontFace::units_per_em() const {
    return static_cast<int>(hb_face_get_upem(hb_font_get_face(font_.get())));
}

std::uint32_t FontFace::glyph_of(char32_t character) const {
    hb_codepoint_t glyph = 0;
    return hb_font_get_nominal_glyph(font_.get(), character, &glyph) != 0 ? glyph : 0;
}

double FontFace::advance(std::uint32_t glyph) const {
    return hb_font_get_glyph_h_advance(font_.get(), glyph) / static_cast<double>(units_per_em());
}

const QPainterPath& FontFace::outline(std::uint32_t glyph) const {
    const auto found = outlines_.find(glyph);
    if (found != outlines_.end()) {
        return found->second;
    }
    QPainterPath path;
#if HB_VERSION_ATLEAST(7, 0, 0)
    hb_font_draw_glyph(font_.get(), glyph, into_path(), &path);
#else
    hb_font_get_glyph_shape(font_.get(), glyph, into_path(), &path);
#endif
    const double scale = 1.0 / units_per_em();
    return outlines_.emplace(glyph, QTransform::fromScale(scale, scale).map(path)).first->second;
}

FontSubset FontFace::subset(const std::set<std::uint32_t>& glyphs) const {
    hb_face_t* face = hb_font_get_face(font_.get());
    const Input input(hb_subset_input_create_or_fail());
    hb_subset_input_set_flags(input.get(), HB_SUBSET_FLAGS_NO_HINTING | HB_SUBSET_FLAGS_NOTDEF_OUTLINE);
    hb_set_add(hb_subset_input_glyph_set(input.get()), 0);
    for (const std::uint32_t glyph : glyphs) {
        hb_set_add(hb_subset_input_glyph_set(input.get()), glyph);
    }
    hb_set_t* dropped = hb_subset_input_set(input.get(), HB_SUBSET_SETS_DROP_TABLE_TAG);
    for (const hb_tag_t tag :
         {HB_TAG('G', 'S', 'U', 'B'), HB_TAG('G', 'P', 'O', 'S'), HB_TAG('G', 'D', 'E', 'F')}) {
        hb_set_add(dropped, tag);
    }
    const Plan plan(hb_subset_plan_create_or_fail(face, input.get()));
    const Face cut(plan ? hb_subset_plan_execute_or_fail(plan.get()) : nullptr);
    if (!cut) {
        damaged();
    }
    FontSubset result;
    const hb_map_t* renumbered = hb_subset_plan_old_to_new_glyph_mapping(plan.get());
    result.codes[0] = 0;
    for (const std::uint32_t glyph : glyphs) {
        result.codes[glyph] = hb_map_get(renumbered, glyph);
    }
    result.font = bytes_of(Blob(hb_face_reference_blob(cut.get())));
    if (cff_) {
        use_cids(result.font, result.codes);
        result.font = table(cut.get(), "CFF ");
    }
    return result;
}

QByteArray FontFace::subset(const std::set<char32_t>& characters) const {
    const Input input(hb_subset_input_create_or_fail());
    hb_subset_input_set_flags(input.get(), HB_SUBSET_FLAGS_NO_HINTING | HB_SUBSET_FLAGS_NOTDEF_OUTLINE);
    for (const char32_t character : characters) {
        hb_set_add(hb_subset_input_unicode_set(input.get()), character);
    }
    const Face cut(hb_subset_or_fail(hb_font_get_face(font_.get()), input.get()));
    if (!cut) {
        damaged();
    }
    return bytes_of(Blob(hb_face_reference_blob(cut.get())));
}

} // namespace ponderscope::figure
