// SPDX-License-Identifier: GPL-3.0-or-later
// What has parts of its own: lists that drop down, scroll bars, boxes with arrows, buttons with a menu.
#include "views/common/style.h"

#include "views/common/style_parts.h"
#include "views/common/theme.h"

#include <QAbstractSpinBox>
#include <QPainter>
#include <QPainterPath>
#include <QStyleOption>

#include <algorithm>
#include <tuple>

namespace ponderscope {

using style_parts::blended;
using style_parts::corner;
using style_parts::is;

namespace {

constexpr int spin_buttons = 20; ///< the width of the arrows of a box of numbers

} // namespace

QRect Style::subControlRect(ComplexControl control, const QStyleOptionComplex* option, SubControl part,
                            const QWidget* widget) const {
    if (control == CC_ComboBox) {
        switch (part) {
        case SC_ComboBoxEditField: {
            // A line edit inside brings a margin of its own.
            const auto* combo = qstyleoption_cast<const QStyleOptionComboBox*>(option);
            return option->rect.adjusted(combo != nullptr && combo->editable ? 2 : 9, 1, -24, -1);
        }
        case SC_ComboBoxArrow:
            return {option->rect.right() - 23, option->rect.top(), 22, option->rect.height()};
        case SC_ComboBoxFrame:
            return option->rect;
        default:
            break;
        }
    }
    if (control == CC_ScrollBar) {
        const auto* bar = qstyleoption_cast<const QStyleOptionSlider*>(option);
        if (bar != nullptr) {
            // No arrow buttons: the whole length is the groove.
            const bool upright = bar->orientation == Qt::Vertical;
            const int length = upright ? bar->rect.height() : bar->rect.width();
            const qint64 range = static_cast<qint64>(bar->maximum) - bar->minimum;
            int slider = length;
            if (range > 0) {
                slider =
                    static_cast<int>(static_cast<qint64>(bar->pageStep) * length / (range + bar->pageStep));
                slider = std::clamp(
                    slider, std::min(pixelMetric(PM_ScrollBarSliderMin, option, widget), length), length);
            }
            const int start = sliderPositionFromValue(bar->minimum, bar->maximum, bar->sliderPosition,
                                                      length - slider, bar->upsideDown);
            const auto along = [&](int from, int size) {
                return upright ? QRect(bar->rect.left(), bar->rect.top() + from, bar->rect.width(), size)
                               : QRect(bar->rect.left() + from, bar->rect.top(), size, bar->rect.height());
            };
            switch (part) {
            case SC_ScrollBarSlider:
                return along(start, slider);
            case SC_ScrollBarGroove:
                return bar->rect;
            case SC_ScrollBarSubPage:
                return along(0, start);
            case SC_ScrollBarAddPage:
                return along(start + slider, length - start - slider);
            default:
                return {};
            }
        }
    }
    if (control == CC_SpinBox) {
        const auto* spin = qstyleoption_cast<const QStyleOptionSpinBox*>(option);
        if (spin != nullptr) {
            const bool bare = spin->buttonSymbols == QAbstractSpinBox::NoButtons;
            const QRect box = option->rect.adjusted(1, 1, -1, -1);
            const int middle = box.top() + box.height() / 2;
            const int left = box.right() - spin_buttons + 1;
            switch (part) {
            case SC_SpinBoxEditField:
                return option->rect.adjusted(6, 1, bare ? -6 : -spin_buttons - 1, -1);
            case SC_SpinBoxUp:
                return bare ? QRect() : QRect(left, box.top(), spin_buttons, middle - box.top());
            case SC_SpinBoxDown:
                return bare ? QRect() : QRect(left, middle, spin_buttons, box.bottom() - middle + 1);
            case SC_SpinBoxFrame:
                return option->rect;
            default:
                break;
            }
        }
    }
    return QProxyStyle::subControlRect(control, option, part, widget);
}

void Style::drawField(QPainter* painter, const QStyleOption* option, bool panelColour) const {
    const Palette& c = theme_.colours();
    const bool focused = is(option, State_HasFocus) && is(option, State_Enabled);
    painter->save();
    painter->setRenderHint(QPainter::Antialiasing);
    painter->setPen(QPen(focused ? c.a : c.border, 1));
    QColor fill = panelColour ? c.panel : c.field;
    if (panelColour && is(option, State_MouseOver) && is(option, State_Enabled)) {
        fill = c.hover;
    }
    painter->setBrush(fill);
    painter->drawRoundedRect(QRectF(option->rect).adjusted(0.5, 0.5, -0.5, -0.5), corner, corner);
    painter->restore();
}

void Style::drawChevron(QPainter* painter, const QRectF& box, bool enabled, bool up) const {
    painter->save();
    painter->setRenderHint(QPainter::Antialiasing);
    painter->setPen(QPen(enabled ? theme_.colours().soft : theme_.colours().faint, 1.4, Qt::SolidLine,
                         Qt::RoundCap, Qt::RoundJoin));
    const QPointF middle = box.center();
    const qreal down = up ? -1 : 1;
    QPainterPath path(middle + QPointF(-3.5, -1.5 * down));
    path.lineTo(middle + QPointF(0, 2 * down));
    path.lineTo(middle + QPointF(3.5, -1.5 * down));
    painter->drawPath(path);
    painter->restore();
}

void Style::drawScrollBar(const QStyleOptionComplex* option, QPainter* painter, const QWidget* widget) const {
    const Palette& c = theme_.colours();
    const auto* bar = qstyleoption_cast<const QStyleOptionSlider*>(option);
    painter->save();
    painter->fillRect(option->rect, c.panel);
    if (bar != nullptr && bar->maximum > bar->minimum) {
        painter->setRenderHint(QPainter::Antialiasing);
        painter->setPen(Qt::NoPen);
        const bool busy = is(option, State_MouseOver) || is(option, State_Sunken);
        painter->setBrush(blended(c.panel, c.text, busy ? 0.32 : 0.18));
        const QRectF thumb(subControlRect(CC_ScrollBar, option, SC_ScrollBarSlider, widget));
        const QRectF slim =
            bar->orientation == Qt::Vertical ? thumb.adjusted(3, 2, -3, -2) : thumb.adjusted(2, 3, -2, -3);
        painter->drawRoundedRect(slim, 2.5, 2.5);
    }
    painter->restore();
}

void Style::drawComplexControl(ComplexControl control, const QStyleOptionComplex* option, QPainter* painter,
                               const QWidget* widget) const {
    switch (control) {
    case CC_ComboBox:
        drawField(painter, option, true);
        drawChevron(painter, subControlRect(CC_ComboBox, option, SC_ComboBoxArrow, widget),
                    is(option, State_Enabled), false);
        return;
    case CC_ScrollBar:
        drawScrollBar(option, painter, widget);
        return;
    case CC_SpinBox:
        if (const auto* spin = qstyleoption_cast<const QStyleOptionSpinBox*>(option)) {
            drawField(painter, option, false);
            for (const auto& [part, step, up] :
                 {std::tuple(SC_SpinBoxUp, QAbstractSpinBox::StepUpEnabled, true),
                  std::tuple(SC_SpinBoxDown, QAbstractSpinBox::StepDownEnabled, false)}) {
                const QRectF box(subControlRect(CC_SpinBox, option, part, widget));
                if (box.isEmpty()) {
                    continue;
                }
                const bool can = is(option, State_Enabled) && (spin->stepEnabled & step) != 0;
                if (can && (option->activeSubControls & part) != 0) {
                    painter->fillRect(box.adjusted(0, up ? 1 : 0, -1, up ? 0 : -1), theme_.colours().hover);
                }
                drawChevron(painter, box.translated(0, up ? 1.5 : -1.5), can, up);
            }
            return;
        }
        break;
    case CC_ToolButton:
        if (const auto* button = qstyleoption_cast<const QStyleOptionToolButton*>(option);
            button != nullptr && (button->features & QStyleOptionToolButton::HasMenu) != 0) {
            // One arrow, beside the text and as high as that.
            drawPrimitive(PE_PanelButtonTool, option, painter, widget);
            QStyleOptionToolButton label(*button);
            label.features &= ~(QStyleOptionToolButton::HasMenu | QStyleOptionToolButton::Arrow);
            label.arrowType = Qt::NoArrow;
            const bool bare = button->text.isEmpty() && button->icon.isNull();
            const QRect arrow =
                bare ? button->rect
                     : QRect(button->rect.right() - 15, button->rect.top(), 14, button->rect.height());
            if (!bare) {
                label.rect.setRight(arrow.left());
                drawControl(CE_ToolButtonLabel, &label, painter, widget);
            }
            drawChevron(painter, arrow, is(option, State_Enabled), false);
            drawFocus(option, painter, button->rect.adjusted(1, 1, -1, -1));
            return;
        }
        break;
    default:
        break;
    }
    QProxyStyle::drawComplexControl(control, option, painter, widget);
}

} // namespace ponderscope
