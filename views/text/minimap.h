// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QImage>
#include <QWidget>

#include <vector>

namespace ponderscope {

class TextLayout;
class Theme;
struct TokenValues;

/// An overview of the whole sequence beside the text, in place of a scroll bar. Draws lines in the text's
/// colours, and the visible part as an outline. A click or a drag scrolls the text.
class Minimap : public QWidget {
    Q_OBJECT
public:
    /// \p layout and \p values belong to the view and must outlive this object.
    Minimap(Theme& theme, const TextLayout& layout, const TokenValues& values, QWidget* parent);

    /// Shown part of the text as fractions of its height.
    void setVisiblePart(double from, double to);
    /// Tokens that a search found, as ticks at the edge.
    void setMarks(std::vector<qint64> tokens);
    /// Paints again after a change of colours or lines.
    void refresh();
    [[nodiscard]] QSize sizeHint() const override { return {26, 200}; }

Q_SIGNALS:
    void wanted(double middle); ///< the user wants this fraction of the text in the middle of the view

protected:
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* /*event*/) override { refresh(); }
    void mousePressEvent(QMouseEvent* event) override { mouseMoveEvent(event); }
    void mouseMoveEvent(QMouseEvent* event) override;

private:
    void drag(double y);
    void render();
    [[nodiscard]] double contentHeight() const;

    Theme& theme_;
    const TextLayout& layout_;
    const TokenValues& values_;
    std::vector<qint64> marks_;
    double from_ = 0;
    double to_ = 1;
    QImage image_;
    bool stale_ = true;
};

} // namespace ponderscope
