// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/figure/figure.h"
#include "views/figure/vision.h"

#include <QWidget>

namespace ponderscope::figure {

/// A figure on paper, at its printed size.
class FigurePreview : public QWidget {
    Q_OBJECT
public:
    explicit FigurePreview(QWidget* parent = nullptr);
    /// \p figure and \p fonts must stay alive until the next call; null: shows nothing.
    void setFigure(const Figure* figure, const Fonts* fonts);
    /// Sets the available width in pixels. A wider page is shown smaller than true size, with a note.
    void setRoom(int pixels);
    /// Shows the figure in grey, or as seen without green cones.
    void setVision(Vision vision);
    [[nodiscard]] QSize sizeHint() const override;

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    Vision vision_ = Vision::normal;
    int room_ = 0; ///< 0: unlimited
    [[nodiscard]] double zoom() const;
    [[nodiscard]] double pixelsPerPoint() const;
    const Figure* figure_ = nullptr;
    const Fonts* fonts_ = nullptr;
};

} // namespace ponderscope::figure
