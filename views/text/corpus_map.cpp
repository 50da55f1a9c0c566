// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/text/corpus_map.h"

#include "views/common/format.h"
#include "views/common/whole_characters.h"

#include <QHelpEvent>
#include <QImage>
#include <QMouseEvent>
#include <QPainter>
#include <QScrollBar>
#include <QToolTip>

#include <algorithm>
#include <cmath>

namespace ponderscope {

namespace {

constexpr int margin = 16;
constexpr int gap_rows = 2; ///< rows of cells between sequences
constexpr std::uint8_t nothing = 255;
constexpr int largest_cell = 8;
/// A trace from a stranger may claim anything; beyond this a map is no help anyway.
constexpr qint64 most_tokens = 200'000'000;

} // namespace

CorpusMap::CorpusMap(const ViewContext& context, QWidget* parent)
    : QAbstractScrollArea(parent), context_(context) {
    setFrameShape(QFrame::NoFrame);
    setFocusPolicy(Qt::StrongFocus);
    setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    setAccessibleName(tr("Map of all sequences"));
    viewport()->setAttribute(Qt::WA_OpaquePaintEvent);
    connect(&context_.selection, &Selection::runsChanged, this, &CorpusMap::restart);
    connect(&context_.selection, &Selection::attributionChanged, this, [this] {
        run_ = {};
        restart();
    });
    connect(&context_.selection, &Selection::tokenChanged, viewport(), qOverload<>(&QWidget::update));
    connect(&context_.selection, &Selection::sequenceChanged, viewport(), qOverload<>(&QWidget::update));
    connect(&context_.theme, &Theme::changed, this, [this] {
        colours_.clear();
        viewport()->update();
    });
    connect(&context_.data, &TraceData::runChanged, this, [this](const RunKey& run) {
        if (run == run_) {
            if (!annotation_.isEmpty()) {
                run_ = {}; // it may have been annotated anew: none of the colours stays
            }
            restart();
        }
    });
    connect(&context_.data, &TraceData::failed, this, [this](const QString& trace) {
        if (trace == run_.trace) {
            wanted_ = -1; // what could be read stays
        }
    });
    connect(&context_.data, &TraceData::sequenceReady, this, [this](const RunKey& run, qint64 sequence) {
        const Strip* strip = run == run_ ? stripOf(sequence) : nullptr;
        if (strip == nullptr) {
            return;
        }
        const bool read = !strip->values.empty();
        const auto block = read ? context_.data.sequence(run, sequence) : nullptr;
        // Taken while the rest was being read, or annotated anew.
        if (block && (strip->values.size() < block->tokens.size() || !annotation_.isEmpty())) {
            take(*block);
            place();
        }
        if (!read && wanted_ >= 0) {
            askNext();
        }
    });
}

void CorpusMap::setQuantity(Quantity quantity) {
    if (quantity != quantity_) {
        quantity_ = quantity;
        run_ = {};
        restart();
    }
}

void CorpusMap::setAnnotation(const QString& name) {
    if (name != annotation_) {
        annotation_ = name;
        run_ = {};
        restart();
    }
}

void CorpusMap::setRange(const HeldRange& range) {
    if (range != range_) {
        range_ = range;
        run_ = {};
        restart();
    }
}

void CorpusMap::setCell(int pixels) {
    pixels = std::clamp(pixels, 1, largest_cell);
    if (pixels != cell_) {
        cell_ = pixels;
        place();
    }
}

qint64 CorpusMap::columns() const {
    return std::max<qint64>((viewport()->width() - 2 * margin) / cell_, 16);
}

void CorpusMap::restart() {
    if (!isVisible()) {
        run_ = {};
        wanted_ = -1;
        return;
    }
    const RunKey key = context_.selection.runA();
    const RunInfo* info = context_.data.run(key);
    std::vector<Strip> before;
    if (key == run_) {
        before = std::move(strips_); // a recording that grows: what did not change stays
    }
    strips_.clear();
    next_ = 0;
    run_ = key;
    maxSteps_ = info == nullptr ? 0 : info->max_steps;
    qint64 all = 0;
    for (const SequenceInfo& sequence : context_.data.sequences(key)) {
        const qint64 tokens = std::clamp<qint64>(sequence.tokens, 0, most_tokens - all);
        all += tokens;
        Strip strip{sequence.index, tokens, {}, 0, 0};
        const std::size_t i = strips_.size();
        if (i < before.size() && before[i].sequence == strip.sequence && before[i].tokens == tokens) {
            strip.values = std::move(before[i].values);
        }
        strips_.push_back(std::move(strip));
    }
    place();
    askNext();
}

void CorpusMap::askNext() {
    for (; next_ < strips_.size(); ++next_) {
        Strip& strip = strips_[next_];
        if (!strip.values.empty() || strip.tokens == 0) {
            continue;
        }
        const auto block = context_.data.sequence(run_, strip.sequence);
        if (!block) {
            wanted_ = static_cast<qint64>(next_);
            return; // sequenceReady goes on
        }
        take(*block);
        if (strip.values.empty()) {
            strip.tokens = 0; // it holds fewer tokens than it says
        }
    }
    wanted_ = -1;
    place();
}

CorpusMap::Strip* CorpusMap::stripOf(qint64 sequence) {
    const auto place = std::lower_bound(strips_.begin(), strips_.end(), sequence,
                                        [](const Strip& strip, qint64 due) { return strip.sequence < due; });
    return place == strips_.end() || place->sequence != sequence ? nullptr : &*place;
}

void CorpusMap::take(const SequenceData& block) {
    if (Strip* const found = stripOf(block.sequence)) {
        Strip& strip = *found;
        TokenValues values = annotation_.isEmpty()
                                 ? token_values(quantity_, block, maxSteps_, context_.selection.attribution())
                                 : annotation_values(block, annotation_);
        hold_range(values, range_);
        if (const bool classes = !values.classes.isEmpty(); classes != classes_) {
            classes_ = classes;
            colours_.clear();
        }
        strip.tokens = static_cast<qint64>(values.values.size());
        strip.values.resize(values.values.size());
        for (std::size_t t = 0; t < values.values.size(); ++t) {
            const double position = values.scale.position(values.values[t]);
            strip.values[t] =
                std::isnan(position)
                    ? nothing
                    : static_cast<std::uint8_t>(std::lround(std::clamp(position, 0.0, 1.0) * 254));
        }
    }
    viewport()->update();
}

void CorpusMap::place() {
    const qint64 wide = columns();
    rows_ = 0;
    for (Strip& strip : strips_) {
        strip.top = rows_;
        strip.rows = (strip.tokens + wide - 1) / wide;
        rows_ += strip.rows + gap_rows;
    }
    const qint64 tall = rows_ * qint64{cell_} + qint64{2} * margin;
    verticalScrollBar()->setPageStep(viewport()->height());
    verticalScrollBar()->setSingleStep(std::max(20, 4 * cell_));
    verticalScrollBar()->setRange(
        0, static_cast<int>(std::clamp<qint64>(tall - viewport()->height(), 0, 2'000'000'000)));
    viewport()->update();
}

CorpusMap::Place CorpusMap::placeAt(const QPoint& point) const {
    const qint64 down = point.y() + static_cast<qint64>(verticalScrollBar()->value()) - margin;
    const qint64 row = down / cell_;
    const qint64 column = (point.x() - margin) / cell_;
    if (point.x() < margin || column >= columns() || down < 0) {
        return {};
    }
    auto after = std::upper_bound(strips_.begin(), strips_.end(), row,
                                  [](qint64 value, const Strip& strip) { return value < strip.top; });
    if (after == strips_.begin()) {
        return {};
    }
    const Strip& strip = *std::prev(after);
    const qint64 token = (row - strip.top) * columns() + column;
    return token < strip.tokens && row < strip.top + strip.rows ? Place{strip.sequence, token} : Place{};
}

void CorpusMap::paintEvent(QPaintEvent*) {
    QPainter painter(viewport());
    const Palette& colours = context_.theme.colours();
    painter.fillRect(viewport()->rect(), colours.panel);
    if (strips_.empty()) {
        painter.setFont(context_.theme.body());
        painter.setPen(colours.soft);
        painter.drawText(
            viewport()->rect(), Qt::AlignCenter,
            tr("Open a trace, or choose a run in the library, to see all of its sequences at once."));
        return;
    }
    if (colours_.empty()) {
        for (int i = 0; i < 255; ++i) {
            colours_.push_back(
                (classes_ ? context_.theme.classMap() : context_.theme.textMap()).at(i / 254.0));
        }
        colours_.push_back(colours.panel.rgb());
    }
    const qint64 wide = columns();
    const qint64 first = std::max<qint64>(0, (verticalScrollBar()->value() - margin) / cell_);
    const qint64 count = viewport()->height() / cell_ + 2;
    // One pixel a cell, blown up in one go.
    QImage image(static_cast<int>(wide), static_cast<int>(count), QImage::Format_RGB32);
    image.fill(colours.panel);
    for (const Strip& strip : strips_) {
        const qint64 from = std::max(first, strip.top);
        const qint64 to = std::min(first + count, strip.top + strip.rows);
        for (qint64 row = from; row < to; ++row) {
            auto* line = reinterpret_cast<QRgb*>(image.scanLine(static_cast<int>(row - first)));
            const qint64 begin = (row - strip.top) * wide;
            const qint64 end = std::min(begin + wide, strip.tokens);
            for (qint64 token = begin; token < end; ++token) {
                line[token - begin] = strip.values.empty()
                                          ? colours.halted.rgb()
                                          : colours_[strip.values[static_cast<std::size_t>(token)]];
            }
        }
    }
    const auto top = static_cast<qreal>(margin + first * cell_ - verticalScrollBar()->value());
    painter.drawImage(
        QRectF(margin, top, static_cast<qreal>(wide * cell_), static_cast<qreal>(count * cell_)), image);
    for (const Strip& strip : strips_) {
        if (strip.sequence != context_.selection.sequence()) {
            continue;
        }
        const auto y = [&](qint64 row) {
            return static_cast<qreal>(margin + row * cell_ - verticalScrollBar()->value());
        };
        painter.fillRect(QRectF(margin - 7, y(strip.top), 3, static_cast<qreal>(strip.rows * cell_)),
                         colours.a);
        const qint64 token = context_.selection.token();
        if (token >= 0 && token < strip.tokens) {
            painter.setPen(QPen(colours.a, 2));
            painter.drawRect(QRectF(static_cast<qreal>(margin + token % wide * cell_),
                                    y(strip.top + token / wide), cell_, cell_)
                                 .adjusted(-3, -3, 3, 3));
        }
    }
}

void CorpusMap::resizeEvent(QResizeEvent*) {
    place();
}

void CorpusMap::scrollContentsBy(int, int) {
    viewport()->update();
}

void CorpusMap::showEvent(QShowEvent* event) {
    QAbstractScrollArea::showEvent(event);
    if (context_.selection.runA() != run_) {
        restart();
    }
}

bool CorpusMap::viewportEvent(QEvent* event) {
    if (event->type() == QEvent::ToolTip) {
        const auto* help = static_cast<QHelpEvent*>(event);
        const Place at = placeAt(help->pos());
        if (at.sequence < 0) {
            QToolTip::hideText();
        } else {
            QString text =
                tr("sequence %1, token %2").arg(format_count(at.sequence + 1), format_count(at.token));
            const auto block = context_.data.sequence(run_, at.sequence);
            if (block && at.token < static_cast<qint64>(block->tokens.size())) {
                const auto index = static_cast<std::size_t>(at.token);
                text += QStringLiteral(" “%1”").arg(visible_token_of(block->tokens, block->text, index, 24));
                const qint64 row = context_.selection.rowOf(at.token);
                if (row >= 0) {
                    text += QStringLiteral(" · ") + quantity_name(quantity_) + u' ' +
                            format_quantity(quantity_, quantity_of(quantity_, block->tokens,
                                                                   static_cast<std::size_t>(row)));
                }
            }
            QToolTip::showText(help->globalPos(), plain_tip(text), viewport());
        }
        return true;
    }
    return QAbstractScrollArea::viewportEvent(event);
}

void CorpusMap::mousePressEvent(QMouseEvent* event) {
    const Place at = placeAt(event->pos());
    if (event->button() == Qt::LeftButton && at.sequence >= 0) {
        context_.selection.setSequence(at.sequence);
        context_.selection.setToken(at.token);
        Q_EMIT chosen();
    }
}

void CorpusMap::wheelEvent(QWheelEvent* event) {
    if ((event->modifiers() & Qt::ControlModifier) != 0) {
        const bool in = event->angleDelta().y() > 0;
        if (in && cell_ == largest_cell) {
            Q_EMIT zoomedIn();
        } else {
            setCell(cell_ + (in ? 1 : -1));
        }
        event->accept();
        return;
    }
    QAbstractScrollArea::wheelEvent(event);
}

void CorpusMap::keyPressEvent(QKeyEvent* event) {
    const qint64 token = context_.selection.token();
    const qint64 wide = columns();
    const qint64 by = event->key() == Qt::Key_Left    ? -1
                      : event->key() == Qt::Key_Right ? 1
                      : event->key() == Qt::Key_Up    ? -wide
                      : event->key() == Qt::Key_Down  ? wide
                                                      : 0;
    for (const Strip& strip : strips_) {
        if (by != 0 && strip.sequence == context_.selection.sequence() && strip.tokens > 0) {
            context_.selection.setToken(std::clamp<qint64>(token + by, 0, strip.tokens - 1));
            return;
        }
    }
    QAbstractScrollArea::keyPressEvent(event);
}

} // namespace ponderscope
