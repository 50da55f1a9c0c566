// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/style.h"

#include "views/common/theme.h"

#include <QAbstractSpinBox>
#include <QComboBox>
#include <QEvent>
#include <QPainter>
#include <QSlider>
#include <QStyleFactory>
#include <QStyleOption>
#include <QTabBar>

using namespace Qt::StringLiterals;

namespace ponderscope {

namespace {

constexpr int row_height = 24; ///< smallest height of rows in lists and menus, in pixels

bool has_state(const QStyleOption* option, QStyle::StateFlag flag) {
    return (option->state & flag) != 0;
}

/// Draws the line between two areas. \p upright: a vertical line.
void draw_line(QPainter* painter, const QRect& box, bool upright, const QColor& colour) {
    painter->fillRect(upright ? QRect(box.center().x(), box.top(), 1, box.height())
                              : QRect(box.left(), box.center().y(), box.width(), 1),
                      colour);
}

} // namespace

Style::Style(const Theme& theme) : QProxyStyle(QStyleFactory::create(u"Fusion"_s)), theme_(theme) {}

void Style::polish(QWidget* widget) {
    QProxyStyle::polish(widget);
    if (auto* tabs = qobject_cast<QTabBar*>(widget)) {
        tabs->setElideMode(Qt::ElideNone); // the bar scrolls instead
        tabs->setUsesScrollButtons(true);
    }
    if (qobject_cast<QComboBox*>(widget) != nullptr || qobject_cast<QAbstractSpinBox*>(widget) != nullptr ||
        qobject_cast<QSlider*>(widget) != nullptr) {
        if (widget->focusPolicy() == Qt::WheelFocus) {
            widget->setFocusPolicy(Qt::StrongFocus);
        }
        widget->installEventFilter(this);
    }
}

bool Style::eventFilter(QObject* object, QEvent* event) {
    if (event->type() == QEvent::Wheel && !static_cast<QWidget*>(object)->hasFocus()) {
        event->ignore();
        return true;
    }
    return QProxyStyle::eventFilter(object, event);
}

int Style::pixelMetric(PixelMetric metric, const QStyleOption* option, const QWidget* widget) const {
    switch (metric) {
    case PM_SplitterWidth:
    case PM_DockWidgetSeparatorExtent:
        return 5; // one pixel is drawn, the rest is for the mouse
    case PM_ScrollBarExtent:
        return 12;
    case PM_MenuBarPanelWidth:
    case PM_TabBarBaseOverlap:
    case PM_TabBarBaseHeight:
    case PM_ScrollView_ScrollBarSpacing:
        return 0;
    case PM_TabBarTabHSpace:
        return 26;
    case PM_TabBarTabVSpace:
        return 12;
    default:
        return QProxyStyle::pixelMetric(metric, option, widget);
    }
}

int Style::styleHint(StyleHint hint, const QStyleOption* option, const QWidget* widget,
                     QStyleHintReturn* data) const {
    switch (hint) {
    case SH_ComboBox_Popup:
    case SH_EtchDisabledText:
    case SH_DialogButtonBox_ButtonsHaveIcons:
        return 0;
    case SH_ItemView_ShowDecorationSelected:
        return 1;
    case SH_TabBar_Alignment:
        return Qt::AlignLeft;
    default:
        return QProxyStyle::styleHint(hint, option, widget, data);
    }
}

QSize Style::sizeFromContents(ContentsType type, const QStyleOption* option, const QSize& size,
                              const QWidget* widget) const {
    const QSize made = QProxyStyle::sizeFromContents(type, option, size, widget);
    const bool row = type == CT_MenuItem ||
                     (type == CT_ItemViewItem && widget != nullptr && widget->inherits("QListView"));
    return row ? made.expandedTo({0, row_height}) : made;
}

void Style::drawPrimitive(PrimitiveElement element, const QStyleOption* option, QPainter* painter,
                          const QWidget* widget) const {
    const Palette& c = theme_.colours();
    const QRect& box = option->rect;
    switch (element) {
    case PE_IndicatorDockWidgetResizeHandle:
        painter->fillRect(box, c.panel);
        draw_line(painter, box, !has_state(option, State_Horizontal), c.line);
        return;
    case PE_PanelStatusBar:
        painter->fillRect(box, c.panel);
        painter->fillRect(QRect(box.left(), box.top(), box.width(), 1), c.line);
        return;
    case PE_FrameTabBarBase:
        painter->fillRect(QRect(box.left(), box.bottom(), box.width(), 1), c.line);
        return;
    case PE_FrameFocusRect:
        if (has_state(option, State_KeyboardFocusChange)) {
            painter->setPen(c.a);
            painter->setBrush(Qt::NoBrush);
            painter->drawRect(box.adjusted(0, 0, -1, -1));
        }
        return;
    case PE_FrameStatusBarItem:
    case PE_PanelMenuBar:
    case PE_FrameTabWidget:
        return;
    case PE_FrameLineEdit:
    case PE_IndicatorCheckBox:
    case PE_IndicatorRadioButton: {
        QProxyStyle::drawPrimitive(element, option, painter, widget);
        if (element == PE_FrameLineEdit) {
            drawFieldFrame(option, painter);
            return;
        }
        const double corner = element == PE_IndicatorRadioButton ? box.width() / 2.0 : 0;
        painter->save();
        painter->setRenderHint(QPainter::Antialiasing, corner > 0);
        painter->setPen(has_state(option, State_HasFocus) ? c.a : c.soft);
        painter->setBrush(Qt::NoBrush);
        painter->drawRoundedRect(box.adjusted(0, 0, -1, -1), corner, corner);
        painter->restore();
        return;
    }
    default:
        QProxyStyle::drawPrimitive(element, option, painter, widget);
    }
}

void Style::drawComplexControl(ComplexControl control, const QStyleOptionComplex* option, QPainter* painter,
                               const QWidget* widget) const {
    QProxyStyle::drawComplexControl(control, option, painter, widget);
    if (control == CC_SpinBox) {
        drawFieldFrame(option, painter);
    }
}

void Style::drawFieldFrame(const QStyleOption* option, QPainter* painter) const {
    if (theme_.dark() || theme_.appearance() == Appearance::contrast) { // Fusion's frame is dark on dark
        painter->setPen(has_state(option, State_HasFocus) ? theme_.colours().a : theme_.colours().faint);
        painter->setBrush(Qt::NoBrush);
        painter->drawRect(option->rect.adjusted(0, 0, -1, -1));
    }
}

void Style::drawControl(ControlElement element, const QStyleOption* option, QPainter* painter,
                        const QWidget* widget) const {
    const Palette& c = theme_.colours();
    const QRect& box = option->rect;
    switch (element) {
    case CE_TabBarTabShape:
    case CE_MenuBarEmptyArea:
        return;
    case CE_TabBarTabLabel:
        if (const auto* tab = qstyleoption_cast<const QStyleOptionTab*>(option)) {
            const bool chosen = has_state(option, State_Selected);
            painter->save();
            painter->setFont(chosen ? theme_.strong() : theme_.body());
            painter->setPen(chosen ? c.a : has_state(option, State_MouseOver) ? c.text : c.soft);
            painter->drawText(box.adjusted(0, 0, 0, -2), Qt::AlignCenter | Qt::TextHideMnemonic, tab->text);
            if (chosen) {
                painter->fillRect(QRect(box.left() + 10, box.bottom() - 2, box.width() - 20, 2), c.a);
            }
            painter->restore();
            if (has_state(option, State_HasFocus)) {
                QStyleOption ring(*option);
                ring.rect = box.adjusted(3, 3, -3, -5);
                drawPrimitive(PE_FrameFocusRect, &ring, painter, widget);
            }
        }
        return;
    case CE_HeaderSection:
    case CE_HeaderEmptyArea:
        painter->fillRect(box, c.panel);
        painter->fillRect(QRect(box.left(), box.bottom(), box.width(), 1), c.line);
        return;
    case CE_MenuBarItem: // without Fusion's line below each item
        if (const auto* item = qstyleoption_cast<const QStyleOptionMenuItem*>(option)) {
            painter->fillRect(box, has_state(option, State_Selected) ? c.selected : c.panel);
            painter->drawText(box, Qt::AlignCenter | Qt::TextShowMnemonic, item->text);
        }
        return;
    case CE_Splitter:
        draw_line(painter, box, has_state(option, State_Horizontal), c.line);
        return;
    default:
        QProxyStyle::drawControl(element, option, painter, widget);
    }
}

} // namespace ponderscope
