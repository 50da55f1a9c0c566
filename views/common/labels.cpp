// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/labels.h"

#include "views/common/format.h"
#include "views/common/theme.h"

#include <QPainter>

using namespace Qt::StringLiterals;

namespace ponderscope {

PanelHeader::PanelHeader(const QString& title, Kind kind, Theme& theme, QWidget* parent)
    : QWidget(parent), title_(title), kind_(kind), theme_(theme) {
    setAccessibleName(title);
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
    connect(&theme, &Theme::changed, this, qOverload<>(&QWidget::update));
}

void PanelHeader::setRemark(const QString& remark) {
    if (remark != remark_) {
        remark_ = remark;
        setAccessibleDescription(remark);
        update();
    }
}

QSize PanelHeader::sizeHint() const {
    return {160, kind_ == Kind::section ? 20 : 24};
}

QSize PanelHeader::minimumSizeHint() const {
    return {40, sizeHint().height()};
}

void PanelHeader::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    const QFont font = kind_ == Kind::section ? theme_.caps() : theme_.strong();
    const QString shown = kind_ == Kind::section ? title_.toUpper() : title_;
    const QFontMetrics metrics(font);
    const QString title = metrics.elidedText(shown, Qt::ElideRight, width());
    painter.setFont(font);
    painter.setPen(kind_ == Kind::section ? theme_.colours().soft : theme_.colours().text);
    painter.drawText(rect(), Qt::AlignLeft | Qt::AlignVCenter, title);
    if (!remark_.isEmpty()) {
        const QFontMetrics small(theme_.small());
        const int room = width() - metrics.horizontalAdvance(title) - 16;
        if (room > 24) {
            painter.setFont(theme_.small());
            painter.setPen(theme_.colours().soft);
            painter.drawText(rect(), Qt::AlignRight | Qt::AlignVCenter,
                             small.elidedText(remark_, Qt::ElideRight, room));
        }
    }
}

Readout::Readout(Theme& theme, QWidget* parent) : QLabel(parent) {
    setTextFormat(Qt::PlainText);
    setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
    setAlignment(Qt::AlignRight | Qt::AlignVCenter);
    setAccessibleName(u"Numbers"_s);
    const auto dress = [this, &theme] {
        QPalette colours = palette();
        colours.setColor(QPalette::WindowText, theme.colours().soft);
        setPalette(colours);
        setFont(theme.small());
        say(said_);
    };
    dress();
    connect(&theme, &Theme::changed, this, dress);
}

void Readout::say(const QString& text) {
    said_ = text;
    setText(fontMetrics().elidedText(text, Qt::ElideRight, width()));
    setToolTip(plain_tip(text));
}

void Readout::resizeEvent(QResizeEvent* event) {
    QLabel::resizeEvent(event);
    say(said_);
}

} // namespace ponderscope
