// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/text/legend.h"

#include "views/common/format.h"
#include "views/common/theme.h"

#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>

#include <algorithm>
#include <cmath>

using namespace Qt::StringLiterals;

namespace ponderscope {

namespace {

constexpr int bar_width = 130;
constexpr int bar_height = 11;

} // namespace

Legend::Legend(Theme& theme, QWidget* parent) : QWidget(parent), theme_(theme) {
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
    setAccessibleName(u"Colour scale"_s);
    setFocusPolicy(Qt::TabFocus);
    connect(&theme, &Theme::changed, this, qOverload<>(&QWidget::update));
}

QFont Legend::letters() const {
    QFont font = theme_.small();
    if (pixels_ > 0) {
        font.setPointSizeF(pixels_ * 0.75);
    }
    return font;
}

void Legend::setLetters(int pixels) {
    pixels_ = pixels;
    updateGeometry();
    update();
}

QSize Legend::sizeHint() const {
    return {pixels_ > 0 ? 4 * 420 : 420, minimumSizeHint().height()};
}

QSize Legend::minimumSizeHint() const {
    return {118, bar_height + QFontMetrics(letters()).height() + 10};
}

void Legend::show(const TokenValues& values) {
    look_ = values;
    whole_ = values.kind.number == NumberKind::count && !values.diverging;
    unit_ = values.unit();
    classes_ = values.classes;
    meaning_ = values.meaning();
    setToolTip(
        plain_tip(!classes_.isEmpty() || !values.replay.isEmpty()
                      ? meaning_
                      : meaning_ + (look_.held ? u". The scale is fixed. Click or press Space to change "
                                                 "the ends."_s
                                               : u". Click or press Space to set the ends of the scale."_s)));
    setCursor(!classes_.isEmpty() || !values.replay.isEmpty() ? Qt::ArrowCursor : Qt::PointingHandCursor);
    setAccessibleDescription(meaning_);
    update();
}

void Legend::mousePressEvent(QMouseEvent* event) {
    if (event->button() == Qt::LeftButton && cursor().shape() == Qt::PointingHandCursor) {
        Q_EMIT rangeWanted();
    }
}

void Legend::keyPressEvent(QKeyEvent* event) {
    if (event->key() == Qt::Key_Space && cursor().shape() == Qt::PointingHandCursor) {
        Q_EMIT rangeWanted();
    } else {
        QWidget::keyPressEvent(event);
    }
}

void Legend::paintClasses(QPainter& painter) const {
    painter.setFont(letters());
    const QFontMetrics metrics(letters());
    constexpr int swatch = 12;
    int x = 8;
    for (qsizetype i = 0; i < classes_.size(); ++i) {
        const QString name = metrics.elidedText(classes_[i], Qt::ElideRight, 120);
        const int wide = swatch + 4 + metrics.horizontalAdvance(name) + 10;
        const bool last = i + 1 == classes_.size();
        if (x + wide > width() - (last ? 0 : metrics.horizontalAdvance(u'…') + 4)) {
            painter.setPen(theme_.colours().soft);
            painter.drawText(QRect(x, 0, width() - x, height()), Qt::AlignLeft | Qt::AlignVCenter,
                             u"…"_s); // the tooltip has all classes
            return;
        }
        const QRect box(x, (height() - swatch) / 2, swatch, swatch);
        painter.fillRect(box, QColor(theme_.classMap().table()[static_cast<std::size_t>(i)]));
        painter.setPen(theme_.colours().border);
        painter.drawRect(box.adjusted(0, 0, -1, -1));
        painter.setPen(theme_.colours().soft);
        painter.drawText(QRect(x + swatch + 4, 0, wide, height()), Qt::AlignLeft | Qt::AlignVCenter, name);
        x += wide;
    }
}

void Legend::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    if (!classes_.isEmpty()) {
        paintClasses(painter);
        return;
    }
    const Palette& colours = theme_.colours();
    const ColourMap& map = map_of(look_, theme_);
    const ColourScale& scale = look_.scale;
    const QFontMetrics metrics(letters());
    const int top = (height() - bar_height - metrics.height()) / 2;
    const QRect bar(8, top, std::clamp(width() - 60, 60, pixels_ > 0 ? 2 * bar_width : bar_width),
                    bar_height);
    for (int x = 0; x < bar.width(); ++x) {
        painter.fillRect(bar.left() + x, bar.top(), 1, bar.height(), QColor(map.at(x / (bar.width() - 1.0))));
    }
    painter.setPen(hasFocus() ? colours.a : colours.border);
    painter.drawRect(bar.adjusted(0, 0, -1, -1));

    painter.setFont(letters());
    painter.setPen(colours.soft);
    const double middle =
        scale.logarithmic ? std::sqrt(scale.low * scale.high) : (scale.low + scale.high) / 2;
    QString unit = unit_;
    if (look_.held) {
        unit += unit.isEmpty() ? u"fixed"_s : u", fixed"_s;
    }
    const int base = bar.bottom() + 1;
    const auto label = [&](int x, const QString& text, Qt::Alignment side) {
        const int wide = metrics.horizontalAdvance(text) + 2;
        const int left = side == Qt::AlignLeft ? x : side == Qt::AlignRight ? x - wide : x - wide / 2;
        painter.drawText(QRect(left, base, wide, metrics.height()), Qt::AlignCenter, text);
    };
    label(bar.left(), look_.end(scale.low), Qt::AlignLeft);
    if (scale.logarithmic ? std::fmod(std::log10(scale.high / scale.low), 2) == 0
                          : !whole_ || std::fmod(scale.high, 2) == 0) {
        label(bar.center().x(), look_.end(middle), Qt::AlignHCenter);
    }
    label(bar.right() + 1, look_.end(scale.high), Qt::AlignRight);
    int used = bar.right() + 8;
    if (!unit.isEmpty()) {
        painter.drawText(QRect(used, 0, metrics.horizontalAdvance(unit) + 2, bar.bottom() + bar.top()),
                         Qt::AlignLeft | Qt::AlignVCenter, unit);
        used += metrics.horizontalAdvance(unit) + 10;
    }
    const int room = width() - used - 8;
    if (metrics.horizontalAdvance(meaning_) <= room) { // the tooltip also has the meaning
        painter.drawText(QRect(used + 4, 0, room, height()), Qt::AlignLeft | Qt::AlignVCenter, meaning_);
    }
}

} // namespace ponderscope
