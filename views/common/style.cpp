// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/style.h"

#include "views/common/style_parts.h"
#include "views/common/theme.h"

#include <QAbstractButton>
#include <QAbstractSpinBox>
#include <QComboBox>
#include <QDockWidget>
#include <QPainter>
#include <QPainterPath>
#include <QScrollBar>
#include <QStyleFactory>
#include <QStyleOption>
#include <QTabBar>

#include <algorithm>

namespace ponderscope {

namespace {

using style_parts::blended;
using style_parts::corner;
using style_parts::is;

constexpr int row_height = 28; ///< of menus and of lists that drop down
constexpr int list_row = 24;   ///< of lists that stand in a dialog
constexpr int sort_arrow = 14; ///< what the arrow of a sorted column takes

bool in_list_of_choices(const QWidget* widget) {
    return widget != nullptr && widget->inherits("QComboBoxListView");
}

} // namespace

Style::Style(const Theme& theme)
    : QProxyStyle(QStyleFactory::create(QStringLiteral("Fusion"))), theme_(theme) {}

void Style::polish(QWidget* widget) {
    QProxyStyle::polish(widget);
    if (qobject_cast<QComboBox*>(widget) != nullptr || qobject_cast<QAbstractButton*>(widget) != nullptr ||
        qobject_cast<QTabBar*>(widget) != nullptr || qobject_cast<QScrollBar*>(widget) != nullptr) {
        widget->setAttribute(Qt::WA_Hover);
    }
    if (auto* tabs = qobject_cast<QTabBar*>(widget)) {
        tabs->setElideMode(Qt::ElideNone); // a name that is cut is none: the bar scrolls
        tabs->setUsesScrollButtons(true);
    }
}

int Style::pixelMetric(PixelMetric metric, const QStyleOption* option, const QWidget* widget) const {
    switch (metric) {
    case PM_SplitterWidth:
    case PM_DockWidgetSeparatorExtent:
        return 5; // one pixel is drawn, the rest is for the hand
    case PM_ScrollBarExtent:
        return 11;
    case PM_ScrollBarSliderMin:
        return 32;
    case PM_DockWidgetFrameWidth:
        return 1; // of those that float
    case PM_MenuPanelWidth:
        return 1;
    case PM_MenuHMargin:
        return 4;
    case PM_MenuVMargin:
        return 6;
    case PM_FocusFrameHMargin:
        return in_list_of_choices(widget) ? 8 : QProxyStyle::pixelMetric(metric, option, widget);
    case PM_ToolBarFrameWidth:
    case PM_MenuBarPanelWidth:
    case PM_TabBarBaseOverlap:
    case PM_TabBarBaseHeight:
    case PM_ButtonShiftHorizontal:
    case PM_ButtonShiftVertical:
    case PM_ScrollView_ScrollBarOverlap:
    case PM_ScrollView_ScrollBarSpacing:
        return 0;
    case PM_DockWidgetTitleMargin:
        return 6;
    case PM_MenuBarItemSpacing:
        return 2;
    case PM_MenuBarVMargin:
        return 4;
    case PM_TabBarTabHSpace:
        return 26;
    case PM_TabBarTabVSpace:
        return 14;
    case PM_IndicatorWidth:
    case PM_IndicatorHeight:
    case PM_ExclusiveIndicatorWidth:
    case PM_ExclusiveIndicatorHeight:
        return 16;
    case PM_CheckBoxLabelSpacing:
    case PM_RadioButtonLabelSpacing:
        return 7;
    case PM_ButtonMargin:
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
    case SH_DockWidget_ButtonsHaveFrame:
    case SH_DialogButtonBox_ButtonsHaveIcons:
    case SH_UnderlineShortcut:
        return 0;
    case SH_ComboBox_PopupFrameStyle:
        return static_cast<int>(QFrame::Box) | static_cast<int>(QFrame::Plain);
    case SH_ItemView_ShowDecorationSelected:
    case SH_ScrollBar_LeftClickAbsolutePosition:
        return 1;
    case SH_TabBar_Alignment:
        return Qt::AlignLeft;
    case SH_ToolTipLabel_Opacity:
        return 255;
    default:
        return QProxyStyle::styleHint(hint, option, widget, data);
    }
}

QSize Style::sizeFromContents(ContentsType type, const QStyleOption* option, const QSize& size,
                              const QWidget* widget) const {
    QSize made = QProxyStyle::sizeFromContents(type, option, size, widget);
    switch (type) {
    case CT_ComboBox:
        made = QSize(size.width() + 36, std::max(size.height() + 10, 28));
        break;
    case CT_SpinBox:
        made.setWidth(made.width() + 8); // the margins of the field within
        [[fallthrough]];
    case CT_LineEdit:
        made.setHeight(28 + std::max(0, QFontMetrics(theme_.body()).height() - 18));
        break;
    case CT_PushButton:
        made = QSize(std::max(size.width() + 28, 76), std::max(size.height() + 10, 28));
        break;
    case CT_MenuItem:
        if (const auto* item = qstyleoption_cast<const QStyleOptionMenuItem*>(option);
            item == nullptr || item->menuItemType != QStyleOptionMenuItem::Separator) {
            made.setHeight(std::max(made.height(), row_height));
        }
        made.rwidth() += 16;
        break;
    case CT_ItemViewItem:
        if (widget != nullptr && widget->inherits("QListView")) {
            made.setHeight(std::max(made.height(), in_list_of_choices(widget) ? row_height : list_row));
        }
        break;
    case CT_ToolButton:
        if (const auto* button = qstyleoption_cast<const QStyleOptionToolButton*>(option);
            button != nullptr && (button->features & QStyleOptionToolButton::HasMenu) != 0 &&
            !button->text.isEmpty()) {
            made.rwidth() += 14; // the arrow stands beside the text, not on it
        }
        break;
    case CT_MenuBarItem:
        made = QSize(size.width() + 16, std::max(size.height() + 8, 26));
        break;
    default:
        break;
    }
    return made;
}

QRect Style::subElementRect(SubElement element, const QStyleOption* option, const QWidget* widget) const {
    if (element == SE_ItemViewItemFocusRect) {
        return option->rect; // with its picture
    }
    if (element == SE_LineEditContents) {
        return option->rect.adjusted(6, 1, -6, -1);
    }
    if (const auto* header = qstyleoption_cast<const QStyleOptionHeader*>(option);
        header != nullptr && (element == SE_HeaderArrow || element == SE_HeaderLabel)) {
        const bool sorted = header->sortIndicator != QStyleOptionHeader::None;
        const int split = header->rect.right() - (sorted ? sort_arrow : 2);
        return element == SE_HeaderLabel
                   ? header->rect.adjusted(2, 0, split - header->rect.right(), 0)
                   : QRect(split, header->rect.top(), sort_arrow, header->rect.height());
    }
    if (element == SE_ProgressBarGroove || element == SE_ProgressBarContents) {
        return option->rect;
    }
    return QProxyStyle::subElementRect(element, option, widget);
}

QIcon Style::standardIcon(StandardPixmap icon, const QStyleOption* option, const QWidget* widget) const {
    if (icon != SP_TitleBarCloseButton && icon != SP_DockWidgetCloseButton &&
        icon != SP_TitleBarNormalButton && icon != SP_LineEditClearButton) {
        return QProxyStyle::standardIcon(icon, option, widget);
    }
    QIcon made;
    for (const int scale : {1, 2, 3}) {
        QPixmap pixmap(12 * scale, 12 * scale);
        pixmap.setDevicePixelRatio(scale);
        pixmap.fill(Qt::transparent);
        QPainter painter(&pixmap);
        painter.setRenderHint(QPainter::Antialiasing);
        // A middle grey: the icon is made once and serves light and dark.
        painter.setPen(QPen(QColor(0x8a8f96), 1.2, Qt::SolidLine, Qt::RoundCap));
        if (icon == SP_TitleBarNormalButton) {
            painter.drawRoundedRect(QRectF(2.5, 4.5, 5, 5), 1, 1);
            painter.drawLine(QPointF(5, 2.5), QPointF(9.5, 2.5));
            painter.drawLine(QPointF(9.5, 2.5), QPointF(9.5, 7));
        } else {
            painter.drawLine(QPointF(3, 3), QPointF(9, 9));
            painter.drawLine(QPointF(9, 3), QPointF(3, 9));
        }
        painter.end();
        made.addPixmap(pixmap);
    }
    return made;
}

void Style::drawPrimitive(PrimitiveElement element, const QStyleOption* option, QPainter* painter,
                          const QWidget* widget) const {
    const Palette& c = theme_.colours();
    switch (element) {
    case PE_PanelLineEdit:
        if (const auto* frame = qstyleoption_cast<const QStyleOptionFrame*>(option);
            frame != nullptr && frame->lineWidth > 0) {
            drawField(painter, option, false);
        }
        return;
    case PE_FrameLineEdit:
        return; // the panel has it
    case PE_Frame:
        painter->save();
        painter->setRenderHint(QPainter::Antialiasing);
        painter->setPen(QPen(is(option, State_HasFocus) ? c.a : c.border, 1));
        painter->setBrush(Qt::NoBrush);
        painter->drawRoundedRect(QRectF(option->rect).adjusted(0.5, 0.5, -0.5, -0.5), corner, corner);
        painter->restore();
        return;
    case PE_IndicatorCheckBox: {
        const QRectF box = QRectF(option->rect).adjusted(1, 1, -1, -1);
        const bool on = is(option, State_On);
        painter->save();
        painter->setRenderHint(QPainter::Antialiasing);
        painter->setPen(QPen(on || is(option, State_HasFocus) ? c.a : c.border, 1));
        painter->setBrush(on ? c.a : is(option, State_MouseOver) ? c.hover : c.panel);
        painter->drawRoundedRect(box, 3, 3);
        if (on) {
            painter->setPen(QPen(c.onA, 1.8, Qt::SolidLine, Qt::RoundCap, Qt::RoundJoin));
            QPainterPath tick(box.topLeft() + QPointF(3.2, 7.2));
            tick.lineTo(box.topLeft() + QPointF(6, 10));
            tick.lineTo(box.topLeft() + QPointF(10.8, 4.2));
            painter->setBrush(Qt::NoBrush);
            painter->drawPath(tick);
        }
        painter->restore();
        return;
    }
    case PE_IndicatorRadioButton: {
        painter->save();
        painter->setRenderHint(QPainter::Antialiasing);
        const QRectF box = QRectF(option->rect).adjusted(1, 1, -1, -1);
        const bool on = is(option, State_On);
        painter->setPen(QPen(on || is(option, State_HasFocus) ? c.a : c.border, 1));
        painter->setBrush(is(option, State_MouseOver) ? c.hover : c.panel);
        painter->drawEllipse(box);
        if (on) {
            painter->setPen(Qt::NoPen);
            painter->setBrush(c.a);
            painter->drawEllipse(box.adjusted(3.5, 3.5, -3.5, -3.5));
        }
        painter->restore();
        return;
    }
    case PE_FrameFocusRect:
        if (is(option, State_KeyboardFocusChange)) {
            painter->save();
            painter->setRenderHint(QPainter::Antialiasing);
            painter->setPen(QPen(c.a, 1));
            painter->setBrush(Qt::NoBrush);
            painter->drawRoundedRect(QRectF(option->rect).adjusted(0.5, 0.5, -0.5, -0.5), 3, 3);
            painter->restore();
        }
        return;
    case PE_IndicatorDockWidgetResizeHandle: {
        const bool upright = is(option, State_Horizontal); // of the line between docks side by side
        painter->fillRect(option->rect, c.panel);
        painter->fillRect(
            upright ? QRect(option->rect.left(), option->rect.center().y(), option->rect.width(), 1)
                    : QRect(option->rect.center().x(), option->rect.top(), 1, option->rect.height()),
            c.line);
        return;
    }
    case PE_PanelStatusBar:
        painter->fillRect(option->rect, c.panel);
        painter->fillRect(QRect(option->rect.left(), option->rect.top(), option->rect.width(), 1), c.line);
        return;
    case PE_FrameDockWidget:
        painter->save();
        painter->setPen(c.border);
        painter->setBrush(Qt::NoBrush);
        painter->drawRect(option->rect.adjusted(0, 0, -1, -1));
        painter->restore();
        return;
    case PE_FrameStatusBarItem:
    case PE_PanelMenuBar:
        return;
    case PE_FrameTabBarBase:
        painter->fillRect(QRect(option->rect.left(), option->rect.bottom(), option->rect.width(), 1), c.line);
        return;
    case PE_FrameTabWidget:
        return;
    case PE_PanelTipLabel:
    case PE_FrameMenu:
        painter->save();
        painter->setPen(c.border);
        painter->setBrush(element == PE_PanelTipLabel ? QBrush(c.panel) : QBrush(Qt::NoBrush));
        painter->drawRect(option->rect.adjusted(0, 0, -1, -1));
        painter->restore();
        return;
    case PE_IndicatorHeaderArrow:
        if (const auto* header = qstyleoption_cast<const QStyleOptionHeader*>(option)) {
            drawChevron(painter, header->rect, true,
                        header->sortIndicator == QStyleOptionHeader::SortDown); // ascending
        }
        return;
    case PE_PanelButtonTool:
        if (is(option, State_MouseOver) || is(option, State_Sunken) || is(option, State_On)) {
            painter->save();
            painter->setRenderHint(QPainter::Antialiasing);
            painter->setPen(Qt::NoPen);
            painter->setBrush(is(option, State_On) || is(option, State_Sunken) ? c.selected : c.hover);
            painter->drawRoundedRect(option->rect, corner, corner);
            painter->restore();
        }
        return;
    default:
        QProxyStyle::drawPrimitive(element, option, painter, widget);
    }
}

void Style::drawFocus(const QStyleOption* option, QPainter* painter, const QRect& box) const {
    if (is(option, State_HasFocus)) {
        QStyleOption ring(*option);
        ring.rect = box;
        drawPrimitive(PE_FrameFocusRect, &ring, painter, nullptr);
    }
}

void Style::drawTab(const QStyleOption* option, QPainter* painter) const {
    const auto* tab = qstyleoption_cast<const QStyleOptionTab*>(option);
    if (tab == nullptr) {
        return;
    }
    const Palette& c = theme_.colours();
    const bool chosen = is(option, State_Selected);
    painter->save();
    painter->setFont(chosen ? theme_.strong() : theme_.body());
    painter->setPen(chosen ? c.a : is(option, State_MouseOver) ? c.text : c.soft);
    painter->drawText(tab->rect.adjusted(0, 0, 0, -2), Qt::AlignCenter | Qt::TextHideMnemonic, tab->text);
    if (chosen) {
        const int wide = QFontMetrics(theme_.strong()).horizontalAdvance(tab->text);
        painter->fillRect(QRect(tab->rect.center().x() - wide / 2, tab->rect.bottom() - 2, wide, 2), c.a);
    }
    painter->restore();
    drawFocus(option, painter, tab->rect.adjusted(3, 3, -3, -5));
}

void Style::drawControl(ControlElement element, const QStyleOption* option, QPainter* painter,
                        const QWidget* widget) const {
    const Palette& c = theme_.colours();
    switch (element) {
    case CE_PushButtonBevel: {
        const auto* button = qstyleoption_cast<const QStyleOptionButton*>(option);
        const bool main = button != nullptr && (button->features & QStyleOptionButton::DefaultButton) != 0 &&
                          is(option, State_Enabled);
        const bool pressed = is(option, State_Sunken);
        painter->save();
        painter->setRenderHint(QPainter::Antialiasing);
        const QColor fill = main ? c.a : c.panel;
        painter->setPen(QPen(main ? c.a : is(option, State_HasFocus) ? c.a : c.border, 1));
        painter->setBrush(blended(fill, c.text, pressed ? 0.14 : is(option, State_MouseOver) ? 0.05 : 0));
        painter->drawRoundedRect(QRectF(option->rect).adjusted(0.5, 0.5, -0.5, -0.5), corner, corner);
        painter->restore();
        return;
    }
    case CE_PushButtonLabel:
        if (const auto* button = qstyleoption_cast<const QStyleOptionButton*>(option)) {
            QStyleOptionButton label(*button);
            if ((label.features & QStyleOptionButton::DefaultButton) != 0 && is(option, State_Enabled)) {
                label.palette.setColor(QPalette::ButtonText, c.onA);
            }
            QProxyStyle::drawControl(element, &label, painter, widget);
        }
        return;
    case CE_TabBarTabShape:
        return;
    case CE_TabBarTabLabel:
        drawTab(option, painter);
        return;
    case CE_DockWidgetTitle:
        if (const auto* dock = qstyleoption_cast<const QStyleOptionDockWidget*>(option)) {
            painter->save();
            painter->setFont(theme_.caps());
            painter->setPen(c.soft);
            painter->drawText(dock->rect.adjusted(14, 0, -40, 0), Qt::AlignVCenter | Qt::AlignLeft,
                              dock->title.toUpper());
            painter->restore();
        }
        return;
    case CE_HeaderSection:
    case CE_HeaderEmptyArea:
        painter->fillRect(option->rect, c.panel);
        painter->fillRect(QRect(option->rect.left(), option->rect.bottom(), option->rect.width(), 1), c.line);
        return;
    case CE_HeaderLabel:
        if (const auto* header = qstyleoption_cast<const QStyleOptionHeader*>(option)) {
            painter->save();
            painter->setFont(theme_.small());
            painter->setPen(c.soft);
            painter->drawText(header->rect.adjusted(2, 0, -2, 0),
                              static_cast<int>(header->textAlignment | Qt::AlignVCenter),
                              QFontMetrics(theme_.small())
                                  .elidedText(header->text, Qt::ElideRight, header->rect.width() - 4));
            painter->restore();
        }
        return;
    case CE_Splitter: {
        const bool sideBySide = is(option, State_Horizontal);
        painter->fillRect(
            sideBySide ? QRect(option->rect.center().x(), option->rect.top(), 1, option->rect.height())
                       : QRect(option->rect.left(), option->rect.center().y(), option->rect.width(), 1),
            c.line);
        return;
    }
    case CE_ProgressBarGroove:
    case CE_ProgressBarContents:
        if (const auto* bar = qstyleoption_cast<const QStyleOptionProgressBar*>(option)) {
            painter->save();
            painter->setRenderHint(QPainter::Antialiasing);
            painter->setPen(Qt::NoPen);
            QRectF box(bar->rect);
            box = QRectF(box.left(), box.center().y() - 3, box.width(), 6);
            if (element == CE_ProgressBarGroove) {
                painter->setBrush(blended(c.panel, c.text, 0.14));
                painter->drawRoundedRect(box, 3, 3);
            } else {
                painter->setBrush(c.a);
                const double span = static_cast<double>(bar->maximum) - bar->minimum;
                if (span > 0) {
                    box.setWidth(box.width() * std::clamp((bar->progress - bar->minimum) / span, 0.0, 1.0));
                    painter->drawRoundedRect(box, 3, 3);
                } else {
                    // Unknown length: a piece in the middle says only that something goes on.
                    painter->drawRoundedRect(box.adjusted(box.width() * 0.3, 0, -box.width() * 0.3, 0), 3, 3);
                }
            }
            painter->restore();
        }
        return;
    case CE_ProgressBarLabel:
        return;
    case CE_MenuBarEmptyArea:
        return;
    case CE_MenuBarItem:
        if (const auto* item = qstyleoption_cast<const QStyleOptionMenuItem*>(option)) {
            painter->save();
            painter->setRenderHint(QPainter::Antialiasing);
            if (is(option, State_Selected)) {
                painter->setPen(Qt::NoPen);
                painter->setBrush(is(option, State_Sunken) ? c.selected : c.hover);
                painter->drawRoundedRect(item->rect, corner, corner);
            }
            painter->setPen(is(option, State_Enabled) ? c.text : c.soft);
            painter->drawText(item->rect, Qt::AlignCenter | Qt::TextHideMnemonic, item->text);
            painter->restore();
        }
        return;
    case CE_ComboBoxLabel:
        if (const auto* combo = qstyleoption_cast<const QStyleOptionComboBox*>(option);
            combo != nullptr && !combo->editable) {
            const QRect field = subControlRect(CC_ComboBox, combo, SC_ComboBoxEditField, widget);
            painter->save();
            int left = field.left();
            if (!combo->currentIcon.isNull()) {
                combo->currentIcon.paint(painter,
                                         QRect(left, field.top(), combo->iconSize.width(), field.height()));
                left += combo->iconSize.width() + 8;
            }
            painter->setPen(is(option, State_Enabled) ? c.text : c.soft);
            const int room = field.right() - left;
            painter->drawText(QRect(left, field.top(), room, field.height()),
                              Qt::AlignVCenter | Qt::AlignLeft,
                              combo->fontMetrics.elidedText(combo->currentText, Qt::ElideMiddle, room));
            painter->restore();
        }
        return;
    default:
        QProxyStyle::drawControl(element, option, painter, widget);
    }
}

} // namespace ponderscope
