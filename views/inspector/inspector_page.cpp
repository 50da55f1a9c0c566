// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/inspector/inspector_page.h"

#include "views/common/colour_map.h"
#include "views/common/format.h"

#include <QPainter>
#include <QPainterPath>
#include <QTextBlockFormat>
#include <QTextCursor>
#include <QTextDocument>
#include <QUrl>

#include <algorithm>
#include <cmath>
#include <utility>

using namespace Qt::StringLiterals;

namespace ponderscope {
namespace {

constexpr int page_margin = 16;

/// The smallest and the largest of 0 and the curve's finite values.
std::pair<double, double> ends_of(const TokenReport::Curve& curve) {
    std::pair<double, double> ends{0, 0};
    for (const auto* values : {&curve.a, &curve.b}) {
        for (const double value : *values) {
            if (std::isfinite(value)) {
                ends = {std::min(ends.first, value), std::max(ends.second, value)};
            }
        }
    }
    return ends;
}

/// Writes a page of lines with cells at tab stops, so that copied text has tabs between the numbers.
class PageWriter {
public:
    PageWriter(QTextDocument& page, const Theme& of, int width)
        : theme(of), inner(std::max(width - 2 * page_margin - 1, 100)), page_(page), at_(&page) {
        page.clear();
        page.setDocumentMargin(page_margin);
        at_.beginEditBlock(); // one layout at the end
        for (const auto& [name, colour] :
             {std::pair{u"a"_s, of.colours().a}, {u"light"_s, of.colours().aLight}}) {
            QImage pixel(1, 1, QImage::Format_RGB32);
            pixel.fill(colour);
            page.addResource(QTextDocument::ImageResource, QUrl(name), pixel);
        }
    }

    ~PageWriter() { at_.endEditBlock(); }
    PageWriter(const PageWriter&) = delete;
    PageWriter& operator=(const PageWriter&) = delete;

    const Theme& theme;
    const int inner; ///< pixels between the margins

    /// Begins a line, \p above pixels below the last one. \p left, \p right: tab stops, ascending.
    void line(int above, const QList<int>& left, const QList<int>& right, const QColor& paper = {}) {
        QTextBlockFormat block;
        block.setTopMargin(above);
        QList<QTextOption::Tab> tabs;
        for (const int stop : left) {
            tabs << QTextOption::Tab(stop, QTextOption::LeftTab);
        }
        for (const int stop : right) {
            tabs << QTextOption::Tab(stop, QTextOption::RightTab);
        }
        block.setTabPositions(tabs);
        if (paper.isValid()) {
            block.setBackground(paper);
        }
        at_.position() == 0 ? at_.setBlockFormat(block) : at_.insertBlock(block);
    }
    void text(const QString& words, const QFont& font, const QColor& colour, const QString& link = {}) {
        QTextCharFormat format;
        format.setFont(font);
        format.setForeground(colour);
        if (!link.isEmpty()) {
            format.setAnchor(true);
            format.setAnchorHref(link);
        }
        at_.insertText(words, format);
    }
    void tab() { at_.insertText(u"\t"_s); }
    void image(const QString& name, double width, double height) {
        QTextImageFormat format;
        format.setName(name);
        format.setWidth(std::max(width, 1.0));
        format.setHeight(height);
        at_.insertImage(format);
    }
    void bar(double share, double width, bool emphasis) {
        if (std::isfinite(share) && share * width >= 0.5) {
            image(emphasis ? u"a"_s : u"light"_s, std::min(share, 1.0) * width, 9);
        }
    }
    void picture(const QImage& drawn) {
        const QString name = u"picture:%1"_s.arg(++pictures_);
        page_.addResource(QTextDocument::ImageResource, QUrl(name), drawn);
        image(name, drawn.deviceIndependentSize().width(), drawn.deviceIndependentSize().height());
    }
    void section(const QString& name, const QString& remark = {}, const QString& link = {}) {
        line(14, {}, {inner});
        text(name.toUpper(), theme.caps(), theme.colours().soft);
        if (!remark.isEmpty()) {
            tab();
            text(remark, theme.small(), theme.colours().soft, link);
        }
    }

private:
    QTextDocument& page_;
    QTextCursor at_;
    int pictures_ = 0;
};

void write_candidates(PageWriter& to, const TokenReport& report, bool expanded) {
    const Palette& colours = to.theme.colours();
    const QFontMetrics strong(to.theme.strong());
    to.section(u"Candidates by %1"_s.arg(report.step), expanded ? u"fewer"_s : u"more"_s, u"more"_s);
    // Words get the width that they need, but the bars stay long enough to compare.
    int words = 0;
    for (const TokenReport::Step& step : report.candidates) {
        for (const TokenReport::Candidate& candidate : step.candidates) {
            words = std::max(words, strong.horizontalAdvance(candidate.text) + 10);
        }
    }
    words = std::clamp(words, to.inner * 3 / 10, to.inner * 55 / 100);
    constexpr int number = 52;
    for (const TokenReport::Step& step : report.candidates) {
        to.line(5, {}, {});
        to.text(u"%1 %2"_s.arg(report.step).arg(step.step),
                step.selected ? to.theme.strong() : to.theme.body(),
                step.selected ? colours.text : colours.soft, u"step:%1"_s.arg(step.step));
        for (const TokenReport::Candidate& candidate : step.candidates) {
            const bool hit = candidate.target;
            to.line(0, {words}, {to.inner});
            to.text(strong.elidedText(candidate.text, Qt::ElideMiddle, words - 8),
                    hit ? to.theme.strong() : to.theme.body(), hit ? colours.a : colours.text);
            to.tab();
            to.bar(candidate.probability, to.inner - words - number, hit);
            to.tab();
            to.text(format_probability(candidate.probability), to.theme.small(),
                    hit ? colours.a : colours.text);
        }
    }
}

void write_gate(PageWriter& to, const TokenReport& report, const TokenReport::Curve& gate) {
    const Palette& colours = to.theme.colours();
    to.section(gate.title);
    const int number = 4 + QFontMetrics(to.theme.small()).horizontalAdvance(u"<0.0001"_s);
    const bool between = gate.name == QLatin1String(signal::gate);
    const QString pattern = report.step + (between ? u" 00 → 00 "_s : u" 00 "_s);
    const int names = std::max(to.inner * 3 / 10, QFontMetrics(to.theme.body()).horizontalAdvance(pattern));
    const double high = std::max(1.0, ends_of(gate).second);
    for (std::size_t k = 0; k < gate.a.size(); ++k) {
        to.line(0, {names}, {to.inner});
        to.text(between ? u"%1 %2 → %3"_s.arg(report.step).arg(k).arg(k + 1)
                        : u"%1 %2"_s.arg(report.step).arg(k),
                to.theme.body(), colours.soft);
        to.tab();
        to.bar(gate.a[k] / high, to.inner - names - number, true);
        to.tab();
        to.text(format_probability(gate.a[k]), to.theme.small(), colours.text);
    }
}

} // namespace

QImage curve_image(const TokenReport::Curve& curve, const Theme& theme, const QSize& size, qreal ratio) {
    const Palette& colours = theme.colours();
    QImage image(size * ratio, QImage::Format_RGB32);
    image.setDevicePixelRatio(ratio);
    image.fill(colours.panel);
    QPainter painter(&image);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setFont(theme.small());
    const QFontMetrics metrics(theme.small());
    const std::size_t steps = std::max({curve.a.size(), curve.b.size(), std::size_t{2}});
    const auto [least, most] = ends_of(curve);
    const double high = nice_ceiling(std::max(most, 1e-9));
    const double low = least < 0 ? -nice_ceiling(-least) : 0;
    const auto label = [](double value) { return format_number(value, 3); };
    const int number =
        std::max({34, metrics.horizontalAdvance(label(high)) + 8, metrics.horizontalAdvance(label(low)) + 8});
    const QRectF plot(number, 8, size.width() - number - 6, size.height() - 30);
    const auto at = [&](std::size_t step, double value) {
        return QPointF(plot.left() +
                           plot.width() * static_cast<double>(step) / static_cast<double>(steps - 1),
                       plot.bottom() - plot.height() * (value - low) / (high - low));
    };
    painter.setPen(theme.appearance() == Appearance::contrast ? colours.faint : colours.line); // as in charts
    for (const double share : {0.0, 0.5, 1.0}) {
        const double line = std::round(plot.bottom() - share * plot.height()) + 0.5;
        painter.drawLine(QPointF(plot.left(), line), QPointF(plot.right(), line));
    }
    painter.setPen(colours.soft);
    for (const double end : {high, low}) {
        painter.drawText(QRectF(0, at(0, end).y() - 8, number - 8, 16), Qt::AlignRight | Qt::AlignVCenter,
                         label(end));
    }
    for (std::size_t k = 0; k < steps; k += steps / 8 + 1) {
        painter.drawText(QRectF(at(k, low).x() - 14, plot.bottom() + 5, 28, 16),
                         Qt::AlignHCenter | Qt::AlignTop, QString::number(k));
    }
    const auto draw = [&](const std::vector<double>& values, const QColor& colour, bool dashed, bool level) {
        QPen pen(colour, dashed ? 1.6 : 2);
        if (dashed) {
            pen.setDashPattern({4, 2.5});
        }
        pen.setCapStyle(Qt::FlatCap);
        painter.setPen(pen);
        painter.setBrush(Qt::NoBrush);
        if (level && std::isfinite(values[0])) { // a run without steps: draws its value as a level
            painter.drawLine(at(0, values[0]), at(steps - 1, values[0]));
            return;
        }
        QPainterPath line;
        bool open = false;
        for (std::size_t k = 0; k < values.size(); ++k) {
            const bool known = std::isfinite(values[k]);
            if (known) {
                open ? line.lineTo(at(k, values[k])) : line.moveTo(at(k, values[k]));
            }
            open = known;
        }
        painter.drawPath(line);
        painter.setPen(Qt::NoPen);
        painter.setBrush(colour);
        for (std::size_t k = 0; k < values.size(); ++k) {
            if (std::isfinite(values[k])) {
                painter.drawEllipse(at(k, values[k]), 3.5, 3.5);
            }
        }
    };
    draw(curve.b, colours.b, true, curve.b.size() == 1);
    // A single value of A becomes a level only if B has steps.
    draw(curve.a, colours.a, false, curve.a.size() == 1 && curve.b.size() > 1);
    return image;
}

void write_report(QTextDocument& page, const TokenReport& report, const Theme& theme, int width,
                  bool expanded, qreal ratio) {
    const Palette& colours = theme.colours();
    PageWriter to(page, theme, width);
    if (report.token < 0) {
        to.section(u"Token"_s);
        to.line(8, {}, {});
        to.text(report.hint, theme.small(), colours.soft);
        return;
    }
    to.section(u"Token %1"_s.arg(report.token));
    to.line(0, {}, {});
    to.text(QFontMetrics(theme.headline()).elidedText(report.headline, Qt::ElideRight, to.inner),
            theme.headline(), colours.text);
    to.line(0, {}, {});
    to.text(report.subtitle, theme.small(), colours.soft);
    int above = 10;
    for (const TokenReport::Row& row : report.rows) {
        to.line(std::exchange(above, 4), {},
                report.hasB ? QList{to.inner * 3 / 5, to.inner} : QList{to.inner});
        to.text(row.label, theme.body(), colours.soft);
        to.tab();
        to.text(row.a, theme.strong(), colours.a);
        if (report.hasB) {
            to.tab();
            to.text(row.b, theme.strong(), colours.b);
        }
    }
    for (const QString& note : report.notes) {
        to.line(10, {}, {}, colours.warningPanel);
        to.text(note, theme.small(), colours.warningText);
    }
    if (!report.candidates.empty()) {
        write_candidates(to, report, expanded);
    }
    const auto write_curve = [&](const TokenReport::Curve& curve, int height) {
        const bool named = curve.unit.isEmpty() || curve.unit == QLatin1String("probability");
        to.section(named ? curve.title : u"%1 (%2)"_s.arg(curve.title, curve.unit));
        to.line(0, {}, {});
        to.picture(curve_image(curve, theme, QSize(to.inner, height), ratio));
    };
    auto curve = report.curves.begin();
    if (curve != report.curves.end() && curve->name == QLatin1String(signal::nll)) {
        write_curve(*curve++, 114);
    }
    for (const TokenReport::Curve& gate : report.gates) {
        write_gate(to, report, gate);
    }
    for (; curve != report.curves.end(); ++curve) {
        write_curve(*curve, 74);
    }
}

} // namespace ponderscope
