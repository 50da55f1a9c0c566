// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trace/records.h"
#include "views/common/tip.h"

#include <QString>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ponderscope {

/// What stands where a number is missing (NaN, not scored).
inline constexpr char16_t no_value[] = u"–";

/// 2 decimals: losses, entropies. NaN gives "–"; minus is U+2212, so that columns of signed numbers align.
QString format_nats(double value, int decimals = 2);
/// With its sign always: "+0.21", "−0.03".
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
/// What a run's steps are (RunInfo::step_unit), for people: "step", or "layer" where it left the stack early.
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

} // namespace ponderscope
