// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trace/reader.h"
#include "core/trace/writer.h"
#include "tests/views/figure/figure_stage.h"
#include "tests/views/view_stage.h"
#include "views/chart/chart_plot.h"
#include "views/chart/plot_legend.h"
#include "views/figure/figure_form.h"
#include "views/figure/figure_panel.h"
#include "views/training/training_charts.h"

#include <QComboBox>
#include <QDoubleSpinBox>
#include <QtTest>

#include <cmath>
#include <set>

using namespace Qt::StringLiterals;
using namespace ponderscope;

namespace {

/// A training of so many points of which every fifth was measured on held-out text.
class Trained {
public:
    Trained(const std::filesystem::path& path, const char* name) : writer(path) {
        TrainingInfo info;
        info.name = name;
        info.method = "adaponderlm";
        info.max_steps = 2;
        info.planned_steps = 1000;
        id = writer.begin_training(info, {{"loss", "", "nats", "Loss", "d"},
                                          {"held_out_nll", "", "nats", "Held-out NLL", "d"},
                                          {"mean_steps", "", "steps", "Mean steps", "d"},
                                          {"held_out_mean_steps", "", "steps", "Held-out mean steps", "d"},
                                          {"held_out_gate", "step", "", "Gate", "d"},
                                          {"learning_rate", "", "", "Learning rate", "d"}});
    }
    static double loss(std::int64_t point) {
        return 4 + 4.0 / static_cast<double>(point) + (point % 2 == 0 ? 0.25 : -0.25);
    }
    void points(std::int64_t from, std::int64_t to) {
        for (std::int64_t point = from; point <= to; ++point) {
            std::vector<TrainingValue> values{
                {"loss", 0, loss(point)}, {"mean_steps", 0, 1.5}, {"learning_rate", 0, 0.001}};
            if (point % 5 == 0) {
                values.push_back({"held_out_nll", 0, 5.0});
                values.push_back({"held_out_mean_steps", 0, 1.25});
                values.push_back({"held_out_gate", 0, 0.8});
                values.push_back({"held_out_gate", 1, 0.3});
            }
            writer.put_points(id, {point * 10, point * 640, static_cast<double>(point) * 2}, values);
        }
    }

    TraceWriter writer;
    std::int64_t id = 0;
};

struct Stage : testing::ViewStage {
    explicit Stage(const std::vector<std::filesystem::path>& traces) {
        view.resize(1100, 320);
        view.show();
        view.setOnScreen(true);
        for (const std::filesystem::path& path : traces) {
            open(path);
        }
        settle();
    }
    void settle() {
        testing::wait_for([&] { return data.idle() && !view.isBusy(); });
    }
    /// Sets a key that all charts share, and waits for it.
    void set(const char* key, const QVariant& value) {
        QWidget* editor = view.form()->editor(QLatin1String(key));
        if (auto* box = qobject_cast<QComboBox*>(editor)) {
            box->setCurrentIndex(box->findData(value));
        } else {
            qobject_cast<QDoubleSpinBox*>(editor)->setValue(value.toDouble());
        }
        settle();
    }
    [[nodiscard]] const Chart& chart(int number) const { return view.chart(number)->chart(); }

    FigurePanel view{context, training_page()};
};

} // namespace

class TrainingTest : public QObject, private figure::FigureStage {
    Q_OBJECT
private Q_SLOTS:
    void aTraceWithoutTrainingsSaysWhatToDo() {
        const auto path = folder_ / "plain.ponder";
        {
            TraceWriter writer(path);
            writer.begin_run({}, {});
            writer.finish();
        }
        Stage stage({path});
        QVERIFY(stage.view.hint().contains("ponderscope train"));
    }

    void showsTheNumbersOfTheTrace() {
        Stage stage({trained("one.ponder", 60)});
        QCOMPARE(stage.view.hint(), QString());
        const Chart& loss = stage.chart(0);
        QCOMPARE(loss.series.size(), 2U); // training, held-out
        QCOMPARE(loss.series[0].y.size(), 60U);
        for (std::size_t i = 0; i < 60; ++i) {
            QCOMPARE(loss.series[0].x[i], static_cast<double>((i + 1) * 10));
            QCOMPARE(loss.series[0].y[i], Trained::loss(static_cast<std::int64_t>(i) + 1));
        }
        QCOMPARE(loss.series[1].y, std::vector<double>(12, 5.0));
        QVERIFY(loss.series[1].dashed);
        const Chart& steps = stage.chart(1);
        QCOMPARE(steps.series[0].y.front(), 1.5);
        QCOMPARE(steps.series[1].y.front(), 1.25);
        // Gates, or any other curve.
        auto* curve = qobject_cast<QComboBox*>(stage.view.ownForm(2)->editor(u"curve"_s));
        curve->setCurrentIndex(curve->findData("held_out_gate"));
        stage.settle();
        QCOMPARE(stage.chart(2).series.size(), 2U);
        QCOMPARE(stage.chart(2).series[1].y, std::vector<double>(12, 0.3));
        // The legend of the loss says what that of the steps would say.
        QVERIFY(!stage.view.chart(0)->legend().entries().empty());
        QVERIFY(stage.view.chart(1)->legend().entries().empty());
        curve->setCurrentIndex(curve->findData("learning_rate"));
        stage.settle();
        QCOMPARE(stage.chart(2).series[0].y, std::vector<double>(60, 0.001));
        // The command is the page that is shown.
        QVERIFY(stage.view.viewCommand().text.contains(u"\"learning_rate\""_s));
        QVERIFY(stage.view.viewCommand().text.contains(u"one.ponder"_s));
    }

    void theAxisIsStepsTokensOrTime() {
        Stage stage({trained("axis.ponder", 60)});
        const auto first = [&] { return stage.chart(0).series[0].x.front(); };
        QCOMPARE(first(), 10.0);
        stage.set("axis", "tokens");
        QCOMPARE(first(), 640.0);
        stage.set("axis", "seconds");
        QCOMPARE(first(), 2.0);
        QCOMPARE(stage.chart(0).x.label, u"time (s)"_s);
        QCOMPARE(stage.chart(0).y.label, u"Loss (nats a token)"_s);
    }

    void smoothingIsOfTheTrainingLossAlone() {
        Stage stage({trained("smooth.ponder", 60)});
        stage.set("smoothing", 0.93);
        const Chart& loss = stage.chart(0);
        QVERIFY(loss.series[0].faint);
        QCOMPARE(loss.series[0].y.back(), Trained::loss(60));
        QVERIFY(!loss.series[1].faint);
        // Points go up and down by a quarter; their mean does not.
        double roughest = 0;
        for (std::size_t i = 40; i + 1 < loss.series[1].y.size(); ++i) {
            roughest = std::max(roughest, std::abs(loss.series[1].y[i + 1] - loss.series[1].y[i]));
        }
        QVERIFY2(roughest < 0.1, qPrintable(QString::number(roughest)));
        QCOMPARE(loss.series[2].y, std::vector<double>(12, 5.0)); // held-out text is as it was measured
        const std::vector<double> values{1, std::nan(""), 3};
        const std::vector<double> mean = smoothed(values, 0.5);
        QCOMPARE(mean[0], 1.0);
        QVERIFY(std::isnan(mean[1]));
        QCOMPARE(mean[2], (0.5 * 1 + 3) / 1.5);
        QCOMPARE(smoothed(values, 0)[2], 3.0);
    }

    void hoverSaysTheNumbers() {
        Stage stage({trained("hover.ponder", 60)});
        ChartPlot* chart = stage.view.chart(0);
        QVERIFY(QTest::qWaitForWindowExposed(&stage.view));
        QTest::mouseMove(chart->canvas(), chart->positionOf({0, 29}).toPoint());
        QTRY_VERIFY(chart->textOf(chart->current()).contains("step 300"));
        QVERIFY(chart->textOf(chart->current()).contains(QString::number(Trained::loss(30), 'f', 3)));
    }

    void aGrowingTrainingIsFollowed() {
        const auto path = folder_ / "growing.ponder";
        Trained trained(path, "one");
        trained.points(1, 4);
        testing::wait_for([&] {
            try {
                const auto now = TraceReader::open(path).trainings();
                return !now.empty() && now[0].step == 40;
            } catch (const Error&) {
                return false;
            }
        });
        Stage stage({path});
        const auto count = [&] {
            const auto& series = stage.chart(0).series;
            return series.empty() ? std::size_t{0} : series[0].y.size();
        };
        QCOMPARE(count(), 4U);
        trained.points(5, 12);
        testing::wait_for([&] {
            stage.data.refresh();
            return count() == 12;
        });
        stage.settle();
        QVERIFY(stage.chart(0).note.contains("120 of 1,000"));
        trained.writer.end_training(trained.id, false, "the loss is nan");
        testing::wait_for([&] {
            stage.data.refresh();
            return stage.chart(0).note.contains("the loss is nan");
        });
    }

    void severalAreOverlaid() {
        for (const char* name : {"a", "b"}) {
            Trained trained(folder_ / (std::string("over-") + name + ".ponder"),
                            *name == 'a' ? "first<a>" : "second");
            trained.points(1, 20);
            trained.writer.finish();
        }
        Stage stage({folder_ / "over-a.ponder", folder_ / "over-b.ponder"});
        const Chart& loss = stage.chart(0);
        std::set<int> inks;
        for (const auto& series : loss.series) {
            inks.insert(series.ink);
        }
        QStringList names;
        for (const QAbstractButton* entry : stage.view.chart(0)->legend().entries()) {
            names << entry->text();
        }
        QVERIFY(names.contains(u"first<a>"_s) && names.contains(u"second"_s));
        QCOMPARE(inks.size(), 2U);
        // Smoothed lines are never crossed out by what was measured.
        stage.set("smoothing", 0.95);
        bool faint = true;
        for (const auto& series : stage.chart(0).series) {
            QVERIFY(faint || !series.faint);
            faint = series.faint;
        }
        // Closing one leaves the other.
        stage.data.close(QString::fromStdString((folder_ / "over-a.ponder").string()));
        stage.settle();
        QCOMPARE(stage.view.spec().runs.size(), 1U);
    }

    void nothingIsReadBehindOtherTabs() {
        const auto path = trained("behind.ponder", 3);
        Stage stage({});
        stage.view.setOnScreen(false);
        stage.open(path);
        QVERIFY(!stage.view.isBusy());
        QVERIFY(stage.chart(0).empty());
        stage.view.setOnScreen(true);
        stage.settle();
        QVERIFY(!stage.chart(0).empty());
    }

    void longCurvesKeepTheirOutliers() {
        TrainingRecord record;
        record.info.name = "long";
        TrainingCurve curve{"loss", 0, {}, {}, {}, {}};
        for (std::int64_t i = 0; i < 100'000; ++i) {
            curve.step.push_back(i);
            curve.tokens.push_back(i);
            curve.seconds.push_back(static_cast<double>(i));
            curve.value.push_back(i == 77'777 ? 9 : 3);
        }
        record.curves = {curve};
        const Chart made = training_chart(std::span(&record, 1), "loss", {});
        QVERIFY(made.series[0].y.size() < 3100);
        QCOMPARE(std::count(made.series[0].y.begin(), made.series[0].y.end(), 9.0), 1);
        QCOMPARE(made.series[0].x.back(), 99'999.0);
    }

    void aFigureNamesTheTraining() {
        const auto path = folder_ / "figure.ponder";
        {
            Trained trained(path, "one");
            trained.points(1, 20);
            TrainingInfo second;
            second.name = "two";
            const std::int64_t id = trained.writer.begin_training(second, {{"loss", "", "nats", "Loss", ""}});
            trained.writer.put_points(id, {10, 10, 1}, {{"loss", 0, 2.5}});
            trained.writer.finish();
        }
        QCOMPARE(trainings_named(path, "").size(), 2U);
        QCOMPARE(trainings_named(path, "two").at(0).info.name, std::string("two"));
        const auto said = [&](const char* trace, const char* rest) {
            const auto json = uR"({"kind":"training_curves","trace":"%1.ponder"%2})"_s.arg(
                QLatin1String(trace), QLatin1String(rest));
            return figure::thrown([&] { (void)figure::gather(parsed(json.toStdString())); });
        };
        QCOMPARE(said("figure", ""), QString());
        QVERIFY(said("figure", R"(,"runs":["three"])").contains(u"three"_s));
        QVERIFY(said("figure", R"(,"curve":"luck")").contains(u"held_out_gate"_s));
        QVERIFY(said("figure", R"(,"smoothing":1)").contains(u"smoothing"_s));
        QVERIFY(said("figure", R"(,"axis":"epochs")").contains(u"tokens"_s));
        QVERIFY(said("plain", "").contains(u"training.ponder"_s));
    }

private:
    [[nodiscard]] std::filesystem::path trained(const char* file, std::int64_t points) const {
        Trained made(folder_ / file, "one");
        made.points(1, points);
        made.writer.end_training(1, true);
        made.writer.finish();
        return folder_ / file;
    }
};

QTEST_MAIN(TrainingTest)
#include "training_test.moc"
