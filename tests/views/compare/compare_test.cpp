// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/stats/paired.h"
#include "core/stats/tasks.h"
#include "core/trace/reader.h"
#include "tests/views/figure/figure_stage.h"
#include "tests/views/view_stage.h"
#include "views/common/tables.h"
#include "views/common/token_subset.h"
#include "views/compare/compare_view.h"
#include "views/compare/task_answers.h"
#include "views/figure/figure_command.h"
#include "views/figure/figure_form.h"
#include "views/figure/figure_panel.h"

#include <QAbstractItemModelTester>
#include <QComboBox>
#include <QGraphicsEffect>
#include <QTableView>
#include <QtTest>

#include <cmath>
#include <sqlite3.h>

using namespace Qt::StringLiterals;
using namespace ponderscope;

namespace {

struct Stage : testing::PanelStage<CompareView> {
    Stage() : PanelStage({1000, 320}) {}
    explicit Stage(const std::filesystem::path& path) : Stage() { compare(path); }
    void compare(const std::filesystem::path& path) {
        open(path);
        selection.setRunA(run(0));
        selection.setRunB(run(1));
    }
    void settle() {
        testing::wait_for([&] { return !view.isBusy(); });
    }
};

/// Changes a trace behind the back of its readers.
void execute(const std::filesystem::path& trace, const char* sql) {
    sqlite3* database = nullptr;
    QCOMPARE(sqlite3_open(trace.c_str(), &database), SQLITE_OK);
    QCOMPARE(sqlite3_exec(database, sql, nullptr, nullptr, nullptr), SQLITE_OK);
    sqlite3_close(database);
}

} // namespace

class CompareTest : public QObject, private figure::FigureStage {
    Q_OBJECT
private Q_SLOTS:
    void aRunIsNotSaidToEqualItself() {
        const auto says = [](const RunComparison& comparison) {
            return std::ranges::count(comparison.notices, NoticeId::compare_same_nll, &Notice::id) > 0;
        };
        ComparisonRequest request = both();
        request.replicates = 100;
        QVERIFY(!says(compare_runs(request)));
        request.runs.pop_back();
        QVERIFY(!says(compare_runs(request)));
        request.runs.push_back(request.runs.front()); // two that are the same are said to be
        QVERIFY(says(compare_runs(request)));
    }

    void theCommandNamesEveryRun() {
        std::filesystem::copy_file(trace_, folder_ / "named.ponder");
        execute(folder_ / "named.ponder", "UPDATE run SET name = 'a#b' WHERE id = 1");
        Stage stage(folder_ / "named.ponder");
        // What follows the last # is the run: one with a # in its name goes by its number.
        const QString text = stage.view.viewCommand().text;
        QVERIFY2(text.contains(stage.trace + u"#1' "_s), qPrintable(text));
        QVERIFY2(text.contains(stage.trace + u"#vanilla-1m'\n"_s), qPrintable(text));
        // A that is gone makes no figure, whatever B is.
        stage.selection.setRunA({stage.trace, 7});
        QVERIFY(figure::window_figure(stage.data, stage.selection, figure::FigureKind::nll_comparison)
                    .runs.empty());
        QCOMPARE(stage.view.viewCommand().kind, ViewCommand::Kind::none);
    }

    void initTestCase() {
        testing::write_sample_trace(trace_, {.sequences = 2, .tokens = 300});
        testing::write_sample_trace(folder_ / "other.ponder", {.seed = 9, .sequences = 2, .tokens = 300});
    }

    void agreesWithTheStatisticsOfTheCommandLine() {
        ComparisonRequest request = both();
        request.replicates = 500;
        const RunComparison ours = compare_runs(request);
        const TraceReader reader = TraceReader::open(trace_);
        const auto runs = reader.runs();
        BootstrapOptions options;
        options.replicates = 500;
        const PairedComparison theirs = compare_paired(pair_runs(reader, runs[0], reader, runs[1]), options);
        QCOMPARE(static_cast<std::int64_t>(ours.places.size()), theirs.tokens);
        QCOMPARE(ours.runs[0].nll.value, theirs.mean_a.value);
        QCOMPARE(ours.runs[0].nll.low, theirs.mean_a.low);
        QCOMPARE(ours.runs[1].nll.high, theirs.mean_b.high);
        QCOMPARE(ours.runs[1].difference.value, theirs.difference.value);
        QCOMPARE(ours.runs[1].difference.low, theirs.difference.low);
        QCOMPARE(ours.runs[1].perplexity.value, theirs.perplexity_b.value);
        QCOMPARE(ours.runs[1].bits_per_byte.value, theirs.bits_per_byte_b.value);
        QCOMPARE(ours.runs[1].correlation.value, theirs.pearson.value);
        QVERIFY(std::isnan(ours.runs[0].difference.value));
    }

    /// Two documents of two options each, in both runs.
    static void make_tasks(const std::filesystem::path& trace) {
        testing::write_sample_trace(trace, {.sequences = 4, .tokens = 40});
        execute(trace, "UPDATE sequence SET \"group\" = 'letters/' || (number / 2);"
                       "INSERT INTO label(sequence, text_begin, text_end, class) SELECT id, text_bytes / 2, "
                       "text_bytes, CASE number % 2 WHEN 0 THEN 'right 0' ELSE 'wrong 1' END "
                       "FROM sequence");
    }

    void answersToTasksLeadToTheText() {
        make_tasks(folder_ / "tasks.ponder");
        Stage stage(folder_ / "tasks.ponder");
        QComboBox* detail = stage.view.detail();
        detail->setCurrentIndex(detail->findText(u"Tasks: answers"_s));
        const TaskAnswers* tasks = stage.view.tasks();
        QTRY_VERIFY(!tasks->isBusy() && tasks->topLevelItemCount() == 1);
        const QTreeWidgetItem* task = tasks->topLevelItem(0);
        QCOMPARE(task->text(0), u"letters"_s);
        QVERIFY2(task->text(1).startsWith(QLatin1String("A ")), qPrintable(task->text(1)));
        const TraceReader reader = TraceReader::open(folder_ / "tasks.ponder");
        const std::vector<TaskSample> samples = read_tasks(reader, reader.runs().front());
        const TaskReport report = report_task(samples.front());
        std::size_t flips = 0;
        for (const StepFlips& step : report.flips) {
            flips += step.became_right.size() + step.became_wrong.size();
        }
        std::size_t listed = 0;
        for (QTreeWidgetItemIterator at(const_cast<TaskAnswers*>(tasks)); *at != nullptr; ++at) {
            const bool of_step = (*at)->childCount() == 0 && (*at)->data(0, Qt::UserRole).isValid() &&
                                 (*at)->parent()->parent()->parent() != nullptr;
            listed += of_step ? 1 : 0;
            if ((*at)->data(0, Qt::UserRole).isValid()) {
                Q_EMIT const_cast<TaskAnswers*>(tasks)->itemClicked(*at, 0);
                QCOMPARE(stage.selection.sequence(), (*at)->data(0, Qt::UserRole).toLongLong());
                QVERIFY(stage.selection.token() > 0);
            }
        }
        QCOMPARE(listed, flips);
        const QString command = stage.view.viewCommand().text;
        QVERIFY2(command.contains(QLatin1String("tasks")) && command.contains(QLatin1String("task_accuracy")),
                 qPrintable(command));
    }

    void aFigureSetsAccuracyAgainstItsCost() {
        make_tasks(folder_ / "figure.ponder");
        for (const char* cost : {"steps", "compute"}) {
            const figure::FigureSpec spec = parsed(
                std::string(
                    "{\"kind\":\"task_accuracy\",\"trace\":\"figure.ponder\",\"runs\":[1,2],\"cost\":\"") +
                cost + "\"}");
            const Chart chart = *figure::gather(spec).chart;
            const TraceReader reader = TraceReader::open(folder_ / "figure.ponder");
            const TaskReport report = report_task(read_tasks(reader, reader.runs().front()).front());
            const bool steps = cost == std::string("steps");
            QCOMPARE(chart.series.size(), steps ? 3U : 2U); // two models, and the first one step by step
            QCOMPARE(chart.series[0].y.front(), report.accuracy.value);
            QCOMPARE(chart.series[0].x.front(), steps ? report.steps.value : report.flops.value);
            QCOMPARE(chart.series[0].low.front(), report.accuracy.low);
            if (steps) {
                QCOMPARE(chart.series[2].y.size(), report.accuracy_by_step.size());
            }
        }
        const figure::FigureSpec none =
            parsed(R"({"kind":"task_accuracy","trace":"story.ponder","runs":[1]})");
        QVERIFY_EXCEPTION_THROWN(figure::gather(none), InputError);
    }

    void groupsOfEitherRunCount() {
        const auto trace = folder_ / "groups.ponder";
        testing::write_sample_trace(trace, {.sequences = 40, .tokens = 30, .withSignals = false});
        execute(trace, "UPDATE sequence SET \"group\" = 'author ' || (number % 3) WHERE run = 2");
        ComparisonRequest request;
        request.replicates = 100;
        request.runs = {{trace, "1"}, {trace, "2"}};
        const RunComparison ours = compare_runs(request);
        const TraceReader reader = TraceReader::open(trace);
        const auto runs = reader.runs();
        const PairedSample theirs = pair_runs(reader, runs[0], reader, runs[1]);
        QCOMPARE(ours.resampling.clusters, std::int64_t{3});
        QVERIFY(ours.layout.cluster_of == theirs.layout.cluster_of);
        QVERIFY(ours.layout.stretches == theirs.layout.stretches);
    }

    void aPartIsComparedAsAWhole() {
        ComparisonRequest request = both();
        request.sequence = 1;
        request.tokens = {20, 120};
        request.replicates = 200;
        const RunComparison part = compare_runs(request);
        QCOMPARE(part.places.size(), std::size_t{100});
        QCOMPARE(part.places.front().sequence, 1);
        QCOMPARE(part.places.front().row, 19); // the prediction of token 20
        const TokenColumns tokens = TraceReader::open(trace_).tokens(1, 1);
        double sum = 0;
        for (std::size_t row = 19; row < 119; ++row) {
            sum += tokens.nll[row];
        }
        QVERIFY(std::abs(part.runs[0].nll.value - sum / 100) < 1e-9);
    }

    void wrongRequests() {
        const auto said = [](const ComparisonRequest& request) {
            return figure::thrown([&] { compare_runs(request); });
        };
        ComparisonRequest request;
        QVERIFY(!said(request).isEmpty());
        request.runs = {{trace_, "bert"}};
        QVERIFY(said(request).contains(u"vanilla-1m"_s));
        request.runs = {{trace_, "1"}};
        request.sequence = 7;
        QVERIFY(said(request).contains(u'7'));
        request.sequence = 0;
        request.tokens = {0, 1}; // the first token has no predecessor
        QVERIFY(!said(request).isEmpty());
        request.runs = {{trace_, "1"}, {folder_ / "other.ponder", "1"}};
        request.tokens.reset();
        QVERIFY(!said(request).isEmpty());
    }

    void stopsWhenAsked() {
        ComparisonRequest request = both();
        std::stop_source stop;
        stop.request_stop();
        QVERIFY_EXCEPTION_THROWN(compare_runs(request, {}, stop.get_token()), Cancelled);
    }

    void modelIsSound() {
        DataTableModel model;
        QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
        QCOMPARE(model.rowCount(), 0);
        ComparisonRequest request = both();
        request.replicates = 200;
        const RunComparison comparison = compare_runs(request);
        model.setTable(table_of(comparison));
        QCOMPARE(model.rowCount(), 2);
        const auto cell = [&](int row, const char* key) { return model.index(row, model.columnOf(key)); };
        QCOMPARE(cell(0, "run").data().toString(), u"adaponderlm-1m"_s);
        QCOMPARE(cell(0, "difference").data().toString(), u"–"_s);
        // The sign of the text: A minus the run.
        QVERIFY(cell(1, "difference").data().toString().startsWith(QChar(0x2212)));
        QCOMPARE(cell(1, "difference").data(Qt::UserRole).toDouble(),
                 comparison.runs[0].nll.value - comparison.runs[1].nll.value);
        QCOMPARE(cell(1, "mean_steps").data().toString(), u"–"_s);
        QCOMPARE(cell(1, "nll").data(Qt::UserRole).toDouble(), comparison.runs[1].nll.value);
        QVERIFY(!model.data(model.index(9, 9), Qt::DisplayRole).isValid());
        model.setColours([](int row) { return row == 0 ? QColor(Qt::red) : QColor(Qt::blue); });
        QCOMPARE(model.index(1, 0).data(Qt::DecorationRole).value<QColor>(), QColor(Qt::blue));
        model.setTable({});
        QCOMPARE(model.rowCount(), 0);
    }

    void comparesWhatIsOpenByItself() {
        Stage f;
        QVERIFY(!f.view.isBusy());
        QCOMPARE(f.view.model()->rowCount(), 0);
        f.compare(trace_);
        QVERIFY(f.view.isBusy());
        f.settle();
        QCOMPARE(f.view.model()->rowCount(), 2);
        QCOMPARE(f.view.key(0).run, 1);
        // A and B change places: the rows do, and the old ones are pale until then.
        const auto pale = [&] {
            return f.view.findChild<QTableView*>()->viewport()->graphicsEffect() != nullptr;
        };
        QVERIFY(!pale());
        const RunKey a = f.selection.runA();
        f.selection.setRunA(f.selection.runB());
        f.selection.setRunB(a);
        QTRY_VERIFY(f.view.isBusy());
        QVERIFY(pale());
        f.settle();
        QCOMPARE(f.view.key(0).run, 2);
        QVERIFY(!pale());
    }

    void aTraceThatWasReplacedIsComparedAnew() {
        const std::filesystem::path path = folder_ / "replaced.ponder";
        std::filesystem::copy_file(trace_, path);
        Stage f(path);
        QTRY_VERIFY_WITH_TIMEOUT(!f.view.isBusy() && f.view.comparison(), 60'000);
        const double before = f.view.comparison()->runs[0].nll.value;
        // The same text and names, and other numbers: a checkpoint that was trained on.
        std::filesystem::remove(path);
        testing::write_sample_trace(path, {.sequences = 2, .tokens = 300});
        execute(path, "UPDATE token_row SET nll = nll + 1;"
                      "UPDATE sequence SET nll_sum = nll_sum + scored_tokens;"
                      "UPDATE run SET nll_sum = nll_sum + scored_tokens");
        f.data.open(f.trace);
        QTRY_VERIFY(f.view.isBusy());
        f.settle();
        QVERIFY(f.view.comparison()->runs[0].nll.value > before + 0.5);
    }

    void foundTokensAloneAreCompared() {
        Stage f(trace_);
        f.settle();
        const auto all = f.view.comparison();
        TokenSubset subset{f.selection.runA(), u"nll > 4"_s, u"in sequence 1"_s, {}};
        std::vector<std::int64_t>& rows = subset.rows[0];
        double a = 0;
        double b = 0;
        for (std::size_t i = 0; i < all->places.size(); ++i) {
            if (all->places[i].sequence == 0 && all->runs[0].token_nll[i] > 4) {
                rows.push_back(all->places[i].row);
                a += static_cast<double>(all->runs[0].token_nll[i]);
                b += static_cast<double>(all->runs[1].token_nll[i]);
            }
        }
        const auto count = static_cast<double>(rows.size());
        QVERIFY(count > 20);
        f.view.setSubset(subset);
        QTRY_VERIFY(!f.view.isBusy());
        const auto part = f.view.comparison();
        QCOMPARE(part->places.size(), rows.size());
        QVERIFY(std::abs(part->runs[0].nll.value - a / count) < 1e-9);
        const Estimate& difference = part->runs[1].difference;
        QVERIFY(std::abs(difference.value - (a - b) / count) < 1e-9);
        QVERIFY(difference.low < difference.value && difference.value < difference.high);
        QVERIFY(f.view.chip()->words().contains(u"nll > 4"_s));
        const DataTableModel& model = *f.view.model();
        const QString tip = model.index(1, model.columnOf("difference")).data(Qt::ToolTipRole).toString();
        QVERIFY2(tip.contains(u"Student"_s), qPrintable(tip));
        Q_EMIT f.view.chip()->released();
        QCOMPARE(f.view.comparison(), all);
        QVERIFY(f.view.chip()->words().isEmpty());
    }

    void cancelling() {
        Stage f(trace_);
        QVERIFY(f.view.isBusy());
        f.view.cancel();
        QVERIFY(!f.view.isBusy());
        QVERIFY(!f.view.comparison());
        // Of its own accord it does not begin again.
        f.data.refresh();
        QTest::qWait(300);
        QVERIFY(!f.view.isBusy());
        f.compare(trace_);
        QTRY_VERIFY_WITH_TIMEOUT(f.view.comparison() != nullptr, 60'000);
    }

    void hoveringAndClickingPointsDriveTheSelection() {
        Stage f(trace_);
        ChartPlot* plot = f.view.pairs()->chart();
        QTRY_VERIFY_WITH_TIMEOUT(!f.view.isBusy() && !plot->chart().empty(), 60'000);
        QCOMPARE(plot->accessibleName(), u"Token against token"_s);
        const RunComparison& comparison = *f.view.comparison();
        const Chart::Series& points = plot->chart().series.back();
        QCOMPARE(points.x.size(), comparison.places.size());
        const int series = static_cast<int>(plot->chart().series.size()) - 1;
        // The token that lies farthest out has no neighbour that could be meant instead.
        const auto farthest = [&](std::int32_t sequence) {
            std::size_t best = points.x.size();
            for (std::size_t i = 0; i < points.x.size(); ++i) {
                const bool of = comparison.places[i].sequence == sequence;
                best = of && (best == points.x.size() || points.x[i] > points.x[best]) ? i : best;
            }
            return ChartPlot::Mark{series, static_cast<int>(best)};
        };
        const auto token_of = [&](ChartPlot::Mark mark) {
            return static_cast<qint64>(comparison.places[static_cast<std::size_t>(mark.index)].row) + 1;
        };
        const QPointF place = plot->positionOf(farthest(0));
        testing::move_mouse(plot->canvas(), place);
        QCOMPARE(f.selection.hover(), token_of(plot->markAt(place)));
        const QPoint elsewhere = plot->positionOf(farthest(1)).toPoint();
        const ChartPlot::Mark clicked = plot->markAt(elsewhere);
        QVERIFY(clicked.isValid());
        QTest::mouseClick(plot->canvas(), Qt::LeftButton, {}, elsewhere);
        QCOMPARE(f.selection.sequence(), 1);
        QCOMPARE(f.selection.token(), token_of(clicked));
        // Who wins is a figure beside it, of what its form says.
        f.view.detail()->setCurrentIndex(1);
        QTRY_VERIFY_WITH_TIMEOUT(!f.view.isBusy() && !f.view.winners()->chart()->chart().empty(), 60'000);
        auto* by = qobject_cast<QComboBox*>(f.view.winners()->ownForm(0)->editor(u"by"_s));
        by->setCurrentIndex(by->findData(u"position"_s));
        QVERIFY(f.view.viewCommand().text.contains(u"\"by\": \"position\""_s));
        f.selection.setRunB({});
        f.settle();
        QVERIFY(!f.view.winners()->chart()->hint().isEmpty());
    }

private:
    [[nodiscard]] ComparisonRequest both() const {
        ComparisonRequest request;
        request.runs = {{trace_, "adaponderlm-1m"}, {trace_, "vanilla-1m"}};
        return request;
    }
};

QTEST_MAIN(CompareTest)
#include "compare_test.moc"
