// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/format.h"

#include "core/base/utf8.h"
#include "core/base/words.h"

#include <QApplication>
#include <QLocale>
#include <QRect>
#include <QRegularExpression>
#include <QScreen>
#include <QStringList>
#include <QTextDocument>
#include <QToolTip>
#include <QWidget>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

using namespace Qt::StringLiterals;

namespace ponderscope {

namespace {

QString missing() {
    return QString::fromUtf16(no_value);
}

/// Fixed decimals with a real minus sign, and never "−0.00".
QString fixed(double value, int decimals, bool alwaysSigned) {
    if (std::isnan(value)) {
        return missing();
    }
    if (std::isinf(value)) {
        return value > 0 ? u"∞"_s : u"−∞"_s;
    }
    const QString digits = QString::number(std::fabs(value), 'f', decimals);
    const bool zero = digits.toDouble() == 0;
    if (value < 0 && !zero) {
        return QChar(0x2212) + digits;
    }
    return alwaysSigned && !zero ? u'+' + digits : digits;
}

/// A value below 999.5, and the prefix of the power of 1000 that it was divided by.
std::pair<double, QString> prefixed(double value) {
    static constexpr const char* prefixes[] = {"", "k", "M", "G", "T", "P", "E"};
    std::size_t power = 0;
    for (; value >= 999.5 && power + 1 < std::size(prefixes); ++power) {
        value /= 1000;
    }
    return {value, QString::fromLatin1(prefixes[power])};
}

QString hexadecimal(char32_t value, int digits) {
    return QString::number(static_cast<uint>(value), 16).toUpper().rightJustified(digits, u'0');
}

} // namespace

QString format_nats(double value, int decimals) {
    return fixed(value, decimals, false);
}

QString format_difference(double value, int decimals) {
    return fixed(value, decimals, true);
}

QString format_probability(double value) {
    if (std::isnan(value)) {
        return missing();
    }
    if (value >= 0.00995 || value == 0) {
        return fixed(value, 2, false);
    }
    if (value > 0 && value < 1e-4) {
        return u"<0.0001"_s;
    }
    return fixed(value, value < 0.000995 ? 4 : 3, false);
}

QString format_number(double value, int digits) {
    return !std::isfinite(value) ? fixed(value, 0, false)
                                 : QString::number(value, 'g', digits).replace(u'-', QChar(0x2212));
}

QString format_si(double value) {
    if (std::isnan(value)) {
        return missing();
    }
    const auto [shown, prefix] = prefixed(std::fabs(value));
    const bool whole = prefix.isEmpty() && shown == std::floor(shown);
    const int decimals = whole || shown >= 99.95 ? 0 : shown >= 9.995 ? 1 : 2;
    return fixed(value < 0 ? -shown : shown, decimals, false) + (prefix.isEmpty() ? prefix : u' ' + prefix);
}

QString step_word(const std::string& unit) {
    return unit == "layer" ? u"layer"_s : u"step"_s;
}

QString steps_word(const std::string& unit) {
    return unit == "layer" ? u"layers"_s : u"steps"_s;
}

QString format_count(std::int64_t value) {
    static const QLocale english(QLocale::English);
    QString text = english.toString(static_cast<qlonglong>(value));
    return text.replace(u'-', QChar(0x2212));
}

QString format_rate(double perSecond, const QString& unit) {
    const QString number =
        perSecond >= 10 ? format_count(std::llround(std::min(perSecond, 9e17))) : format_nats(perSecond, 1);
    return number + u' ' + unit + u"/s"_s;
}

QString format_duration(double seconds) {
    if (!(seconds >= 0) || seconds > 1e9) {
        return missing();
    }
    const auto whole = static_cast<qlonglong>(std::llround(seconds));
    const qlonglong hours = whole / 3600;
    const QString tail = u":%1"_s.arg(whole % 60, 2, 10, QChar(u'0'));
    if (hours == 0) {
        return QString::number(whole / 60) + tail;
    }
    return u"%1:%2"_s.arg(hours).arg(whole / 60 % 60, 2, 10, QChar(u'0')) + tail;
}

QString format_bytes(std::int64_t bytes) {
    const auto [shown, prefix] = prefixed(static_cast<double>(bytes));
    return fixed(shown, prefix.isEmpty() || shown >= 99.95 ? 0 : 1, false) + u' ' + prefix + u'B';
}

QString visible_text(std::string_view bytes) {
    QString text;
    text.reserve(static_cast<qsizetype>(bytes.size()));
    bool open = false; // inside ‹ ›, so that bytes in a row share one pair
    while (!bytes.empty()) {
        const Utf8Character next = utf8_at(bytes, 0);
        if (next.code == U'\xfffd' && next.bytes == 1) {
            text += open ? u" "_s : u"‹"_s;
            open = true;
            text += hexadecimal(static_cast<unsigned char>(bytes.front()), 2);
            bytes.remove_prefix(1);
            continue;
        }
        if (open) {
            text += u"›"_s;
            open = false;
        }
        if (next.code == U'\n') {
            text += u"⏎"_s;
        } else if (next.code == U'\t') {
            text += u"⇥"_s;
        } else if (is_unseen(next.code)) {
            text += u"‹"_s + hexadecimal(next.code, next.code < 0x100 ? 2 : 4) + u"›"_s;
        } else {
            text += QString::fromUcs4(&next.code, 1);
        }
        bytes.remove_prefix(next.bytes);
    }
    if (open) {
        text += u"›"_s;
    }
    return text;
}

QString visible_token(std::string_view bytes, int limit) {
    QString text = visible_text(bytes);
    qsizetype leading = 0;
    while (leading < text.size() && text[leading] == u' ') {
        text[leading++] = QChar(0x2423);
    }
    for (qsizetype i = text.size() - 1; i >= leading && text[i] == u' '; --i) {
        text[i] = QChar(0x2423);
    }
    if (text.size() > limit) {
        qsizetype cut = std::max(limit - 1, 0);
        if (cut > 0 && text[cut - 1].isHighSurrogate()) {
            --cut;
        }
        text.truncate(cut);
        text += QChar(0x2026);
    }
    return text;
}

std::string_view token_bytes(const TokenColumns& tokens, std::string_view text, std::size_t row) {
    if (row >= tokens.begin.size() || row >= tokens.end.size()) {
        return {};
    }
    const std::uint64_t begin = tokens.begin[row];
    const std::uint64_t end = tokens.end[row];
    if (end < begin || end > text.size()) {
        return {};
    }
    return text.substr(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
}

std::optional<double> typed_number(const QString& text) {
    QString digits = text.trimmed();
    const QString point = QLocale().decimalPoint();
    static const QRegularExpression thousands(u"^[-+\u2212]?\\d{1,3}(,\\d{3})+(?!\\d)"_s);
    if (point != u"," && thousands.match(digits).hasMatch()) {
        return std::nullopt;
    }
    digits.replace(QChar(0x2212), u'-').replace(point, u"."_s).replace(u',', u'.');
    bool ok = false;
    const double value = digits.toDouble(&ok);
    return ok && std::isfinite(value) ? std::optional(value) : std::nullopt;
}

QString plain_tip(const QString& text) {
    return Qt::mightBeRichText(text) ? Qt::convertFromPlainText(text) : text;
}

void show_tip_above(QWidget& widget, const QRect& box, const QString& text) {
    const QRect place(widget.mapToGlobal(box.topLeft()), box.size());
    QToolTip::showText(place.bottomLeft(), plain_tip(text), &widget, box);
    for (QWidget* tip : QApplication::topLevelWidgets()) {
        if (tip->inherits("QTipLabel") && tip->isVisible()) {
            constexpr int gap = 4;
            const QRect screen = widget.screen()->availableGeometry();
            const int above = place.top() - gap - tip->height();
            tip->move(std::clamp(place.left(), screen.left(),
                                 std::max(screen.left(), screen.right() - tip->width())),
                      above >= screen.top() ? above : place.bottom() + gap);
        }
    }
}

std::string csv_bytes(const std::string& bytes) {
    return csv_field(is_valid_utf8(bytes) && bytes.find('\0') == std::string::npos
                         ? bytes
                         : visible_text(bytes).toStdString());
}

std::string csv_number(float value) {
    return std::isnan(value) ? std::string() : shortest(value);
}

std::string csv_number(double value) {
    return std::isnan(value) ? std::string() : shortest(value);
}

namespace {

/// The number of bytes before \p at that belong to the character at \p at.
std::size_t begun_before(std::string_view text, std::size_t at) {
    const bool inside = at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80;
    for (std::size_t back = 1; inside && back < 4 && back <= at; ++back) {
        if (utf8_at(text, at - back).bytes > back) {
            return back;
        }
    }
    return 0;
}

} // namespace

CharacterSpan whole_characters(std::string_view text, std::size_t begin, std::size_t end) {
    CharacterSpan span;
    if (const std::size_t back = begin < end ? begun_before(text, begin) : 0; back > 0) {
        span.before = std::min(utf8_at(text, begin - back).bytes - back, end - begin);
    }
    if (begin + span.before == end) {
        return span;
    }
    if (const std::size_t back = begun_before(text, end); back > 0) {
        span.after = utf8_at(text, end - back).bytes - back;
    }
    span.bytes = text.substr(begin + span.before, end + span.after - begin - span.before);
    return span;
}

CharacterSpan characters_of(const TokenColumns& tokens, std::string_view text, std::size_t row,
                            bool follows) {
    if (token_bytes(tokens, text, row).empty()) {
        return {};
    }
    const auto begin = static_cast<std::size_t>(tokens.begin[row]);
    const auto end = static_cast<std::size_t>(tokens.end[row]);
    CharacterSpan span = whole_characters(text, begin, end);
    if (!follows || tokens.end[row - 1] != begin) {
        span.bytes = text.substr(begin, end + span.after - begin);
        span.before = 0;
    }
    return span;
}

QString visible_token_of(const TokenColumns& tokens, std::string_view text, std::size_t row, int limit) {
    const std::string_view bytes = token_bytes(tokens, text, row);
    if (bytes.empty()) {
        return {};
    }
    const auto begin = static_cast<std::size_t>(tokens.begin[row]);
    const auto end = static_cast<std::size_t>(tokens.end[row]);
    const CharacterSpan span = whole_characters(text, begin, end);
    QStringList cut;
    const auto add = [&](std::size_t at) { cut << visible_text(text.substr(at, utf8_at(text, at).bytes)); };
    if (span.before > 0) {
        add(begin - begun_before(text, begin));
    }
    if (span.after > 0) {
        add(end - begun_before(text, end));
    }
    const QString shown = visible_token(bytes, limit);
    return cut.isEmpty() ? shown : u"%1 of %2"_s.arg(shown, cut.join(u", "_s));
}

} // namespace ponderscope
