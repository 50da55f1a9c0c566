// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trace/tools/run_edits.h"
#include "core/trace/writer.h"
#include "tests/support/sample_trace.h"
#include "views/common/format.h"
#include "views/library/library_model.h"
#include "views/library/library_panel.h"
#include "views/library/library_rows.h"
#include "views/library/sequence_model.h"

#include <QAbstractItemModelTester>
#include <QListView>
#include <QPainter>
#include <QSignalSpy>
#include <QStandardItemModel>
#include <QTemporaryDir>
#include <QTest>
#include <QTextDocument>
#include <QTreeView>

#include <cmath>

using namespace Qt::StringLiterals;
using namespace ponderscope;

namespace {

struct Stage {
    QString make(const QString& name, const testing::SampleTrace& what) const {
        const QString path = folder.filePath(name);
        testing::write_sample_trace(path.toStdString(), what);
        return path;
    }
    [[nodiscard]] bool open(const QString& path) {
        QSignalSpy opened(&data, &TraceData::traceOpened);
        data.open(path);
        return opened.wait();
    }
    [[nodiscard]] RunKey run(const QString& path, std::size_t index) const {
        return {path, data.runs(path).at(index).id};
    }

    QTemporaryDir folder;
    Theme theme{Appearance::light};
    TraceData data;
    Selection selection;
    ViewContext context{data, selection, theme};
};

} // namespace

class LibraryTest : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void theModelKeepsItsPromises() {
        Stage stage;
        LibraryModel model(stage.context);
        const QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
        const QString one = stage.make(u"one.ponder"_s, {.sequences = 2, .tokens = 300});
        const QString two = stage.make(u"two.ponder"_s, {.sequences = 1, .tokens = 200, .secondRun = false});
        QVERIFY(stage.open(one));
        QVERIFY(stage.open(two));
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
        QVERIFY(stage.open(two)); // again: the same rows
        QCOMPARE(model.rowCount(), 1);
    }

    void runsTellTheirNumbers() {
        Stage stage;
        LibraryModel model(stage.context);
        const QString path = stage.make(u"numbers.ponder"_s, {.sequences = 3, .tokens = 800});
        QVERIFY(stage.open(path));
        const QModelIndex run = model.indexOf(stage.run(path, 0));
        QVERIFY(run.isValid());
        const RunInfo* info = stage.data.run(stage.run(path, 0));
        const QString mean =
            QString::number(info->nll_sum / static_cast<double>(info->scored_tokens), 'f', 3);
        QVERIFY(run.data(LibraryModel::DetailRole).toString().contains(mean));
        QVERIFY(run.data(LibraryModel::DetailRole).toString().contains(u"steps"_s));
        // One number has one interval on the screen, and that is Compare's.
        QVERIFY(!run.data(LibraryModel::DetailRole).toString().contains(u'±'));
        const QModelIndex vanilla = model.indexOf(stage.run(path, 1));
        QVERIFY(!vanilla.data(LibraryModel::DetailRole).toString().contains(u"steps"_s));
        QVERIFY(!run.data(LibraryModel::DetailRole).toString().contains(u"partial"_s));
        stage.selection.setRunA(stage.run(path, 0));
        stage.selection.setRunB(stage.run(path, 1));
        QCOMPARE(run.data(LibraryModel::SideRole).toString(), u"A"_s);
        QCOMPARE(vanilla.data(LibraryModel::SideRole).toString(), u"B"_s);
        QCOMPARE(run.data(Qt::DecorationRole).value<QColor>(), stage.theme.colours().a);
        QVERIFY(!model.indexOf({path, 99}).isValid());
        QVERIFY(!model.indexOf({u"/nowhere"_s, 1}).isValid());
    }

    void aPolicyThatIsNotTheModelsOwnStandsInItsRow() {
        Stage stage;
        const QString path = stage.make(u"policies.ponder"_s, {.sequences = 1, .tokens = 60});
        {
            TraceWriter writer(path.toStdString());
            for (const char* policy : {"learned", "entropy:theta=6.3063"}) {
                RunInfo run;
                run.name = policy;
                run.policy = policy;
                writer.begin_run(run, {});
                writer.end_run(1);
            }
            writer.finish();
        }
        LibraryPanel panel(stage.context);
        panel.resize(260, 700);
        panel.show();
        QVERIFY(stage.open(path));
        const QModelIndex own = panel.model().indexOf(stage.run(path, 2));
        const QModelIndex other = panel.model().indexOf(stage.run(path, 3));
        QCOMPARE(own.data(LibraryModel::PolicyRole).toString(), QString());
        QCOMPARE(other.data(LibraryModel::PolicyRole).toString(), u"entropy:theta=6.3063"_s);
        QVERIFY(panel.runs().visualRect(other).height() > panel.runs().visualRect(own).height());
    }

    void whatIsChosenStaysWhenOtherRunsComeAndGo() {
        Stage stage;
        const QString path = stage.make(u"stay.ponder"_s, {.sequences = 1, .tokens = 60});
        LibraryPanel panel(stage.context);
        const QAbstractItemModelTester tester(&panel.model());
        panel.resize(260, 700);
        panel.show();
        QVERIFY(stage.open(path));
        const RunKey first = stage.run(path, 0);
        const RunKey second = stage.run(path, 1);
        stage.selection.setRunA(second);
        const QPersistentModelIndex row = panel.model().indexOf(second);
        remove_run(path.toStdString(), *stage.data.run(first));
        QVERIFY(stage.open(path));
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
        Stage stage;
        LibraryModel model(stage.context);
        const QString path = stage.make(u"chosen.ponder"_s, {.sequences = 1, .tokens = 60});
        {
            RunInfo run;
            run.name = "<s>chosen</s>";
            run.method = "huginn";
            run.choices = R"({"kv":"shared","initial_state":"random:7"})";
            TraceWriter writer(path.toStdString());
            writer.begin_run(run, {});
            writer.end_run(1);
            writer.finish();
        }
        QVERIFY(stage.open(path));
        const QString plain = model.indexOf(stage.run(path, 0)).data(Qt::ToolTipRole).toString();
        QVERIFY(!plain.contains(u"random:"_s));
        const QString tip = model.indexOf(stage.run(path, 2)).data(Qt::ToolTipRole).toString();
        QVERIFY2(tip.contains(u"&lt;s&gt;chosen"_s), qPrintable(tip)); // no markup
        QTextDocument read;
        read.setHtml(tip);
        const QString said = read.toPlainText().replace(QChar::Nbsp, u' ');
        QVERIFY2(said.contains(u"keys and values for later tokens: shared"_s), qPrintable(said));
        QVERIFY2(said.contains(u": random:7"_s), qPrintable(said));
    }

    void cutOffRunsArePartial() {
        Stage stage;
        LibraryModel model(stage.context);
        const QString path = stage.make(u"cut.ponder"_s, {.sequences = 2, .tokens = 300, .complete = false});
        QVERIFY(TraceWriter::note_death(path.toStdString(), "The GPU fell off the bus."));
        QVERIFY(stage.open(path));
        const QModelIndex cut = model.indexOf(stage.run(path, 1));
        QVERIFY(cut.data(LibraryModel::DetailRole).toString().endsWith(u"partial"_s));
        QVERIFY(cut.data(Qt::ToolTipRole).toString().startsWith(u"The GPU fell off the bus."_s));
        const QModelIndex whole = model.indexOf(stage.run(path, 0));
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
        Stage stage;
        SequenceModel model(stage.context);
        const QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
        const QString path = stage.make(u"strips.ponder"_s, {.sequences = 4, .tokens = 500});
        QVERIFY(stage.open(path));
        QCOMPARE(model.rowCount(), 0);
        stage.selection.setRunA(stage.run(path, 0));
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
        Stage stage;
        LibraryPanel panel(stage.context);
        panel.resize(260, 300);
        panel.show();
        QString last;
        for (const char16_t* name : {u"one.ponder", u"two.ponder", u"three.ponder", u"four.ponder"}) {
            last = stage.make(QString::fromUtf16(name), {.sequences = 1, .tokens = 60});
            QVERIFY(stage.open(last));
        }
        const auto shown = [&] {
            return panel.runs().viewport()->rect().contains(
                panel.runs().visualRect(panel.model().indexOf(stage.selection.runA())).center());
        };
        stage.selection.setRunA(stage.run(last, 1));
        QTRY_VERIFY(shown());
        stage.selection.setRunA(stage.run(stage.folder.filePath(u"one.ponder"_s), 0));
        QTRY_VERIFY(shown());
    }

    void clicksChooseAAndB() {
        Stage stage;
        const QString path = stage.make(u"clicks.ponder"_s, {.sequences = 3, .tokens = 300});
        LibraryPanel panel(stage.context);
        panel.resize(260, 700);
        panel.show();
        QVERIFY(stage.open(path));
        const RunKey first = stage.run(path, 0);
        const RunKey second = stage.run(path, 1);
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
