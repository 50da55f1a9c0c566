// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/colour_ranges.h"
#include "views/common/controls.h"
#include "views/common/view_context.h"
#include "views/text/quantity.h"
#include "views/text/text_painter.h"

#include <QAbstractScrollArea>
#include <QTimer>

#include <memory>
#include <optional>
#include <vector>

namespace ponderscope {

/// Steps that a policy would have given to the tokens of a sequence, by row.
struct TextReplay {
    RunKey run;
    qint64 sequence = -1; ///< -1: none
    QString policy;
    qint64 maxSteps = 0;
    std::vector<std::int32_t> steps;
};

/// The text of a sequence: one rounded background a token by a quantity, its steps as ticks below, the
/// selection as an outline. Lays out in slices and paints what is visible. Hover shows, click pins, arrows
/// move.
class TextView : public QAbstractScrollArea {
    Q_OBJECT
public:
    explicit TextView(const ViewContext& context, QWidget* parent = nullptr);

    // The look of the text, as the selection carries it.
    [[nodiscard]] Quantity quantity() const { return look().quantity; }
    [[nodiscard]] const QString& annotation() const { return look().annotation; }
    [[nodiscard]] std::optional<Quantity> bars() const { return look().bars; }
    [[nodiscard]] const QString& barAnnotation() const { return look().barAnnotation; }
    [[nodiscard]] bool showsDifference() const { return look().difference; }
    /// The ends of the current colour scale, for every run and sequence until they are set again; each
    /// quantity, its difference and each annotation has its own. Nothing: from the values.
    [[nodiscard]] HeldRange range() const;
    void setRange(const HeldRange& range);
    [[nodiscard]] ColourRanges& ranges() { return ranges_; } ///< all that are held
    /// Tokens chosen together, by dragging or with Shift: from where that began to the pinned one. Empty
    /// if one token alone is pinned.
    [[nodiscard]] TokenSpan span() const;
    void setSpan(TokenSpan span); ///< pins its last token; empty: unpins
    /// The text of a token's note: its class in the annotation `note_annotation`. Such tokens carry a flag.
    [[nodiscard]] QString noteAt(qint64 token) const;

    /// While it fits the run and sequence on the screen, the text is coloured by these steps and its ticks
    /// show them; the legend says that it is a replay. Cheap enough for a slider.
    void setReplay(TextReplay replay);
    [[nodiscard]] bool showsReplay() const;
    [[nodiscard]] const TextReplay& replay() const { return replay_; }

    [[nodiscard]] const TokenValues& values() const { return values_; }
    [[nodiscard]] const TextLayout& layoutOfText() const { return layout_; }
    [[nodiscard]] std::shared_ptr<const SequenceData> sequence() const { return layout_.sequence(); }
    /// Whether all tokens are placed, so that the screen is final.
    [[nodiscard]] bool settled() const;

    /// The box of a token in coordinates of the viewport; empty if it is not placed or not in the visible
    /// part.
    [[nodiscard]] QRectF tokenRect(qint64 token) const;
    [[nodiscard]] qint64 tokenAt(const QPointF& viewportPosition, bool nearest = false) const;
    /// Tokens of the lines that can be seen: [first, end).
    [[nodiscard]] qint64 firstVisibleToken() const;
    [[nodiscard]] qint64 endVisibleToken() const;
    void scrollTo(qint64 token);
    /// A token's numbers as the tooltip has them, in one line; empty when there is none.
    [[nodiscard]] QString describe(qint64 token) const;
    /// Found tokens, ascending: a fine outline. \p alone: they are what is looked at, and the rest of the text
    /// steps back.
    void setMarks(const std::vector<qint64>& tokens, bool alone = false);

Q_SIGNALS:
    void valuesChanged();  ///< colours, scale or data
    void contentChanged(); ///< another sequence, or more of it
    void otherChanged();   ///< another B, or its tokens here are there by now
    void spanChanged();
    /// The context menu is wanted: for a token, or -1 beside all.
    void menuWanted(qint64 token, const QPoint& globalPosition);
    /// Zoomed beyond the largest (in) or the smallest text.
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
        int pitch = 44;  ///< from line to line
        int ascent = 18; ///< from the box's top to the baseline
    };
    [[nodiscard]] const TextLook& look() const { return context_.selection.look(); }
    void showLook();
    void reload();
    void recolour();
    /// Run B's data of the sequence.
    struct Compared {
        RunKey run;
        std::shared_ptr<const SequenceData> block; ///< null: none, or it is being read
        bool listed = false;                       ///< it has this sequence
        friend bool operator==(const Compared&, const Compared&) = default;
    };
    [[nodiscard]] Compared compared() const;
    void restyle();
    void place(); ///< a slice of layout, then again until all is placed
    void updateRange();
    void updateToken(qint64 token);
    void showSelected();
    void moveTo(qint64 token, bool extend = false);
    /// Pins a token; \p extend: the span from what was pinned before, or from where the span begins, to it.
    void pin(qint64 token, bool extend);
    [[nodiscard]] bool hasTicks() const { return barAnnotation().isEmpty() && bars() == Quantity::steps; }
    [[nodiscard]] bool hasBars() const {
        return !barAnnotation().isEmpty() || (bars() && (!hasTicks() || maxSteps_ > 0));
    }
    [[nodiscard]] qreal topOf(qint64 line) const;

    ViewContext context_;
    TextLayout layout_;
    TokenValues values_;
    Metrics metrics_;
    TextReplay replay_;
    TextLook drawnLook_;
    ColourRanges& ranges_;
    [[nodiscard]] QString coloured() const;
    TokenValues barValues_; ///< of bars that are no ticks
    qint64 anchor_ = -1;    ///< where the span begins; -1: there is none
    bool pinning_ = false;
    qint64 pressed_ = -1; ///< under the mouse when its button went down
    WheelNotches wheel_;
    std::vector<qint64> marks_; ///< found
    bool alone_ = false;        ///< all others are drawn pale
    Compared compared_;         ///< of what is coloured, where B takes part
    qint64 maxSteps_ = 0;
    qint64 drawnSelected_ = -1;
    qint64 drawnHover_ = -1;
    qint64 wanted_ = -1; ///< to be scrolled to as soon as it is placed
    QTimer placing_;
};

} // namespace ponderscope
