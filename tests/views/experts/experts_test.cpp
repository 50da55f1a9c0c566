// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/expert_trace.h"
#include "tests/views/view_stage.h"
#include "views/experts/expert_charts.h"
#include "views/experts/experts_view.h"
#include "views/figure/figure_panel.h"
#include "views/heatmap/map_header.h"
#include "views/heatmap/step_map_canvas.h"

#include <QComboBox>
#include <QStandardPaths>
#include <QtTest>

using namespace Qt::StringLiterals;
using namespace ponderscope;

namespace {

/// Run "a" in layer 0: {0,1} {1,0} {2,3} {2,3}; in layer 2 always {0,3}.
struct Stage : testing::PanelStage<ExpertsView> {
    Stage() : PanelStage({900, 260}) {
        const auto path = folder / "experts.ponder";
        testing::write_expert_run(path, "a", 4, {{0, 1, 0, 3}, {1, 0, 3, 0}, {2, 3, 0, 3}, {2, 3, 0, 3}});
        testing::write_expert_run(path, "b", 4, {{0, 2, 3, 0}, {2, 3, 0, 3}, {3, 0, 0, 3}, {3, 2, 0, 3}});
        selection.setAttribution(Attribution::predicting);
        open(path);
        selection.setRunA(run(0));
        testing::wait_for([&] { return view.map()->map() != nullptr && !view.isBusy(); });
    }
};

} // namespace

class ExpertsTest : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void initTestCase() { QStandardPaths::setTestModeEnabled(true); }

    void theMapHoldsTheWeightsOfTheChosen() {
        Stage stage;
        const StepMap& map = *stage.view.map()->map();
        QCOMPARE(map.steps(), 4); // experts
        QCOMPARE(map.tokens(), 4);
        QVERIFY(map.at(2, 0).kind == StepMap::Kind::missing);
        QVERIFY(map.at(2, 2).kind == StepMap::Kind::value);
        QCOMPARE(map.at(2, 2).value, 0.6F);
        QCOMPARE(map.at(2, 3).value, 0.4F);
        QVERIFY(map.at(1, 1).value > map.at(1, 0).value); // the first choice
    }

    void layerAndTokenAreShared() {
        Stage stage;
        QCOMPARE(stage.view.layerBox()->count(), 2);
        stage.selection.setLayer(2); // the second of the layers that have experts
        QCOMPARE(stage.view.layerBox()->currentIndex(), 1);
        QCOMPARE(stage.view.map()->map()->at(2, 0).value, 0.6F);
        stage.selection.setLayer(1); // a layer without experts changes nothing
        QCOMPARE(stage.view.layerBox()->currentIndex(), 1);
        stage.selection.setToken(1);
        const QString said = stage.view.header()->readout();
        QVERIFY2(said.contains(u"3 ("_s) && said.contains(u"0 ("_s), qPrintable(said));
        QTest::keyClick(stage.view.map(), Qt::Key_Right);
        QCOMPARE(stage.selection.token(), 2);
        QTest::keyClick(stage.view.map(), Qt::Key_Down);
        QCOMPARE(stage.selection.step(), -1); // rows are experts, which no view shares
        QVERIFY(!stage.view.map()->accessibleName().isEmpty());
    }

    void chartsCountTheRunAndCompareWithB() {
        Stage stage;
        const ChartPlot* load = stage.view.charts()->chart(0);
        const ChartPlot* agreement = stage.view.charts()->chart(1);
        QTRY_VERIFY(!load->chart().empty());
        QCOMPARE(load->chart().series.front().value,
                 (std::vector<double>{0.5, 0.5, 0.5, 0.5, 1.0, 0, 0, 1.0}));
        QVERIFY(!agreement->hint().isEmpty()); // without a run B
        stage.selection.setRunB(stage.run(1));
        QTRY_VERIFY(!stage.view.isBusy() && !agreement->chart().empty());
        QCOMPARE(agreement->chart().series[0].y, (std::vector<double>{0.5, 1.0}));
        QCOMPARE(agreement->chart().series[1].y, (std::vector<double>{0.25, 1.0}));
        QVERIFY(stage.view.charts()->viewCommand().text.contains(u"\"expert_agreement\""_s));
    }

    void aRunWithoutExpertsSaysHowToRecordThem() {
        testing::ViewStage nothing;
        ExpertsView empty(nothing.context);
        empty.show();
        QVERIFY(!empty.map()->hint().isEmpty());
        QVERIFY(empty.viewCommand().kind == ViewCommand::Kind::none);
        const ViewCommand command = Stage().view.viewCommand();
        QVERIFY(command.kind == ViewCommand::Kind::python);
        QVERIFY(command.text.contains(u"experts"_s));
    }

    void theFigureHasACellForEveryExpertAndLayer() {
        ExpertUse use;
        use.experts = 3;
        use.chosen = 1;
        use.layers = {{"0", {4, 0, 0}, 4, 3, 3}, {"5", {1, 1, 2}, 4, 3, 0}};
        const Chart chart = experts_chart(use);
        QCOMPARE(chart.series.front().value, (std::vector<double>{1, 0, 0, 0.25, 0.25, 0.5}));
        QCOMPARE(chart.y.names, (std::vector<QString>{u"0"_s, u"5"_s}));
        QVERIFY(chart_table(chart).find("0.25") != std::string::npos);
    }
};

QTEST_MAIN(ExpertsTest)
#include "experts_test.moc"
