// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trace/reader.h"
#include "core/trace/tools/run_edits.h"
#include "tests/views/figure/figure_stage.h"
#include "tests/views/view_stage.h"
#include "views/chart/chart_plot.h"
#include "views/figure/export_dialog.h"
#include "views/figure/figure_file.h"
#include "views/figure/figure_form.h"
#include "views/figure/figure_panel.h"
#include "views/figure/name_list.h"
#include "views/figure/parts.h"

#include <QAbstractButton>
#include <QComboBox>
#include <QFile>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QMessageBox>
#include <QTimer>
#include <QtTest>

#include <algorithm>
#include <fstream>

using namespace Qt::StringLiterals;
using namespace ponderscope;
using namespace ponderscope::figure;
namespace fs = std::filesystem;

namespace {

/// A window that has one trace open.
struct Opened : testing::ViewStage {
    explicit Opened(const fs::path& path) { open(path); }
};

} // namespace

class ExportDialogTest : public QObject, private FigureStage {
    Q_OBJECT
private Q_SLOTS:
    void initTestCase() { testing::write_sample_trace(trace_, {.sequences = 2, .tokens = 200}); }

    void writesFigureNumbersAndSpecification() {
        Opened window(trace_);
        FigureSpec initial = about(FigureKind::token_text, both_);
        initial.sequence = 1;
        initial.tokens = {0, 60};
        ExportDialog dialog(window.context, initial);
        QTRY_VERIFY_WITH_TIMEOUT(dialog.figure(), 30'000);
        QVERIFY(dialog.message().contains(u"84 × "_s));
        QVERIFY(!dialog.grab().isNull());
        dialog.resize(1380, 720);
        dialog.show();
        for (const char* format : {"pdf", "svg", "png"}) {
            const fs::path path = folder_ / (std::string("exported.") + format);
            dialog.file()->setFile(QString::fromStdString(path.string()));
            QSignalSpy exported(&dialog, &ExportDialog::exported);
            QVERIFY2(dialog.write(), qPrintable(dialog.message()));
            QVERIFY(dialog.message().contains(u"exported."_s) && dialog.result() == 0); // it stays
            const auto* label = dialog.findChild<QLabel*>(u"message"_s);
            QCOMPARE(label->text(), dialog.message());
            const auto whole = [&] { return label->visibleRegion().boundingRect() == label->rect(); };
            QTRY_VERIFY(whole() && label->height() >= label->heightForWidth(label->width()));
            QCOMPARE(exported.front().front().toStringList().size(), 3);
            QVERIFY(fs::file_size(path) > 500);
        }
        QVERIFY(fs::exists(folder_ / "exported.csv"));
        const FigureSpec again = read_figure_spec(folder_ / "exported.json");
        QCOMPARE(again, dialog.spec());
        QCOMPARE(again.runs.front().trace, trace_);
    }

    void runsHaveTheColoursOfTheWindow() {
        Opened window(trace_);
        const RunKey first = window.run(0);
        const RunKey second = window.run(1);
        window.selection.setRunA(second);
        FigureSpec initial = about(FigureKind::nll_comparison, both_);
        initial.replicates = 100;
        {
            ExportDialog dialog(window.context, initial);
            const FigureSpec made = dialog.spec();
            const std::vector<QColor> colours = Style(made, fonts_).runs;
            QCOMPARE(colours[0], window.theme.runColour(first, window.selection));
            QCOMPARE(colours[1], window.theme.colours().a);
            QCOMPARE(colours.size(), Style(initial, fonts_).runs.size()); // none twice, none lost
            QCOMPARE(read_back(made), made);
        }
        // As they come, nothing needs to be said.
        window.selection.setRunA(first);
        window.selection.setRunB(second);
        QVERIFY(ExportDialog(window.context, initial).spec().colours.empty());
        // What a specification says stays.
        initial.colours = {5, 3};
        QCOMPARE(ExportDialog(window.context, initial).spec().colours, initial.colours);
    }

    void nothingIsReplacedUnasked() {
        Opened window(trace_);
        FigureSpec initial = about(FigureKind::nll_comparison, both_);
        initial.replicates = 100;
        ExportDialog dialog(window.context, initial);
        QTRY_VERIFY_WITH_TIMEOUT(dialog.figure() && !dialog.isBusy(), 30'000);
        const fs::path path = folder_ / "mine.pdf";
        dialog.file()->setFile(QString::fromStdString(path.string()));
        QVERIFY2(dialog.write(), qPrintable(dialog.message()));
        QVERIFY(dialog.file()->inTheWay(dialog.spec()).isEmpty()); // the same figure again
        const auto size = fs::file_size(path);
        dialog.runs()->item(1)->setCheckState(Qt::Unchecked);
        QTRY_VERIFY_WITH_TIMEOUT(dialog.spec().runs.size() == 1 && !dialog.isBusy(), 30'000);
        QTest::qWait(400);
        QTRY_VERIFY_WITH_TIMEOUT(!dialog.isBusy(), 30'000);
        QCOMPARE(dialog.file()->inTheWay(dialog.spec()).size(), 2);
        const auto answer = [&dialog](const QString& text) {
            QTimer::singleShot(0, &dialog, [text] {
                auto* box = qobject_cast<QMessageBox*>(QApplication::activeModalWidget());
                QVERIFY(box != nullptr && box->text().contains(u"mine.pdf"_s));
                QAbstractButton* wanted = box->button(QMessageBox::Cancel);
                for (QAbstractButton* button : box->buttons()) {
                    wanted = button->text() == text ? button : wanted;
                }
                wanted->click();
            });
        };
        answer({});
        QVERIFY(!dialog.write());
        QCOMPARE(fs::file_size(path), size);
        answer(u"Replace"_s);
        QVERIFY2(dialog.write(), qPrintable(dialog.message()));
        // Another dialog offers a name that is free.
        ExportDialog next(window.context, initial);
        QVERIFY(!QFile::exists(next.file()->file()));
    }

    void runsEntriesAndLimits() {
        Opened window(trace_);
        FigureSpec initial = about(FigureKind::policy_front);
        initial.series = {{"uniform", "at random", true}, {"fixed", "", false}};
        initial.legend = "right";
        initial.x_range = {{1e6, 9e6}};
        initial.height_mm = 70;
        const fs::path spec = folder_ / "front.json";
        std::ofstream(spec) << write_figure_spec(initial, folder_.path());
        QCOMPARE(read_figure_spec(spec), initial);
        FigureSpec plain;
        plain.runs = initial.runs;
        ExportDialog dialog(window.context, plain);
        QVERIFY(dialog.entries()->isHidden()); // a text has none
        QVERIFY2(dialog.openSpec(QString::fromStdString(spec.string())), qPrintable(dialog.message()));
        QTRY_VERIFY_WITH_TIMEOUT(dialog.entries()->count() > 3, 30'000);
        QVERIFY(!dialog.entries()->isHidden());
        const FigureSpec shown = dialog.spec();
        QCOMPARE(shown.kind, FigureKind::policy_front);
        QCOMPARE(shown.legend, std::string("right"));
        QCOMPARE(shown.x_range, initial.x_range);
        QCOMPARE(shown.height_mm, initial.height_mm);
        QCOMPARE(shown_name(shown, "uniform"), std::string("at random"));
        QVERIFY(std::any_of(shown.series.begin(), shown.series.end(),
                            [](const SeriesSpec& one) { return one.name == "fixed" && !one.show; }));
        // Every run over the text is offered; a second one makes a point of its own.
        QVERIFY(dialog.runs()->count() >= 2);
        dialog.runs()->item(1)->setCheckState(Qt::Checked);
        QCOMPARE(dialog.spec().runs.size(), 2U);
        QTRY_VERIFY_WITH_TIMEOUT(dialog.figure() != nullptr &&
                                     std::count(dialog.figure()->entries.begin(),
                                                dialog.figure()->entries.end(), "vanilla-1m") == 1,
                                 30'000);
    }

    void limitsAreTypedInAnyLocale() {
        const QLocale before;
        QLocale::setDefault(QLocale(QLocale::German, QLocale::Germany));
        Opened window(trace_);
        FigureSpec initial = about(FigureKind::policy_front);
        ExportDialog dialog(window.context, initial);
        const auto type = [&](const char* field, const QString& text) {
            for (QLineEdit* line : dialog.findChildren<QLineEdit*>()) {
                if (line->accessibleName().endsWith(QLatin1String(field))) {
                    line->clear();
                    QTest::keyClicks(line, text);
                    return;
                }
            }
            QFAIL(field);
        };
        type("Horizontal axis, low end", u"0,5"_s);
        type("Horizontal axis, high end", u"1.5"_s);
        type("Vertical axis, low end", u"0.25"_s);
        type("Vertical axis, high end", u"1,25"_s);
        QCOMPARE(dialog.spec().x_range, (std::array{0.5, 1.5}));
        QCOMPARE(dialog.spec().y_range, (std::array{0.25, 1.25}));
        QCOMPARE(dialog.form()->unusedRanges(), QStringList());
        type("Vertical axis, high end", u"0,1"_s); // below the low end: not used, and said so
        QVERIFY(!dialog.spec().y_range);
        QCOMPARE(dialog.form()->unusedRanges(), QStringList{u"Vertical axis"_s});
        QTRY_VERIFY_WITH_TIMEOUT(dialog.message().contains(u"Vertical axis"_s), 30'000);
        QLocale::setDefault(before);
    }

    void figuresOfARemoteTraceGoToAFolderHere() {
        Opened window(trace_);
        FigureSpec initial;
        initial.runs = {{"ssh://host/data/story.ponder", "adaponderlm-1m"}};
        ExportDialog dialog(window.context, initial);
        QVERIFY2(QFileInfo(QFileInfo(dialog.file()->file()).path()).isDir() &&
                     !dialog.file()->file().contains(u"ssh:"_s),
                 qPrintable(dialog.file()->file()));
    }

    void messagesMoveNoField() {
        Opened window(trace_);
        FigureSpec initial = about(FigureKind::token_text);
        ExportDialog dialog(window.context, initial);
        dialog.show();
        QTRY_VERIFY_WITH_TIMEOUT(dialog.figure() != nullptr, 30'000);
        const auto places = [&] {
            QList<QPoint> all;
            for (QWidget* field : dialog.findChildren<QWidget*>()) {
                if (field->isVisible() && (qobject_cast<QComboBox*>(field) != nullptr ||
                                           qobject_cast<QAbstractButton*>(field) != nullptr)) {
                    all << field->mapTo(&dialog, QPoint());
                }
            }
            return all;
        };
        const QList<QPoint> before = places();
        dialog.findChild<QLabel*>(u"message"_s)->setText(u"one\ntwo\nthree\nfour"_s);
        QTest::qWait(50);
        QCOMPARE(places(), before);
    }

    void runsThatAreNumbersAreNamed() {
        const fs::path trace = folder_ / "numbers.ponder";
        fs::copy_file(trace_, trace);
        rename_run(trace, find_run(TraceReader::open(trace), "vanilla-1m"), "1"); // its number is 2
        std::ofstream(folder_ / "numbers.json")
            << R"({"kind":"token_text","trace":"numbers.ponder","runs":[1]})";
        Opened window(trace);
        FigureSpec initial;
        initial.runs = {{trace, "1"}};
        ExportDialog dialog(window.context, initial);
        QVERIFY(dialog.openSpec(QString::fromStdString((folder_ / "numbers.json").string())));
        QCOMPARE(dialog.spec().runs, (std::vector<RunName>{{trace, "adaponderlm-1m"}}));
    }

    void aFreeNameKeepsItsFolder() {
        const fs::path folder = folder_ / "50%3 %1";
        fs::create_directories(folder);
        fs::copy_file(trace_, folder / "story.ponder");
        Opened window(folder / "story.ponder");
        FigureSpec initial;
        initial.runs = {{folder / "story.ponder", "vanilla-1m"}};
        const QString first = ExportDialog(window.context, initial).file()->file();
        QFile taken(first);
        QVERIFY(taken.open(QIODevice::WriteOnly));
        const QFileInfo info(first);
        QCOMPARE(ExportDialog(window.context, initial).file()->file(),
                 info.path() + u'/' + info.completeBaseName() + u"-2."_s + info.suffix());
    }

    void entriesAreRenamedOrderedAndLeftOut() {
        FigureSpec spec = about(FigureKind::policy_front);
        spec.series = {{"uniform", "at random", true}, {"fixed", "", false}, {"nobody", "", true}};
        spec.x_range = {{1, 3}};
        spec.cost = "steps";
        const Figure figure = made(spec);
        const QStringList words = texts_of(figure.page);
        QVERIFY(words.contains(u"at random"_s));
        QVERIFY(!words.contains(u"uniform"_s) && !words.contains(u"fixed"_s));
        QVERIFY(words.contains(u"1.0"_s) && words.contains(u"3.0"_s) && !words.contains(u"0.0"_s));
        const QString csv = QString::fromStdString(figure.tables.front().csv);
        QVERIFY(csv.indexOf(u"at random,"_s) > 0 && !csv.contains(u"fixed,"_s));
        // The first that is named is the first of all.
        QVERIFY(csv.section(u'\n', 1, 1).startsWith(u"at random,"_s));
        QVERIFY(std::any_of(figure.notices.begin(), figure.notices.end(), [](const Notice& notice) {
            return notice.id == NoticeId::figure_series && notice.text.find("nobody") != std::string::npos &&
                   notice.text.find("uniform") != std::string::npos;
        }));
        spec.legend = "none";
        QVERIFY(!texts_of(made(spec).page).contains(u"at random"_s));
    }

    void everyKindCanBeAPanel() {
        Opened window(trace_);
        window.selection.setRunA(window.run(0));
        window.selection.setRunB(window.run(1));
        int drawn = 0;
        for (const KindInfo& info : figure_kinds()) {
            if (info.kind == FigureKind::panels) {
                continue; // tested with trainings
            }
            FigureSpec spec;
            spec.kind = info.kind;
            spec.replicates = 100;
            spec.signal = info.kind == FigureKind::step_heatmap ? "gate" : spec.signal;
            FigurePanel panel(window.context, spec);
            panel.resize(900, 400);
            panel.show();
            QTRY_VERIFY_WITH_TIMEOUT(!panel.isBusy(), 60'000);
            const auto* page = panel.findChild<FigurePreview*>();
            const bool shows = page != nullptr ? page->height() > 130 : !panel.chart()->chart().empty();
            // What this run has nothing for says so in the place of the chart.
            QVERIFY2(shows || !panel.hint().isEmpty() || !panel.chart()->hint().isEmpty(), info.title);
            drawn += shows ? 1 : 0;
            QCOMPARE(panel.viewCommand().kind, shows ? ViewCommand::Kind::shell : ViewCommand::Kind::none);
        }
        QVERIFY2(drawn >= 14, qPrintable(QString::number(drawn)));
    }

    void aPanelWhoseRunIsGoneSaysSo() {
        const fs::path path = folder_ / "goes.ponder";
        fs::copy_file(trace_, path);
        Opened window(path);
        window.selection.setRunA(window.run(0));
        FigureSpec spec;
        spec.kind = FigureKind::steps_histogram;
        FigurePanel panel(window.context, spec);
        panel.show();
        QTRY_VERIFY_WITH_TIMEOUT(!panel.isBusy() && !panel.chart()->chart().empty(), 60'000);
        // The file is replaced by one without the run: the figure goes, and a sentence stands in its place.
        spec.title = "other";
        fs::remove(path);
        panel.setSpec(spec);
        QTRY_VERIFY_WITH_TIMEOUT(!panel.isBusy(), 60'000);
        QVERIFY(panel.chart()->hint().contains(u"goes.ponder"_s) || panel.hint().contains(u"goes.ponder"_s));
        QCOMPARE(panel.viewCommand().kind, ViewCommand::Kind::none);
        // The run is no longer open, or no longer chosen.
        window.selection.setRunA({window.trace, 99});
        QTRY_VERIFY(!panel.isBusy() && !panel.hint().isEmpty());
        QVERIFY(panel.spec().runs.empty());
        QCOMPARE(panel.viewCommand().kind, ViewCommand::Kind::none);
    }

    void otherKindsAndFailures() {
        Opened window(trace_);
        FigureSpec initial = about(FigureKind::step_heatmap);
        initial.signal = "gate";
        ExportDialog dialog(window.context, initial);
        QCOMPARE(dialog.spec().signal, std::string("gate"));
        QVERIFY(!dialog.spec().tokens);
        QTRY_VERIFY_WITH_TIMEOUT(dialog.figure(), 30'000);
        dialog.file()->setFile(u"/nowhere/at/all.pdf"_s);
        QVERIFY(!dialog.write());
        QVERIFY(dialog.message().contains(u"/nowhere/at"_s));
        dialog.file()->setFile(QString::fromStdString((folder_ / "x.docx").string()));
        QVERIFY(!dialog.write());
        QVERIFY(!fs::exists(folder_ / "x.docx"));
    }

private:
    const std::vector<std::string> both_{"adaponderlm-1m", "vanilla-1m"};
};

QTEST_MAIN(ExportDialogTest)
#include "export_dialog_test.moc"
