// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/colour_ranges.h"
#include "views/common/controls.h"
#include "views/common/view_context.h"
#include "views/text/quantity.h"
#include "views/text/text_painter.h"

#include <QAbstractScrollArea>
#include <QElapsedTimer>
#include <QStringList>
#include <QTimer>

#include <memory>
#include <optional>
#include <vector>

namespace ponderscope {

class Minimap;

/// The text of a sequence: each token has a background coloured by a quantity, its steps as ticks below, and
/// an outline if selected. The layout is made in slices; only the visible part is painted. Hovering shows a
/// token, a click pins it, arrow keys move the pin. The minimap takes the place of the scroll bar.
class TextView : public QAbstractScrollArea {
    Q_OBJECT
public:
    explicit TextView(const ViewContext& context, QWidget* parent = nullptr);

    // The look of the text, stored in the selection.
    [[nodiscard]] Quantity quantity() const { return look().quantity; }
    [[nodiscard]] const QString& annotation() const { return look().annotation; }
    [[nodiscard]] std::optional<Quantity> bars() const { return look().bars; }
    [[nodiscard]] bool showsDifference() const { return look().difference; }
    /// The fixed ends of the current colour scale, for every run and sequence. Each quantity, its difference
    /// and each annotation has its own ends. No value: the text's values determine the ends.
    [[nodiscard]] HeldRange range() const { return ranges_.held(coloured()); }
    void setRange(const HeldRange& range) { ranges_.hold(coloured(), range); }
    [[nodiscard]] ColourRanges& ranges() { return ranges_; } ///< all fixed ranges
    /// Tokens that were selected together, by dragging or with Shift; empty if a single token is pinned.
    [[nodiscard]] TokenSpan span() const;
    void setSpan(TokenSpan span); ///< pins the last token; empty: unpins
    /// The note of a token: its class in the annotation `note_annotation`. Tokens with a note have a flag.
    [[nodiscard]] QString noteAt(qint64 token) const;

    /// Colours the text by the replay's steps and draws them as ticks, while the replay fits the visible run
    /// and sequence. The legend says "replay". Fast enough for a slider.
    void setReplay(ReplayedSteps replay);
    [[nodiscard]] bool showsReplay() const;
    [[nodiscard]] const ReplayedSteps& replay() const { return replay_; }

    [[nodiscard]] const TokenValues& values() const { return values_; }
    [[nodiscard]] const TextLayout& layoutOfText() const { return layout_; }
    [[nodiscard]] std::shared_ptr<const SequenceData> sequence() const { return layout_.sequence(); }
    /// Whether all tokens are placed, so that the picture is final.
    [[nodiscard]] bool settled() const { return layout_.complete(); }

    /// The box of a token in coordinates of the viewport; empty: not placed, or not visible.
    [[nodiscard]] QRectF tokenRect(qint64 token) const;
    [[nodiscard]] qint64 tokenAt(const QPointF& viewportPosition, bool nearest = false) const;
    /// Tokens of the visible lines: [first, end).
    [[nodiscard]] qint64 firstVisibleToken() const;
    [[nodiscard]] qint64 endVisibleToken() const;
    void scrollTo(qint64 token);
    /// The numbers of a token as in the tooltip, in one line; empty: no such token.
    [[nodiscard]] QString describe(qint64 token) const;
    /// Found tokens, ascending, get an outline and ticks on the minimap. \p alone: all other tokens are pale.
    void setMarks(const std::vector<qint64>& tokens, bool alone = false);

Q_SIGNALS:
    void valuesChanged();  ///< colours, scale or data
    void contentChanged(); ///< another sequence, or more tokens of the same sequence
    void otherChanged();   ///< another run B, or B's tokens were loaded
    void spanChanged();
    /// The user opened the context menu for a token; -1: outside of all tokens.
    void menuWanted(qint64 token, const QPoint& globalPosition);
    /// The user zoomed beyond the largest (in) or the smallest text size.
    void zoomedBeyond(bool in);

protected:
    bool viewportEvent(QEvent* event) override;
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void scrollContentsBy(int dx, int dy) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void wheelEvent(QWheelEvent* event) override;
    void contextMenuEvent(QContextMenuEvent* event) override;

private:
    static constexpr int margin_left = TextPainter::margin_left;
    static constexpr int margin_right = 14;
    static constexpr int margin_top = 16;
    static constexpr int margin_bottom = 16;
    struct Metrics {
        int box = 26;    ///< height of a token's background
        int pitch = 44;  ///< distance from line to line
        int ascent = 18; ///< from the box's top to the baseline
    };
    [[nodiscard]] const TextLook& look() const { return context_.selection.look(); }
    void showLook();
    void reload();
    void recolour();
    /// Data of run B for the sequence.
    struct Compared {
        RunKey run;
        std::shared_ptr<const SequenceData> block; ///< null: no data, or being read
        bool listed = false;                       ///< run B has this sequence
        friend bool operator==(const Compared&, const Compared&) = default;
    };
    [[nodiscard]] Compared compared() const;
    void restyle();
    void place(); ///< lays out a slice, and continues until all tokens are placed
    void updateRange();
    void updateToken(qint64 token);
    void showSelected();
    void moveTo(qint64 token, bool extend = false);
    /// Pins a token. \p extend: extends the span from its start, or from the previously pinned token.
    void pin(qint64 token, bool extend);
    [[nodiscard]] bool hasTicks() const { return bars() == Quantity::steps; }
    [[nodiscard]] bool hasBars() const { return bars() && (!hasTicks() || maxSteps_ > 0); }
    [[nodiscard]] qreal topOf(qint64 line) const;

    ViewContext context_;
    TextLayout layout_;
    TokenValues values_;
    Metrics metrics_;
    ReplayedSteps replay_;
    TextLook drawnLook_;
    ColourRanges& ranges_;
    [[nodiscard]] QString coloured() const;
    TokenValues barValues_; ///< values of bars other than ticks
    qint64 anchor_ = -1;    ///< start of the span; -1: no span
    bool pinning_ = false;
    qint64 pressed_ = -1; ///< token where the mouse button was pressed
    WheelNotches wheel_;
    std::vector<qint64> marks_; ///< found tokens
    bool alone_ = false;        ///< draw all other tokens in pale colours
    Compared compared_;         ///< run B's data for the coloured values
    qint64 maxSteps_ = 0;
    qint64 drawnSelected_ = -1;
    qint64 drawnHover_ = -1;
    qint64 wanted_ = -1; ///< scroll to this token as soon as it is placed
    QTimer placing_;
    QElapsedTimer sinceMinimap_;
    Minimap* minimap_;
};

/// The lines of a token's tooltip, one for each group of numbers; empty: no such token.
QStringList token_lines(const SequenceData* shown, qint64 token, const TokenValues& values,
                        const Selection& selection, qint64 max_steps);
/// Why no text is shown; empty: \p shown has tokens.
QString text_hint(const ViewContext& context, const SequenceData* shown);

} // namespace ponderscope
