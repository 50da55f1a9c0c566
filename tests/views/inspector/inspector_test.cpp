// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trace/reader.h"
#include "tests/views/view_stage.h"
#include "views/common/format.h"
#include "views/inspector/inspector_page.h"
#include "views/inspector/inspector_view.h"

#include <QApplication>
#include <QClipboard>
#include <QtTest>

#include <cmath>

using namespace Qt::StringLiterals;
using namespace ponderscope;

namespace {

struct Stage : testing::PanelStage<InspectorView> {
    Stage() : PanelStage({320, 900}) {}
    explicit Stage(const std::filesystem::path& path) : Stage() {
        open(path);
        selection.setRunA(run(0));
        selection.setRunB(run(1));
    }
};

} // namespace

class InspectorTest : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void initTestCase() {
        testing::write_sample_trace(folder_ / "story.ponder", {.sequences = 2, .tokens = 300});
        testing::write_sample_trace(folder_ / "basic.ponder",
                                    {.sequences = 1, .tokens = 40, .withSignals = false, .withText = false});
    }

    void saysWhatToDoFirst() {
        const Stage empty;
        QCOMPARE(empty.view.report().token, -1);
        QVERIFY(!empty.view.report().hint.isEmpty());
        Stage f(folder_ / "story.ponder");
        QTRY_VERIFY(f.view.report().hint != empty.view.report().hint);
        QVERIFY(!f.view.grab().isNull());
    }

    void numbersAreTheTraces() {
        Stage f(folder_ / "story.ponder");
        f.selection.setToken(57);
        QTRY_COMPARE(f.view.report().token, 57);
        QTRY_VERIFY(!f.view.report().candidates.empty() && f.view.report().curves.size() >= 4 &&
                    !f.view.report().curves[0].b.empty() && !f.view.report().gates.empty());
        const TraceReader reader = TraceReader::open(folder_ / "story.ponder");
        const TokenColumns a = reader.tokens(1, 0);
        const TokenColumns b = reader.tokens(2, 0);
        const std::string text = reader.text(1, 0);
        const TokenReport& report = f.view.report();
        QString word = QString::fromStdString(text.substr(a.begin[57], a.end[57] - a.begin[57])).trimmed();
        if (word.isEmpty()) {
            word = u"⏎"_s;
        }
        QCOMPARE(report.headline, u"“%1”"_s.arg(word));
        QVERIFY(report.subtitle.contains(u"id %1"_s.arg(a.id[57])));
        QVERIFY(report.subtitle.contains(u"bytes %1–%2"_s.arg(a.begin[57]).arg(a.end[57] - 1)));
        // Shown at the predicted token: row 56 made the prediction.
        QCOMPARE(report.rows.size(), std::size_t{5});
        QCOMPARE(report.rows[0].a, format_nats(a.nll[56]));
        QCOMPARE(report.rows[0].b, format_nats(b.nll[56]));
        QCOMPARE(report.rows[1].a, format_count(a.rank[56]));
        QCOMPARE(report.rows[2].b, format_nats(b.entropy[56]));
        QCOMPARE(report.rows[3].a, format_count(a.steps[56]));
        QCOMPARE(report.rows[3].b, u"–"_s); // a run without steps
        QCOMPARE(report.rows[4].a, format_si(static_cast<double>(a.flops[56])));

        const auto values = to_floats(*reader.signal(1, 0, "nll"));
        QCOMPARE(report.curves[0].name, u"nll"_s);
        QCOMPARE(report.curves[0].a.size(), static_cast<std::size_t>(a.steps[56]) + 1);
        for (std::size_t k = 0; k < report.curves[0].a.size(); ++k) {
            QCOMPARE(static_cast<float>(report.curves[0].a[k]), values[56 * 4 + k]);
        }
        QCOMPARE(report.curves[0].b.size(), std::size_t{1});
    }

    void aCacheThatIsTooSmallIsNotReadForEver() {
        testing::write_sample_trace(folder_ / "lengthy.ponder", {.sequences = 1, .tokens = 9000});
        TraceData data(nullptr, std::size_t{64} << 10); // less than one signal's page
        testing::ViewStage stage;
        InspectorView view{ViewContext{data, stage.selection, stage.theme}};
        view.show();
        const QString path = QString::fromStdString((folder_ / "lengthy.ponder").string());
        data.open(path);
        QTRY_VERIFY(data.isOpen(path));
        stage.selection.setRunA({path, 1});
        stage.selection.setRunB({path, 2});
        stage.selection.setToken(5000);
        QTRY_VERIFY(!view.report().candidates.empty() && view.report().curves.size() >= 4 &&
                    !view.report().curves[0].b.empty() && !view.report().gates.empty());
        QTRY_VERIFY(data.idle());
        QCoreApplication::processEvents();
        QSignalSpy rows(&data, &TraceData::rowsReady);
        QSignalSpy sequences(&data, &TraceData::sequenceReady);
        QTRY_VERIFY(!rows.wait(300)); // it ends
        QCOMPARE(sequences.size(), 0);
        QVERIFY(!view.report().candidates.empty());
    }

    void candidatesNameTheTrueToken() {
        Stage f(folder_ / "story.ponder");
        const TraceReader reader = TraceReader::open(folder_ / "story.ponder");
        const TokenColumns a = reader.tokens(1, 0);
        const auto ids = to_integers(*reader.signal(1, 0, "candidate_ids"));
        const auto probabilities = to_floats(*reader.signal(1, 0, "candidate_probabilities"));
        const auto nll = to_floats(*reader.signal(1, 0, "nll"));
        const auto rank = to_floats(*reader.signal(1, 0, "rank"));
        int hits = 0;
        int beyond = 0;
        f.selection.setHover(1);
        QTRY_VERIFY((f.view.refresh(), f.view.report().curves.size() > 2)); // all signals are there
        for (qint64 token = 1; token < 60; ++token) {
            f.selection.setHover(token);
            f.view.refresh();
            QTRY_VERIFY((f.view.refresh(), !f.view.report().candidates.empty()));
            const TokenReport& report = f.view.report();
            const auto row = static_cast<std::size_t>(token - 1);
            QCOMPARE(report.candidates.size(), static_cast<std::size_t>(a.steps[row]) + 1);
            for (const TokenReport::Step& step : report.candidates) {
                // Three, and the true token, whether or not it was recorded.
                std::vector<TokenReport::Candidate> wanted;
                const std::size_t at = row * 4 + static_cast<std::size_t>(step.step);
                bool among = false;
                for (int place = 0; place < 10; ++place) {
                    const std::size_t i = at * 10 + static_cast<std::size_t>(place);
                    const bool target = ids[i] == a.id[static_cast<std::size_t>(token)];
                    among = among || target;
                    if (place < 3 || target) {
                        wanted.push_back({{}, static_cast<double>(probabilities[i]), place + 1, target});
                    }
                }
                ++(among ? hits : beyond);
                if (!among) {
                    QVERIFY(rank[at] > 10);
                    wanted.push_back(
                        {{}, std::exp(-static_cast<double>(nll[at])), static_cast<int>(rank[at]), true});
                }
                QCOMPARE(step.candidates.size(), wanted.size());
                for (std::size_t i = 0; i < wanted.size(); ++i) {
                    QCOMPARE(step.candidates[i].place, wanted[i].place);
                    QCOMPARE(step.candidates[i].probability, wanted[i].probability);
                    QCOMPARE(step.candidates[i].target, wanted[i].target);
                }
            }
        }
        QVERIFY(hits > 10 && beyond > 0);
        f.view.setCandidatesShown(10);
        f.view.refresh();
        QCOMPARE(f.view.report().candidates[0].candidates.size(), std::size_t{10});
    }

    void theFirstTokenWasPredictedByNobody() {
        Stage f(folder_ / "story.ponder");
        f.selection.setToken(0);
        QTRY_COMPARE(f.view.report().token, 0);
        QCOMPARE(f.view.report().rows[0].a, u"–"_s);
        QVERIFY(!f.view.report().notes.empty());
        f.selection.setAttribution(Attribution::predicting);
        QTRY_VERIFY(f.view.report().rows[0].a != u"–"_s);
    }

    void idsOnlyAndNoSignals() {
        Stage f(folder_ / "basic.ponder");
        f.selection.setToken(5);
        QTRY_COMPARE(f.view.report().token, 5);
        const TokenColumns tokens = TraceReader::open(folder_ / "basic.ponder").tokens(1, 0);
        QVERIFY(f.view.report().headline.contains(QString::number(tokens.id[5])));
        QVERIFY(!f.view.report().subtitle.contains(u"bytes"_s));
        QVERIFY(f.view.report().notes.front().contains(u"steps"_s));
        QVERIFY(f.view.report().candidates.empty());
    }

    void paintsInLightAndDarkAndFollowsTheHover() {
        Stage f(folder_ / "story.ponder");
        f.selection.setToken(57);
        QTRY_VERIFY(f.view.report().curves.size() >= 4);
        const QImage light = f.view.grab().toImage();
        f.theme.setAppearance(Appearance::dark);
        QTRY_VERIFY(light != f.view.grab().toImage());
        QVERIFY(f.view.document()->size().height() > 400);
        for (qint64 token = 1; token < 200; ++token) {
            f.selection.setHover(token);
            f.view.refresh();
            QCOMPARE(f.view.report().token, token);
            QVERIFY(!f.view.grab().isNull());
        }
    }

    void numbersAtAnAxisAreWhole() {
        const Theme theme(Appearance::light);
        const auto painted = [&](double most) {
            return curve_image({{}, u"KL"_s, {}, {most, most / 2}, {}}, theme, {280, 80}, 1);
        };
        QVERIFY(painted(0.001) != painted(0.0001)); // they differ in their numbers alone
    }

    void clickOnAStepSelectsIt() {
        Stage f(folder_ / "story.ponder");
        f.selection.setToken(57);
        QTRY_VERIFY(!f.view.report().candidates.empty());
        const auto click = [&](const QString& link) {
            const QTextCursor found = f.view.document()->find(link);
            QVERIFY2(!found.isNull(), qPrintable(link));
            QTest::mouseClick(f.view.viewport(), Qt::LeftButton, {},
                              f.view.cursorRect(found).center() - QPoint(4, 0));
        };
        click(u"step 0"_s);
        QCOMPARE(f.selection.step(), 0);
        click(u"more"_s);
        QCOMPARE(f.view.candidatesShown(), 10);
    }

    void numbersAreSelectedAndCopiedByKeyboard() {
        Stage f(folder_ / "story.ponder");
        f.selection.setToken(57);
        QTRY_VERIFY(!f.view.report().candidates.empty() && !f.view.report().curves.empty());
        QTest::keyClick(&f.view, Qt::Key_A, Qt::ControlModifier);
        QTest::keyClick(&f.view, Qt::Key_C, Qt::ControlModifier);
        const QString all = QApplication::clipboard()->text();
        for (const TokenReport::Row& row : f.view.report().rows) {
            QVERIFY2(all.contains(row.label + u'\t' + row.a + u'\t' + row.b), qPrintable(row.label));
        }
        QVERIFY(!all.contains(QChar::ObjectReplacementCharacter));
    }

private:
    testing::TemporaryFolder folder_;
};

QTEST_MAIN(InspectorTest)
#include "inspector_test.moc"
