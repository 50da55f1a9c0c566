// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/controls.h"
#include "views/common/view_context.h"
#include "views/text/quantity.h"

#include <QAbstractScrollArea>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace ponderscope {

/// All sequences of run A at once, or A − B, one pixel (or a few) for each token, in the colours of the text.
/// Keeps two bytes for each token. Reads sequences one after the other while the map is on the screen.
class CorpusMap : public QAbstractScrollArea {
    Q_OBJECT
public:
    explicit CorpusMap(const ViewContext& context, QWidget* parent = nullptr);

    /// Sets the quantity and its look: all members of \p text except the values.
    void setShown(const TokenValues& text);
    /// Pixels per token, 1 to 8.
    [[nodiscard]] int cell() const { return cell_; }
    void setCell(int pixels);
    [[nodiscard]] bool isBusy() const { return wanted_ >= 0; }
    /// The token at a point of the viewport; sequence -1: none.
    struct Place {
        qint64 sequence = -1;
        qint64 token = -1;
    };
    [[nodiscard]] Place placeAt(const QPoint& point) const;
    /// The colour with which a token is drawn.
    [[nodiscard]] QRgb colourOf(qint64 sequence, qint64 token) const;

Q_SIGNALS:
    void zoomedIn(); ///< the user zoomed in beyond the largest pixel size
    /// The user clicked a token, which is now selected.
    void chosen();

protected:
    bool viewportEvent(QEvent* event) override;
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* /*event*/) override { place(); }
    void scrollContentsBy(int /*dx*/, int /*dy*/) override { viewport()->update(); }
    void showEvent(QShowEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void wheelEvent(QWheelEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;

private:
    struct Strip {
        qint64 sequence = 0;
        qint64 tokens = 0;
        qint64 other = 0; ///< number of tokens in B; 0: B lacks the sequence, or there is no B
        std::vector<std::uint16_t> values; ///< bfloat16, NaN for no value; empty: not read yet
        qint64 top = 0;                    ///< index of its first row of cells
        qint64 rows = 0;
    };
    void restart();
    void askNext();
    /// std::nullopt: a needed block is still being read.
    [[nodiscard]] std::optional<TokenValues> valuesOf(const Strip& strip);
    void take(Strip& strip, const TokenValues& values);
    [[nodiscard]] const Strip* stripOf(qint64 sequence) const;
    void place();
    [[nodiscard]] qint64 columns() const;
    void rebuildColours();
    [[nodiscard]] QString about(const Place& at);

    ViewContext context_;
    TokenValues shown_; ///< without values
    int cell_ = 3;
    std::vector<Strip> strips_;
    qint64 rows_ = 0;
    qint64 wanted_ = -1; ///< index of the strip that is being read; -1: none
    RunKey run_;
    RunKey other_;         ///< run B of the shown differences; none if only A is shown
    std::size_t next_ = 0; ///< all strips before this index are read
    std::array<std::shared_ptr<const SequenceData>, 2> held_; ///< A's and B's data, until both are loaded
    qint64 maxSteps_ = 0;
    WheelNotches wheel_;
    std::vector<QRgb> colours_; ///< colour of each bfloat16 value
};

} // namespace ponderscope
