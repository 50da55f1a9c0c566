// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/figure/truetype.h"

#include "core/base/error.h"

#include <algorithm>
#include <utility>

namespace ponderscope::figure {
namespace {

[[noreturn]] void broken(const char* what) {
    throw EnvironmentError(std::string("The figure's font is damaged on this machine (") + what +
                           "); install it again, or choose another for the figure.");
}

int u16(const QByteArray& bytes, qsizetype at) {
    if (at < 0 || at + 2 > bytes.size()) {
        broken("a table is too short");
    }
    return (static_cast<unsigned char>(bytes[at]) << 8) | static_cast<unsigned char>(bytes[at + 1]);
}

int i16(const QByteArray& bytes, qsizetype at) {
    return static_cast<std::int16_t>(u16(bytes, at));
}

std::uint32_t u32(const QByteArray& bytes, qsizetype at) {
    return (static_cast<std::uint32_t>(u16(bytes, at)) << 16) |
           static_cast<std::uint32_t>(u16(bytes, at + 2));
}

void put16(QByteArray& out, int value) {
    out.append(static_cast<char>((value >> 8) & 0xff));
    out.append(static_cast<char>(value & 0xff));
}

void put32(QByteArray& out, std::uint32_t value) {
    put16(out, static_cast<int>(value >> 16));
    put16(out, static_cast<int>(value & 0xffff));
}

void set16(QByteArray& bytes, qsizetype at, int value) {
    bytes[at] = static_cast<char>((value >> 8) & 0xff);
    bytes[at + 1] = static_cast<char>(value & 0xff);
}

void set32(QByteArray& bytes, qsizetype at, std::uint32_t value) {
    set16(bytes, at, static_cast<int>(value >> 16));
    set16(bytes, at + 2, static_cast<int>(value & 0xffff));
}

void pad(QByteArray& bytes, int to) {
    while (bytes.size() % to != 0) {
        bytes.append('\0');
    }
}

// Flags of a component of a composite glyph.
constexpr int words = 0x0001;
constexpr int scale = 0x0008;
constexpr int more = 0x0020;
constexpr int two_scales = 0x0040;
constexpr int matrix = 0x0080;
constexpr int instructions = 0x0100;

/// Byte offset of the glyph number of each component, and the end of the last component.
struct Components {
    std::vector<qsizetype> number_at;
    qsizetype end = 0;
};

Components components_of(const QByteArray& glyph) {
    Components found;
    qsizetype at = 10;
    for (int flags = more; flags & more;) {
        flags = u16(glyph, at);
        found.number_at.push_back(at + 2);
        at += 4 + ((flags & words) ? 4 : 2);
        at += (flags & scale) ? 2 : (flags & two_scales) ? 4 : (flags & matrix) ? 8 : 0;
    }
    if (at > glyph.size()) {
        broken("a composite glyph ends too early");
    }
    found.end = at;
    return found;
}

bool is_composite(const QByteArray& glyph) {
    return !glyph.isEmpty() && i16(glyph, 0) < 0;
}

QByteArray without_hints(QByteArray glyph) {
    if (glyph.isEmpty()) {
        return glyph;
    }
    if (is_composite(glyph)) {
        const Components parts = components_of(glyph);
        for (const qsizetype at : parts.number_at) {
            set16(glyph, at - 2, u16(glyph, at - 2) & ~instructions);
        }
        return glyph.left(parts.end);
    }
    const qsizetype at = 10 + 2 * static_cast<qsizetype>(i16(glyph, 0));
    const int length = u16(glyph, at);
    if (at + 2 + length > glyph.size()) {
        broken("a glyph ends too early");
    }
    glyph.remove(at + 2, length);
    set16(glyph, at, 0);
    return glyph;
}

std::uint32_t checksum(QByteArray bytes) {
    pad(bytes, 4);
    std::uint32_t sum = 0;
    for (qsizetype at = 0; at < bytes.size(); at += 4) {
        sum += u32(bytes, at);
    }
    return sum;
}

/// Format 4 for the basic plane and format 12 for everything, which is what browsers look for.
QByteArray make_cmap(const std::map<char32_t, std::uint32_t>& characters) {
    std::vector<std::pair<int, int>> basic;
    for (const auto& [code, glyph] : characters) {
        if (code < 0xffff) {
            basic.emplace_back(static_cast<int>(code), static_cast<int>(glyph));
        }
    }
    basic.emplace_back(0xffff, 0);
    const int segments = static_cast<int>(basic.size());
    int power = 1;
    int log = 0;
    while (power * 2 <= segments) {
        power *= 2;
        ++log;
    }
    QByteArray four;
    put16(four, 4);
    put16(four, 16 + 8 * segments);
    put16(four, 0);
    put16(four, segments * 2);
    put16(four, power * 2);
    put16(four, log);
    put16(four, (segments - power) * 2);
    for (const auto& entry : basic) {
        put16(four, entry.first);
    }
    put16(four, 0);
    for (const auto& entry : basic) {
        put16(four, entry.first);
    }
    for (const auto& [code, glyph] : basic) {
        put16(four, code == 0xffff ? 1 : glyph - code);
    }
    for (int i = 0; i < segments; ++i) {
        put16(four, 0);
    }
    QByteArray twelve;
    put16(twelve, 12);
    put16(twelve, 0);
    put32(twelve, static_cast<std::uint32_t>(16 + 12 * characters.size()));
    put32(twelve, 0);
    put32(twelve, static_cast<std::uint32_t>(characters.size()));
    for (const auto& [code, glyph] : characters) {
        put32(twelve, code);
        put32(twelve, code);
        put32(twelve, glyph);
    }
    QByteArray cmap;
    put16(cmap, 0);
    put16(cmap, 2);
    put16(cmap, 3);
    put16(cmap, 1);
    put32(cmap, 20);
    put16(cmap, 3);
    put16(cmap, 10);
    put32(cmap, static_cast<std::uint32_t>(20 + four.size()));
    return cmap + four + twelve;
}

QByteArray make_name() {
    const QByteArray family("\0D\0e\0j\0a\0V\0u\0 \0S\0a\0n\0s", 22);
    QByteArray name;
    put16(name, 0);
    put16(name, 1);
    put16(name, 18);
    put16(name, 3);
    put16(name, 1);
    put16(name, 0x409);
    put16(name, 1);
    put16(name, static_cast<int>(family.size()));
    put16(name, 0);
    return name + family;
}

QByteArray make_post() {
    QByteArray post;
    put32(post, 0x00030000); // no glyph names
    for (int i = 0; i < 7; ++i) {
        put32(post, 0);
    }
    return post;
}

QByteArray assemble(std::map<QByteArray, QByteArray> tables) {
    const int count = static_cast<int>(tables.size());
    int power = 1;
    int log = 0;
    while (power * 2 <= count) {
        power *= 2;
        ++log;
    }
    QByteArray font;
    put32(font, 0x00010000);
    put16(font, count);
    put16(font, power * 16);
    put16(font, log);
    put16(font, (count - power) * 16);
    qsizetype offset = 12 + 16 * count;
    qsizetype head_at = 0;
    QByteArray body;
    for (auto& [tag, bytes] : tables) {
        if (tag == "head") {
            head_at = offset;
        }
        font.append(tag);
        put32(font, checksum(bytes));
        put32(font, static_cast<std::uint32_t>(offset));
        put32(font, static_cast<std::uint32_t>(bytes.size()));
        pad(bytes, 4);
        body.append(bytes);
        offset += bytes.size();
    }
    font.append(body);
    set32(font, head_at + 8, 0xB1B0AFBAu - checksum(font));
    return font;
}

} // namespace

TrueType::TrueType(TrueTypeTables tables) : tables_(std::move(tables)) {
    if (tables_.glyf.isEmpty() || tables_.loca.isEmpty()) {
        broken("it has no TrueType outlines");
    }
    if (tables_.head.size() < 54 || tables_.hhea.size() < 36 || tables_.maxp.size() < 6 ||
        tables_.os2.size() < 78) {
        broken("a table is too short");
    }
    units_per_em_ = u16(tables_.head, 18);
    long_offsets_ = i16(tables_.head, 50) != 0;
    glyph_count_ = u16(tables_.maxp, 4);
    long_metrics_ = u16(tables_.hhea, 34);
    if (units_per_em_ < 16 || glyph_count_ < 1 || long_metrics_ < 1 || long_metrics_ > glyph_count_) {
        broken("impossible numbers in its header");
    }
}

int TrueType::advance(std::uint32_t glyph) const {
    return u16(tables_.hmtx,
               4 * static_cast<qsizetype>(std::min(static_cast<int>(glyph), long_metrics_ - 1)));
}

int TrueType::left_side_bearing(std::uint32_t glyph) const {
    const auto number = static_cast<qsizetype>(glyph);
    return number < long_metrics_
               ? i16(tables_.hmtx, 4 * number + 2)
               : i16(tables_.hmtx, 4 * static_cast<qsizetype>(long_metrics_) + 2 * (number - long_metrics_));
}

int TrueType::ascender() const {
    return i16(tables_.hhea, 4);
}

int TrueType::descender() const {
    return i16(tables_.hhea, 6);
}

// OS/2 tells both heights from version 2 on; DejaVu's table is older, so the proportions of its face stand
// in.
int TrueType::cap_height() const {
    return tables_.os2.size() >= 90 && u16(tables_.os2, 0) >= 2 ? i16(tables_.os2, 88)
                                                                : units_per_em_ * 729 / 1000;
}

int TrueType::x_height() const {
    return tables_.os2.size() >= 90 && u16(tables_.os2, 0) >= 2 ? i16(tables_.os2, 86)
                                                                : units_per_em_ * 547 / 1000;
}

std::vector<int> TrueType::bounding_box() const {
    return {i16(tables_.head, 36), i16(tables_.head, 38), i16(tables_.head, 40), i16(tables_.head, 42)};
}

QByteArray TrueType::glyph(std::uint32_t number) const {
    if (number >= static_cast<std::uint32_t>(glyph_count_)) {
        broken("a glyph number is out of range");
    }
    const auto n = static_cast<qsizetype>(number);
    const qsizetype begin =
        long_offsets_ ? u32(tables_.loca, 4 * n) : 2 * static_cast<qsizetype>(u16(tables_.loca, 2 * n));
    const qsizetype end = long_offsets_ ? u32(tables_.loca, 4 * n + 4)
                                        : 2 * static_cast<qsizetype>(u16(tables_.loca, 2 * n + 2));
    if (begin > end || end > tables_.glyf.size()) {
        broken("a glyph lies outside its table");
    }
    return tables_.glyf.mid(begin, end - begin);
}

FontSubset TrueType::subset(const std::map<char32_t, std::uint32_t>& characters) const {
    std::set<std::uint32_t> wanted{0};
    for (const auto& entry : characters) {
        wanted.insert(entry.second);
    }
    std::vector<std::uint32_t> open(wanted.begin(), wanted.end());
    while (!open.empty()) {
        const QByteArray bytes = glyph(open.back());
        open.pop_back();
        if (!is_composite(bytes)) {
            continue;
        }
        for (const qsizetype at : components_of(bytes).number_at) {
            const auto part = static_cast<std::uint32_t>(u16(bytes, at));
            if (wanted.insert(part).second) {
                open.push_back(part);
            }
        }
    }

    FontSubset result;
    result.glyphs.assign(wanted.begin(), wanted.end());
    for (std::size_t i = 0; i < result.glyphs.size(); ++i) {
        result.renumbered[result.glyphs[i]] = static_cast<std::uint32_t>(i);
    }
    QByteArray glyf;
    QByteArray loca;
    QByteArray hmtx;
    for (const std::uint32_t old : result.glyphs) {
        QByteArray bytes = without_hints(glyph(old));
        if (is_composite(bytes)) {
            for (const qsizetype at : components_of(bytes).number_at) {
                set16(bytes, at,
                      static_cast<int>(result.renumbered.at(static_cast<std::uint32_t>(u16(bytes, at)))));
            }
        }
        put32(loca, static_cast<std::uint32_t>(glyf.size()));
        pad(bytes, 4);
        glyf.append(bytes);
        put16(hmtx, advance(old));
        put16(hmtx, left_side_bearing(old));
    }
    put32(loca, static_cast<std::uint32_t>(glyf.size()));

    QByteArray head = tables_.head.left(54);
    set32(head, 8, 0);  // checkSumAdjustment, set when the file is put together
    set16(head, 50, 1); // long offsets
    QByteArray hhea = tables_.hhea.left(36);
    set16(hhea, 34, static_cast<int>(result.glyphs.size()));
    QByteArray maxp = tables_.maxp;
    set16(maxp, 4, static_cast<int>(result.glyphs.size()));
    std::map<char32_t, std::uint32_t> cmap;
    for (const auto& [code, old] : characters) {
        cmap[code] = result.renumbered.at(old);
    }
    result.font = assemble({{"OS/2", tables_.os2},
                            {"cmap", make_cmap(cmap)},
                            {"glyf", glyf},
                            {"head", head},
                            {"hhea", hhea},
                            {"hmtx", hmtx},
                            {"loca", loca},
                            {"maxp", maxp},
                            {"name", make_name()},
                            {"post", make_post()}});
    return result;
}

} // namespace ponderscope::figure
