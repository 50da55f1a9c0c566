// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/text/find_bar.h"

#include "views/common/format.h"
#include "views/common/row_delegate.h"
#include "views/text/condition.h"
#include "views/text/find.h"
#include "views/text/hit_list.h"
#include "views/text/text_view.h"

#include <QHBoxLayout>
#include <QKeyEvent>
#include <QLabel>
#include <QLineEdit>
#include <QListView>
#include <QPainter>
#include <QRegularExpression>
#include <QSignalBlocker>
#include <QTimer>
#include <QToolButton>
#include <QVBoxLayout>

#include <algorithm>

namespace ponderscope {

namespace {

/// The word in bold where it stands, its surroundings in grey, its number at the right.
class HitRows : public RowDelegate {
public:
    HitRows(Theme& theme, QObject* parent) : RowDelegate(theme, QSize(200, 24), parent) {}

protected:
    void paintRow(QPainter& painter, const QRect& rect, const QModelIndex& index) const override {
        const Palette& colours = theme_.colours();
        const QRect room = rect.adjusted(24, 0, -14, 0);
        const QFontMetrics body(theme_.body());
        const QFontMetrics strong(theme_.strong());
        painter.setFont(theme_.small());
        painter.setPen(colours.soft);
        painter.drawText(QRect(room.left(), room.top(), 60, room.height()), Qt::AlignVCenter | Qt::AlignRight,
                         format_count(index.data(HitModel::TokenRole).toLongLong()));
        painter.drawText(room, Qt::AlignVCenter | Qt::AlignRight, index.data(HitModel::ValueRole).toString());
        const int side = std::max(60, (room.width() - 220) / 2);
        const int left = room.left() + 72;
        const QString word = index.data(HitModel::WordRole).toString();
        painter.setFont(theme_.body());
        painter.drawText(QRect(left, room.top(), side, room.height()), Qt::AlignVCenter | Qt::AlignRight,
                         body.elidedText(index.data(HitModel::BeforeRole).toString(), Qt::ElideLeft, side));
        const int wide = strong.horizontalAdvance(word);
        painter.drawText(
            QRect(left + side + wide + 1, room.top(), side - wide, room.height()),
            Qt::AlignVCenter | Qt::AlignLeft,
            body.elidedText(index.data(HitModel::AfterRole).toString(), Qt::ElideRight, side - wide));
        painter.setFont(theme_.strong());
        painter.setPen(colours.a);
        painter.drawText(QRect(left + side, room.top(), wide + 2, room.height()),
                         Qt::AlignVCenter | Qt::AlignLeft, word);
    }
};

} // namespace

FindBar::FindBar(const ViewContext& context, TextView& view, QWidget* parent)
    : QWidget(parent),
      context_(context),
      view_(view),
      edit_(new QLineEdit(this)),
      status_(new QLabel(this)),
      delay_(new QTimer(this)),
      listed_(new QToolButton(this)),
      model_(new HitModel(context, this)),
      list_(new QListView(this)) {
    edit_->setPlaceholderText(tr("Text, #id, /pattern/, token 100, or steps = 3 and nll > 4"));
    edit_->setAccessibleName(tr("Find a token"));
    edit_->setClearButtonEnabled(true);
    edit_->setMaximumWidth(380);
    status_->setForegroundRole(QPalette::PlaceholderText);
    const auto button = [this](const QString& text, const QString& tip) {
        auto* made = new QToolButton(this);
        made->setText(text);
        made->setToolTip(tip);
        made->setAccessibleName(tip);
        made->setAutoRaise(true);
        return made;
    };
    QToolButton* up = button(QStringLiteral("↑"), tr("Previous (Shift+Enter)"));
    QToolButton* down = button(QStringLiteral("↓"), tr("Next (Enter)"));
    QToolButton* shut = button(QStringLiteral("×"), tr("Close (Esc)"));
    listed_->setText(tr("List"));
    listed_->setToolTip(tr("Every place that was found, with the words around it"));
    listed_->setAccessibleName(tr("List of what was found"));
    listed_->setCheckable(true);
    listed_->setAutoRaise(true);
    list_->setModel(model_);
    list_->setItemDelegate(new HitRows(context.theme, list_));
    list_->setUniformItemSizes(true);
    list_->setFrameShape(QFrame::NoFrame);
    list_->setAccessibleName(tr("What was found"));
    list_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    list_->setFixedHeight(148);
    list_->hide();
    auto* row = new QHBoxLayout;
    row->setContentsMargins(24, 6, 14, 6);
    row->setSpacing(6);
    row->addWidget(edit_, 1);
    row->addWidget(up);
    row->addWidget(down);
    row->addWidget(status_);
    row->addWidget(listed_);
    row->addStretch(1);
    row->addWidget(shut);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 1);
    column->setSpacing(0);
    column->addLayout(row);
    column->addWidget(list_);
    connect(listed_, &QToolButton::toggled, this, &FindBar::setListed);
    connect(list_->selectionModel(), &QItemSelectionModel::currentChanged, this,
            [this](const QModelIndex& now) {
                if (now.isValid()) {
                    context_.selection.setToken(now.data(HitModel::TokenRole).toLongLong());
                }
            });
    delay_->setSingleShot(true);
    delay_->setInterval(120);
    connect(edit_, &QLineEdit::textChanged, delay_, qOverload<>(&QTimer::start));
    connect(delay_, &QTimer::timeout, this, [this] { search(true); });
    connect(up, &QToolButton::clicked, this, &FindBar::previous);
    connect(down, &QToolButton::clicked, this, &FindBar::next);
    connect(shut, &QToolButton::clicked, this, &FindBar::close);
    connect(&view_, &TextView::contentChanged, this, [this] {
        if (isVisible()) {
            search(false);
        }
    });
    connect(&context_.selection, &Selection::tokenChanged, this, &FindBar::showStatus);
    connect(&context_.selection, &Selection::attributionChanged, this, [this] {
        if (isVisible()) {
            search(false); // values stand at other tokens now
        }
    });
    hide();
}

void FindBar::open() {
    show();
    edit_->setFocus();
    edit_->selectAll();
    search(false);
}

void FindBar::setQuery(const QString& query) {
    edit_->setText(query);
    delay_->stop();
    search(true);
}

QString FindBar::query() const {
    return isHidden() ? QString() : edit_->text();
}

void FindBar::setListed(bool on) {
    listed_->setChecked(on);
    list_->setVisible(on);
}

void FindBar::close() {
    hide();
    hits_.clear();
    model_->show(nullptr, {});
    view_.setMarks({});
    view_.setFocus();
    emit queryChanged();
}

void FindBar::search(bool jump) {
    const auto shown = view_.sequence();
    const QString query = edit_->text();
    problem_.clear();
    hits_.clear();
    bool alone = false; // what is asked of single tokens is a filter
    static const QRegularExpression place(QStringLiteral("^\\s*token\\s+(\\d{1,15})\\s*$"),
                                          QRegularExpression::CaseInsensitiveOption);
    if (shown) {
        if (const auto wanted = place.match(query); wanted.hasMatch()) {
            const qint64 token = wanted.captured(1).toLongLong();
            const auto count = static_cast<qint64>(shown->tokens.size());
            if (token < count) {
                hits_ = {token};
            } else {
                problem_ = tr("the last token is %1").arg(format_count(count - 1));
            }
        } else if (query.size() > 2 && query.startsWith(u'/') && query.endsWith(u'/')) {
            hits_ = find_pattern(*shown, query.mid(1, query.size() - 2), problem_);
        } else if (const auto condition = Condition::parse(query, shown->annotations)) {
            hits_ = find_where(*shown, *condition, context_.selection.attribution());
            alone = true;
        } else if (problem_ = Condition::problem(query, shown->annotations); !problem_.isEmpty()) {
            // said in the place of a count
        } else {
            alone = query.startsWith(u'#');
            hits_ = find_tokens(*shown, query);
        }
    }
    view_.setMarks(hits_, alone);
    model_->show(shown, hits_);
    emit queryChanged();
    if (jump && !hits_.empty()) {
        // The first hit from here on, so that typing on does not run ahead.
        const auto at =
            std::lower_bound(hits_.begin(), hits_.end(), std::max<qint64>(context_.selection.token(), 0));
        context_.selection.setToken(at == hits_.end() ? hits_.front() : *at);
    }
    showStatus();
}

void FindBar::go(qint64 direction) {
    if (delay_->isActive()) {
        delay_->stop();
        search(true);
        return;
    }
    if (hits_.empty()) {
        return;
    }
    const qint64 token = context_.selection.token();
    if (direction > 0) {
        const auto at = std::upper_bound(hits_.begin(), hits_.end(), token);
        context_.selection.setToken(at == hits_.end() ? hits_.front() : *at);
    } else {
        const auto at = std::lower_bound(hits_.begin(), hits_.end(), token);
        context_.selection.setToken(at == hits_.begin() ? hits_.back() : *(at - 1));
    }
}

void FindBar::next() {
    go(1);
}

void FindBar::previous() {
    go(-1);
}

QString FindBar::status() const {
    return status_->text();
}

void FindBar::showStatus() {
    if (edit_->text().isEmpty()) {
        status_->clear();
        return;
    }
    if (!problem_.isEmpty()) {
        status_->setText(problem_);
        return;
    }
    if (const QModelIndex row = model_->indexOf(context_.selection.token()); row.isValid()) {
        const QSignalBlocker quiet(list_->selectionModel());
        list_->setCurrentIndex(row);
        list_->viewport()->update();
    }
    const auto at = std::lower_bound(hits_.begin(), hits_.end(), context_.selection.token());
    const bool on = at != hits_.end() && *at == context_.selection.token();
    const QString count = format_count(static_cast<qint64>(hits_.size()));
    status_->setText(hits_.empty() ? tr("not found")
                     : on          ? tr("%1 of %2").arg(format_count(at - hits_.begin() + 1), count)
                                   : tr("%1 found").arg(count));
}

void FindBar::keyPressEvent(QKeyEvent* event) {
    switch (event->key()) {
    case Qt::Key_Return:
    case Qt::Key_Enter:
        go((event->modifiers() & Qt::ShiftModifier) != 0 ? -1 : 1);
        break;
    case Qt::Key_Escape:
        close();
        break;
    default:
        QWidget::keyPressEvent(event);
    }
}

void FindBar::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    painter.fillRect(rect(), context_.theme.colours().panel);
    painter.fillRect(0, height() - 1, width(), 1, context_.theme.colours().line);
}

} // namespace ponderscope
