// SPDX-License-Identifier: GPL-3.0-or-later
// Mouse and keyboard input of the text; text_view.cpp shows it.
#include "views/text/text_view.h"

#include "views/common/format.h"

#include <QContextMenuEvent>
#include <QHelpEvent>
#include <QMouseEvent>
#include <QScrollBar>
#include <QToolTip>

#include <algorithm>

namespace ponderscope {

bool TextView::viewportEvent(QEvent* event) {
    if (event->type() == QEvent::Leave) {
        context_.selection.setHover(-1);
    } else if (event->type() == QEvent::ToolTip) {
        const auto* help = static_cast<QHelpEvent*>(event);
        const qint64 token = tokenAt(help->pos());
        if (token >= 0) {
            show_tip_above(
                *viewport(), tokenRect(token).toAlignedRect(),
                token_lines(layout_.sequence().get(), token, values_, context_.selection, maxSteps_)
                    .join(QChar::LineFeed));
        } else {
            QToolTip::hideText();
        }
        return true;
    }
    return QAbstractScrollArea::viewportEvent(event);
}

void TextView::mouseMoveEvent(QMouseEvent* event) {
    context_.selection.setHover(tokenAt(event->position()));
    if ((event->buttons() & Qt::LeftButton) != 0 && pressed_ >= 0) {
        const qint64 token = tokenAt(event->position(), true);
        if (token >= 0 && (token != pressed_ || anchor_ >= 0)) {
            if (anchor_ < 0) {
                pin(pressed_, false);
            }
            pin(token, true);
        }
    }
}

void TextView::mousePressEvent(QMouseEvent* event) {
    if (event->button() != Qt::LeftButton) {
        return;
    }
    const qint64 token = tokenAt(event->position());
    pressed_ = tokenAt(event->position(), true);
    if ((event->modifiers() & Qt::ShiftModifier) != 0) {
        pin(pressed_, pressed_ >= 0);
        return;
    }
    // A click on the pinned token, or beside all tokens, unpins.
    pin(token == context_.selection.token() && anchor_ < 0 ? -1 : token, false);
}

void TextView::moveTo(qint64 token, bool extend) {
    const qint64 count = layout_.sequence() ? static_cast<qint64>(layout_.sequence()->tokens.size()) : 0;
    if (count > 0) {
        context_.selection.setHover(-1);
        pin(std::clamp<qint64>(token, 0, count - 1), extend);
    }
}

void TextView::keyPressEvent(QKeyEvent* event) {
    const qint64 token = context_.selection.token();
    const bool extend = (event->modifiers() & Qt::ShiftModifier) != 0;
    const qint64 count = layout_.sequence() ? static_cast<qint64>(layout_.sequence()->tokens.size()) : 0;
    const qint64 top = std::clamp<qint64>(verticalScrollBar()->value() / std::max(metrics_.pitch, 1), 0,
                                          std::max<qint64>(layout_.lineCount() - 1, 0));
    const auto vertical = [&](qint64 lines) {
        const qint64 line = layout_.lineOf(token);
        if (line < 0) {
            moveTo(layout_.firstToken(top), extend);
            return;
        }
        const QRectF box = tokenRect(token);
        const qint64 target = std::clamp<qint64>(line + lines, 0, layout_.lineCount() - 1);
        const qint64 found = target == line ? (lines < 0 ? 0 : count - 1)
                                            : layout_.tokenAt(target, box.center().x() - margin_left, true);
        moveTo(found, extend);
    };
    const qint64 page = std::max<qint64>(1, viewport()->height() / std::max(metrics_.pitch, 1) - 1);
    switch (event->key()) {
    case Qt::Key_Left:
        moveTo(token < 0 ? layout_.firstToken(top) : token - 1, extend);
        break;
    case Qt::Key_Right:
        moveTo(token < 0 ? layout_.firstToken(top) : token + 1, extend);
        break;
    case Qt::Key_Up:
        vertical(-1);
        break;
    case Qt::Key_Down:
        vertical(1);
        break;
    case Qt::Key_PageUp:
        vertical(-page);
        break;
    case Qt::Key_PageDown:
        vertical(page);
        break;
    case Qt::Key_Home:
        moveTo((event->modifiers() & Qt::ControlModifier) != 0 || token < 0
                   ? 0
                   : layout_.firstToken(layout_.lineOf(token)),
               extend);
        break;
    case Qt::Key_End:
        moveTo((event->modifiers() & Qt::ControlModifier) != 0 || token < 0
                   ? count - 1
                   : layout_.endToken(layout_.lineOf(token)) - 1,
               extend);
        break;
    case Qt::Key_Escape:
        pin(span().isEmpty() ? -1 : token, false); // ends the span first, then unpins the token
        break;
    default:
        QAbstractScrollArea::keyPressEvent(event);
        return;
    }
    event->accept();
}

void TextView::wheelEvent(QWheelEvent* event) {
    if ((event->modifiers() & Qt::ControlModifier) != 0) {
        if (const int notches = wheel_.turn(*event); notches != 0) {
            const int before = context_.theme.textSize();
            context_.theme.setTextSize(before + notches);
            if (context_.theme.textSize() == before) {
                Q_EMIT zoomedBeyond(notches > 0);
            }
        }
        event->accept();
        return;
    }
    QAbstractScrollArea::wheelEvent(event);
    context_.selection.setHover(tokenAt(event->position()));
}

void TextView::contextMenuEvent(QContextMenuEvent* event) {
    const bool keyboard = event->reason() == QContextMenuEvent::Keyboard;
    const qint64 token = keyboard ? context_.selection.token() : tokenAt(event->pos());
    const QPoint place = keyboard && token >= 0
                             ? viewport()->mapToGlobal(tokenRect(token).bottomLeft().toPoint())
                             : event->globalPos();
    Q_EMIT menuWanted(token, place);
    event->accept();
}

} // namespace ponderscope
