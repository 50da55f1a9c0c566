// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/message_bar.h"

#include "views/common/theme.h"

#include <QAccessible>
#include <QHBoxLayout>
#include <QLabel>
#include <QPainter>
#include <QToolButton>

namespace ponderscope {

namespace {

constexpr qsizetype most_sentences = 3;

} // namespace

MessageBar::MessageBar(Theme& theme, QWidget* parent)
    : QWidget(parent), theme_(theme), label_(new QLabel(this)) {
    label_->setWordWrap(true);
    label_->setTextFormat(Qt::PlainText); // file names are no markup
    label_->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
    auto* close = new QToolButton(this);
    close->setText(QStringLiteral("×"));
    close->setToolTip(tr("Close"));
    close->setAccessibleName(tr("Close the message"));
    close->setAutoRaise(true);
    auto* row = new QHBoxLayout(this);
    row->setContentsMargins(16, 6, 8, 6);
    row->addWidget(label_, 1);
    row->addWidget(close, 0, Qt::AlignTop);
    connect(close, &QToolButton::clicked, this, &MessageBar::clear);
    connect(&theme, &Theme::changed, this, &MessageBar::restyle);
    restyle();
    hide();
}

void MessageBar::show(const QString& sentence, Kind kind) {
    if (sentence.isEmpty()) {
        return;
    }
    if (kind != kind_ && !sentences_.isEmpty() && kind_ == Kind::notice) {
        sentences_.clear(); // an error does not hide among notices
    }
    if (!sentences_.contains(sentence)) {
        sentences_.append(sentence);
    }
    while (sentences_.size() > most_sentences) {
        sentences_.removeFirst();
    }
    kind_ = kind;
    spell();
    restyle();
    QWidget::show();
    QAccessibleEvent alert(label_, QAccessible::Alert);
    QAccessible::updateAccessibility(&alert);
}

void MessageBar::spell() {
    label_->setText(sentences_.join(u'\n'));
    label_->setAccessibleName(label_->text());
}

void MessageBar::retract(const QString& sentence) {
    if (sentences_.removeAll(sentence) > 0) {
        spell();
        setVisible(!sentences_.isEmpty());
    }
}

void MessageBar::clear() {
    sentences_.clear();
    hide();
}

void MessageBar::restyle() {
    QPalette palette = label_->palette();
    palette.setColor(QPalette::WindowText,
                     kind_ == Kind::error ? theme_.colours().errorText : theme_.colours().warningText);
    label_->setPalette(palette);
    update();
}

void MessageBar::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    painter.fillRect(rect(),
                     kind_ == Kind::error ? theme_.colours().errorPanel : theme_.colours().warningPanel);
    painter.fillRect(0, height() - 1, width(), 1, theme_.colours().line);
}

} // namespace ponderscope
