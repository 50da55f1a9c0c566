// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/tip.h"

#include <QApplication>
#include <QRect>
#include <QScreen>
#include <QTextDocument>
#include <QToolTip>
#include <QWidget>

#include <algorithm>

namespace ponderscope {

QString plain_tip(const QString& text) {
    return Qt::mightBeRichText(text) ? Qt::convertFromPlainText(text) : text;
}

void show_tip_above(QWidget& widget, const QRect& box, const QString& text) {
    const QRect place(widget.mapToGlobal(box.topLeft()), box.size());
    QToolTip::showText(place.bottomLeft(), plain_tip(text), &widget, box);
    for (QWidget* tip : QApplication::topLevelWidgets()) {
        if (tip->inherits("QTipLabel") && tip->isVisible()) {
            constexpr int gap = 4;
            const QRect screen = widget.screen()->availableGeometry();
            const int above = place.top() - gap - tip->height();
            tip->move(std::clamp(place.left(), screen.left(),
                                 std::max(screen.left(), screen.right() - tip->width())),
                      above >= screen.top() ? above : place.bottom() + gap);
        }
    }
}

} // namespace ponderscope
