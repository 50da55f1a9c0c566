// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/view_context.h"
#include "views/text/quantity.h"
#include "views/text/span.h"
#include "views/text/text_layout.h"

namespace ponderscope {

using Qt::StringLiterals::operator""_s;

/// The annotation that holds notes and bookmarks.
inline const QString note_annotation = u"note"_s;

/// Draws the lines of a text: each token's letters, on a background by its value, above ticks of steps or a
/// bar. Also draws flags of notes, and outlines of found, hovered and selected tokens.
struct TextPainter {
    static constexpr int margin_left = 24;
    const TextLayout& layout; ///< layout of a sequence
    const TokenValues& values;
    const TokenValues& bars;                ///< empty values: no bars
    const std::vector<std::int32_t>& ticks; ///< executed steps for each row; empty: no ticks
    qint64 max_steps;                       ///< number of ticks for a token
    const std::vector<qint64>& found;       ///< ascending
    bool found_alone;                       ///< draw all other tokens in pale colours
    TokenSpan span;
    const ViewContext& context;

    /// The background of a token in a line with the top \p top.
    [[nodiscard]] static QRectF box(const TextLayout::PlacedToken& placed, qreal top, qreal height);
    /// \p ascent: from the top to the baseline. \p height: height of the background.
    void paint(QPainter& painter, qint64 line, qreal top, qreal height, qreal ascent) const;

private:
    void paintTicks(QPainter& painter, qint64 token, const QRectF& box) const;
    void paintBar(QPainter& painter, qint64 token, const QRectF& box) const;
    void outlineSpan(QPainter& painter, std::vector<QRectF> boxes) const;
};

} // namespace ponderscope
