// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/text/corpus_map.h"

#include "core/base/half.h"
#include "views/common/format.h"

#include <QHelpEvent>
#include <QImage>
#include <QMouseEvent>
#include <QPainter>
#include <QScrollBar>
#include <QToolTip>

#include <algorithm>
#include <bit>
#include <cmath>

using namespace Qt::StringLiterals;

namespace ponderscope {

namespace {

constexpr int margin = 16;
constexpr int gap_rows = 2; ///< rows of cells between sequences
constexpr int largest_cell = 8;
/// A limit, because an untrusted trace may claim any number. A larger map would be of no use.
constexpr qint64 most_tokens = 200'000'000;
constexpr std::size_t bfloat16_values = 1 << 16;

/// The upper half of a float: the same range, and finer than 256 colours on most scales.
std::uint16_t bfloat16_of(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    return static_cast<std::uint16_t>(std::isnan(value) ? 0x7fc0U
                                                        : (bits + 0x7fffU + (bits >> 16U & 1U)) >> 16U);
}

} // namespace

CorpusMap::CorpusMap(const ViewContext& context, QWidget* parent)
    : QAbstractScrollArea(parent), context_(context) {
    setFrameShape(QFrame::NoFrame);
    setFocusPolicy(Qt::StrongFocus);
    setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    setAccessibleName(u"Map of all sequences"_s);
    viewport()->setAttribute(Qt::WA_OpaquePaintEvent);
    shown_.look(look_of(kind_of(shown_.quantity), {}));
    rebuildColours();
    connect(&context_.selection, &Selection::runsChanged, this, &CorpusMap::restart);
    connect(&context_.selection, &Selection::attributionChanged, this, [this] {
        run_ = {};
        restart();
    });
    connect(&context_.selection, &Selection::tokenChanged, viewport(), qOverload<>(&QWidget::update));
    connect(&context_.selection, &Selection::sequenceChanged, viewport(), qOverload<>(&QWidget::update));
    connect(&context_.theme, &Theme::changed, this, &CorpusMap::rebuildColours);
    connect(&context_.data, &TraceData::runChanged, this, [this](const RunKey& run) {
        if (run.isValid() && (run == run_ || run == other_)) {
            if (!shown_.annotation.isEmpty()) {
                run_ = {}; // the annotation may have changed: drop all values
            }
            restart();
        }
    });
    connect(&context_.data, &TraceData::failed, this, [this](const QString& trace) {
        if (trace == run_.trace || trace == other_.trace) {
            wanted_ = -1; // stop; the values so far stay
        }
    });
    connect(&context_.data, &TraceData::sequenceReady, this, [this](const RunKey& run, qint64 sequence) {
        if (!run.isValid() || (run != run_ && run != other_)) {
            return;
        }
        if (const Strip* known = stripOf(sequence); known != nullptr && !known->values.empty()) {
            // The strip's values are incomplete or outdated: read them again.
            const auto block = context_.data.sequence(run, sequence);
            if (block && (run == other_ || !shown_.annotation.isEmpty() ||
                          known->values.size() < block->tokens.size())) {
                if (const auto values = valuesOf(*known)) {
                    take(strips_[static_cast<std::size_t>(known - strips_.data())], *values);
                    place();
                }
            }
        }
        if (wanted_ >= 0) {
            askNext();
        }
    });
}

void CorpusMap::setShown(const TokenValues& text) {
    const bool same = text.quantity == shown_.quantity && text.annotation == shown_.annotation &&
                      text.difference == shown_.difference;
    const bool recoloured = text.scale != shown_.scale || text.diverging != shown_.diverging ||
                            text.kind.number != shown_.kind.number;
    shown_.quantity = text.quantity;
    shown_.annotation = text.annotation;
    shown_.difference = text.difference;
    shown_.look(text);
    if (recoloured) {
        rebuildColours();
    }
    if (!same) {
        run_ = {};
        restart();
    }
}

void CorpusMap::rebuildColours() {
    const ColourMap& map = map_of(shown_, context_.theme);
    colours_.resize(bfloat16_values);
    for (std::size_t bits = 0; bits < bfloat16_values; ++bits) {
        const double at =
            shown_.scale.position(static_cast<double>(bfloat16_to_float(static_cast<std::uint16_t>(bits))));
        colours_[bits] = std::isnan(at) ? context_.theme.colours().panel.rgb() : map.at(at);
    }
    viewport()->update();
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
    const RunKey other = shown_.difference ? context_.selection.runB() : RunKey();
    const RunInfo* info = context_.data.run(key);
    std::vector<Strip> before;
    if (key == run_ && other == other_) {
        before = std::move(strips_); // the runs grew: keep unchanged strips
    }
    strips_.clear();
    run_ = key;
    other_ = other;
    next_ = 0;
    maxSteps_ = info == nullptr ? 0 : info->max_steps;
    qint64 all = 0;
    for (const SequenceInfo& sequence : context_.data.sequences(key)) {
        const qint64 tokens = std::clamp<qint64>(sequence.tokens, 0, most_tokens - all);
        all += tokens;
        const SequenceInfo* of_b =
            other.isValid() ? context_.data.sequenceInfo(other, sequence.number) : nullptr;
        Strip strip{sequence.number, tokens, of_b == nullptr ? 0 : of_b->tokens, {}, 0, 0};
        const std::size_t i = strips_.size();
        if (i < before.size() && before[i].sequence == strip.sequence && before[i].tokens == tokens &&
            before[i].other == strip.other) {
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
        const auto values = valuesOf(strip);
        if (!values) {
            wanted_ = static_cast<qint64>(next_);
            return; // continues at sequenceReady
        }
        take(strip, *values);
        if (strip.values.empty()) {
            strip.tokens = 0; // the trace has fewer tokens than it claims
        }
    }
    wanted_ = -1;
    place();
}

const CorpusMap::Strip* CorpusMap::stripOf(qint64 sequence) const {
    const auto found =
        std::lower_bound(strips_.begin(), strips_.end(), sequence,
                         [](const Strip& one, qint64 wanted) { return one.sequence < wanted; });
    return found == strips_.end() || found->sequence != sequence ? nullptr : &*found;
}

std::optional<TokenValues> CorpusMap::valuesOf(const Strip& strip) {
    const auto a = context_.data.sequence(run_, strip.sequence);
    const bool both = shown_.difference && strip.other > 0;
    const auto b = both ? context_.data.sequence(other_, strip.sequence) : nullptr;
    if (!a || (both && !b)) {
        held_ = {a, b}; // a small cache could drop one block while it reads the other
        return std::nullopt;
    }
    held_ = {};
    return shown_values({shown_.quantity, shown_.annotation, {}, shown_.difference}, *a, b.get(), maxSteps_,
                        context_.selection.attribution());
}

void CorpusMap::take(Strip& strip, const TokenValues& values) {
    strip.tokens = static_cast<qint64>(values.values.size());
    strip.values.resize(values.values.size());
    std::transform(values.values.begin(), values.values.end(), strip.values.begin(), bfloat16_of);
    viewport()->update();
}

QRgb CorpusMap::colourOf(qint64 sequence, qint64 token) const {
    const Strip* strip = stripOf(sequence);
    return strip == nullptr || strip->values.empty()
               ? context_.theme.colours().halted.rgb()
               : colours_[strip->values[static_cast<std::size_t>(token)]];
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
            u"Open a trace, or choose a run in the library, to see all sequences of the run at once."_s);
        return;
    }
    const qint64 wide = columns();
    const qint64 first = std::max<qint64>(0, (verticalScrollBar()->value() - margin) / cell_);
    const qint64 count = viewport()->height() / cell_ + 2;
    // The image has one pixel per cell and is scaled up once.
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

void CorpusMap::showEvent(QShowEvent* event) {
    QAbstractScrollArea::showEvent(event);
    if (context_.selection.runA() != run_ || (shown_.difference && context_.selection.runB() != other_)) {
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
            QToolTip::showText(help->globalPos(), plain_tip(about(at)), viewport());
        }
        return true;
    }
    return QAbstractScrollArea::viewportEvent(event);
}

QString CorpusMap::about(const Place& at) {
    QString text = u"sequence %1, token %2"_s.arg(format_count(at.sequence + 1), format_count(at.token));
    const Strip* strip = stripOf(at.sequence);
    const auto block = context_.data.sequence(run_, at.sequence);
    const auto values = strip == nullptr ? std::nullopt : valuesOf(*strip);
    const auto index = static_cast<std::size_t>(at.token);
    if (block && index < block->tokens.size()) {
        text += u" “%1”"_s.arg(visible_token_of(block->tokens, block->text, index, 24));
    }
    if (const QString value = values ? values->textAt(index) : QString(); !value.isEmpty()) {
        text += u'\n' + (shown_.annotation.isEmpty() ? quantity_name(shown_.quantity) : shown_.annotation) +
                (shown_.difference ? u" A − B "_s : u" "_s) + value;
    }
    return text;
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
        const int notches = wheel_.turn(*event);
        if (notches > 0 && cell_ == largest_cell) {
            Q_EMIT zoomedIn();
        } else {
            setCell(cell_ + notches);
        }
        event->accept();
        return;
    }
    QAbstractScrollArea::wheelEvent(event);
}

void CorpusMap::keyPressEvent(QKeyEvent* event) {
    if (event->key() == Qt::Key_Plus || event->key() == Qt::Key_Minus) {
        setCell(cell_ + (event->key() == Qt::Key_Plus ? 1 : -1));
        return;
    }
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
