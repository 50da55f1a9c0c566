// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/message_bar.h"

#include "views/common/controls.h"
#include "views/common/theme.h"

#include <QAccessible>
#include <QCursor>
#include <QEvent>
#include <QPainter>
#include <QToolButton>

#include <algorithm>

using namespace Qt::StringLiterals;

namespace ponderscope {

namespace {

constexpr std::ptrdiff_t most_messages = 3;
constexpr int message_success_ms = 6000;
constexpr int widest_message = 760;
constexpr int message_margin = 24;
constexpr int room_of_status = 40; ///< pixels at the window's bottom for the status bar
constexpr int room_of_menu = 56;   ///< pixels at the window's top for the menu

} // namespace

MessageBar::MessageBar(Theme& theme, QWidget* parent) : QWidget(parent), theme_(theme) {
    label_->setWordWrap(true);
    label_->setTextFormat(Qt::PlainText); // file names must not be read as markup
    label_->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
    auto* close = flat_button(u"×"_s, u"Close"_s, this);
    close->setAccessibleName(u"Close the message"_s);
    make_row(this, {16, 6, 8, 6}, -1, {{label_, 1}, {close, 0, Qt::AlignTop}});
    connect(close, &QToolButton::clicked, this, &MessageBar::clear);
    connect(&theme, &Theme::changed, this, &MessageBar::refresh);
    fading_.setSingleShot(true);
    fading_.setInterval(message_success_ms);
    connect(&fading_, &QTimer::timeout, this, [this] {
        std::erase_if(messages_, [](const Message& one) { return one.kind == Kind::success; });
        refresh();
    });
    parent->installEventFilter(this);
    hide();
}

QStringList MessageBar::sentences() const {
    QStringList all;
    for (const Message& one : messages_) {
        all << one.sentence;
    }
    all.removeDuplicates();
    return all;
}

QStringList MessageBar::ids() const {
    QStringList all;
    for (const Message& one : messages_) {
        all << one.id;
    }
    return all;
}

bool MessageBar::has(const char* id, const QString& part) const {
    return std::ranges::any_of(messages_, [&](const Message& one) {
        return one.id == QLatin1String(id) && one.sentence.contains(part);
    });
}

MessageBar::Kind MessageBar::kind() const {
    Kind gravest = Kind::success;
    for (const Message& one : messages_) {
        gravest = std::max(gravest, one.kind);
    }
    return gravest;
}

void MessageBar::show(const char* id, const QString& sentence, Kind kind) {
    if (sentence.isEmpty()) {
        return;
    }
    const bool shown = !messages_.empty();
    std::erase_if(messages_, [&](const Message& one) {
        return one.kind == Kind::success ||
               (one.kind == Kind::notice && kind == Kind::error); // an error removes notices
    });
    if (std::ranges::none_of(messages_, [&](const Message& one) {
            return one.id == QLatin1String(id) && one.sentence == sentence;
        })) {
        messages_.push_back({QString::fromLatin1(id), sentence, kind});
    }
    const auto grave =
        std::ranges::count_if(messages_, [](const Message& one) { return one.kind != Kind::success; });
    if (grave > most_messages) {
        messages_.erase(messages_.begin());
    }
    if (kind == Kind::success) {
        fading_.start();
    }
    if (!shown) {
        above_ = false;
    }
    refresh();
    const QPoint pointer = parentWidget()->mapFromGlobal(QCursor::pos());
    if (!shown && geometry().adjusted(-8, -8, 8, 8).contains(pointer)) {
        above_ = true; // a second click would hit the bar
        place();
    }
    QAccessibleEvent alert(label_, QAccessible::Alert);
    QAccessible::updateAccessibility(&alert);
}

void MessageBar::retract(const QString& sentence) {
    if (std::erase_if(messages_, [&](const Message& one) { return one.sentence == sentence; }) > 0) {
        refresh();
    }
}

void MessageBar::clear() {
    messages_.clear();
    refresh();
}

void MessageBar::refresh() {
    label_->setText(sentences().join(u'\n'));
    label_->setAccessibleName(label_->text());
    QPalette palette = label_->palette();
    const Palette& colours = theme_.colours();
    palette.setColor(QPalette::WindowText, kind() == Kind::error    ? colours.errorText
                                           : kind() == Kind::notice ? colours.warningText
                                                                    : colours.text);
    label_->setPalette(palette);
    place();
    setVisible(!messages_.empty());
    raise();
    update();
}

void MessageBar::place() {
    const QSize window = parentWidget()->size();
    const int width = std::min(widest_message, window.width() - 2 * message_margin);
    const int height = std::max(layout()->heightForWidth(width), layout()->minimumSize().height());
    setGeometry((window.width() - width) / 2,
                above_ ? room_of_menu : window.height() - room_of_status - height, width, height);
}

bool MessageBar::eventFilter(QObject* watched, QEvent* event) {
    if (watched == parentWidget() && event->type() == QEvent::Resize) {
        place();
    }
    return QWidget::eventFilter(watched, event);
}

void MessageBar::paintEvent(QPaintEvent*) {
    const Palette& colours = theme_.colours();
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(colours.border);
    painter.setBrush(kind() == Kind::error    ? colours.errorPanel
                     : kind() == Kind::notice ? colours.warningPanel
                                              : colours.panel);
    painter.drawRoundedRect(QRectF(rect()).adjusted(0.5, 0.5, -0.5, -0.5), 5, 5);
}

} // namespace ponderscope
