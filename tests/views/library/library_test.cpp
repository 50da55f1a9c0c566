// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trace/tools/run_edits.h"
#include "core/trace/writer.h"
#include "tests/views/view_stage.h"
#include "views/common/format.h"
#include "views/library/library_model.h"
#include "views/library/library_panel.h"
#include "views/library/library_rows.h"
#include "views/library/sequence_model.h"

#include <QAbstractItemModelTester>
#include <QListView>
#include <QPainter>
#include <QStandardItemModel>
#include <QTextDocument>
#include <QTreeView>

#include <cmath>

using namespace Qt::StringLiterals;
using namespace ponderscope;

using testing::ViewStage;

namespace {

struct Panel : ViewStage {
    Panel() {
        panel.resize(260, 700);
        panel.show();
    }
    LibraryPanel panel{context};
};

/// Adds a run without a sequence.
void add_run(const QString& trace, const RunInfo& run) {
    TraceWriter writer(trace.toStdString());
    writer.begin_run(run, {});
    writer.end_run(1);
    writer.finish();
}

} // namespace

class LibraryTest : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void theModelKeepsItsPromises() {
        ViewStage stage;
        LibraryModel model(stage.context);
        const QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
        const QString one = stage.write("one.ponder", {.sequences = 2, .tokens = 300});
        const QString two = stage.write("two.ponder", {.sequences = 1, .tokens = 200, .secondRun = false});
        stage.open(one);
        stage.open(two);
        QCOMPARE(model.rowCount(), 2);
        QCOMPARE(model.rowCount(model.index(0, 0)), 2);
        QCOMPARE(model.rowCount(model.index(1, 0)), 1);
        QCOMPARE(model.index(0, 0).data().toString(), u"one.ponder"_s);
        QCOMPARE(model.index(0, 0, model.index(0, 0)).data().toString(), u"adaponderlm-1m"_s);

        // A run is added to a trace that is open.
        testing::write_sample_trace(two.toStdString(),
                                    {.seed = 3, .sequences = 1, .tokens = 200, .secondRun = false});
        QSignalSpy inserted(&model, &QAbstractItemModel::rowsInserted);
        stage.data.refresh();
        QVERIFY(inserted.wait());
        QCOMPARE(model.rowCount(model.index(1, 0)), 2);

        // A view keeps the place of a run, whatever is closed above it.
        const QPersistentModelIndex kept(model.index(1, 0, model.index(1, 0)));
        const QString name = kept.data().toString();
        stage.data.close(one);
        QCOMPARE(model.rowCount(), 1);
        QCOMPARE(model.index(0, 0).data().toString(), u"two.ponder"_s);
        QVERIFY(kept.isValid());
        QCOMPARE(kept.data().toString(), name);
        QCOMPARE(kept.parent(), model.index(0, 0));
        stage.open(two); // again: the same rows
        QCOMPARE(model.rowCount(), 1);
    }

    void runsTellTheirNumbers() {
        ViewStage stage;
        LibraryModel model(stage.context);
        stage.open(stage.write("numbers.ponder", {.sequences = 3, .tokens = 800}));
        const QModelIndex run = model.indexOf(stage.run(0));
        QVERIFY(run.isValid());
        const RunInfo* info = stage.data.run(stage.run(0));
        const QString mean =
            QString::number(info->nll_sum / static_cast<double>(info->scored_tokens), 'f', 3);
        QVERIFY(run.data(LibraryModel::DetailRole).toString().contains(mean));
        QVERIFY(run.data(LibraryModel::DetailRole).toString().contains(u"steps"_s));
        // One number has one interval on the screen, and that is Compare's.
        QVERIFY(!run.data(LibraryModel::DetailRole).toString().contains(u'±'));
        const QModelIndex vanilla = model.indexOf(stage.run(1));
        QVERIFY(!vanilla.data(LibraryModel::DetailRole).toString().contains(u"steps"_s));
        QVERIFY(!run.data(LibraryModel::DetailRole).toString().contains(u"partial"_s));
        stage.selection.setRunA(stage.run(0));
        stage.selection.setRunB(stage.run(1));
        QCOMPARE(run.data(LibraryModel::SideRole).toString(), u"A"_s);
        QCOMPARE(vanilla.data(LibraryModel::SideRole).toString(), u"B"_s);
        QCOMPARE(run.data(Qt::DecorationRole).value<QColor>(), stage.theme.colours().a);
        QVERIFY(!model.indexOf({stage.trace, 99}).isValid());
        QVERIFY(!model.indexOf({u"/nowhere"_s, 1}).isValid());
    }

    void aPolicyThatIsNotTheModelsOwnStandsInItsRow() {
        Panel stage;
        LibraryPanel& panel = stage.panel;
        const QString path = stage.write("policies.ponder", {.sequences = 1, .tokens = 60});
        for (const char* policy : {"learned", "entropy:theta=6.3063"}) {
            RunInfo run;
            run.name = run.policy = policy;
            add_run(path, run);
        }
        stage.open(path);
        const QModelIndex own = panel.model().indexOf(stage.run(2));
        const QModelIndex other = panel.model().indexOf(stage.run(3));
        QCOMPARE(own.data(LibraryModel::PolicyRole).toString(), QString());
        QCOMPARE(other.data(LibraryModel::PolicyRole).toString(), u"entropy:theta=6.3063"_s);
        QVERIFY(panel.runs().visualRect(other).height() > panel.runs().visualRect(own).height());
    }

    void whatIsChosenStaysWhenOtherRunsComeAndGo() {
        Panel stage;
        LibraryPanel& panel = stage.panel;
        const QAbstractItemModelTester tester(&panel.model());
        const QString path = stage.write("stay.ponder", {.sequences = 1, .tokens = 60});
        stage.open(path);
        const RunKey first = stage.run(0);
        const RunKey second = stage.run(1);
        stage.selection.setRunA(second);
        const QPersistentModelIndex row = panel.model().indexOf(second);
        remove_run(path.toStdString(), *stage.data.run(first));
        stage.open(path);
        QVERIFY(row.isValid());
        QCOMPARE(row.row(), 0);
        QCOMPARE(QModelIndex(row), panel.runs().currentIndex());
        RunInfo fresh;
        fresh.name = "fresh";
        fresh.versions = fresh.config = "{}";
        fresh.notices = "[]";
        TraceWriter(path.toStdString()).begin_run(fresh, {});
        stage.data.refresh();
        QTRY_COMPARE(panel.model().rowCount(row.parent()), 2);
        QCOMPARE(row.row(), 0);
        QCOMPARE(QModelIndex(row), panel.runs().currentIndex());
    }

    void whatWasChosenIsSaid() {
        ViewStage stage;
        LibraryModel model(stage.context);
        const QString path = stage.write("chosen.ponder", {.sequences = 1, .tokens = 60});
        RunInfo chosen;
        chosen.name = "<s>chosen</s>";
        chosen.method = "huginn";
        chosen.choices = R"({"kv":"shared","initial_state":"random:7"})";
        add_run(path, chosen);
        stage.open(path);
        const QString plain = model.indexOf(stage.run(0)).data(Qt::ToolTipRole).toString();
        QVERIFY(!plain.contains(u"random:"_s));
        const QString tip = model.indexOf(stage.run(2)).data(Qt::ToolTipRole).toString();
        QVERIFY2(tip.contains(u"&lt;s&gt;chosen"_s), qPrintable(tip)); // no markup
        QTextDocument read;
        read.setHtml(tip);
        const QString said = read.toPlainText().replace(QChar::Nbsp, u' ');
        QVERIFY2(said.contains(u": shared"_s), qPrintable(said));
        QVERIFY2(said.contains(u": random:7"_s), qPrintable(said));
    }

    void cutOffRunsArePartial() {
        ViewStage stage;
        LibraryModel model(stage.context);
        const QString path = stage.write("cut.ponder", {.sequences = 2, .tokens = 300, .complete = false});
        QVERIFY(TraceWriter::note_death(path.toStdString(), "The GPU fell off the bus."));
        stage.open(path);
        const QModelIndex cut = model.indexOf(stage.run(1));
        QVERIFY(cut.data(LibraryModel::DetailRole).toString().endsWith(u"partial"_s));
        QVERIFY(cut.data(Qt::ToolTipRole).toString().startsWith(u"The GPU fell off the bus."_s));
        const QModelIndex whole = model.indexOf(stage.run(0));
        QVERIFY(!whole.data(Qt::ToolTipRole).toString().contains(u"GPU"_s));
    }

    void longNumbersAreDrawnWhole() {
        // A list of two thousand: what is drawn of the last number is as wide as the number.
        Theme theme{Appearance::light};
        SequenceRows rows(theme);
        QStandardItemModel model;
        for (int i = 0; i < 2000; ++i) {
            model.appendRow(new QStandardItem(format_count(i + 1)));
        }
        const auto inked = [&](int row) {
            QImage image(240, 28, QImage::Format_RGB32);
            image.fill(theme.colours().panel);
            QPainter painter(&image);
            QStyleOptionViewItem option;
            option.rect = image.rect();
            rows.paint(&painter, option, model.index(row, 0));
            int first = image.width();
            int last = -1;
            for (int x = 0; x < 120; ++x) {
                for (int y = 0; y < image.height(); ++y) {
                    if (image.pixel(x, y) != theme.colours().panel.rgb()) {
                        first = std::min(first, x);
                        last = std::max(last, x);
                    }
                }
            }
            return last - first;
        };
        const QFontMetrics metrics(theme.body());
        QVERIFY(inked(1999) > metrics.horizontalAdvance(u"2,000"_s) - 4);
        QVERIFY(inked(998) > metrics.horizontalAdvance(u"999"_s) - 4);
    }

    void sequencesComeWithStrips() {
        ViewStage stage;
        SequenceModel model(stage.context);
        const QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
        const QString path = stage.write("strips.ponder", {.sequences = 4, .tokens = 500});
        stage.open(path);
        QCOMPARE(model.rowCount(), 0);
        stage.selection.setRunA(stage.run(0));
        QCOMPARE(model.rowCount(), 4);
        const QModelIndex third = model.index(2);
        QCOMPARE(third.data().toString(), u"3"_s);
        QVERIFY(std::isfinite(third.data(SequenceModel::NllRole).toDouble()));
        QVERIFY(third.data(SequenceModel::BarcodeRole).value<QList<float>>().isEmpty()); // asked for now
        QTRY_COMPARE(third.data(SequenceModel::BarcodeRole).value<QList<float>>().size(),
                     qsizetype{SequenceModel::bars});
        for (const float bar : third.data(SequenceModel::BarcodeRole).value<QList<float>>()) {
            QVERIFY(bar >= 0 && bar <= 1);
        }
        stage.data.close(path);
        QCOMPARE(model.rowCount(), 0);
    }

    void aRunBelowTheFoldIsScrolledTo() {
        Panel stage;
        LibraryPanel& panel = stage.panel;
        panel.resize(260, 300);
        for (const char* name : {"one.ponder", "two.ponder", "three.ponder", "four.ponder"}) {
            stage.open(stage.write(name, {.sequences = 1, .tokens = 60}));
        }
        const RunKey first{stage.data.traces().front(), 1};
        const auto shown = [&] {
            return panel.runs().viewport()->rect().contains(
                panel.runs().visualRect(panel.model().indexOf(stage.selection.runA())).center());
        };
        stage.selection.setRunA(stage.run(1));
        QTRY_VERIFY(shown());
        stage.selection.setRunA(first);
        QTRY_VERIFY(shown());
    }

    void clicksChooseAAndB() {
        Panel stage;
        LibraryPanel& panel = stage.panel;
        stage.open(stage.write("clicks.ponder", {.sequences = 3, .tokens = 300}));
        const RunKey first = stage.run(0);
        const RunKey second = stage.run(1);
        const auto click = [&](const RunKey& key, bool side, Qt::KeyboardModifiers modifiers = {}) {
            const QModelIndex run = panel.model().indexOf(key).siblingAtColumn(side ? 1 : 0);
            QTest::mouseClick(panel.runs().viewport(), Qt::LeftButton, modifiers,
                              panel.runs().visualRect(run).center());
        };
        click(first, false);
        QCOMPARE(stage.selection.runA(), first);
        click(second, true);
        QCOMPARE(stage.selection.runB(), second);
        click(second, false); // B becomes A: they change places
        QCOMPARE(stage.selection.runA(), second);
        QCOMPARE(stage.selection.runB(), first);
        click(first, true); // again: no longer compared
        QVERIFY(!stage.selection.runB().isValid());
        click(first, false, Qt::ControlModifier);
        QCOMPARE(stage.selection.runB(), first);
        panel.runs().setFocus();
        panel.runs().setCurrentIndex(panel.model().indexOf(first));
        QTest::keyClick(&panel.runs(), Qt::Key_Return);
        QCOMPARE(stage.selection.runA(), first);

        QCOMPARE(panel.sequenceModel().rowCount(), 3);
        const QRect row = panel.sequences().visualRect(panel.sequenceModel().index(2));
        QTest::mouseClick(panel.sequences().viewport(), Qt::LeftButton, {}, row.center());
        QCOMPARE(stage.selection.sequence(), 2);
        stage.selection.setSequence(1);
        QCOMPARE(panel.sequences().currentIndex().row(), 1);
        QVERIFY(!panel.grab().isNull());
    }
};

QTEST_MAIN(LibraryTest)
#include "library_test.moc"
