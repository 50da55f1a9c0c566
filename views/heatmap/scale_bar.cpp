// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/heatmap/scale_bar.h"

#include <QPainter>

namespace ponderscope {

ScaleBar::ScaleBar(Theme& theme, QWidget* parent) : QWidget(parent), theme_(theme) {
    setSizePolicy(QSizePolicy::Fixed, QSizePolicy::Fixed);
    connect(&theme_, &Theme::changed, this, qOverload<>(&QWidget::update));
}

void ScaleBar::setLook(const ValueLook& look, const QString& unit, bool halted) {
    look_ = look;
    unit_ = unit;
    halted_ = halted;
    empty_ = false;
    setAccessibleName(
        tr("Scale from %1 to %2 %3").arg(look.end(look.scale.low), look.end(look.scale.high), unit));
    updateGeometry();
    update();
}

void ScaleBar::clear() {
    empty_ = true;
    updateGeometry();
    update();
}

QSize ScaleBar::sizeHint() const {
    if (empty_) {
        return {0, 20};
    }
    const QFontMetrics metrics(theme_.small());
    int width = metrics.horizontalAdvance(look_.end(look_.scale.low)) + 6 + 96 + 6 +
                metrics.horizontalAdvance(look_.end(look_.scale.high) + u' ' + unit_);
    if (halted_) {
        width += 14 + 12 + 6 + metrics.horizontalAdvance(tr("halted"));
    }
    return {width + 4, 20};
}

void ScaleBar::paintEvent(QPaintEvent*) {
    if (empty_) {
        return;
    }
    QPainter painter(this);
    painter.setFont(theme_.small());
    painter.setPen(theme_.colours().soft);
    const QFontMetrics metrics(theme_.small());
    int x = 0;
    const auto write = [&](const QString& text) {
        const int wide = metrics.horizontalAdvance(text);
        painter.drawText(QRect(x, 0, wide + 2, height()), Qt::AlignLeft | Qt::AlignVCenter, text);
        x += wide + 6;
    };
    write(look_.end(look_.scale.low));
    const QRect bar(x, height() / 2 - 5, 96, 10);
    for (int i = 0; i < bar.width(); ++i) {
        painter.fillRect(bar.left() + i, bar.top(), 1, bar.height(),
                         QColor((look_.diverging ? theme_.differenceMap() : theme_.magnitudeMap())
                                    .at((i + 0.5) / bar.width())));
    }
    x += bar.width() + 6;
    write(unit_.isEmpty() || unit_ == u"probability" ? look_.end(look_.scale.high)
                                                     : look_.end(look_.scale.high) + u' ' + unit_);
    if (halted_) {
        x += 8;
        painter.fillRect(QRect(x, height() / 2 - 5, 12, 10), theme_.colours().halted);
        x += 18;
        write(tr("halted"));
    }
}

} // namespace ponderscope
