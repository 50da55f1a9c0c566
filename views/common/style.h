// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QProxyStyle>

namespace ponderscope {

class Theme;

/// The quiet look of the program: flat fields with one-pixel borders, lines instead of bevels, slim scroll
/// bars, underlined tabs. Draws with the theme's colours at the time of painting, so that light and dark need
/// no second style.
class Style : public QProxyStyle {
    Q_OBJECT
public:
    /// \p theme outlives the style.
    explicit Style(const Theme& theme);

    void polish(QWidget* widget) override;
    using QProxyStyle::polish;
    [[nodiscard]] int pixelMetric(PixelMetric metric, const QStyleOption* option,
                                  const QWidget* widget) const override;
    [[nodiscard]] int styleHint(StyleHint hint, const QStyleOption* option, const QWidget* widget,
                                QStyleHintReturn* data) const override;
    [[nodiscard]] QSize sizeFromContents(ContentsType type, const QStyleOption* option, const QSize& size,
                                         const QWidget* widget) const override;
    [[nodiscard]] QRect subControlRect(ComplexControl control, const QStyleOptionComplex* option,
                                       SubControl part, const QWidget* widget) const override;
    [[nodiscard]] QRect subElementRect(SubElement element, const QStyleOption* option,
                                       const QWidget* widget) const override;
    [[nodiscard]] QIcon standardIcon(StandardPixmap icon, const QStyleOption* option,
                                     const QWidget* widget) const override;
    void drawPrimitive(PrimitiveElement element, const QStyleOption* option, QPainter* painter,
                       const QWidget* widget) const override;
    void drawControl(ControlElement element, const QStyleOption* option, QPainter* painter,
                     const QWidget* widget) const override;
    void drawComplexControl(ComplexControl control, const QStyleOptionComplex* option, QPainter* painter,
                            const QWidget* widget) const override;

private:
    void drawField(QPainter* painter, const QStyleOption* option, bool panelColour) const;
    void drawChevron(QPainter* painter, const QRectF& box, bool enabled, bool up) const;
    void drawFocus(const QStyleOption* option, QPainter* painter, const QRect& box) const;
    void drawTab(const QStyleOption* option, QPainter* painter) const;
    void drawScrollBar(const QStyleOptionComplex* option, QPainter* painter, const QWidget* widget) const;

    const Theme& theme_;
};

} // namespace ponderscope
