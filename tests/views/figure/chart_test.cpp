// SPDX-License-Identifier: GPL-3.0-or-later
// What charts draw of made-up series, and how their colours are seen.
#include "core/policy/policy.h"
#include "tests/views/figure/figure_stage.h"
#include "views/chart/chart.h"
#include "views/chart/chart_axis.h"
#include "views/figure/chart_drawing.h"
#include "views/figure/parts.h"
#include "views/figure/vision.h"

#include <QtTest>

#include <algorithm>
#include <cmath>

using namespace Qt::StringLiterals;
using namespace ponderscope;
using namespace ponderscope::figure;

namespace {

/// A page with a chart alone, and the area between the axes.
struct Drawn {
    DisplayList list;
    QRectF plot;
};

} // namespace

class ChartTest : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void ticks() {
        QCOMPARE(ChartAxis(Chart::Axis(), {0, 10}, 5).ticks(), (std::vector<double>{0, 2, 4, 6, 8, 10}));
        QCOMPARE(tick_label(2, 0.5), u"2.0"_s);
        QCOMPARE(tick_label(-1.5), u"−1.5"_s);
    }

    /// Whatever the values, an axis has a few ticks, and a place for each of them.
    void axesOfAnyValues() {
        const double above = std::nextafter(2.5, 3.0);
        const std::vector<std::vector<double>> all{
            {},          {0, 0, 0},         {-1, -2},       {2.5, above},   {-above, -2.5},
            {5e-324, 0}, {1e17, 1e17 + 16}, {-3e38, 3e38},  {1e-38, 3e38},  {std::nan(""), HUGE_VAL},
            {1, 2},      {0, 1e-300},       {4, 4 + 1e-13}, {4, 4 + 1e-11},
        };
        using Limits = std::pair<std::optional<double>, std::optional<double>>;
        for (const std::vector<double>& values : all) {
            for (const bool log : {false, true}) {
                for (const bool whole : {false, true}) {
                    for (const Limits& limits : {Limits{}, {0, 1}, {-5, {}}, {{}, -3}, {7, {}}}) {
                        Chart chart;
                        chart.series.emplace_back();
                        chart.series.front().x = chart.series.front().y = values;
                        chart.x.log = log;
                        chart.x.whole = whole;
                        chart.x.low = limits.first;
                        chart.x.high = limits.second;
                        const ChartAxis axis(chart, true, 6);
                        QVERIFY(axis.ticks().size() <= 16);
                        for (const double tick : axis.ticks()) {
                            QVERIFY2(std::abs(axis.share(tick) - 0.5) <= 0.5 + 1e-6,
                                     qPrintable(u"tick %1 at %2"_s.arg(tick).arg(axis.share(tick))));
                            QVERIFY(!axis.label(tick).isEmpty());
                        }
                    }
                }
            }
        }
    }

    void manyCellsBecomeOneImage() {
        Chart chart;
        Chart::Series cells = Chart::Series::of(Chart::Mark::cell);
        for (int x = 0; x < 200; ++x) {
            for (int y = 0; y < 150; ++y) {
                cells.x.push_back(x);
                cells.y.push_back(y);
                cells.value.push_back((x + y) / 350.0);
            }
        }
        chart.series.push_back(cells);
        const Drawn page = drawn(chart, {300, 200});
        const auto images =
            std::count_if(page.list.items().begin(), page.list.items().end(),
                          [](const Item& item) { return std::holds_alternative<ImageItem>(item); });
        QCOMPARE(images, 1);
        for (const Item& item : page.list.items()) {
            if (const auto* image = std::get_if<ImageItem>(&item)) {
                QCOMPARE(image->image.size(), QSize(200, 150));
                QCOMPARE(image->image.pixel(0, 149), ColourMap::magnitude(MagnitudeMap::viridis).at(0));
            }
        }
    }

    void manySeriesLeaveRoomForThePlot() {
        // More of them than the palette has colours, each with a band, and a caveat of several lines.
        Chart chart;
        chart.note = u"What is halted changes no other token here, "_s.repeated(6).trimmed();
        const int colours = static_cast<int>(style_.runs.size());
        for (int i = 0; i < 2 * colours; ++i) {
            Chart::Series line = Chart::Series::of(Chart::Mark::line, i, u"a_rule_with_a_name %1"_s.arg(i));
            line.x = {0, 1};
            line.y = {0.0 + i, 1.0 + i};
            Chart::Series band = line;
            band.mark = Chart::Mark::band;
            band.name.clear();
            band.low = line.y;
            band.high = {2.0 + i, 3.0 + i};
            chart.series.push_back(line);
            chart.series.push_back(band);
            Chart::Series points = line;
            points.mark = Chart::Mark::point;
            points.name = u"unlisted"_s;
            points.listed = false;
            chart.series.push_back(points);
        }
        const double height = readable_height(style_, 238, chart, 8, 90);
        const Drawn page = drawn(chart, {238, height}, 8);
        QVERIFY2(page.plot.height() > 80, qPrintable(QString::number(page.plot.height())));
        const QString words = texts_of(page.list).join(u' ');
        std::vector<std::vector<double>> dashes;
        bool line_seen = false;
        for (const Item& item : page.list.items()) {
            const auto* path = std::get_if<PathItem>(&item);
            if (path != nullptr && path->fill.isValid() && path->path.boundingRect().width() > 100) {
                QVERIFY2(!line_seen, "a band that is painted over a line");
            }
            if (path != nullptr && path->stroke.width == 1.6 && path->path.boundingRect().width() > 100) {
                line_seen = true;
                dashes.push_back(path->stroke.dash);
            }
        }
        QVERIFY(line_seen);
        QVERIFY(!words.contains(u'…'));
        QVERIFY(!words.contains(u"unlisted"_s));
        QCOMPARE(words.count(u"halted"_s), 6);
        QCOMPARE(dashes.size(), static_cast<std::size_t>(2 * colours));
        QVERIFY(dashes[0].empty() && !dashes[static_cast<std::size_t>(colours)].empty());
        const std::string tikz = chart_pgfplots(chart, style_, 84, 52);
        QCOMPARE(QString::fromStdString(tikz).count(u"addlegendentry"_s), 2 * colours);
        QCOMPARE(QString::fromStdString(tikz).count(u"dash dot"_s), colours);
        // A chart of few series needs no more than its axes.
        chart.series.resize(3);
        chart.note.clear();
        QVERIFY(readable_height(style_, 238, chart, 8, 90) < 90 + 7 * style_.size);
    }

    void barsStandOnZeroAndSideBySide() {
        Chart chart;
        chart.dx = 0.5;
        chart.x.names = {u"one"_s, u"two"_s};
        const double height[] = {1, -0.5};
        for (int one = 0; one < 2; ++one) {
            Chart::Series bars = Chart::Series::of(Chart::Mark::bar, one);
            bars.x = {-0.25 + 0.5 * one, 0.75 + 0.5 * one};
            bars.y = {height[one], height[one]};
            chart.series.push_back(bars);
        }
        const Drawn page = drawn(chart, {300, 200});
        const auto drawn = [&](int ink) {
            std::vector<QRectF> found;
            for (const Item& item : page.list.items()) {
                const auto* rect = std::get_if<RectItem>(&item);
                if (rect != nullptr && rect->fill == style_.runs[static_cast<std::size_t>(ink)] &&
                    page.plot.contains(rect->rect.center()) && rect->rect.height() > 10) {
                    found.push_back(rect->rect);
                }
            }
            return found;
        };
        const std::vector<QRectF> up = drawn(0);
        const std::vector<QRectF> down = drawn(1);
        QCOMPARE(up.size(), 2U);
        QCOMPARE(down.size(), 2U);
        QVERIFY(up[0].bottom() < page.plot.bottom() - 10);
        QVERIFY(std::abs(up[0].bottom() - down[0].top()) < 1e-6);
        QVERIFY(std::abs(up[0].height() - 2 * down[0].height()) < 1e-6);
        QVERIFY(up[0].right() < down[0].left() && down[0].right() < up[1].left());
    }

    void logarithmicNumbersAreInTheUnitOfTheirTitle() {
        Chart chart;
        chart.x.label = u"FLOPs per token"_s;
        chart.x.si = chart.x.log = chart.y.log = true;
        Chart::Series line;
        line.x = {2.4e6, 1.13e7};
        line.y = {300, 66};
        chart.series.push_back(line);
        const Drawn page = drawn(chart, {238, 150});
        const QStringList words = texts_of(page.list);
        QVERIFY2(words.contains(u"FLOPs per token (M)"_s), qPrintable(words.join(u'|')));
        for (const char* tick : {"2", "5", "10", "20", "50", "100", "200", "500"}) {
            QVERIFY2(words.contains(QString::fromLatin1(tick)), qPrintable(words.join(u'|')));
        }
        // The numbers fill the axes, which do not end at powers of ten.
        for (const Item& item : page.list.items()) {
            const auto* path = std::get_if<PathItem>(&item);
            if (path != nullptr && path->stroke.width == 1.6) {
                QVERIFY(path->path.boundingRect().width() > 0.6 * page.plot.width());
                QVERIFY(path->path.boundingRect().height() > 0.6 * page.plot.height());
            }
        }
    }

    void aBandOfOnePlaceIsDrawn() {
        Chart chart;
        Chart::Series band = Chart::Series::of(Chart::Mark::band, Chart::a, u"middle half"_s);
        band.x = {0, 1, 2, 3};
        band.low = {1, 2, std::nan(""), 2};
        band.high = {3, 4, std::nan(""), 5};
        band.y = band.low;
        chart.series.push_back(band);
        const Drawn page = drawn(chart, {238, 150});
        const double third = page.plot.left() + page.plot.width();
        const bool found =
            std::any_of(page.list.items().begin(), page.list.items().end(), [&](const Item& item) {
                const auto* path = std::get_if<PathItem>(&item);
                return path != nullptr && path->stroke.width > 4 &&
                       std::abs(path->path.boundingRect().center().x() - third) < 10 &&
                       path->path.boundingRect().height() > 0.5 * page.plot.height();
            });
        QVERIFY(found);
        // In LaTeX as well, and nothing from one part to the other; neither do lines go on behind a gap.
        const QString tikz = QString::fromStdString(chart_pgfplots(chart, style_, 84, 52));
        QCOMPARE(tikz.count(u"\\addplot"_s), 2);
        QCOMPARE(tikz.count(u"addlegendentry"_s), 1);
        QVERIFY(tikz.contains(u"(1,4)\n    (1,2)\n"_s));
        QVERIFY(tikz.contains(u"unbounded coords=jump"_s));
    }

    void lettersStayOnThePage() {
        Chart chart;
        chart.y.label = u"share of Éphraïm"_s;
        Chart::Series line;
        line.x = line.y = {0, 1};
        chart.series.push_back(line);
        const Drawn page = drawn(chart, {238, 150});
        for (const Item& item : page.list.items()) {
            if (const auto* text = std::get_if<TextItem>(&item);
                text != nullptr && text->text == chart.y.label) {
                QVERIFY(text->at.y() >= fonts_.ascent(text->style));
            }
        }
        QVERIFY(texts_of(page.list).contains(chart.y.label));
    }

    void rulesAreToldApartWithoutGreenCones() {
        for (const bool dark : {false, true}) {
            std::vector<QColor> colours = rule_colours(dark);
            const std::size_t count = colours.size();
            QVERIFY(2 * count >= policy_kinds().size()); // two rounds: solid and dashed lines
            colours.push_back(
                Theme(dark ? Appearance::dark : Appearance::light).colours().text); // the blind rule
            QVERIFY(least_difference(colours, Vision::deuteranopia) > readable_difference);
            FigureSpec spec;
            spec.theme = dark ? "dark" : "light";
            const Style style(spec, fonts_);
            for (std::size_t rule = 0; rule < policy_kinds().size(); ++rule) {
                for (std::size_t other = 0; other < rule; ++other) {
                    const int one = Chart::rule + static_cast<int>(rule);
                    const int two = Chart::rule + static_cast<int>(other);
                    QVERIFY(ink_of(style, one) != ink_of(style, two) ||
                            round_of(style, one) != round_of(style, two));
                }
            }
        }
    }

    void bandsLetEachOtherShow() {
        Chart chart;
        for (const double at : {0.0, 0.2}) {
            Chart::Series band =
                Chart::Series::of(Chart::Mark::band, Chart::rule + static_cast<int>(10 * at));
            for (const double x : {0, 1, 2}) {
                band.add(x, at, at - 5, at + 5);
            }
            chart.series.push_back(band);
        }
        chart.y.low = -1; // cuts them
        chart.y.high = 1;
        const Drawn page = drawn(chart, {200, 150}, 2);
        int bands = 0;
        QRectF clip;
        for (const Item& item : page.list.items()) {
            if (const auto* begin = std::get_if<ClipBegin>(&item)) {
                clip = begin->rect;
            } else if (const auto* path = std::get_if<PathItem>(&item);
                       path != nullptr && path->fill.isValid()) {
                ++bands;
                QVERIFY(path->fill.alphaF() < 0.5);
                // None of it lies on the numbers of the axes.
                QVERIFY(page.plot.adjusted(-1.01, -1.01, 1.01, 1.01).contains(clip));
            }
        }
        QCOMPARE(bands, 2);
    }

    void visionIsSimulated() {
        const auto seen = [](const QColor& colour, Vision vision) {
            QImage image(1, 1, QImage::Format_RGB32);
            image.fill(colour);
            return as_seen(image, vision).pixelColor(0, 0);
        };
        QCOMPARE(seen(Qt::white, Vision::deuteranopia), QColor(Qt::white));
        QCOMPARE(seen(Qt::black, Vision::grey), QColor(Qt::black));
        const QColor grey = seen(QColor(200, 40, 90), Vision::grey);
        QCOMPARE(grey.red(), grey.green());
        // Red and green of one lightness: far apart, and alike without green cones.
        const std::vector<QColor> pair{QColor(0xb0, 0x60, 0x20), QColor(0x70, 0x88, 0x20)};
        QVERIFY(least_difference(pair, Vision::normal) > 2 * least_difference(pair, Vision::deuteranopia));
        std::vector<QColor> safe = palette_colours("okabe_ito", false);
        safe.resize(4);
        QVERIFY(least_difference(safe, Vision::deuteranopia) > readable_difference);
        QCOMPARE(std::isinf(least_difference({}, Vision::normal)), true);
    }

private:
    [[nodiscard]] Drawn drawn(const Chart& chart, QSizeF size, int note_lines = 1) const {
        Drawn page{DisplayList(size), {}};
        page.plot = draw_chart(page.list, style_, QRectF(QPointF(), size), chart, note_lines);
        return page;
    }

    Fonts fonts_ = Fonts::load();
    Style style_{FigureSpec{}, fonts_};
};

QTEST_MAIN(ChartTest)
#include "chart_test.moc"
