// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

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

/// 2 decimals: losses, entropies. NaN gives "–"; minus is U+2212, so that columns of signed numbers align.
QString format_nats(double value, int decimals = 2);
/// A number that always has a sign: "+0.21", "−0.03".
QString format_difference(double value, int decimals = 2);
/// 2 decimals; below 0.005 two significant digits ("0.0012"), below 1e-4 "<0.0001".
QString format_probability(double value);
/// Significant digits of a number that may mean anything, with a real minus: "0.0159", "−7.34e−07".
QString format_number(double value, int digits = 4);
/// Three significant digits and a thin unit: "950", "19.1 M", "1.2 G". For FLOPs and counts that need not be
/// exact.
QString format_si(double value);
/// Exact, with thousands separated by commas: "1,204".
QString format_count(std::int64_t value);
/// The name of a run's steps (RunInfo::step_unit): "step", or "layer" for exits over layers.
QString step_word(const std::string& unit);
QString steps_word(const std::string& unit); ///< more than one
/// "41,200 tokens/s".
QString format_rate(double perSecond, const QString& unit);
/// "0:07", "12:30", "1:02:03".
QString format_duration(double seconds);
/// "812 B", "14.3 MB", powers of 1000.
QString format_bytes(std::int64_t bytes);

/// Text that one can see and that cannot reorder its surroundings: control characters, bidirectional
/// overrides and bytes that are no UTF-8 become "‹0A›"; newline "⏎", tabulator "⇥". Spaces stay as they are.
QString visible_text(std::string_view bytes);
/// For labels in lists and plots: as visible_text, with leading and trailing spaces as "␣"; a token of spaces
/// only shows them all. At most \p limit characters, then "…".
QString visible_token(std::string_view bytes, int limit = 40);
/// The text under token \p row of \p tokens, empty when the spans do not fit the text (a trace from a
/// stranger).
std::string_view token_bytes(const TokenColumns& tokens, std::string_view text, std::size_t row);

/// A number as the user types it: with a point, a comma, or the decimal sign of the user's locale. Nothing:
/// it is no finite number, or "1,500", whose comma may part thousands.
std::optional<double> typed_number(const QString& text);

/// Text for tooltips, which take for markup what looks like it: `<s>` is a token, and words of a stranger's
/// trace stand as they are.
QString plain_tip(const QString& text);

/// Shows a tooltip of plain text above \p box (in coordinates of \p widget): the line of text below stays
/// readable. Below it if there is no room above. Goes when the pointer leaves the box.
void show_tip_above(QWidget& widget, const QRect& box, const QString& text);

// CSV as RFC 4180 has it: full stops, the shortest digits that read back as the same number, nothing for NaN.
std::string csv_text(const std::string& text);
/// Bytes of a token: as they are when they are UTF-8, else made visible.
std::string csv_bytes(const std::string& bytes);
std::string csv_number(float value);
std::string csv_number(double value);
inline std::string csv_number(std::int64_t value) {
    return std::to_string(value);
}

/// A span of UTF-8 moved to the borders of characters: byte-level tokens begin and end inside of them.
struct CharacterSpan {
    /// The characters that begin inside the span, the last one to its end; empty inside a single one.
    std::string_view bytes;
    std::size_t before = 0; ///< bytes of the span that belong to a character begun in front of it
    std::size_t after = 0;  ///< bytes of the last character behind the span
};

/// \p begin <= \p end <= text.size(). Bytes that are no UTF-8 are characters of their own.
CharacterSpan whole_characters(std::string_view text, std::size_t begin, std::size_t end);

/// The characters that begin in token \p row; the end of one that the token before it began is that token's,
/// where it is shown, too (\p follows), and its text lies next to this one's. Empty if token_bytes() is.
CharacterSpan characters_of(const TokenColumns& tokens, std::string_view text, std::size_t row, bool follows);

/// A token as visible_token() shows it, and of which characters it is a part: "‹BC› of 今". Empty if
/// token_bytes() is.
QString visible_token_of(const TokenColumns& tokens, std::string_view text, std::size_t row, int limit = 40);

} // namespace ponderscope
