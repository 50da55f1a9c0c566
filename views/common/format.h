// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/csv.h"
#include "core/trace/records.h"

#include <QString>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

class QRect;
class QWidget;

namespace ponderscope {

/// Text for a missing number (NaN, not scored).
inline constexpr char16_t no_value[] = u"–";

/// 2 decimals, for losses and entropies. NaN gives "–". The minus is U+2212, for aligned columns.
QString format_nats(double value, int decimals = 2);
/// A number that always has a sign: "+0.21", "−0.03".
QString format_difference(double value, int decimals = 2);
/// 2 decimals. Below 0.005: two significant digits ("0.0012"). Below 1e-4: "<0.0001".
QString format_probability(double value);
/// A number of unknown kind with \p digits significant digits and a real minus sign: "0.0159", "−7.34e−07".
QString format_number(double value, int digits = 4);
/// Three significant digits and a unit prefix: "950", "19.1 M", "1.2 G". For FLOPs and approximate counts.
QString format_si(double value);
/// Exact, with commas between thousands: "1,204".
QString format_count(std::int64_t value);
/// The name of a run's steps (RunInfo::step_unit): "step", or "layer" for exits over layers.
QString step_word(const std::string& unit);
QString steps_word(const std::string& unit); ///< the plural
/// "41,200 tokens/s".
QString format_rate(double perSecond, const QString& unit);
/// "0:07", "12:30", "1:02:03".
QString format_duration(double seconds);
/// "812 B", "14.3 MB", powers of 1000.
QString format_bytes(std::int64_t bytes);

/// Makes control characters, bidirectional overrides and invalid UTF-8 visible as "‹0A›", so that they cannot
/// reorder their surroundings. A newline becomes "⏎", a tab "⇥". Spaces stay.
QString visible_text(std::string_view bytes);
/// For labels in lists and plots: visible_text() with leading and trailing spaces as "␣". A token with only
/// spaces shows each space. At most \p limit characters, then "…".
QString visible_token(std::string_view bytes, int limit = 40);
/// The text of token \p row of \p tokens; empty if the spans do not fit the text (an untrusted trace).
std::string_view token_bytes(const TokenColumns& tokens, std::string_view text, std::size_t row);

/// A number that a user typed with a point, a comma, or the decimal sign of the locale. No value: not a
/// finite number, or an ambiguous comma as in "1,500".
std::optional<double> typed_number(const QString& text);

/// A tooltip that shows \p text literally, because Qt would take a token such as `<s>` for markup.
QString plain_tip(const QString& text);

/// Shows a plain-text tooltip above \p box (in coordinates of \p widget), so that it does not cover the text
/// below. Without room above, the tooltip is below the box. Disappears when the pointer leaves the box.
void show_tip_above(QWidget& widget, const QRect& box, const QString& text);

// CSV by RFC 4180: decimal points, the fewest digits that read back as the same number, empty for NaN.
/// Bytes of a token: unchanged if they are UTF-8, otherwise made visible.
std::string csv_bytes(const std::string& bytes);
std::string csv_number(float value);
std::string csv_number(double value);
inline std::string csv_number(std::int64_t value) {
    return std::to_string(value);
}

/// A UTF-8 span moved to character boundaries, because byte-level tokens may begin and end inside characters.
struct CharacterSpan {
    /// The characters that begin inside the span, the last one whole. Empty if no character begins there.
    std::string_view bytes;
    std::size_t before = 0; ///< bytes of the span that belong to an earlier character
    std::size_t after = 0;  ///< bytes of the last character that follow the span
};

/// \p begin <= \p end <= text.size(). Bytes that are not UTF-8 count as characters.
CharacterSpan whole_characters(std::string_view text, std::size_t begin, std::size_t end);

/// The characters that begin in token \p row. \p follows: whether the previous token is shown directly
/// before. If so, a character that both tokens share is shown there; otherwise the result begins with this
/// token's bytes of the character. Empty if token_bytes() is empty.
CharacterSpan characters_of(const TokenColumns& tokens, std::string_view text, std::size_t row, bool follows);

/// A token as in visible_token(). For a part of a character, also names the whole character: "‹BC› of 今".
/// Empty if token_bytes() is empty.
QString visible_token_of(const TokenColumns& tokens, std::string_view text, std::size_t row, int limit = 40);

} // namespace ponderscope
