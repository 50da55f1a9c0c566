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
        // A figure of the first run with one more key.
        const auto wrong = [&](const char* name, const char* kind, const char* key, const char* says) {
            row(name,
                qPrintable(u"{'kind':'%1','trace':'story.ponder','runs':[1],%2}"_s.arg(QLatin1String(kind),
                                                                                       QLatin1String(key))),
                says);
        };
        row("not JSON", "{", "spec.json");
        row("no kind", "{'trace':'story.ponder'}", "\"kind\"");
        row("other kind", "{'kind':'pie','trace':'story.ponder'}",
            "token_text, step_heatmap, nll_comparison");
        row("misspelled kind", "{'kind':'steps_histogrm','trace':'story.ponder'}", " steps_histogram?");
        row("misspelled key", "{'kind':'token_text','trase':'story.ponder'}", " trace?");
        row("beginning of a key", "{'kind':'token_text','width':84,'trace':'story.ponder'}", " width_mm?");
        row("no trace", "{'kind':'token_text'}", "\"trace\"");
        row("missing trace", "{'kind':'token_text','trace':'nowhere.ponder'}", "nowhere.ponder");
        row("no such run", "{'kind':'token_text','trace':'story.ponder','runs':['bert']}", "adaponderlm-1m");
        row("which run", "{'kind':'token_text','trace':'story.ponder'}", "vanilla-1m");
        row("runs of a wrong type", "{'kind':'token_text','trace':'story.ponder','runs':[1.5]}", "\"runs\"");
        row("no runs", "{'kind':'token_text','trace':'story.ponder','runs':[]}", "\"runs\"");
        row("run without trace", "{'kind':'token_text','runs':['vanilla-1m']}", "a.ponder#ponderlm");
        wrong("sequence too high", "token_text", "'sequence':7", " 7");
        wrong("negative sequence", "token_text", "'sequence':-1", "sequence");
        wrong("tokens beyond the end", "token_text", "'tokens':[0,9999]", "[0, 9999)");
        wrong("tokens the wrong way round", "token_text", "'tokens':[9,3]", "\"tokens\"");
        wrong("tokens of a wrong type", "token_text", "'tokens':['a','b']", "\"tokens\"");
        wrong("unknown quantity", "token_text", "'quantity':'loss'", "flops");
        wrong("difference of one", "token_text", "'quantity':'nll_difference'", "\"nll_difference\"");
        wrong("unknown signal", "step_heatmap", "'signal':'gait'", "gate");
        row("no signals", "{'kind':'step_heatmap','trace':'basic.ponder','runs':[1]}", "--record steps");
        wrong("too narrow", "token_text", "'width_mm':3", "width_mm");
        wrong("no number", "token_text", "'width_mm':'wide'", "width_mm");
        wrong("too low", "token_text", "'height_mm':20", "\"height_mm\"");
        wrong("range the wrong way round", "token_text", "'range':[3,1]", "\"range\"");
        wrong("axis the wrong way round", "steps_histogram", "'x_range':[3,1]", "\"x_range\"");
        wrong("axis of one end", "steps_histogram", "'y_range':[3]", "\"y_range\"");
        wrong("unknown legend", "steps_histogram", "'legend':'below'", "above");
        wrong("series without a name", "steps_histogram", "'series':[{}]", "\"as\"");
        wrong("unknown colour map", "step_heatmap", "'colour_map':'jet'", "viridis, cividis, magma, grey");
        wrong("unknown theme", "token_text", "'theme':'pink'", "light, dark");
        row("no panels", "{'kind':'panels','trace':'story.ponder'}", "panels");
        row("panels of panels", "{'kind':'panels','panels':[{'kind':'panels','panels':[]}]}", "panels");
        row("winners of one run", "{'kind':'winners','trace':'story.ponder','runs':['a']}",
            "[usage.missing]");
        row("unknown palette", "{'kind':'token_text','trace':'story.ponder','palette':'pink'}", "okabe_ito");
        for (const char* colours : {"[-1]", "[1.5]", "['teal']", "7"}) {
            row(colours,
                qPrintable(u"{'kind':'nll_comparison','trace':'story.ponder','colours':%1}"_s.arg(
                    QLatin1String(colours))),
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
