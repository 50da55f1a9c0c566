// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/inspector/inspector_canvas.h"

#include "views/common/colour_map.h"
#include "views/common/format.h"

#include <QAccessible>
#include <QApplication>
#include <QClipboard>
#include <QContextMenuEvent>
#include <QKeyEvent>
#include <QMenu>
#include <QMouseEvent>
#include <QPainter>
#include <QPainterPath>

#include <algorithm>
#include <cmath>

using namespace Qt::StringLiterals;

namespace ponderscope {
namespace {

constexpr int margin = 16;
constexpr int row_height = 21;

void write(QPainter* painter, const QRect& box, int alignment, const QFont& font, const QColor& colour,
           const QString& text, Qt::TextElideMode elide = Qt::ElideRight) {
    if (painter) {
        painter->setFont(font);
        painter->setPen(colour);
        painter->drawText(box, alignment | Qt::TextSingleLine,
                          QFontMetrics(font).elidedText(text, elide, box.width() + 1));
    }
}

void bar(QPainter* painter, const QRectF& groove, double share, const QColor& fill, const QColor& paper) {
    if (!painter) {
        return;
    }
    painter->setPen(Qt::NoPen);
    const double radius = 2.5;
    if (paper.isValid()) {
        painter->setBrush(paper);
        painter->drawRoundedRect(groove, radius, radius);
    }
    const double wide = groove.width() * std::clamp(share, 0.0, 1.0);
    if (wide >= 0.5) {
        painter->setBrush(fill);
        painter->drawRoundedRect(QRectF(groove.topLeft(), QSizeF(std::max(wide, 2.0), groove.height())),
                                 std::min(radius, wide / 2), radius);
    }
}

double largest(const std::vector<double>& values, double so_far) {
    for (const double value : values) {
        so_far = std::isfinite(value) ? std::max(so_far, value) : so_far;
    }
    return so_far;
}

double smallest(const std::vector<double>& values, double so_far) {
    for (const double value : values) {
        so_far = std::isfinite(value) ? std::min(so_far, value) : so_far;
    }
    return so_far;
}

} // namespace

InspectorCanvas::InspectorCanvas(Theme& theme, QWidget* parent) : QWidget(parent), theme_(theme) {
    setMouseTracking(true);
    setFocusPolicy(Qt::StrongFocus);
    setAccessibleName(u"Inspector"_s);
    QSizePolicy policy(QSizePolicy::Preferred, QSizePolicy::Preferred);
    policy.setHeightForWidth(true);
    setSizePolicy(policy);
    connect(&theme_, &Theme::changed, this, qOverload<>(&QWidget::update));
}

void InspectorCanvas::setReport(const TokenReport* report) {
    report_ = report;
    if (report) {
        setAccessibleName(report->token < 0 ? report->hint
                                            : u"Token %1: %2"_s.arg(report->token).arg(report->headline));
        setAccessibleDescription(QAccessible::isActive() ? text() : QString());
    }
    updateGeometry();
    update();
}

void InspectorCanvas::setExpanded(bool expanded) {
    expanded_ = expanded;
    update();
}

int InspectorCanvas::heightForWidth(int width) const {
    return pass(nullptr, width, nullptr);
}

void InspectorCanvas::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    painter.fillRect(rect(), theme_.colours().panel);
    painter.setRenderHint(QPainter::Antialiasing);
    pass(&painter, width(), nullptr);
    if (hasFocus()) {
        painter.setRenderHint(QPainter::Antialiasing, false);
        painter.setPen(theme_.colours().a);
        painter.setBrush(Qt::NoBrush);
        painter.drawRect(rect().adjusted(0, 0, -1, -1));
    }
}

QString InspectorCanvas::text() const {
    if (!report_ || report_->token < 0) {
        return {};
    }
    QStringList lines{u"Token %1"_s.arg(report_->token) + u'\t' + report_->headline};
    for (const TokenReport::Row& row : report_->rows) {
        lines << row.label + u'\t' + row.a + (report_->hasB ? u'\t' + row.b : QString());
    }
    for (const TokenReport::Step& step : report_->candidates) {
        for (const TokenReport::Candidate& one : step.candidates) {
            lines << u"%1 %2"_s.arg(report_->step).arg(step.step) + u'\t' + one.text + u'\t' +
                         format_probability(one.probability);
        }
    }
    for (const auto* curves : {&report_->curves, &report_->gates}) {
        for (const TokenReport::Curve& one : *curves) {
            const auto values = [&](const QString& run, const std::vector<double>& of) {
                QStringList numbers{one.title + u' ' + run};
                for (const double value : of) {
                    numbers << format_number(value, 4);
                }
                return numbers.join(u'\t');
            };
            lines << values(u"A"_s, one.a);
            if (!one.b.empty()) {
                lines << values(u"B"_s, one.b);
            }
        }
    }
    return lines.join(u'\n');
}

void InspectorCanvas::copy() const {
    const QString all = text();
    QApplication::clipboard()->setText(selected_ < 0 ? all
                                                     : all.section(u'\n', selected_ + 1, selected_ + 1));
}

void InspectorCanvas::selectRow(int row) {
    const int rows = report_ ? static_cast<int>(report_->rows.size()) : 0;
    selected_ = std::clamp(row, -1, rows - 1);
    update();
}

void InspectorCanvas::selectStep(int by) {
    if (!report_ || report_->candidates.empty()) {
        return;
    }
    const auto& steps = report_->candidates;
    const auto now =
        std::find_if(steps.begin(), steps.end(), [](const TokenReport::Step& one) { return one.selected; });
    const auto at =
        now == steps.end() ? static_cast<std::ptrdiff_t>(steps.size()) - 1 : now - steps.begin() + by;
    if (at >= 0 && at < static_cast<std::ptrdiff_t>(steps.size())) {
        Q_EMIT stepClicked(steps[static_cast<std::size_t>(at)].step);
    }
}

void InspectorCanvas::keyPressEvent(QKeyEvent* event) {
    if (event->matches(QKeySequence::Copy)) {
        copy();
        return;
    }
    switch (event->key()) {
    case Qt::Key_Down:
        selectRow(selected_ + 1);
        break;
    case Qt::Key_Up:
        selectRow(selected_ - 1);
        break;
    case Qt::Key_Left:
        selectStep(-1);
        break;
    case Qt::Key_Right:
        selectStep(1);
        break;
    case Qt::Key_Space:
        Q_EMIT candidatesClicked();
        break;
    default:
        QWidget::keyPressEvent(event);
    }
}

void InspectorCanvas::contextMenuEvent(QContextMenuEvent* event) {
    QMenu menu(this);
    menu.addAction(selected_ < 0 ? u"Copy Numbers"_s : u"Copy Number"_s, this, &InspectorCanvas::copy);
    menu.exec(event->globalPos());
}

int InspectorCanvas::section(QPainter* painter, int width, int y, const QString& name,
                             const QString& remark) const {
    const QRect box(margin, y, width - 2 * margin, 18);
    const QColor soft = theme_.colours().soft;
    write(painter, box, Qt::AlignLeft | Qt::AlignVCenter, theme_.caps(), soft, name.toUpper());
    if (!remark.isEmpty()) {
        write(painter, box, Qt::AlignRight | Qt::AlignVCenter, theme_.small(), soft, remark);
    }
    return y + 26;
}

int InspectorCanvas::paragraph(QPainter* painter, int width, int y, const QString& text, const QColor& colour,
                               const QColor& paper) const {
    const int inset = paper.isValid() ? 10 : 0;
    const QFontMetrics metrics(theme_.small());
    const QRect room(0, 0, width - 2 * margin - 2 * inset, 10'000);
    const int height =
        metrics.boundingRect(room, Qt::TextWordWrap, text).height() + (paper.isValid() ? 14 : 2);
    if (painter) {
        const QRect box(margin, y, width - 2 * margin, height);
        if (paper.isValid()) {
            painter->setPen(Qt::NoPen);
            painter->setBrush(paper);
            painter->drawRoundedRect(box, 4, 4);
        }
        painter->setFont(theme_.small());
        painter->setPen(colour);
        painter->drawText(box.adjusted(inset, 0, -inset, 0), Qt::AlignVCenter | Qt::TextWordWrap, text);
    }
    return y + height + 8;
}

int InspectorCanvas::numbers(QPainter* painter, int width, int y, Spots* spots) const {
    const Palette& colours = theme_.colours();
    const int right = width - margin;
    const int column = report_->hasB ? (width - 2 * margin) * 2 / 5 : 0;
    for (const TokenReport::Row& row : report_->rows) {
        const QRect box(0, y, width, row_height);
        if (spots) {
            spots->rows.push_back(box);
        }
        if (painter && &row - report_->rows.data() == selected_) {
            painter->fillRect(box, colours.selected);
        }
        write(painter, {margin, y, (width - 2 * margin) / 3, row_height}, Qt::AlignLeft | Qt::AlignVCenter,
              theme_.body(), colours.soft, row.label);
        write(painter, {margin, y, right - column - margin, row_height}, Qt::AlignRight | Qt::AlignVCenter,
              theme_.strong(), colours.a, row.a);
        if (report_->hasB) {
            write(painter, {right - column, y, column, row_height}, Qt::AlignRight | Qt::AlignVCenter,
                  theme_.strong(), colours.b, row.b);
        }
        y += row_height;
    }
    return y + 14;
}

int InspectorCanvas::candidates(QPainter* painter, int width, int y, Spots* spots) const {
    const Palette& colours = theme_.colours();
    if (spots) {
        spots->candidates = QRect(0, y - 4, width, 26);
    }
    y = section(painter, width, y, u"Candidates by %1"_s.arg(report_->step),
                expanded_ ? u"fewer"_s : u"more"_s);
    const int inner = width - 2 * margin;
    // The words have the room that they need, as long as the bars can be told apart.
    const QFontMetrics strong(theme_.strong());
    int words = 0;
    for (const TokenReport::Step& step : report_->candidates) {
        for (const TokenReport::Candidate& candidate : step.candidates) {
            words = std::max(words, strong.horizontalAdvance(candidate.text) + 10);
        }
    }
    words = std::clamp(words, inner * 3 / 10, inner * 55 / 100);
    const int bar_left = margin + words;
    const int number = 52;
    const int bar_width = inner - words - number;
    for (const TokenReport::Step& step : report_->candidates) {
        const int top = y;
        write(painter, {margin, y, inner, 18}, Qt::AlignLeft | Qt::AlignVCenter,
              step.selected ? theme_.strong() : theme_.body(), step.selected ? colours.text : colours.soft,
              u"%1 %2"_s.arg(report_->step).arg(step.step));
        y += 19;
        for (const TokenReport::Candidate& candidate : step.candidates) {
            const bool hit = candidate.target;
            write(painter, {margin, y, bar_left - margin - 8, 18}, Qt::AlignLeft | Qt::AlignVCenter,
                  hit ? theme_.strong() : theme_.body(), hit ? colours.a : colours.text, candidate.text,
                  Qt::ElideMiddle);
            bar(painter, QRectF(bar_left, y + 4, bar_width, 10), candidate.probability,
                hit ? colours.a : colours.aLight, QColor());
            write(painter, {width - margin - number, y, number, 18}, Qt::AlignRight | Qt::AlignVCenter,
                  theme_.small(), hit ? colours.a : colours.text, format_probability(candidate.probability));
            y += 18;
        }
        y += 5;
        if (spots) {
            spots->steps.emplace_back(QRect(0, top, width, y - top), step.step);
        }
    }
    return y + 12;
}

int InspectorCanvas::curve(QPainter* painter, int width, int y, const TokenReport::Curve& curve,
                           int height) const {
    const Palette& colours = theme_.colours();
    QString title = curve.title;
    if (!curve.unit.isEmpty() && curve.unit != QLatin1String("probability")) {
        title += u" (%1)"_s.arg(curve.unit);
    }
    y = section(painter, width, y, title);
    const std::size_t steps = std::max({curve.a.size(), curve.b.size(), std::size_t{2}});
    const double high = nice_ceiling(std::max(largest(curve.b, largest(curve.a, 0)), 1e-9));
    const double least = smallest(curve.b, smallest(curve.a, 0));
    const double low = least < 0 ? -nice_ceiling(-least) : 0;
    const auto label = [](double value) { return format_number(value, 3); };
    const QFontMetrics metrics(theme_.small());
    const int number =
        std::max({34, metrics.horizontalAdvance(label(high)) + 8, metrics.horizontalAdvance(label(low)) + 8});
    const QRectF plot(margin + number, y + 4, width - 2 * margin - number - 6, height);
    const auto at = [&](std::size_t step, double value) {
        return QPointF(plot.left() +
                           plot.width() * static_cast<double>(step) / static_cast<double>(steps - 1),
                       plot.bottom() - plot.height() * (value - low) / (high - low));
    };
    if (painter) {
        painter->setPen(QPen(colours.line, 1));
        for (const double share : {0.0, 0.5, 1.0}) {
            const double line = std::round(plot.bottom() - share * plot.height()) + 0.5;
            painter->drawLine(QPointF(plot.left(), line), QPointF(plot.right(), line));
        }
        const auto end = [&](double value, double where) {
            write(painter, QRect(margin, static_cast<int>(where) - 8, number - 8, 16),
                  Qt::AlignRight | Qt::AlignVCenter, theme_.small(), colours.soft, label(value));
        };
        end(high, plot.top());
        end(low, plot.bottom());
        const auto draw = [&](const std::vector<double>& values, const QColor& colour, bool dashed) {
            QPen pen(colour, dashed ? 1.6 : 2);
            if (dashed) {
                pen.setDashPattern({4, 2.5});
            }
            pen.setCapStyle(Qt::FlatCap);
            painter->setPen(pen);
            painter->setBrush(Qt::NoBrush);
            if (values.size() == 1 &&
                std::isfinite(values[0])) { // a run without steps: a level to compare with
                painter->drawLine(at(0, values[0]), at(steps - 1, values[0]));
                return;
            }
            QPainterPath line;
            bool open = false;
            for (std::size_t k = 0; k < values.size(); ++k) {
                if (!std::isfinite(values[k])) {
                    open = false;
                } else if (open) {
                    line.lineTo(at(k, values[k]));
                } else {
                    line.moveTo(at(k, values[k]));
                    open = true;
                }
            }
            painter->drawPath(line);
            painter->setPen(Qt::NoPen);
            painter->setBrush(colour);
            for (std::size_t k = 0; k < values.size(); ++k) {
                if (std::isfinite(values[k])) {
                    painter->drawEllipse(at(k, values[k]), 3.5, 3.5);
                }
            }
        };
        draw(curve.b, colours.b, true);
        // A single dot of A is a level only beside a B that has steps.
        if (curve.a.size() == 1 && curve.b.size() <= 1) {
            painter->setPen(Qt::NoPen);
            painter->setBrush(colours.a);
            if (std::isfinite(curve.a[0])) {
                painter->drawEllipse(at(0, curve.a[0]), 3.5, 3.5);
            }
        } else {
            draw(curve.a, colours.a, false);
        }
        const std::size_t every = steps / 8 + 1;
        for (std::size_t k = 0; k < steps; k += every) {
            write(painter,
                  QRect(static_cast<int>(at(k, low).x()) - 14, static_cast<int>(plot.bottom()) + 5, 28, 16),
                  Qt::AlignHCenter | Qt::AlignTop, theme_.small(), colours.soft, QString::number(k));
        }
    }
    return y + 4 + height + 34;
}

int InspectorCanvas::gates(QPainter* painter, int width, int y) const {
    const Palette& colours = theme_.colours();
    for (const TokenReport::Curve& gate : report_->gates) {
        y = section(painter, width, y, gate.title);
        const int inner = width - 2 * margin;
        const int number = 4 + QFontMetrics(theme_.small()).horizontalAdvance(u"<0.0001"_s);
        const bool between = gate.name == QLatin1String(signal::gate);
        const double high = std::max(1.0, largest(gate.a, 0));
        for (std::size_t k = 0; k < gate.a.size(); ++k) {
            write(painter, {margin, y, inner * 3 / 10, row_height}, Qt::AlignLeft | Qt::AlignVCenter,
                  theme_.body(), colours.soft,
                  between ? u"%1 %2 → %3"_s.arg(report_->step).arg(k).arg(k + 1)
                          : u"%1 %2"_s.arg(report_->step).arg(k));
            const int left = margin + inner * 3 / 10;
            const bool known = std::isfinite(gate.a[k]);
            bar(painter, QRect(left, y + 6, inner - inner * 3 / 10 - number, 9), known ? gate.a[k] / high : 0,
                colours.a, colours.field);
            write(painter, {width - margin - number, y, number, row_height},
                  Qt::AlignRight | Qt::AlignVCenter, theme_.small(), colours.text,
                  format_probability(gate.a[k]));
            y += row_height;
        }
        y += 12;
    }
    return y;
}

int InspectorCanvas::pass(QPainter* painter, int width, Spots* spots) const {
    if (!report_) {
        return 40;
    }
    const Palette& colours = theme_.colours();
    int y = 14;
    if (report_->token < 0) {
        y = section(painter, width, y, u"Token"_s);
        return paragraph(painter, width, y, report_->hint, colours.soft, QColor()) + margin;
    }
    y = section(painter, width, y, u"Token %1"_s.arg(report_->token)) - 4;
    write(painter, {margin, y, width - 2 * margin, 32}, Qt::AlignLeft | Qt::AlignVCenter, theme_.headline(),
          colours.text, report_->headline);
    y += 36;
    write(painter, {margin, y, width - 2 * margin, 18}, Qt::AlignLeft | Qt::AlignVCenter, theme_.small(),
          colours.soft, report_->subtitle);
    y += 28;
    y = numbers(painter, width, y, spots);
    for (const QString& note : report_->notes) {
        y = paragraph(painter, width, y, note, colours.warningText, colours.warningPanel);
    }
    if (!report_->candidates.empty()) {
        y = candidates(painter, width, y, spots);
    }
    const bool nll_first =
        !report_->curves.empty() && report_->curves.front().name == QLatin1String(signal::nll);
    if (nll_first) {
        y = curve(painter, width, y, report_->curves.front(), 84);
    }
    y = gates(painter, width, y);
    for (std::size_t i = nll_first ? 1 : 0; i < report_->curves.size(); ++i) {
        y = curve(painter, width, y, report_->curves[i], 44);
    }
    return y + margin;
}

void InspectorCanvas::mousePressEvent(QMouseEvent* event) {
    if (event->button() != Qt::LeftButton || !report_) {
        return;
    }
    Spots spots;
    pass(nullptr, width(), &spots);
    const auto row = std::find_if(spots.rows.begin(), spots.rows.end(), [&](const QRect& box) {
        return box.contains(event->position().toPoint());
    });
    selectRow(row == spots.rows.end() ? -1 : static_cast<int>(row - spots.rows.begin()));
    if (spots.candidates.contains(event->position().toPoint())) {
        Q_EMIT candidatesClicked();
        return;
    }
    for (const auto& [box, step] : spots.steps) {
        if (box.contains(event->position().toPoint())) {
            Q_EMIT stepClicked(step);
            return;
        }
    }
}

void InspectorCanvas::mouseMoveEvent(QMouseEvent* event) {
    Spots spots;
    pass(nullptr, width(), &spots);
    setCursor(spots.candidates.contains(event->position().toPoint()) ? Qt::PointingHandCursor
                                                                     : Qt::ArrowCursor);
}

} // namespace ponderscope
