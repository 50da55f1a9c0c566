// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/tour.h"

#include "views/common/theme.h"

#include <QAccessible>
#include <QEvent>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QLabel>
#include <QPainter>
#include <QPushButton>
#include <QRegion>
#include <QTimer>
#include <QVBoxLayout>

#include <algorithm>
#include <utility>

namespace ponderscope {

namespace {

constexpr int card_width = 340;
constexpr int gap = 14;

class TourCard : public QWidget {
public:
    TourCard(Theme& theme, QWidget* parent) : QWidget(parent), theme_(theme) {}

protected:
    void paintEvent(QPaintEvent*) override {
        QPainter painter(this);
        painter.setRenderHint(QPainter::Antialiasing);
        painter.setPen(QPen(theme_.colours().a, 1.5));
        painter.setBrush(theme_.colours().panel);
        painter.drawRoundedRect(QRectF(rect()).adjusted(1, 1, -1, -1), 8, 8);
    }

private:
    Theme& theme_;
};

} // namespace

Tour::Tour(std::vector<TourStop> stops, Theme& theme, QWidget* window)
    : QWidget(window),
      stops_(std::move(stops)),
      theme_(theme),
      card_(new TourCard(theme, window)),
      title_(new QLabel(card_)),
      text_(new QLabel(card_)),
      count_(new QLabel(card_)),
      back_(new QPushButton(tr("Back"), card_)),
      on_(new QPushButton(tr("Next"), card_)) {
    setObjectName(QStringLiteral("tour"));
    setAccessibleName(tr("Tour"));
    // The veil shows and does not catch: what is pointed at can be tried.
    setAttribute(Qt::WA_TransparentForMouseEvents);
    setFocusPolicy(Qt::NoFocus);
    text_->setWordWrap(true);
    title_->setFont(theme.strong());
    text_->setFont(theme.body());
    count_->setFont(theme.small());
    count_->setForegroundRole(QPalette::PlaceholderText);
    auto* end = new QPushButton(tr("End"), card_);
    auto* buttons = new QHBoxLayout;
    buttons->setSpacing(6);
    buttons->addWidget(count_);
    buttons->addStretch(1);
    buttons->addWidget(end);
    buttons->addWidget(back_);
    buttons->addWidget(on_);
    auto* column = new QVBoxLayout(card_);
    column->setContentsMargins(18, 16, 18, 14);
    column->setSpacing(8);
    column->addWidget(title_);
    column->addWidget(text_);
    column->addLayout(buttons);
    card_->setFixedWidth(card_width);
    card_->setAccessibleName(tr("Tour"));
    card_->installEventFilter(this);
    for (QPushButton* button : {end, back_, on_}) {
        button->installEventFilter(this);
    }
    connect(end, &QPushButton::clicked, this, &Tour::end);
    connect(back_, &QPushButton::clicked, this, &Tour::previous);
    connect(on_, &QPushButton::clicked, this, &Tour::next);
    window->installEventFilter(this);
    QWidget::show();
    card_->show();
    show(0);
}

void Tour::show(int stop) {
    stop_ = std::clamp(stop, 0, stops() - 1);
    const TourStop& now = stops_[static_cast<std::size_t>(stop_)];
    if (now.prepare) {
        now.prepare();
    }
    target_ = now.target ? now.target() : nullptr;
    title_->setText(now.title);
    text_->setText(now.text);
    count_->setText(tr("%1 of %2").arg(stop_ + 1).arg(stops()));
    back_->setEnabled(stop_ > 0);
    on_->setText(stop_ + 1 == stops() ? tr("Done") : tr("Next"));
    place();
    // What was raised is laid out in the next turn of the event loop.
    QTimer::singleShot(0, this, &Tour::place);
    on_->setFocus();
    card_->setAccessibleDescription(now.title + u' ' + now.text);
    QAccessibleEvent alert(card_, QAccessible::Alert);
    QAccessible::updateAccessibility(&alert);
}

void Tour::place() {
    QWidget* window = parentWidget();
    setGeometry(window->rect());
    raise();
    card_->raise();
    card_->setFixedHeight(card_->layout()->heightForWidth(card_width));
    const QSize size(card_width, card_->height());
    QPoint corner((width() - size.width()) / 2, (height() - size.height()) / 2);
    if (target_ != nullptr && target_->isVisible()) {
        // Beside it where there is most room.
        const QRect box(target_->mapTo(window, QPoint()), target_->size());
        const int left = box.left();
        const int right = width() - box.right();
        const int above = box.top();
        const int below = height() - box.bottom();
        if (std::max(left, right) > size.width() + 2 * gap) {
            corner = {right >= left ? box.right() + gap : box.left() - gap - size.width(), box.top() + 20};
        } else if (std::max(above, below) > size.height() + 2 * gap) {
            corner = {box.center().x() - size.width() / 2,
                      below >= above ? box.bottom() + gap : box.top() - gap - size.height()};
        } else {
            corner = box.bottomRight() - QPoint(size.width() + gap, size.height() + gap);
        }
    }
    corner.setX(std::clamp(corner.x(), gap, std::max(gap, width() - size.width() - gap)));
    corner.setY(std::clamp(corner.y(), gap, std::max(gap, height() - size.height() - gap)));
    card_->move(corner);
    update();
}

void Tour::next() {
    if (stop_ + 1 >= stops()) {
        end();
    } else {
        show(stop_ + 1);
    }
}

void Tour::previous() {
    show(stop_ - 1);
}

void Tour::end() {
    parentWidget()->removeEventFilter(this);
    card_->deleteLater();
    deleteLater();
    hide();
    card_->hide();
    Q_EMIT ended();
}

bool Tour::eventFilter(QObject* watched, QEvent* event) {
    if (watched == parentWidget() && event->type() == QEvent::Resize) {
        place();
    } else if (watched != parentWidget() && event->type() == QEvent::KeyPress) {
        auto* key = static_cast<QKeyEvent*>(event);
        switch (key->key()) {
        case Qt::Key_Escape:
            end();
            return true;
        case Qt::Key_Right:
            next();
            return true;
        case Qt::Key_Left:
            previous();
            return true;
        case Qt::Key_Return:
        case Qt::Key_Enter:
            if (auto* button = qobject_cast<QPushButton*>(watched)) {
                button->click();
                return true;
            }
            break;
        default:
            break;
        }
    }
    return QWidget::eventFilter(watched, event);
}

void Tour::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    QRegion veil(rect());
    QRect box;
    if (target_ != nullptr && target_->isVisible()) {
        box = QRect(target_->mapTo(parentWidget(), QPoint()), target_->size());
        veil -= QRegion(box);
    }
    painter.setClipRegion(veil);
    painter.fillRect(rect(), QColor(0, 0, 0, theme_.dark() ? 120 : 60));
    painter.setClipping(false);
    if (!box.isNull()) {
        painter.setRenderHint(QPainter::Antialiasing);
        painter.setBrush(Qt::NoBrush);
        painter.setPen(QPen(theme_.colours().a, 2));
        painter.drawRoundedRect(QRectF(box).adjusted(1, 1, -1, -1), 4, 4);
    }
}

} // namespace ponderscope
