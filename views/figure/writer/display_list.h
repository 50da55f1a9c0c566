// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QColor>
#include <QImage>
#include <QPainterPath>
#include <QPointF>
#include <QRectF>
#include <QSizeF>
#include <QString>

#include <variant>
#include <vector>

namespace ponderscope::figure {

/// The unit of a display list is a point (72 per inch of 25.4 mm). The origin is the upper left corner; y
/// grows downwards.
constexpr double points_per_mm = 72.0 / 25.4;

enum class Align { left, center, right };

/// A stroke. Without a valid colour it is not drawn.
struct Stroke {
    QColor color;
    double width = 0.5;
    std::vector<double> dash; ///< lengths of dashes and gaps in points; empty: solid
    bool round = false;       ///< round caps and joins; false: butt caps and mitred joins
};

/// Size, weight and colour of text. All text has the figure's typeface.
struct TextStyle {
    double size = 8;
    bool bold = false;
    QColor color = Qt::black;
};

// The items of a figure. Fills use the non-zero rule; without a valid colour there is no fill.
struct RectItem {
    QRectF rect;
    QColor fill;
    Stroke stroke;
    double radius = 0;
};
struct PathItem {
    QPainterPath path; ///< consists of lines and cubic curves
    QColor fill;
    Stroke stroke;
};
struct TextItem {
    QString text;
    QPointF at; ///< position on the baseline: left end, middle or right end of the text
    TextStyle style;
    Align align = Align::left;
    double rotation = 0; ///< degrees, counter-clockwise, about `at`
};
/// An image without interpolation: each pixel is a rectangle.
struct ImageItem {
    QRectF target;
    QImage image;
};
/// All items up to the matching ClipEnd are clipped to the rectangle and to the enclosing clips.
struct ClipBegin {
    QRectF rect;
};
struct ClipEnd {};

using Item = std::variant<RectItem, PathItem, TextItem, ImageItem, ClipBegin, ClipEnd>;

/// A figure before it becomes a file: items in painting order. A plain value. The back ends (pdf, svg, png)
/// read only this list, so the formats agree.
class DisplayList {
public:
    DisplayList() = default;
    explicit DisplayList(QSizeF size) : size_(size) {}

    [[nodiscard]] QSizeF size() const { return size_; } ///< size of the page, in points
    [[nodiscard]] const std::vector<Item>& items() const { return items_; }

    void rect(const QRectF& rect, const QColor& fill, const Stroke& stroke = {}, double radius = 0) {
        items_.emplace_back(RectItem{rect, fill, stroke, radius});
    }
    void line(QPointF from, QPointF to, const Stroke& stroke) { polyline({from, to}, stroke); }
    void polyline(const std::vector<QPointF>& points, const Stroke& stroke);
    void path(const QPainterPath& path, const QColor& fill, const Stroke& stroke = {}) {
        items_.emplace_back(PathItem{path, fill, stroke});
    }
    void circle(QPointF center, double radius, const QColor& fill, const Stroke& stroke = {});
    void text(const QString& text, QPointF at, const TextStyle& style, Align align = Align::left,
              double rotation = 0);
    void image(const QRectF& target, const QImage& image) { items_.emplace_back(ImageItem{target, image}); }
    void beginClip(const QRectF& rect) { items_.emplace_back(ClipBegin{rect}); }
    void endClip() { items_.emplace_back(ClipEnd{}); }
    /// Appends all items of \p other, moved by an offset. Ignores the size of \p other.
    void append(const DisplayList& other, QPointF offset);

private:
    QSizeF size_;
    std::vector<Item> items_;
};

/// The outline of a rectangle with rounded corners, as every back end draws it.
QPainterPath rounded_rect(const QRectF& rect, double radius);

} // namespace ponderscope::figure
