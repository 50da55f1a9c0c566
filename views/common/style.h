// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QProxyStyle>

namespace ponderscope {

class Theme;

/// Qt's Fusion style in the theme's palette, with less ink: lines between docks, underlined tabs, flat table
/// headers and tool buttons. The wheel changes a combo box, a number or a slider only while the control has
/// the focus. Otherwise the wheel scrolls the surrounding area.
class Style : public QProxyStyle {
    Q_OBJECT
public:
    /// \p theme must outlive the style.
    explicit Style(const Theme& theme);

    void polish(QWidget* widget) override;
    using QProxyStyle::polish;
    [[nodiscard]] int pixelMetric(PixelMetric metric, const QStyleOption* option,
                                  const QWidget* widget) const override;
    [[nodiscard]] int styleHint(StyleHint hint, const QStyleOption* option, const QWidget* widget,
                                QStyleHintReturn* data) const override;
    [[nodiscard]] QSize sizeFromContents(ContentsType type, const QStyleOption* option, const QSize& size,
                                         const QWidget* widget) const override;
    void drawPrimitive(PrimitiveElement element, const QStyleOption* option, QPainter* painter,
                       const QWidget* widget) const override;
    void drawComplexControl(ComplexControl control, const QStyleOptionComplex* option, QPainter* painter,
                            const QWidget* widget) const override;
    void drawControl(ControlElement element, const QStyleOption* option, QPainter* painter,
                     const QWidget* widget) const override;

protected:
    bool eventFilter(QObject* object, QEvent* event) override;

private:
    void drawFieldFrame(const QStyleOption* option, QPainter* painter) const;

    const Theme& theme_;
};

} // namespace ponderscope
