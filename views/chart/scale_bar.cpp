// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/chart/scale_bar.h"

#include <QPainter>

#include <algorithm>

using namespace Qt::StringLiterals;

namespace ponderscope {
namespace {

constexpr int bar_width = 96;
constexpr int least_bar_width = 32;
constexpr int bar_gap = 6;
constexpr int grey_width = 12;

} // namespace

ScaleBar::ScaleBar(Theme& theme, QWidget* parent) : QWidget(parent), theme_(theme) {
    setSizePolicy(QSizePolicy::Fixed, QSizePolicy::Fixed);
    connect(&theme_, &Theme::changed, this, qOverload<>(&QWidget::update));
}

void ScaleBar::setScale(const QString& name, const QString& low, const QString& high, bool diverging,
                        bool halted) {
    name_ = name;
    low_ = low;
    high_ = high;
    diverging_ = diverging;
    halted_ = halted;
    empty_ = false;
    setAccessibleName(u"Scale %1 from %2 to %3"_s.arg(name, low, high));
    updateGeometry();
    update();
}

void ScaleBar::setLook(const ValueLook& look, const QString& unit, bool halted) {
    const QString high = look.end(look.scale.high);
    setScale({}, look.end(look.scale.low),
             unit.isEmpty() || unit == u"probability" ? high : high + u' ' + unit, look.diverging, halted);
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
    int width = bar_width + bar_gap + 4;
    for (const QString& text : {name_, low_, high_, halted_ ? u"halted"_s : QString()}) {
        width += text.isEmpty() ? 0 : metrics.horizontalAdvance(text) + bar_gap;
    }
    return {width + (halted_ ? grey_width + 2 * bar_gap : 0), 20};
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
        if (!text.isEmpty()) {
            const int wide = metrics.horizontalAdvance(text);
            painter.drawText(QRect(x, 0, wide + 2, height()), Qt::AlignLeft | Qt::AlignVCenter, text);
            x += wide + bar_gap;
        }
    };
    // In a narrow place, first shorten the bar, then the name.
    const int lack = std::max(0, sizeHint().width() - width());
    const int taken = std::min(lack, bar_width - least_bar_width);
    const int room = metrics.horizontalAdvance(name_) + taken - lack;
    write(metrics.elidedText(name_, Qt::ElideRight, std::max(0, room)));
    write(low_);
    const QRect bar(x, height() / 2 - 5, bar_width - taken, 10);
    const ColourMap& map = diverging_ ? theme_.differenceMap() : theme_.magnitudeMap();
    for (int i = 0; i < bar.width(); ++i) {
        painter.fillRect(bar.left() + i, bar.top(), 1, bar.height(), QColor(map.at((i + 0.5) / bar.width())));
    }
    x += bar.width() + bar_gap;
    write(high_);
    if (halted_) {
        x += bar_gap;
        painter.fillRect(QRect(x, height() / 2 - 5, grey_width, 10), theme_.colours().halted);
        x += grey_width + bar_gap;
        write(u"halted"_s);
    }
}

} // namespace ponderscope
