// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/text/find_bar.h"

#include "views/common/controls.h"
#include "views/common/format.h"
#include "views/text/text_view.h"

#include <QKeyEvent>
#include <QLabel>
#include <QLineEdit>
#include <QListView>
#include <QPainter>
#include <QSignalBlocker>
#include <QTimer>
#include <QToolButton>

#include <algorithm>
#include <cmath>

using namespace Qt::StringLiterals;

namespace ponderscope {

FindBar::FindBar(const ViewContext& context, TextView& view, QWidget* parent)
    : QWidget(parent),
      context_(context),
      view_(view),
      edit_(new QLineEdit(this)),
      status_(soft_label(this)),
      send_(flat_button(u"Send to Compare"_s,
                        u"Limit the means and intervals in Compare to the found tokens"_s, this)),
      inRun_(this),
      searching_(this),
      wholeRun_(flat_button(u"Whole run"_s,
                            u"Searches all sequences of the run. Enter goes to the next sequence with "
                            "hits. Send to Compare sends the hits of all sequences"_s,
                            this)),
      delay_(new QTimer(this)),
      listed_(flat_button(u"List"_s, u"Lists all hits with the words around them"_s, this)),
      model_(new HitModel(context, this)),
      list_(new QListView(this)) {
    edit_->setPlaceholderText(u"Text, /pattern/, position = 100, steps = 3 and nll > 4"_s);
    edit_->setToolTip(
        u"Text, /pattern/, or a condition such as id = 412, position = 100, steps = 3 and nll > 4"_s);
    edit_->setAccessibleName(u"Find a token"_s);
    connect(send_, &QToolButton::clicked, this, [this] { Q_EMIT sent(subset()); });
    edit_->setClearButtonEnabled(true);
    edit_->setMaximumWidth(460);
    edit_->setMinimumWidth(220);
    QToolButton* up = flat_button(u"↑"_s, u"Previous (Shift+Enter)"_s, this);
    QToolButton* down = flat_button(u"↓"_s, u"Next (Enter)"_s, this);
    QToolButton* shut = flat_button(u"×"_s, u"Close (Esc)"_s, this);
    wholeRun_->setAccessibleName(u"Search the Whole Run"_s);
    wholeRun_->setCheckable(true);
    connect(wholeRun_, &QToolButton::toggled, this, [this] { search(false); });
    listed_->setAccessibleName(u"List of hits"_s);
    listed_->setCheckable(true);
    list_->setModel(model_);
    list_->setUniformItemSizes(true);
    list_->setFrameShape(QFrame::NoFrame);
    list_->setAccessibleName(u"What was found"_s);
    list_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    setRoom(600);
    list_->hide();
    auto* row = make_row(nullptr, {24, 6, 14, 6}, 6,
                         {{edit_, 1}, up, down, {status_, 1}, wholeRun_, listed_, send_, shut});
    make_column(this, {0, 0, 0, 1}, 0, {row, list_});
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
    const auto again = [this] {
        if (isVisible()) {
            search(false);
        }
    };
    connect(&view_, &TextView::contentChanged, this, again);
    connect(&context_.selection, &Selection::tokenChanged, this, &FindBar::showStatus);
    connect(&context_.selection, &Selection::attributionChanged, this, again); // conditions use other rows
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

void FindBar::setRoom(int height) {
    const int row = context_.theme.scaled(24);
    list_->setFixedHeight(std::clamp(height / 4 / row, 2, 6) * row + 4);
}

void FindBar::setWholeRun(bool on) {
    wholeRun_->setChecked(on);
}

void FindBar::close() {
    searching_.cancel();
    hide();
    hits_.clear();
    foundBy_.clear();
    found_.reset();
    inRun_.cancel();
    model_->show(nullptr, {});
    view_.setMarks({});
    view_.setFocus();
    Q_EMIT queryChanged();
}

void FindBar::search(bool jump) {
    const auto shown = view_.sequence();
    const QString query = edit_->text();
    constexpr std::size_t at_once = 1 << 18; // bytes that can be searched within a frame
    searching_.cancel();
    if (shown) {
        if (shown->text.size() <= at_once) {
            showFound(find_in(*shown, query, context_.selection.attribution()), jump);
            return;
        }
        status_->setText(u"searching…"_s);
        searching_.start([shown, query, way = context_.selection.attribution()](
                             const std::stop_token&) { return find_in(*shown, query, way); },
                         [this, jump](Found found) { showFound(std::move(found), jump); },
                         [this](const QString& sentence) { status_->setText(sentence); });
        return;
    }
    showFound({}, jump);
}

void FindBar::showFound(Found found, bool jump) {
    const auto shown = view_.sequence();
    const QString query = edit_->text();
    hits_ = std::move(found.tokens);
    problem_ = std::move(found.problem);
    hint_ = std::move(found.hint);
    view_.setMarks(hits_, found.alone);
    model_->show(shown, hits_);
    Q_EMIT queryChanged();
    if (arriving_ != 0 && shown && shown->sequence == context_.selection.sequence()) {
        if (!hits_.empty()) {
            context_.selection.setToken(arriving_ > 0 ? hits_.front() : hits_.back());
        }
        arriving_ = 0;
    }
    if (jump && !hits_.empty()) {
        // Go to the first hit from the selected token on, so that further typing does not move ahead.
        const auto at =
            std::lower_bound(hits_.begin(), hits_.end(), std::max<qint64>(context_.selection.token(), 0));
        context_.selection.setToken(at == hits_.end() ? hits_.front() : *at);
    }
    const RunKey a = context_.selection.runA();
    const bool several = context_.data.sequences(a).size() > 1;
    wholeRun_->setVisible(several);
    if (wholeRun_->isChecked() && several && problem_.isEmpty() && !query.isEmpty() &&
        !context_.data.isLive(a.trace)) {
        searchRun();
    } else {
        foundBy_.clear();
        found_.reset();
        inRun_.cancel();
        send_->setEnabled(!hits_.empty());
    }
    showStatus();
}

void FindBar::searchRun() {
    const RunKey a = context_.selection.runA();
    const Attribution way = context_.selection.attribution();
    const RunInfo* run = context_.data.run(a);
    const QString query = edit_->text();
    const QString wanted = u"%1#%2 %3 %4 %5"_s.arg(a.trace)
                               .arg(a.run)
                               .arg(run == nullptr ? 0 : run->tokens)
                               .arg(static_cast<int>(way))
                               .arg(query);
    if (wanted == foundBy_) {
        return; // same search: only the shown sequence has changed
    }
    foundBy_ = wanted;
    found_.reset();
    send_->setEnabled(false);
    searched_ = 0;
    inRun_.start(
        [this, a, query, way](const std::stop_token& stop, const Task::Tell& tell) {
            const auto progress = [&](qint64 done) {
                tell([this, done] {
                    searched_ = done;
                    showStatus();
                });
            };
            return find_in_run(a, query, way, progress, stop);
        },
        [this](FoundInRun found) {
            found_ = std::move(found);
            send_->setEnabled(!found_->rows.empty());
            showStatus();
        },
        [this](const QString& sentence) {
            problem_ = sentence;
            showStatus();
        });
}

TokenSubset FindBar::subset() const {
    return found_ ? TokenSubset{context_.selection.runA(), edit_->text(), u"in the whole run"_s, found_->rows}
                  : subset_of(context_.selection, edit_->text(), hits_);
}

bool FindBar::leave(qint64 direction) {
    if (!found_ || found_->counts.empty()) {
        return false;
    }
    const qint64 here = context_.selection.sequence();
    const auto& counts = found_->counts;
    auto to = direction > 0 ? counts.upper_bound(here) : counts.lower_bound(here);
    if (direction > 0) {
        to = to == counts.end() ? counts.begin() : to;
    } else {
        to = std::prev(to == counts.begin() ? counts.end() : to);
    }
    if (to->first == here) {
        return false;
    }
    arriving_ = direction;
    context_.selection.setSequence(to->first);
    return true;
}

void FindBar::go(qint64 direction) {
    if (delay_->isActive()) {
        delay_->stop();
        search(true);
        return;
    }
    const qint64 token = context_.selection.token();
    const auto at = direction > 0 ? std::upper_bound(hits_.begin(), hits_.end(), token)
                                  : std::lower_bound(hits_.begin(), hits_.end(), token);
    if (at == (direction > 0 ? hits_.end() : hits_.begin()) && leave(direction)) {
        return;
    }
    if (hits_.empty()) {
        return;
    }
    if (direction > 0) {
        context_.selection.setToken(at == hits_.end() ? hits_.front() : *at);
    } else {
        context_.selection.setToken(at == hits_.begin() ? hits_.back() : *(at - 1));
    }
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
    QString said =
        on ? u"%1 of %2"_s.arg(format_count(at - hits_.begin() + 1), count) : u"%1 found"_s.arg(count);
    if (hits_.empty()) {
        said = !hint_.isEmpty()                                           ? hint_
               : foundBy_.isEmpty() || (found_ && found_->counts.empty()) ? u"not found"_s
                                                                          : u"none here"_s;
    }
    if (found_ && !found_->counts.empty()) {
        said += u" · "_s + (found_->more ? u"first %1 hits, in %2 sequences"_s : u"%1 hits in %2 sequences"_s)
                               .arg(format_count(found_->size()),
                                    format_count(static_cast<qint64>(found_->counts.size())));
    } else if (inRun_.isBusy() && !foundBy_.isEmpty()) {
        said +=
            u" · "_s +
            u"searching, %1 of %2 sequences"_s.arg(
                format_count(searched_),
                format_count(static_cast<qint64>(context_.data.sequences(context_.selection.runA()).size())));
    }
    status_->setText(said);
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

void HitModel::show(std::shared_ptr<const SequenceData> block, std::vector<qint64> hits) {
    beginResetModel();
    block_ = std::move(block);
    hits_ = std::move(hits);
    endResetModel();
}

QModelIndex HitModel::indexOf(qint64 token) const {
    const auto at = std::lower_bound(hits_.begin(), hits_.end(), token);
    return at != hits_.end() && *at == token ? index(static_cast<int>(at - hits_.begin())) : QModelIndex();
}

QVariant HitModel::data(const QModelIndex& index, int role) const {
    if (!index.isValid() || !block_ || index.row() >= rowCount()) {
        return {};
    }
    const qint64 token = hits_[static_cast<std::size_t>(index.row())];
    const auto at = static_cast<std::size_t>(token);
    const TokenColumns& tokens = block_->tokens;
    if (role == TokenRole) {
        return token;
    }
    if (at >= tokens.size()) {
        return {};
    }
    const std::string& text = block_->text;
    const std::string_view word = token_bytes(tokens, text, at);
    const auto begin = std::min<std::size_t>(tokens.begin[at], text.size());
    const auto end = std::min<std::size_t>(std::max(tokens.end[at], tokens.begin[at]), text.size());
    if (role != Qt::DisplayRole && role != Qt::AccessibleTextRole) {
        return {};
    }
    constexpr std::size_t context_bytes = 48;
    const std::size_t from = begin > context_bytes ? begin - context_bytes : 0;
    const std::size_t to = std::min(end + context_bytes, text.size());
    const auto between = [&](std::size_t first, std::size_t last) {
        return visible_text(whole_characters(text, first, last).bytes);
    };
    const qint64 row = context_.selection.rowOf(token);
    const double nll =
        row < 0 ? std::nan("") : quantity_of(Quantity::nll, tokens, static_cast<std::size_t>(row));
    return u"%1   NLL %2   %3[%4]%5"_s.arg(
        format_count(token), format_quantity(Quantity::nll, nll), between(from, begin),
        word.empty() ? u"‹id %1›"_s.arg(tokens.id[at]) : visible_text(word), between(end, to));
}

} // namespace ponderscope
