// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/view_context.h"
#include "views/text/quantity.h"

#include <QAbstractScrollArea>

#include <cstdint>
#include <vector>

namespace ponderscope {

/// All sequences of run A at once, one pixel a token (or a few, where there is room): the far end of the
/// zoom. One byte a token is kept; sequences are read one after the other while the map is on the screen.
class CorpusMap : public QAbstractScrollArea {
    Q_OBJECT
public:
    explicit CorpusMap(const ViewContext& context, QWidget* parent = nullptr);

    void setQuantity(Quantity quantity);
    void setAnnotation(const QString& name); ///< instead of the quantity; empty: the quantity
    void setRange(const HeldRange& range);   ///< of the scale; nothing: from each sequence's values
    /// Pixels a token, 1 to 8.
    [[nodiscard]] int cell() const { return cell_; }
    void setCell(int pixels);
    [[nodiscard]] bool isBusy() const { return wanted_ >= 0; }
    /// What lies under a point of the viewport; sequence -1: nothing.
    struct Place {
        qint64 sequence = -1;
        qint64 token = -1;
    };
    [[nodiscard]] Place placeAt(const QPoint& point) const;

Q_SIGNALS:
    void zoomedIn(); ///< beyond the largest pixel
    /// A click: the selection is there already.
    void chosen();

protected:
    bool viewportEvent(QEvent* event) override;
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void scrollContentsBy(int dx, int dy) override;
    void showEvent(QShowEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void wheelEvent(QWheelEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;

private:
    /// Position on the scale in 254 parts; 255: nothing to show.
    struct Strip {
        qint64 sequence = 0;
        qint64 tokens = 0;
        std::vector<std::uint8_t> values; ///< empty: not read yet
        qint64 top = 0;                   ///< first row of cells
        qint64 rows = 0;
    };
    void restart();
    void askNext();
    void take(const SequenceData& block);
    [[nodiscard]] Strip* stripOf(qint64 sequence); ///< null: none
    void place();
    [[nodiscard]] qint64 columns() const;

    ViewContext context_;
    Quantity quantity_ = Quantity::nll;
    QString annotation_; ///< instead of the quantity
    HeldRange range_;
    bool classes_ = false; ///< what is shown is an annotation's classes
    int cell_ = 3;
    std::vector<Strip> strips_;
    qint64 rows_ = 0;
    qint64 wanted_ = -1; ///< index of the strip that is being read; -1: none
    std::size_t next_ = 0; ///< all strips before this one are there
    RunKey run_;
    qint64 maxSteps_ = 0;
    std::vector<QRgb> colours_;
};

} // namespace ponderscope
