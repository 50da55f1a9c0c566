// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/text/text_view.h"

#include "views/common/format.h"
#include "views/common/view_command.h"
#include "views/text/minimap.h"

#include <QPainter>
#include <QResizeEvent>
#include <QScrollBar>

#include <algorithm>
#include <cmath>

using namespace Qt::StringLiterals;

namespace ponderscope {

TextView::TextView(const ViewContext& context, QWidget* parent)
    : QAbstractScrollArea(parent),
      context_(context),
      ranges_(ColourRanges::of(context.data)),
      minimap_(new Minimap(context.theme, layout_, values_, this)) {
    setFrameShape(QFrame::NoFrame);
    setFocusPolicy(Qt::StrongFocus);
    setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    setVerticalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    setViewportMargins(0, 0, minimap_->sizeHint().width(), 0);
    setAccessibleName(u"Text of the sequence"_s);
    viewport()->setMouseTracking(true);
    viewport()->setAttribute(Qt::WA_OpaquePaintEvent);
    placing_.setSingleShot(true);
    placing_.setInterval(0);

    connect(&placing_, &QTimer::timeout, this, &TextView::place);
    connect(minimap_, &Minimap::wanted, this, [this](double middle) {
        const double tall = static_cast<double>(layout_.expectedLineCount()) * metrics_.pitch;
        verticalScrollBar()->setValue(
            static_cast<int>(margin_top + middle * tall - viewport()->height() / 2.0));
    });
    connect(&context_.theme, &Theme::changed, this, &TextView::restyle);
    connect(&ranges_, &ColourRanges::changed, this, &TextView::recolour);
    connect(&context_.selection, &Selection::runsChanged, this, [this] {
        reload();
        Q_EMIT otherChanged();
    });
    connect(&context_.selection, &Selection::sequenceChanged, this, [this] {
        reload();
        verticalScrollBar()->setValue(0);
    });
    connect(&context_.selection, &Selection::attributionChanged, this, &TextView::recolour);
    connect(&context_.selection, &Selection::lookChanged, this, &TextView::showLook);
    connect(&context_.selection, &Selection::tokenChanged, this, &TextView::showSelected);
    connect(&context_.selection, &Selection::hoverChanged, this, [this](qint64 token) {
        updateToken(drawnHover_);
        updateToken(token);
        drawnHover_ = token;
    });
    connect(&context_.data, &TraceData::sequenceReady, this, [this](const RunKey& run, qint64 sequence) {
        if (sequence == context_.selection.sequence() &&
            (run == context_.selection.runA() || run == context_.selection.runB())) {
            reload();
            if (run == context_.selection.runB()) {
                Q_EMIT otherChanged();
            }
        }
    });
    connect(&context_.data, &TraceData::traceOpened, this, &TextView::reload);
    connect(&context_.data, &TraceData::runChanged, this, [this](const RunKey& run) {
        if (run == context_.selection.runA() || run == context_.selection.runB()) {
            reload();
        }
    });
    connect(&context_.data, &TraceData::traceClosed, this, &TextView::reload);
    connect(&context_.data, &TraceData::failed, viewport(), [this] {
        if (!layout_.sequence()) {
            setAccessibleDescription(text_hint(context_, layout_.sequence().get()));
            viewport()->update();
        }
    });
    layout_.setLabels([this](int id) { return context_.data.tokenLabel(context_.selection.runA(), id); });
    connect(&context_.data, &TraceData::tokenLabelsReady, this, [this](const RunKey& run) {
        if (run == context_.selection.runA() && layout_.missesLabels()) {
            layout_.setFont(context_.theme.reading()); // places tokens again, now with their names
            place();
        }
    });
    restyle();
    reload();
    recolour();
}

void TextView::showLook() {
    const TextLook before = std::exchange(drawnLook_, look());
    recolour();
    if (before.bars != look().bars) {
        restyle();
    }
}

QString TextView::noteAt(qint64 token) const {
    const auto shown = sequence();
    const TokenAnnotation* notes = shown ? shown->annotation(note_annotation) : nullptr;
    return notes == nullptr || !notes->category ? QString()
                                                : format_annotation(*notes, static_cast<std::size_t>(token));
}

QString TextView::coloured() const {
    return !annotation().isEmpty() ? u'=' + annotation()
                                   : quantity_key(quantity()) + (showsDifference() ? u"−"_s : QString());
}

void TextView::setReplay(ReplayedSteps replay) {
    const bool before = showsReplay();
    replay_ = std::move(replay);
    if (before || showsReplay()) {
        recolour();
    }
}

bool TextView::showsReplay() const {
    const auto& shown = layout_.sequence();
    return shown && replay_.sequence == shown->sequence && replay_.run == shown->run &&
           replay_.steps.size() == shown->tokens.size();
}

void TextView::restyle() {
    const qint64 top =
        layout_.firstToken((verticalScrollBar()->value() - margin_top) / std::max(metrics_.pitch, 1));
    const QFont font = context_.theme.reading();
    const QFontMetrics metrics(font);
    metrics_.box = metrics.height() + 4;
    metrics_.ascent = metrics.ascent() + 2;
    metrics_.pitch = metrics_.box + (hasBars() ? 8 : 0) + std::max(6, metrics.height() / 3);
    if (viewport()->font() != font || !layout_.sequence()) {
        viewport()->setFont(font);
        layout_.setFont(font);
        wanted_ = top > 0 ? top : wanted_;
        placing_.start();
    }
    QPalette palette = viewport()->palette();
    palette.setColor(QPalette::Window, context_.theme.colours().panel);
    viewport()->setPalette(palette);
    updateRange();
    viewport()->update();
    Q_EMIT valuesChanged();
}

void TextView::reload() {
    const RunKey a = context_.selection.runA();
    const RunInfo* run = context_.data.run(a);
    const qint64 steps = run == nullptr ? 0 : run->max_steps;
    auto block = run == nullptr ? nullptr : context_.data.sequence(a, context_.selection.sequence());
    const bool same = block == layout_.sequence() && steps == maxSteps_;
    if (steps != maxSteps_) {
        maxSteps_ = steps;
        restyle();
    }
    if (same) {
        if (showsDifference() && !(compared() == compared_)) {
            recolour();
        } else {
            viewport()->update(); // the hint may have changed
        }
        return;
    }
    const bool grows = block && layout_.sequence() && block->run == layout_.sequence()->run &&
                       block->sequence == layout_.sequence()->sequence;
    if (anchor_ >= 0 && !grows) {
        anchor_ = -1; // the span belonged to another text
        Q_EMIT spanChanged();
    }
    layout_.setSequence(std::move(block));
    setAccessibleDescription(layout_.sequence() ? u"%1 tokens"_s.arg(layout_.sequence()->tokens.size())
                                                : text_hint(context_, nullptr));
    recolour();
    place();
    Q_EMIT contentChanged();
}

TextView::Compared TextView::compared() const {
    const RunKey key = context_.selection.runB();
    const qint64 sequence = context_.selection.sequence();
    return {key, key.isValid() ? context_.data.sequence(key, sequence) : nullptr,
            context_.data.sequenceInfo(key, sequence) != nullptr};
}

void TextView::recolour() {
    compared_ = showsDifference() ? compared() : Compared();
    const auto& a = layout_.sequence();
    if (!a) {
        values_ = TokenValues{};
        values_.quantity = quantity();
        values_.annotation = annotation();
        values_.difference = showsDifference() && annotation().isEmpty();
        values_.look(look_of(annotation().isEmpty() ? kind_of(quantity(), maxSteps_)
                                                    : kind_of_annotation(annotation(), false),
                             {}));
    } else if (showsReplay()) {
        values_ =
            replay_values(replay_.steps, replay_.maxSteps, replay_.policy, context_.selection.attribution());
    } else {
        const auto& b = compared_.block;
        values_ = shown_values(look(), *a, b.get(), maxSteps_, context_.selection.attribution());
        if (values_.difference && compared_.run.isValid() && !b) {
            values_.notice =
                compared_.listed
                    ? QString()
                    : u"Run B has no sequence %1, so A − B cannot be shown"_s.arg(a->sequence + 1);
        }
    }
    if (!showsReplay()) {
        values_.hold(range());
    }
    barValues_ = {};
    if (a && bars() && !hasTicks()) {
        barValues_ = token_values(*bars(), *a, maxSteps_, context_.selection.attribution());
        barValues_.hold(ranges_.held(quantity_key(*bars())));
    }
    minimap_->refresh();
    viewport()->update();
    Q_EMIT valuesChanged();
}

void TextView::place() {
    constexpr std::chrono::microseconds slice{5000}; // most of a frame remains for painting
    const bool done = layout_.prepare(slice);
    updateRange();
    if (done || sinceMinimap_.hasExpired(100) || !sinceMinimap_.isValid()) {
        minimap_->refresh(); // not after each slice: it takes as long as a slice
        sinceMinimap_.start();
    }
    if (wanted_ >= 0 && layout_.lineOf(wanted_) >= 0) {
        const qint64 token = wanted_;
        wanted_ = -1;
        scrollTo(token);
    }
    viewport()->update();
    if (!done) {
        placing_.start();
    } else if (layout_.sequence()) {
        wanted_ = -1;
    }
}

void TextView::updateRange() {
    const qint64 tall = layout_.expectedLineCount() * metrics_.pitch + margin_top + margin_bottom;
    const int view = viewport()->height();
    QScrollBar* bar = verticalScrollBar();
    bar->setPageStep(std::max(view - metrics_.pitch, metrics_.pitch));
    bar->setSingleStep(metrics_.pitch);
    bar->setRange(0, static_cast<int>(std::clamp<qint64>(tall - view, 0, 2'000'000'000)));
    const double whole =
        static_cast<double>(std::max<qint64>(layout_.expectedLineCount() * metrics_.pitch, 1));
    const double from = (bar->value() - margin_top) / whole;
    minimap_->setVisiblePart(std::max(from, 0.0), std::min(from + view / whole, 1.0));
}

void TextView::paintEvent(QPaintEvent* event) {
    QPainter painter(viewport());
    painter.fillRect(event->rect(), context_.theme.colours().panel);
    const auto& shown = layout_.sequence();
    if (const QString hint = text_hint(context_, shown.get()); !hint.isEmpty()) {
        painter.setFont(context_.theme.body());
        painter.setPen(context_.theme.colours().soft);
        painter.drawText(viewport()->rect().adjusted(24, 24, -24, -24), Qt::AlignCenter | Qt::TextWordWrap,
                         hint);
        return;
    }
    painter.setRenderHint(QPainter::Antialiasing);
    static const std::vector<std::int32_t> no_ticks;
    const TextPainter lines{layout_,
                            values_,
                            barValues_,
                            !hasTicks() || maxSteps_ == 0 ? no_ticks
                            : values_.replay.isEmpty()    ? shown->tokens.steps
                                                          : replay_.steps,
                            maxSteps_,
                            marks_,
                            alone_,
                            span(),
                            context_};
    const int offset = verticalScrollBar()->value() - margin_top;
    const qint64 first = std::max<qint64>(0, (event->rect().top() + offset) / metrics_.pitch - 1);
    const qint64 last =
        std::min<qint64>(layout_.lineCount() - 1, (event->rect().bottom() + offset) / metrics_.pitch + 1);
    for (qint64 line = first; line <= last; ++line) {
        lines.paint(painter, line, topOf(line), metrics_.box, metrics_.ascent);
    }
}

void TextView::scrollContentsBy(int, int) {
    updateRange();
    viewport()->update();
}

void TextView::resizeEvent(QResizeEvent* event) {
    // A visible pinned token stays visible.
    const qint64 pinned = context_.selection.token();
    const qint64 pinnedLine = pinned < 0 ? -1 : layout_.lineOf(pinned);
    const bool seen = pinnedLine >= 0 && topOf(pinnedLine) + metrics_.pitch > 0 &&
                      topOf(pinnedLine) < event->oldSize().height();
    const int width = minimap_->sizeHint().width();
    minimap_->setGeometry(contentsRect().right() - width + 1, contentsRect().top(), width,
                          contentsRect().height());
    const qint64 top =
        layout_.firstToken((verticalScrollBar()->value() - margin_top) / std::max(metrics_.pitch, 1));
    const qreal before = layout_.width();
    layout_.setWidth(viewport()->width() - margin_left - margin_right);
    updateRange();
    if (layout_.width() != before && verticalScrollBar()->value() > 0) {
        // When the width changes, the top line stays at the top.
        const qint64 line = layout_.lineOf(top);
        if (line >= 0) {
            verticalScrollBar()->setValue(static_cast<int>(margin_top + line * metrics_.pitch));
        }
    }
    if (seen) {
        scrollTo(pinned);
    }
    minimap_->refresh();
}

qreal TextView::topOf(qint64 line) const {
    return static_cast<qreal>(margin_top + line * metrics_.pitch - verticalScrollBar()->value());
}

QRectF TextView::tokenRect(qint64 token) const {
    const qint64 line = layout_.lineOf(token);
    if (line < 0) {
        return {};
    }
    for (const TextLayout::PlacedToken& placed : layout_.tokens(line)) {
        if (placed.token == token) {
            return TextPainter::box(placed, topOf(line), metrics_.box);
        }
    }
    return {};
}

qint64 TextView::tokenAt(const QPointF& position, bool nearest) const {
    const qreal y = position.y() + verticalScrollBar()->value() - margin_top;
    if (y < 0 && !nearest) {
        return -1;
    }
    auto line = static_cast<qint64>(std::floor(y / metrics_.pitch));
    if (nearest) {
        line = std::clamp<qint64>(line, 0, std::max<qint64>(layout_.lineCount() - 1, 0));
    }
    return layout_.tokenAt(line, position.x() - margin_left, nearest);
}

qint64 TextView::firstVisibleToken() const {
    return layout_.firstToken(
        std::max(0, (verticalScrollBar()->value() - margin_top / 2) / std::max(metrics_.pitch, 1)));
}

qint64 TextView::endVisibleToken() const {
    const int bottom = verticalScrollBar()->value() + viewport()->height() - margin_top;
    return layout_.firstToken(
        std::max(1, (bottom + metrics_.pitch - metrics_.box) / std::max(metrics_.pitch, 1)));
}

void TextView::scrollTo(qint64 token) {
    const qint64 line = layout_.lineOf(token);
    if (line < 0) {
        wanted_ = layout_.complete() && layout_.sequence() ? -1 : token; // wait for its placement
        return;
    }
    const qreal top = topOf(line);
    const qreal bottom = top + metrics_.pitch;
    if (top < 0 || bottom > viewport()->height()) {
        // A far jump puts the token in the middle. A near one scrolls as little as possible.
        const bool near = top > -2 * metrics_.pitch && bottom < viewport()->height() + 2 * metrics_.pitch;
        const qreal target = near ? (top < 0 ? 4.0 : viewport()->height() - metrics_.pitch - 4.0)
                                  : (viewport()->height() - metrics_.pitch) / 2.0;
        verticalScrollBar()->setValue(static_cast<int>(verticalScrollBar()->value() + top - target));
    }
}

void TextView::setMarks(const std::vector<qint64>& tokens, bool alone) {
    minimap_->setMarks(tokens);
    alone = alone && !tokens.empty();
    if (tokens != marks_ || alone != alone_) {
        marks_ = tokens;
        alone_ = alone;
        viewport()->update();
    }
}

void TextView::updateToken(qint64 token) {
    const QRectF box = token < 0 ? QRectF() : tokenRect(token);
    if (!box.isEmpty()) {
        viewport()->update(box.adjusted(-6, -6, 6, 12).toAlignedRect());
    }
}

TokenSpan TextView::span() const {
    const qint64 token = context_.selection.token();
    return anchor_ < 0 || token < 0 || anchor_ == token
               ? TokenSpan()
               : TokenSpan{std::min(anchor_, token), std::max(anchor_, token) + 1};
}

void TextView::setSpan(TokenSpan span) {
    pin(span.isEmpty() ? context_.selection.token() : span.first, false);
    if (!span.isEmpty()) {
        pin(span.last - 1, true);
    }
}

void TextView::pin(qint64 token, bool extend) {
    const TokenSpan before = span();
    if (!extend) {
        anchor_ = -1;
    } else if (anchor_ < 0) {
        anchor_ = context_.selection.token() >= 0 ? context_.selection.token() : token;
    }
    pinning_ = true;
    context_.selection.setToken(token);
    pinning_ = false;
    if (span() != before) {
        viewport()->update();
        Q_EMIT spanChanged();
    }
}

void TextView::showSelected() {
    const qint64 token = context_.selection.token();
    if (!pinning_ && anchor_ >= 0) { // another view pinned a token, so the span ends
        anchor_ = -1;
        viewport()->update();
        Q_EMIT spanChanged();
    }
    updateToken(drawnSelected_);
    drawnSelected_ = token;
    if (token >= 0) {
        scrollTo(token);
        updateToken(token);
        setAccessibleDescription(describe(token));
    }
}

QString TextView::describe(qint64 token) const {
    return token_lines(layout_.sequence().get(), token, values_, context_.selection, maxSteps_)
        .join(u" · "_s);
}

QStringList token_lines(const SequenceData* shown, qint64 token, const TokenValues& values,
                        const Selection& selection, qint64 max_steps) {
    if (shown == nullptr || token < 0 || token >= static_cast<qint64>(shown->tokens.size())) {
        return {};
    }
    const auto index = static_cast<std::size_t>(token);
    const std::string_view bytes = token_bytes(shown->tokens, shown->text, index);
    const QString dot = u" · "_s;
    QStringList lines{u"token %1"_s.arg(format_count(token)) + dot +
                      (bytes.empty()
                           ? u"id %1"_s.arg(shown->tokens.id[index])
                           : u'“' + visible_token_of(shown->tokens, shown->text, index, 24) + u'”')};
    const qint64 row = selection.rowOf(token);
    QStringList numbers;
    for (const Quantity one : {Quantity::nll, Quantity::rank, Quantity::entropy, Quantity::steps}) {
        const double value =
            row < 0 ? std::nan("") : quantity_of(one, shown->tokens, static_cast<std::size_t>(row));
        if (!std::isnan(value) && (one != Quantity::steps || max_steps > 0)) {
            numbers << quantity_name(one) + u' ' + format_quantity(one, value);
        }
    }
    if (!numbers.isEmpty()) {
        lines << numbers.join(dot);
    }
    constexpr std::size_t most_annotations = 6;
    for (std::size_t i = 0; i < std::min(shown->annotations.size(), most_annotations); ++i) {
        const TokenAnnotation& one = shown->annotations[i];
        if (const QString value = short_annotation(one, index); !value.isEmpty()) {
            lines << one.name + u' ' + value;
        }
    }
    if (const QString value = values.textAt(index); !value.isEmpty()) {
        if (!values.replay.isEmpty()) {
            lines << u"replay of %1: steps %2"_s.arg(values.replay, value);
        } else if (values.difference) {
            lines << u"%1 A − B %2"_s.arg(quantity_name(values.quantity), value);
        }
    }
    return lines;
}

QString text_hint(const ViewContext& context, const SequenceData* shown) {
    if (context.data.traces().isEmpty()) {
        return u"Drop a trace or a checkpoint folder here.\nTo record a run, choose Run → Record…"_s;
    }
    if (!context.selection.runA().isValid()) {
        return u"Choose a run in the library."_s;
    }
    if (shown == nullptr) {
        return why_no_sequence(context.data, context.selection);
    }
    return shown->tokens.size() == 0 ? u"This sequence has no tokens yet."_s : QString();
}

} // namespace ponderscope
