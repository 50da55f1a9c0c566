// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/view_context.h"
#include "views/heatmap/step_map.h"

#include <QImage>
#include <QWidget>

#include <memory>

namespace ponderscope {

/// Paints a StepMap: steps as rows, tokens as columns of pixels, the selected column outlined. The wheel
/// zooms along the tokens, dragging pans, hovering and clicks set the shared selection, arrow keys move it.
/// Keeps its picture until view or data change; a new picture takes one pass over the visible tokens.
class StepMapCanvas : public QWidget {
    Q_OBJECT
public:
    StepMapCanvas(ViewContext context, QWidget* parent = nullptr);

    /// Null: shows nothing. Keeps a zoomed range of tokens if the new map still has these tokens.
    void setMap(std::shared_ptr<const StepMap> map);
    [[nodiscard]] const StepMap* map() const { return map_.get(); }
    /// Fits the scale to the visible values, or to their means if a pixel covers many tokens; \p held fixes
    /// the ends. A new map has the scale of single tokens until the next call.
    void fitScale(const HeldRange& held = {});
    [[nodiscard]] const ValueLook& look() const { return look_; }
    [[nodiscard]] const ColourScale& scale() const { return look_.scale; }
    /// The text in the middle if there is no map.
    void setHint(const QString& hint);
    [[nodiscard]] QString hint() const { return hint_; }

    /// Visible tokens [first, last), possibly fractions.
    [[nodiscard]] double viewFirst() const { return first_; }
    [[nodiscard]] double viewLast() const { return last_; }
    void setView(double first, double last);
    void showAll();
    void zoom(double factor, double aroundToken);

    [[nodiscard]] QRect plotRect() const;
    /// -1 outside the plot.
    [[nodiscard]] qint64 tokenAt(QPointF position) const;
    [[nodiscard]] int stepAt(QPointF position) const;
    /// Number of tokens in a pixel column, at least 1.
    [[nodiscard]] double tokensPerPixel() const;

    [[nodiscard]] QSize sizeHint() const override { return {480, 70}; } ///< takes the rest of the room
    [[nodiscard]] QSize minimumSizeHint() const override { return {160, 70}; }

Q_SIGNALS:
    /// The cell under the cursor; -1, -1: none.
    void cellHovered(qint64 token, int step);
    void viewChanged();

protected:
    void paintEvent(QPaintEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    void mouseDoubleClickEvent(QMouseEvent* event) override;
    void wheelEvent(QWheelEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void leaveEvent(QEvent* event) override;
    void resizeEvent(QResizeEvent* /*event*/) override { drop(); }

private:
    void drop(); ///< drops the cached picture
    void render();
    void bringIntoView(qint64 token);
    void outline(class QPainter& painter, qint64 token, bool pinned) const;
    void drawAxes(class QPainter& painter) const;
    [[nodiscard]] int rowTop(std::int64_t row) const;
    void moveToken(qint64 by);
    void moveRow(int by);
    void chooseRow(int row); ///< sets the shared step or layer, whichever the rows are

    Selection& selection_;
    Theme& theme_;
    std::shared_ptr<const StepMap> map_;
    ValueLook look_;
    QString hint_;
    double first_ = 0;
    double last_ = 0;
    QImage picture_; ///< one pixel high for each step, one device pixel wide for each column
    QPointF pressed_;
    double pressedFirst_ = 0;
    bool down_ = false;
    bool panning_ = false;
};

} // namespace ponderscope
