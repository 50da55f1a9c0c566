// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/views/text/text_stage.h"
#include "views/common/format.h"
#include "views/text/find_bar.h"
#include "views/text/legend.h"
#include "views/text/minimap.h"
#include "views/text/span_bar.h"

#include <QApplication>
#include <QClipboard>
#include <QDialog>
#include <QDialogButtonBox>
#include <QDoubleSpinBox>
#include <QPushButton>
#include <QScrollBar>
#include <QTest>

#include <algorithm>
#include <cmath>
#include <set>

using namespace Qt::StringLiterals;
using namespace ponderscope;
using testing::list_called;
using testing::Stage;

class TextViewTest : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void clickPinsAndHoverShows() {
        Stage stage({.sequences = 1, .tokens = 900});
        const QRectF box = stage.view().tokenRect(12);
        QVERIFY(!box.isEmpty());
        QCOMPARE(stage.view().tokenAt(box.center()), 12);
        QTest::mouseMove(stage.view().viewport(), box.center().toPoint());
        QTRY_COMPARE(stage.selection.hover(), 12);
        QTest::mouseClick(stage.view().viewport(), Qt::LeftButton, {}, box.center().toPoint());
        QCOMPARE(stage.selection.token(), 12);
        QTest::mouseClick(stage.view().viewport(), Qt::LeftButton, {}, box.center().toPoint());
        QCOMPARE(stage.selection.token(), -1);
    }

    void draggingAndShiftChooseASpan() {
        Stage stage({.sequences = 2, .tokens = 900});
        TextView& view = stage.view();
        const auto middle = [&](qint64 token) { return view.tokenRect(token).center().toPoint(); };
        QSignalSpy changed(&view, &TextView::spanChanged);
        QTest::mousePress(view.viewport(), Qt::LeftButton, {}, middle(5));
        QTest::mouseMove(view.viewport(), middle(9));
        QTest::mouseMove(view.viewport(), middle(14));
        QTest::mouseRelease(view.viewport(), Qt::LeftButton, {}, middle(14));
        QCOMPARE(view.span(), (TokenSpan{5, 15}));
        QCOMPARE(stage.selection.token(), 14);
        QVERIFY(changed.count() >= 2);
        QTest::mouseClick(view.viewport(), Qt::LeftButton, Qt::ShiftModifier,
                          middle(3)); // from where it began
        QCOMPARE(view.span(), (TokenSpan{3, 6}));
        QTest::keyClick(&view, Qt::Key_Left, Qt::ShiftModifier);
        QCOMPARE(view.span(), (TokenSpan{2, 6}));
        QTest::keyClick(&view, Qt::Key_Escape); // the span, then the token
        QVERIFY(view.span().isEmpty());
        QCOMPARE(stage.selection.token(), 2);
        QTest::keyClick(&view, Qt::Key_Down, Qt::ShiftModifier);
        QVERIFY(view.span().first == 2 && view.span().size() > 3);
        // The figure is of the span, and another view's choice ends it.
        const auto spec = stage.panel.figureSpec(figure::FigureKind::token_text);
        QCOMPARE((*spec.tokens)[1], view.span().last);
        stage.selection.setToken(40);
        QVERIFY(view.span().isEmpty());
        view.setSpan({7, 20});
        QCOMPARE(view.span(), (TokenSpan{7, 20}));
        stage.selection.setSequence(1);
        QVERIFY(view.span().isEmpty());
    }

    void aSpanSaysWhatItIs() {
        Stage stage({.sequences = 1, .tokens = 2000});
        SpanBar& bar = stage.panel.spanBar();
        QVERIFY(!bar.isVisible());
        stage.view().setSpan({100, 900});
        QVERIFY(bar.isVisible());
        QTRY_VERIFY(bar.said().contains(u"NLL"_s));
        stage.selection.setRunB(stage.run(1)); // nobody has read it
        QTRY_VERIFY(bar.said().contains(u"NLL of A − B"_s));
        const auto a = stage.data.sequence(stage.selection.runA(), 0);
        const auto b = stage.data.sequence(stage.selection.runB(), 0);
        double nll = 0;
        double difference = 0;
        for (std::size_t row = 99; row < 899; ++row) { // at the token that was predicted
            nll += a->tokens.nll[row];
            difference += a->tokens.nll[row] - b->tokens.nll[row];
        }
        const SpanMeans all = span_means(*a, b.get(), 3, {100, 900}, Attribution::predicted);
        QVERIFY(qAbs(all.nll - nll / 800) < 1e-4 && qAbs(all.difference - difference / 800) < 1e-4);
        QVERIFY2(bar.said().contains(describe_span(all, {100, 900})), qPrintable(bar.said()));
        // The first token has no NLL.
        const SpanMeans few = span_means(*a, nullptr, 3, {0, 4}, Attribution::predicted);
        QCOMPARE(few.scored, 3);
        QVERIFY(std::isnan(few.difference));
        QVERIFY(std::isnan(span_means(*a, nullptr, 0, {0, 1}, Attribution::predicted).nll));
        // A writer that gave no entropy gave losses all the same.
        SequenceData bare = *a;
        std::fill(bare.tokens.entropy.begin() + 300, bare.tokens.entropy.end(), std::nanf(""));
        const SpanMeans without = span_means(bare, b.get(), 3, {100, 900}, Attribution::predicted);
        QCOMPARE(without.scored, all.scored);
        QCOMPARE(without.nll, all.nll);
        QCOMPARE(without.difference, all.difference);
        QVERIFY(std::isnan(without.entropy) && !std::isnan(all.entropy));
        // A B of other tokens is not compared.
        SequenceData other = *b;
        other.tokens.id[150] += 1;
        QVERIFY(std::isnan(span_means(*a, &other, 3, {100, 900}, Attribution::predicted).difference));
        // Compare takes the rows of the span.
        QSignalSpy sent(&bar, &SpanBar::sent);
        testing::click(bar, u"Compare"_s);
        QCOMPARE(sent.size(), 1);
        const auto rows = sent[0][0].value<TokenSubset>().rows.at(0);
        QVERIFY(rows.size() == 800 && rows.front() == 99);
        stage.selection.setRunB({});
        QTRY_VERIFY2(!bar.said().contains(u"NLL of A − B"_s), qPrintable(bar.said()));
        stage.view().setSpan({});
        QVERIFY(!bar.isVisible());
    }

    void theMinimapShowsTheWholeSequence() {
        Stage stage({.sequences = 1, .tokens = 4000});
        TextView& view = stage.view();
        auto* map = view.findChild<Minimap*>();
        const auto shown = [map](int from, int to) { // colours of these columns
            const QImage image = map->grab().toImage();
            std::set<QRgb> colours;
            for (int x = from; x < to; ++x) {
                for (int y = 0; y < image.height(); ++y) {
                    colours.insert(image.pixel(x, y));
                }
            }
            return colours;
        };
        const int edge = map->width() - 7;
        const std::set<QRgb> nll = shown(8, edge - 1);
        QVERIFY2(nll.size() > 20, qPrintable(QString::number(nll.size())));
        stage.panel.setQuantity(Quantity::steps);
        QVERIFY(shown(8, edge - 1) != nll);
        const QImage unmarked = map->grab().toImage();
        view.setMarks({3000});
        QVERIFY(map->grab().toImage() != unmarked);
        QTest::mouseClick(map, Qt::LeftButton, {}, QPoint(map->width() / 2, map->height() - 9));
        QVERIFY2(view.endVisibleToken() > 3900, qPrintable(QString::number(view.endVisibleToken())));
    }

    void aSpanIsCopiedAndLabelled() {
        Stage stage(
            {.sequences = 2, .tokens = 60, .texts = {"A 50 % & 漢字 _x_ 😀 end.\nNext", "Other text"}});
        const auto shown = stage.view().sequence();
        const TokenSpan all{0, static_cast<qint64>(shown->tokens.size())};
        stage.view().setSpan(all);
        SpanBar& bar = stage.panel.spanBar();
        bar.copy();
        QCOMPARE(QApplication::clipboard()->text(), u"A 50 % & 漢字 _x_ 😀 end.\nNext"_s);
        // A label is an annotation; what other spans were called stays.
        QSignalSpy problem(&stage.panel, &TextPanel::failed);
        const auto labelled = [&](TokenSpan span, const char* name) {
            stage.view().setSpan(span);
            bar.label(stage.selection.runA(), 0, stage.view().span(), u"part"_s, QString::fromLatin1(name));
            return QTest::qWaitFor([&] { return !bar.isBusy(); });
        };
        QVERIFY(labelled({0, 2}, "first") && labelled({3, 5}, "second"));
        const auto annotation = [&] {
            const auto block = stage.view().sequence();
            return block ? block->annotation(u"part"_s) : nullptr;
        };
        QTRY_VERIFY(annotation() && annotation()->classes.size() == 2);
        QCOMPARE(format_annotation(*annotation(), 1), u"first"_s);
        QCOMPARE(format_annotation(*annotation(), 2), QString());
        QCOMPARE(format_annotation(*annotation(), 4), u"second"_s);
        QVERIFY(labelled({3, 5}, ""));
        QTRY_COMPARE(format_annotation(*annotation(), 4), QString());
        QCOMPARE(problem.count(), 0);
        bar.label(stage.selection.runA(), 0, stage.view().span(), u"no name!"_s, u"x"_s);
        QTRY_COMPARE(problem.count(), 1);
    }

    void theDifferenceTakesThePlaceOfAReplay() {
        Stage stage({.sequences = 1, .tokens = 100});
        TextView& view = stage.view();
        stage.selection.setRunB(stage.run(1));
        view.setReplay({stage.selection.runA(), 0, u"fixed:n=2"_s, 3,
                        std::vector<std::int32_t>(view.sequence()->tokens.size(), 2)});
        QVERIFY(view.showsReplay());
        const QSignalSpy dismissed(&stage.panel, &TextPanel::replayDismissed);
        stage.panel.setDifference(true);
        QVERIFY(!view.showsReplay() && !dismissed.isEmpty());
        QVERIFY(view.values().difference && view.values().replay.isEmpty());
    }

    void aHeldScaleHolds() {
        Stage stage({.sequences = 2, .tokens = 300});
        stage.panel.resize(1500, 500); // room for the legend
        TextView& view = stage.view();
        const double high = view.values().scale.high;
        // The legend asks; what is typed holds.
        QTimer::singleShot(0, [&] {
            auto* dialog = qobject_cast<QDialog*>(QApplication::activeModalWidget());
            QVERIFY(dialog != nullptr);
            const auto fields = dialog->findChildren<QDoubleSpinBox*>();
            QCOMPARE(fields.size(), 2);
            QCOMPARE(fields[1]->value(), high);
            auto* buttons = dialog->findChild<QDialogButtonBox*>();
            fields[1]->setValue(-1);
            QVERIFY(!buttons->button(QDialogButtonBox::Ok)->isEnabled());
            fields[0]->setValue(1);
            fields[1]->setValue(3);
            buttons->button(QDialogButtonBox::Ok)->click();
        });
        QTest::mouseClick(&stage.panel.legend(), Qt::LeftButton, {}, QPoint(20, 10));
        QVERIFY(view.values().held);
        QCOMPARE(view.values().scale.low, 1.0);
        QCOMPARE(view.values().scale.high, 3.0);
        stage.selection.setSequence(1);
        QVERIFY(QTest::qWaitFor([&] { return view.sequence() && view.sequence()->sequence == 1; }));
        QCOMPARE(view.values().scale.high, 3.0);
        const auto spec = stage.panel.figureSpec(figure::FigureKind::token_text);
        QCOMPARE((*spec.range)[1], 3.0);
        // Another quantity has its own, and so has the difference.
        stage.panel.setQuantity(Quantity::entropy);
        QVERIFY(!view.values().held && !stage.panel.figureSpec(figure::FigureKind::token_text).range);
        stage.panel.setQuantity(Quantity::nll);
        QVERIFY(view.values().held);
        stage.selection.setRunB(stage.run(1));
        stage.panel.setDifference(true);
        QVERIFY(!view.values().held);
        QVERIFY(stage.panel.viewCommand().kind == ViewCommand::Kind::shell);
        // A figure of A − B takes the ends of the difference, and names it.
        stage.panel.setQuantity(Quantity::entropy);
        view.setRange(std::array{-2.0, 2.0});
        const auto difference = stage.panel.figureSpec(figure::FigureKind::token_text);
        QCOMPARE((*difference.range)[1], 2.0);
        QVERIFY(difference.quantity == figure::TokenColour(Quantity::entropy, true));
        QVERIFY(stage.panel.viewCommand().text.contains(u"entropy_difference"_s));
        stage.panel.setDifference(false); // entropy itself has not the ends of its difference
        QVERIFY(!stage.panel.figureSpec(figure::FigureKind::token_text).range);
        stage.panel.setDifference(true);
        stage.panel.setQuantity(Quantity::nll);
        stage.panel.setDifference(false);
        view.setRange({});
        QVERIFY(!view.values().held);
        view.setRange(std::array{0.0, 100.0});
        stage.panel.setQuantity(Quantity::rank); // no logarithm of zero
        view.setRange(std::array{0.0, 100.0});
        QVERIFY(!view.values().scale.logarithmic);
    }

    void theSelectionIsAnOutlineNotAFill() {
        Stage stage({.sequences = 1, .tokens = 900});
        const QRectF box = stage.view().tokenRect(12);
        const QPoint inside(static_cast<int>(box.left()) + 2, static_cast<int>(box.center().y()));
        const QRgb before = stage.view().viewport()->grab().toImage().pixel(inside);
        stage.selection.setToken(12);
        const QImage after = stage.view().viewport()->grab().toImage();
        QCOMPARE(after.pixel(inside), before);
        const QRgb rim = after.pixel(static_cast<int>(box.center().x()), static_cast<int>(box.top()) - 2);
        QCOMPARE(rim, stage.theme.colours().a.rgb());
    }

    void keysMoveAndTheViewFollows() {
        Stage stage({.sequences = 1, .tokens = 5000});
        TextView& view = stage.view();
        view.setFocus();
        QTest::keyClick(&view, Qt::Key_Right);
        QCOMPARE(stage.selection.token(), 0);
        QTest::keyClick(&view, Qt::Key_Right);
        QCOMPARE(stage.selection.token(), 1);
        QTest::keyClick(&view, Qt::Key_Left);
        QTest::keyClick(&view, Qt::Key_Left);
        QCOMPARE(stage.selection.token(), 0);
        QTest::keyClick(&view, Qt::Key_Down);
        QCOMPARE(view.layoutOfText().lineOf(stage.selection.token()), 1);
        QTest::keyClick(&view, Qt::Key_End, Qt::ControlModifier);
        QCOMPARE(stage.selection.token(), 4999);
        QVERIFY(view.viewport()->rect().contains(view.tokenRect(4999).toAlignedRect()));
        QTest::keyClick(&view, Qt::Key_PageUp);
        QVERIFY(stage.selection.token() < 4999);
        QVERIFY(view.viewport()->rect().contains(view.tokenRect(stage.selection.token()).toAlignedRect()));
        QTest::keyClick(&view, Qt::Key_Home, Qt::ControlModifier);
        QCOMPARE(stage.selection.token(), 0);
        QCOMPARE(view.verticalScrollBar()->value(), 0);
        QTest::keyClick(&view, Qt::Key_Escape);
        QCOMPARE(stage.selection.token(), -1);
    }

    void aJumpBeforeItIsPlacedArrives() {
        Stage stage({.sequences = 1, .tokens = 120'000, .secondRun = false, .withSignals = false}, false);
        QVERIFY(QTest::qWaitFor([&] { return stage.view().sequence() != nullptr; }, 10'000));
        stage.selection.setToken(119'000);
        stage.settle();
        QTRY_VERIFY(
            stage.view().viewport()->rect().contains(stage.view().tokenRect(119'000).toAlignedRect()));
    }

    void scrolledPicturesEqualAWholePicture() {
        Stage stage({.sequences = 1, .tokens = 700});
        // The same lines, once scrolled into a small view and once in a view that holds all of the text.
        const QRectF box = stage.view().tokenRect(400);
        QVERIFY(box.isEmpty() || box.top() > stage.view().viewport()->height() || box.top() >= 0);
        stage.view().scrollTo(400);
        const QRectF small = stage.view().tokenRect(400);
        const QImage part =
            stage.view().viewport()->grab(QRect(0, static_cast<int>(small.top()) - 4, 700, 34)).toImage();
        stage.panel.resize(800, 6000);
        stage.settle();
        stage.view().verticalScrollBar()->setValue(0);
        const QRectF tall = stage.view().tokenRect(400);
        const QImage whole =
            stage.view().viewport()->grab(QRect(0, static_cast<int>(tall.top()) - 4, 700, 34)).toImage();
        QCOMPARE(part.size(), whole.size());
        for (int y = 0; y < part.height(); ++y) {
            for (int x = 0; x < part.width(); ++x) {
                // Smoothed edges may round otherwise at another height of the page.
                const QColor one = part.pixelColor(x, y);
                const QColor two = whole.pixelColor(x, y);
                const int apart = std::abs(one.red() - two.red()) + std::abs(one.green() - two.green()) +
                                  std::abs(one.blue() - two.blue());
                QVERIFY2(apart <= 24, qPrintable(u"%1,%2"_s.arg(x).arg(y)));
            }
        }
    }

    void quantitiesLegendAndDifference() {
        Stage stage({.sequences = 1, .tokens = 900});
        QVERIFY(stage.panel.legend().meaning().contains(u"surprise"_s));
        stage.panel.setQuantity(Quantity::steps);
        QCOMPARE(stage.view().values().scale.high, 3.0);
        stage.panel.setQuantity(Quantity::nll);
        stage.panel.setDifference(true);
        QVERIFY(!stage.view().values().notice.isEmpty()); // no B yet
        QCOMPARE(stage.panel.legend().meaning(), stage.view().values().notice);
        QCOMPARE(stage.panel.notice(), stage.view().values().notice + u'.'); // over the text, too
        stage.selection.setRunB(stage.run(1));
        QVERIFY(stage.panel.notice().isEmpty()); // it is being read
        QTRY_VERIFY(std::isfinite(stage.view().values().values[5]));
        QVERIFY(stage.panel.notice().isEmpty());
        // A B over another text.
        stage.open(stage.write("other.ponder", {.seed = 7, .sequences = 1, .tokens = 900}));
        stage.selection.setRunB(stage.run(0));
        QTRY_VERIFY(!stage.panel.notice().isEmpty());
        stage.panel.setDifference(false);
        QVERIFY(stage.panel.notice().isEmpty());
    }

    void differencesBelowWhatTheMeanIsKnownToStayPale() {
        const auto made = [](float shift) {
            SequenceData data;
            for (int i = 0; i < 400; ++i) {
                data.tokens.id.push_back(i);
                data.tokens.nll.push_back(3 + 2 * std::sin(static_cast<float>(i)) +
                                          shift * (i % 2 == 0 ? 1.0F : -1.0F));
            }
            return data;
        };
        const SequenceData a = made(0);
        // Rounding of the last digits is no picture: the mean of A is known to 1.96 * sqrt(2) / 20 = 0.139.
        const SequenceData rounded = made(1e-5F);
        QCOMPARE(token_differences(Quantity::nll, a, &rounded, Attribution::predicting).scale.high, 0.15);
        const SequenceData other = made(1.2F);
        QCOMPARE(token_differences(Quantity::nll, a, &other, Attribution::predicting).scale.high, 1.5);
    }

    void anotherSequenceStartsAtTheTop() {
        Stage stage({.sequences = 2, .tokens = 3000});
        stage.view().verticalScrollBar()->setValue(2000);
        stage.selection.setSequence(1);
        QTRY_VERIFY(stage.view().sequence() && stage.view().sequence()->sequence == 1);
        QCOMPARE(stage.view().verticalScrollBar()->value(), 0);
    }

    void aTokenThatWasAskedForIsShown() {
        Stage stage({.sequences = 1, .tokens = 900}, false);
        stage.selection.setToken(700); // before there is a text
        stage.settle();
        const auto visible = [&] {
            const QRectF box = stage.view().tokenRect(700);
            return !box.isEmpty() && QRectF(stage.view().viewport()->rect()).contains(box);
        };
        QTRY_VERIFY(visible());
        stage.panel.resize(700, 260); // a panel opened below
        QTRY_VERIFY(visible());
        stage.view().verticalScrollBar()->setValue(0); // scrolled away: it stays so
        stage.panel.resize(700, 300);
        QCoreApplication::processEvents();
        QCOMPARE(stage.view().verticalScrollBar()->value(), 0);
    }

    void emptyStatesPaintAndSayWhatToDo() {
        testing::ViewStage empty;
        empty.theme.setAppearance(Appearance::dark);
        TextPanel panel(empty.context);
        panel.resize(500, 300);
        const QImage picture = panel.grab().toImage();
        QVERIFY(!picture.isNull());
        bool ink = false;
        for (int x = 100; x < 400 && !ink; ++x) {
            for (int y = 120; y < 260 && !ink; ++y) {
                ink = picture.pixelColor(x, y).lightness() > 90;
            }
        }
        QVERIFY(ink);
        QTest::keyClick(&panel.view(), Qt::Key_Down); // nothing to move to, nothing breaks
        QCOMPARE(empty.selection.token(), -1);
    }

    void aTraceWithoutSignalsAndTextIsShownUntilItIsClosed() {
        Stage stage(
            {.sequences = 1, .tokens = 300, .secondRun = false, .withSignals = false, .withText = false});
        QVERIFY(!stage.view().tokenRect(0).isEmpty());
        QVERIFY(!stage.panel.grab().isNull());
        stage.data.close(stage.trace);
        QVERIFY(!stage.view().sequence());
        QVERIFY(!stage.panel.grab().isNull());
    }
};

QTEST_MAIN(TextViewTest)
#include "text_view_test.moc"
