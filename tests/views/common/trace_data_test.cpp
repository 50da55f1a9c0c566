// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/views/view_stage.h"

#include <QFile>

#include <algorithm>

using namespace Qt::StringLiterals;
using namespace ponderscope;

namespace {

/// A trace that is open, and its first run.
struct Stage : testing::ViewStage {
    explicit Stage(const testing::SampleTrace& what) {
        open(write("sample.ponder", what));
        a = run(0);
    }
    RunKey a;
};

} // namespace

class TraceDataTest : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void opensAndHandsOutImmutableBlocks() {
        testing::ViewStage stage;
        const QString path = stage.write("two.ponder", {.sequences = 3, .tokens = 500});
        TraceData data;
        QSignalSpy opened(&data, &TraceData::traceOpened);
        data.open(path);
        QVERIFY(data.traces().isEmpty()); // nothing blocks, nothing is there at once
        QVERIFY(opened.wait());
        QCOMPARE(data.traces(), QStringList{path});
        QCOMPARE(data.runs(path).size(), 2u);
        const RunKey a{path, data.runs(path)[0].id};
        QCOMPARE(data.sequences(a).size(), 3u);
        QVERIFY(!data.signalsOf(a).empty());

        QVERIFY(!data.sequence(a, 1));
        QSignalSpy ready(&data, &TraceData::sequenceReady);
        QVERIFY(ready.wait());
        const auto sequence = data.sequence(a, 1);
        QVERIFY(sequence);
        QCOMPARE(sequence->tokens.size(), 500u);
        QVERIFY(!sequence->text.empty());
        QCOMPARE(data.sequence(a, 1).get(), sequence.get());
        QVERIFY(!data.sequence(a, 77)); // there is none
    }

    void signalsComeWholeAndMissingOnesAreSaid() {
        Stage stage({.sequences = 1, .tokens = 9000});
        TraceData& data = stage.data;
        QSignalSpy ready(&data, &TraceData::signalReady);
        QVERIFY(!data.signal(stage.a, 0, u"nll"_s));
        QVERIFY(ready.wait());
        const auto chunk = data.signal(stage.a, 0, u"nll"_s);
        QVERIFY(chunk);
        QCOMPARE(chunk->shape, (std::vector<std::int64_t>{9000, 4}));
        QCOMPARE(chunk->data.size(), std::size_t{9000} * 4 * 4);
        ready.clear();
        QVERIFY(!data.signal(stage.a, 0, u"depth_weights"_s));
        QVERIFY(ready.wait());
        QVERIFY(!data.signal(stage.a, 0, u"depth_weights"_s));
        QVERIFY(!ready.wait(100)); // known to be absent: not asked again
    }

    void ofALongSequenceTheRowsAroundOneAreRead() {
        Stage stage({.sequences = 1, .tokens = 9000});
        TraceData& data = stage.data;
        const QString nll = u"nll"_s;
        QSignalSpy whole(&data, &TraceData::signalReady);
        QSignalSpy rows(&data, &TraceData::rowsReady);
        for (const qint64 row : {0, 4095, 4096, 8999}) {
            QTRY_VERIFY(data.signalAt(stage.a, 0, nll, row) != nullptr);
            const auto page = data.signalAt(stage.a, 0, nll, row);
            QVERIFY(page->first <= row && row < page->first + page->shape[0]);
            QVERIFY(page->shape[0] <= 4096);
        }
        QCOMPARE(rows.size(), 3);
        QCOMPARE(whole.size(), 0);
        QVERIFY(data.cachedBytes() < std::size_t{9001} * 4 * 4);
        QVERIFY(!data.signalAt(stage.a, 0, nll, 9000));
        QVERIFY(!data.signalAt(stage.a, 0, nll, -1));
        QVERIFY(!data.signalAt(stage.a, 1, nll, 0));
        // What is not recorded is asked for once.
        QVERIFY(!data.signalAt(stage.a, 0, u"depth_weights"_s, 5));
        QTRY_COMPARE(rows.size(), 4);
        QVERIFY(!data.signalAt(stage.a, 0, u"depth_weights"_s, 5));
        QVERIFY(!rows.wait(100));
        // The same numbers as in the whole, which is used once it is there.
        const auto page = data.signalAt(stage.a, 0, nll, 5000);
        QVERIFY(!data.signal(stage.a, 0, nll));
        QVERIFY(whole.wait());
        const auto all = data.signal(stage.a, 0, nll);
        const auto from = static_cast<std::ptrdiff_t>(page->first) * 4 * 4;
        QVERIFY(std::equal(page->data.begin(), page->data.end(), all->data.begin() + from));
        QCOMPARE(data.signalAt(stage.a, 0, nll, 5000), all);
    }

    void onlyRunsThatChangedAreSaid() {
        Stage stage({.sequences = 1, .tokens = 50});
        TraceData& data = stage.data;
        const auto before = data.contents(stage.a);
        QSignalSpy runs(&data, &TraceData::runChanged);
        QSignalSpy traces(&data, &TraceData::traceChanged);
        data.refresh(stage.trace);
        QTRY_VERIFY(data.idle());
        QCoreApplication::processEvents();
        QCOMPARE(runs.size() + traces.size(), 0);
        testing::write_sample_trace(stage.trace.toStdString(),
                                    {.sequences = 1, .tokens = 50, .secondRun = false});
        data.refresh(stage.trace);
        QVERIFY(traces.wait());
        QCOMPARE(runs.size(), 1); // the one that came
        QCOMPARE(runs.front().front().value<RunKey>().run, 3);
        QCOMPARE(data.contents(stage.a), before); // the very block
    }

    void tokensAreNamedFromTheVocabulary() {
        Stage stage({.sequences = 1, .tokens = 200});
        TraceData& data = stage.data;
        QVERIFY(data.tokenLabel(stage.a, 256).isEmpty());
        QVERIFY(data.tokenLabel(stage.a, 257).isEmpty());
        QSignalSpy ready(&data, &TraceData::tokenLabelsReady);
        QVERIFY(ready.wait());
        QVERIFY(!data.tokenLabel(stage.a, 256).isEmpty());
        QVERIFY(!data.tokenLabel(stage.a, 257).isEmpty());
        QVERIFY(!data.tokenLabel(stage.a, 256).contains(u' '));
        QVERIFY(data.tokenLabel(stage.a, 99'999'999).isEmpty());
        QTRY_COMPARE(data.tokenLabel(stage.a, 99'999'999), u"‹id 99999999›"_s);
    }

    void whatIsNoTraceIsSaidInOneSentence() {
        const testing::TemporaryFolder folder;
        const QString path = QString::fromStdString((folder / "not.ponder").string());
        QFile file(path);
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write("this is no trace at all, only some words");
        file.close();
        TraceData data;
        QSignalSpy failed(&data, &TraceData::failed);
        data.open(path);
        QVERIFY(failed.wait());
        QCOMPARE(failed[0][0].toString(), path);
        QVERIFY(failed[0][1].toString().contains(u"not.ponder"_s));
        QVERIFY(data.traces().isEmpty());
    }

    void growsWhileItIsWritten() {
        Stage stage({.sequences = 1, .tokens = 300, .secondRun = false});
        TraceData& data = stage.data;
        QCOMPARE(data.runs(stage.trace).size(), 1u);
        QSignalSpy changed(&data, &TraceData::traceChanged);
        data.refresh();
        QVERIFY(!changed.wait(150)); // nothing changed, nothing is said
        testing::write_sample_trace(stage.trace.toStdString(),
                                    {.seed = 2, .sequences = 1, .tokens = 300, .secondRun = false});
        data.refresh();
        QVERIFY(changed.wait());
        QCOMPARE(data.runs(stage.trace).size(), 2u);
    }

    void forgetsWhatNobodyHolds() {
        testing::ViewStage stage;
        const QString path =
            stage.write("cache.ponder", {.sequences = 8, .tokens = 4000, .withSignals = false});
        TraceData data(nullptr, 600'000); // about two sequences
        QSignalSpy opened(&data, &TraceData::traceOpened);
        data.open(path);
        QVERIFY(opened.wait());
        const RunKey a{path, data.runs(path)[0].id};
        std::shared_ptr<const SequenceData> held;
        for (int i = 0; i < 8; ++i) {
            QTRY_VERIFY(data.sequence(a, i) != nullptr);
            if (i == 0) {
                held = data.sequence(a, i);
            }
        }
        QVERIFY(data.cachedBytes() <= 900'000);
        QCOMPARE(data.sequence(a, 0).get(), held.get()); // what a view holds stays shared
    }

    void closingEndsWhatIsUnderWay() {
        Stage stage({.sequences = 2, .tokens = 3000});
        TraceData& data = stage.data;
        QSignalSpy ready(&data, &TraceData::sequenceReady);
        QSignalSpy closed(&data, &TraceData::traceClosed);
        QVERIFY(!data.sequence(stage.a, 0));
        data.close(stage.trace);
        QCOMPARE(closed.size(), 1);
        QVERIFY(!ready.wait(150));
        QVERIFY(data.traces().isEmpty());
        QVERIFY(data.run(stage.a) == nullptr);
        QVERIFY(!data.sequence(stage.a, 0));
        QCOMPARE(data.cachedBytes(), 0u);
    }
};

QTEST_MAIN(TraceDataTest)
#include "trace_data_test.moc"
