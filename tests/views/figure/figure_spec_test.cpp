// SPDX-License-Identifier: GPL-3.0-or-later
// Specifications of figures: those that read back, and what is said of wrong ones.
#include "tests/views/figure/figure_stage.h"

#include <QtTest>

using namespace Qt::StringLiterals;
using namespace ponderscope;
using namespace ponderscope::figure;
namespace fs = std::filesystem;

class FigureSpecTest : public QObject, private FigureStage {
    Q_OBJECT
private Q_SLOTS:
    void initTestCase() { write_story(); }

    void specificationsReadBack() {
        FigureSpec spec;
        spec.kind = FigureKind::step_heatmap;
        spec.runs = {{trace_, "adaponderlm-1m"}, {folder_.path() / "deeper" / "x.ponder", "vanilla"}};
        spec.sequence = 3;
        spec.tokens = {4, 9};
        spec.signal = "gate";
        spec.colour_map = MagnitudeMap::cividis;
        spec.attribution = Attribution::predicting;
        spec.range = {0.25, 0.75};
        spec.height_mm = 40;
        spec.width_mm = 174;
        spec.theme = "dark";
        spec.title = "A \"title\"";
        const std::string json = write_figure_spec(spec, folder_.path());
        QVERIFY2(json.find(folder_.path().string()) == std::string::npos,
                 "traces beside the file are named relative to it");
        QCOMPARE(parsed(json), spec);
        spec.kind = FigureKind::nll_comparison;
        spec.runs = {{trace_, "a"}, {trace_, "b"}};
        spec.signal = FigureSpec().signal;
        spec.colour_map = MagnitudeMap::viridis;
        spec.attribution = Attribution::predicted;
        spec.block = 32;
        spec.replicates = 500;
        spec.scatter = false;
        spec.sequence.reset();
        QCOMPARE(read_back(spec), spec);
        FigureSpec text;
        text.runs = {{fs::path("/somewhere/else.ponder"), ""}};
        text.quantity = Quantity::entropy;
        text.step_ticks = false;
        QCOMPARE(read_back(text), text);
    }

    void wrongSpecifications_data() {
        QTest::addColumn<QString>("json");
        QTest::addColumn<QString>("says");
        // Apostrophes stand for quotation marks, for the reader's sake.
        const auto row = [](const char* name, const char* json, const char* says) {
            QTest::newRow(name) << QString::fromUtf8(json).replace(u'\'', u'"') << QString::fromUtf8(says);
        };
        row("not JSON", "{", "spec.json");
        row("no kind", "{'trace':'story.ponder'}", "\"kind\"");
        row("other kind", "{'kind':'pie','trace':'story.ponder'}",
            "token_text, step_heatmap, nll_comparison");
        row("misspelled kind", "{'kind':'steps_histogrm','trace':'story.ponder'}",
            "did you mean steps_histogram?");
        row("misspelled key", "{'kind':'token_text','trase':'story.ponder'}", "did you mean trace?");
        row("beginning of a key", "{'kind':'token_text','width':84,'trace':'story.ponder'}",
            "did you mean width_mm?");
        row("no trace", "{'kind':'token_text'}", "\"trace\"");
        row("missing trace", "{'kind':'token_text','trace':'nowhere.ponder'}", "nowhere.ponder");
        row("no such run", "{'kind':'token_text','trace':'story.ponder','runs':['bert']}", "adaponderlm-1m");
        row("which run", "{'kind':'token_text','trace':'story.ponder'}", "vanilla-1m");
        row("runs of a wrong type", "{'kind':'token_text','trace':'story.ponder','runs':[1.5]}",
            "names of runs");
        row("no runs", "{'kind':'token_text','trace':'story.ponder','runs':[]}", "at least one run");
        row("run without trace", "{'kind':'token_text','runs':['vanilla-1m']}", "a.ponder#ponderlm");
        row("sequence too high", "{'kind':'token_text','trace':'story.ponder','runs':[1],'sequence':7}",
            "from 0 to 1");
        row("negative sequence", "{'kind':'token_text','trace':'story.ponder','runs':[1],'sequence':-1}",
            "sequence");
        row("tokens beyond the end",
            "{'kind':'token_text','trace':'story.ponder','runs':[1],'tokens':[0,9999]}", "[0, 9999)");
        row("tokens the wrong way round",
            "{'kind':'token_text','trace':'story.ponder','runs':[1],'tokens':[9,3]}", "first < last");
        row("tokens of a wrong type",
            "{'kind':'token_text','trace':'story.ponder','runs':[1],'tokens':['a','b']}", "first < last");
        row("unknown quantity", "{'kind':'token_text','trace':'story.ponder','runs':[1],'quantity':'loss'}",
            "flops");
        row("difference of one",
            "{'kind':'token_text','trace':'story.ponder','runs':[1],'quantity':'nll_difference'}",
            "two runs");
        row("unknown signal", "{'kind':'step_heatmap','trace':'story.ponder','runs':[1],'signal':'gait'}",
            "gate");
        row("no signals", "{'kind':'step_heatmap','trace':'basic.ponder','runs':[1]}", "--record steps");
        row("too narrow", "{'kind':'token_text','trace':'story.ponder','runs':[1],'width_mm':3}",
            "40 to 1000 mm");
        row("no number", "{'kind':'token_text','trace':'story.ponder','runs':[1],'width_mm':'wide'}",
            "width_mm");
        row("too low", "{'kind':'token_text','trace':'story.ponder','runs':[1],'height_mm':20}",
            "\"height_mm\" says 20");
        row("range the wrong way round",
            "{'kind':'token_text','trace':'story.ponder','runs':[1],'range':[3,1]}", "low < high");
        row("axis the wrong way round",
            "{'kind':'steps_histogram','trace':'story.ponder','runs':[1],'x_range':[3,1]}", "low < high");
        row("axis of one end", "{'kind':'steps_histogram','trace':'story.ponder','runs':[1],'y_range':[3]}",
            "\"y_range\"");
        row("unknown legend", "{'kind':'steps_histogram','trace':'story.ponder','runs':[1],'legend':'below'}",
            "above");
        row("series without a name",
            "{'kind':'steps_histogram','trace':'story.ponder','runs':[1],'series':[{}]}", "\"as\"");
        row("unknown colour map",
            "{'kind':'step_heatmap','trace':'story.ponder','runs':[1],'colour_map':'jet'}",
            "viridis, cividis, magma, grey");
        row("unknown theme", "{'kind':'token_text','trace':'story.ponder','runs':[1],'theme':'pink'}",
            "light, dark");
        row("no panels", "{'kind':'panels','trace':'story.ponder'}", "panels");
        row("panels of panels", "{'kind':'panels','panels':[{'kind':'panels','panels':[]}]}", "panels");
        row("winners of one run", "{'kind':'winners','trace':'story.ponder','runs':['a']}", "two runs");
        row("unknown palette", "{'kind':'token_text','trace':'story.ponder','palette':'pink'}", "okabe_ito");
        for (const char* wrong : {"[-1]", "[1.5]", "['teal']", "7"}) {
            row(wrong,
                qPrintable(u"{'kind':'nll_comparison','trace':'story.ponder','colours':%1}"_s.arg(
                    QLatin1String(wrong))),
                "\"colours\"");
        }
        row("other text",
            "{'kind':'nll_comparison','runs':['story.ponder#vanilla-1m','basic.ponder#vanilla-1m']}", "");
    }
    void wrongSpecifications() {
        QFETCH(QString, json);
        QFETCH(QString, says);
        const QString said = thrown([&] { (void)made(json.toStdString()); });
        QVERIFY(!said.isEmpty());
        QVERIFY2(said.contains(says), qPrintable(said));
        QCOMPARE(said.count(u'\n'), 0);
    }
};

QTEST_MAIN(FigureSpecTest)
#include "figure_spec_test.moc"
