// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/sample_trace.h"
#include "tests/support/test_data.h"
#include "views/figure/export_dialog.h"

#include <QComboBox>
#include <QFile>
#include <QSignalSpy>
#include <QtTest>

using namespace ponderscope;
using namespace ponderscope::figure;
namespace fs = std::filesystem;

class ExportDialogTest : public QObject {
    Q_OBJECT
private slots:
    void initTestCase() {
        testing::SampleTrace what;
        what.sequences = 2;
        what.tokens = 200;
        testing::write_sample_trace(folder_ / "story.ponder", what);
    }

    void writesFigureNumbersAndSpecification() {
        TraceData data;
        Selection selection;
        Theme theme(Appearance::light);
        QSignalSpy opened(&data, &TraceData::traceOpened);
        data.open(QString::fromStdString((folder_ / "story.ponder").string()));
        QTRY_VERIFY(opened.size() > 0);
        FigureSpec initial;
        initial.runs = {{folder_ / "story.ponder", "adaponderlm-1m"},
                        {folder_ / "story.ponder", "vanilla-1m"}};
        initial.sequence = 1;
        initial.tokens = {0, 60};
        ExportDialog dialog({data, selection, theme}, initial);
        QTRY_VERIFY_WITH_TIMEOUT(dialog.maker().figure(), 30'000);
        QVERIFY(dialog.message().contains(QStringLiteral("84 × ")));
        QVERIFY(!dialog.grab().isNull());
        for (const char* format : {"pdf", "svg", "png"}) {
            const fs::path path = folder_ / (std::string("exported.") + format);
            dialog.setFile(QString::fromStdString(path.string()));
            QSignalSpy exported(&dialog, &ExportDialog::exported);
            QVERIFY2(dialog.write(), qPrintable(dialog.message()));
            QCOMPARE(exported.front().front().toStringList().size(), 3);
            QVERIFY(fs::file_size(path) > 500);
        }
        QVERIFY(fs::exists(folder_ / "exported.csv"));
        const FigureSpec again = read_figure_spec(folder_ / "exported.json");
        QCOMPARE(again, dialog.spec());
        QCOMPARE(again.runs.front().trace, folder_ / "story.ponder");
    }

    void otherKindsAndFailures() {
        TraceData data;
        Selection selection;
        Theme theme(Appearance::dark);
        QSignalSpy opened(&data, &TraceData::traceOpened);
        data.open(QString::fromStdString((folder_ / "story.ponder").string()));
        QTRY_VERIFY(opened.size() > 0);
        FigureSpec initial;
        initial.kind = FigureKind::step_heatmap;
        initial.signal = "gate";
        initial.runs = {{folder_ / "story.ponder", "adaponderlm-1m"}};
        ExportDialog dialog({data, selection, theme}, initial);
        QCOMPARE(dialog.spec().signal, std::string("gate"));
        QVERIFY(!dialog.spec().tokens);
        QTRY_VERIFY_WITH_TIMEOUT(dialog.maker().figure(), 30'000);
        dialog.setFile(QStringLiteral("/nowhere/at/all.pdf"));
        QVERIFY(!dialog.write());
        QVERIFY(dialog.message().contains(QStringLiteral("/nowhere/at")));
        dialog.setFile(QString::fromStdString((folder_ / "x.docx").string()));
        QVERIFY(!dialog.write());
        QVERIFY(!fs::exists(folder_ / "x.docx"));
    }

private:
    testing::TemporaryFolder folder_;
};

QTEST_MAIN(ExportDialogTest)
#include "export_dialog_test.moc"
