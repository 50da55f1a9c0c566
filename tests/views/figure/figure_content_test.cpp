// SPDX-License-Identifier: GPL-3.0-or-later
// What figures say: of which run, of which tokens, in which words; and the files for LaTeX.
#include "core/trace/reader.h"
#include "core/trace/tools/run_edits.h"
#include "tests/views/figure/added_run.h"
#include "tests/views/figure/figure_stage.h"

#include <QtTest>

#include <cmath>
#include <functional>

using namespace Qt::StringLiterals;
using namespace ponderscope;
using namespace ponderscope::figure;
namespace fs = std::filesystem;

namespace {

/// A signal of 4 steps: of a token in the order of the run, and a step.
struct Signal {
    SignalInfo info;
    std::function<float(std::size_t token, int step)> value;
};

/// A run over the text of the first one of \p trace.
void add_run(const fs::path& trace, const std::function<void(RunInfo&)>& change,
             const std::vector<Signal>& kept = {}) {
    std::vector<SignalInfo> infos;
    for (const Signal& one : kept) {
        infos.push_back(one.info);
    }
    testing::add_run(trace, change, infos, [&](const TokenColumns& tokens) {
        std::vector<std::pair<std::string, SignalChunk>> chunks;
        for (const Signal& one : kept) {
            std::vector<float> values;
            for (std::size_t i = 0; i < tokens.size() * 4; ++i) {
                values.push_back(one.value(i / 4, static_cast<int>(i % 4)));
            }
            const std::vector<std::int64_t> shape{static_cast<std::int64_t>(tokens.size()), 4};
            const std::vector<std::int32_t> whole(values.begin(), values.end());
            chunks.emplace_back(one.info.name, one.info.dtype == DType::i32
                                                   ? testing::packed(DType::i32, shape, whole)
                                                   : testing::packed(DType::f32, shape, values));
        }
        return chunks;
    });
}

void rename(const fs::path& trace, const std::string& from, const std::string& to) {
    rename_run(trace, find_run(TraceReader::open(trace), from), to);
}

SignalInfo by_step(const char* name) {
    return {name, {"token", "step"}, "", name, ""};
}

SignalInfo rank_by_step() {
    SignalInfo info = by_step(signal::rank);
    info.dtype = DType::i32;
    info.of_target = true;
    return info;
}

} // namespace

class FigureContentTest : public QObject, private FigureStage {
    Q_OBJECT
private Q_SLOTS:
    void initTestCase() { testing::write_sample_trace(trace_, {.sequences = 1, .tokens = 120}); }

    void aNumberIsNoName() {
        const fs::path trace = copied("numbers.ponder");
        rename(trace, "vanilla-1m", "1"); // its number is 2
        const auto run_of = [&](const char* runs) {
            const FigureSpec spec =
                parsed(std::string(R"({"kind":"token_text","trace":"numbers.ponder","runs":)") + runs + "}");
            [&] { QCOMPARE(read_back(spec), spec); }();
            return gather(spec).runs.front().info.name;
        };
        QCOMPARE(run_of("[1]"), std::string("adaponderlm-1m"));
        QCOMPARE(run_of("[2]"), std::string("1"));
        QCOMPARE(run_of("[\"1\"]"), std::string("1"));
        QCOMPARE(run_of("[1,\"story.ponder#vanilla-1m\"]"), std::string("adaponderlm-1m"));
        QCOMPARE(run_of("[\"numbers.ponder#2\"]"), std::string("1"));
    }

    void everyRunWithoutASourceIsShown() {
        const fs::path trace = folder_ / "depth.ponder";
        testing::write_sample_trace(trace, {.sequences = 1, .tokens = 120, .withDepth = true});
        add_run(trace, [](RunInfo& info) {
            info.name = "without";
            info.notices =
                R"(["Changed for this run: the value of layer 0 is left out of the depth attention )"
                R"(of layer 1; the other weights add up to 1 without it."])";
        });
        rename(trace, "vanilla-1m", "3"); // the number of the run without a source
        const FigureSpec spec = parsed(
            R"({"kind":"depth_ablation","trace":"depth.ponder","runs":["adaponderlm-1m"],"replicates":100})");
        QCOMPARE(gather(spec).chart->series.back().y.size(), 1U);
    }

    void notesHoldNamesAsTheyAre() {
        const fs::path trace = copied("percent.ponder");
        rename(trace, "adaponderlm-1m", "50%1%%");
        const FigureSpec spec =
            parsed(R"({"kind":"policy_table","trace":"percent.ponder","runs":["50%1%%"],"replicates":100})");
        const QString note = gather(spec).table->note;
        QVERIFY2(note.startsWith(u"50%1%%, 119 "_s), qPrintable(note));
        QVERIFY2(note.contains(u"95 %"_s) && note.contains(u" 100 "_s), qPrintable(note));
    }

    void namesDoNotBreakLatexTables() {
        FigureData data;
        data.table =
            TableData{{{},
                       {{"run", "Run", CellFormat::text}, {"nll", "Δ NLL", CellFormat::difference, 2}},
                       {{"[x]", 1.0}, {"*\ny", -2.0}}},
                      u"a\nb\rc"_s};
        FigureSpec spec;
        spec.kind = FigureKind::policy_table;
        const std::string latex = compose(spec, data, fonts_).tables.at(1).csv;
        QVERIFY2(latex.starts_with("% a b c\n% "), latex.c_str());
        QVERIFY2(latex.find("\\midrule\n{[}x] & +1.00 \\\\\n{*}\\textbackslash{}ny & $-$2.00 \\\\\n") !=
                     std::string::npos,
                 latex.c_str());
        QVERIFY2(latex.find("Run & $\\Delta$ NLL") != std::string::npos, latex.c_str());
        QCOMPARE(plain_text::tex("a⏎␣→‖b"),
                 std::string("a$\\hookleftarrow$\\textvisiblespace{}$\\rightarrow$$\\|$b"));
    }

    void layersAreNotCalledSteps() {
        const fs::path trace = copied("exits.ponder");
        add_run(trace,
                [](RunInfo& info) {
                    info.name = "exits";
                    info.step_unit = "layer";
                },
                {{by_step(signal::nll), [](std::size_t, int) { return 1.0F; }}});
        for (const char* kind :
             {R"("step_heatmap","signal":"nll")", R"("steps_by_type")", R"("token_text","quantity":"steps")",
              R"("token_text","quantity":"steps","attribution":"predicting")"}) {
            const FigureSpec spec = parsed(std::string(R"({"kind":)") + kind +
                                           R"(,"trace":"exits.ponder","runs":["exits"],"tokens":[1,20]})");
            const FigureData data = gather(spec);
            if (data.chart && !data.signal) {
                QVERIFY(data.chart->title.startsWith(u"Layers"_s));
                QVERIFY(data.chart->y.label.contains(u"layers"_s));
                QVERIFY(data.chart->series[0].labels[0].contains(u"layers"_s));
                continue;
            }
            const QStringList texts = texts_of(compose(spec, data, fonts_).page);
            QVERIFY(!texts.filter(u"layer"_s).empty());
            QVERIFY2(texts.filter(u"step"_s).empty(), qPrintable(texts.filter(u"step"_s).join(u'|')));
        }
    }

    void aNarrowPageSaysWhatIsTakenFromWhat() {
        const fs::path trace = copied("long.ponder");
        rename(trace, "adaponderlm-1m", "adaponderlm-1m-of-a-long-training");
        rename(trace, "vanilla-1m", "vanilla-1m-of-a-long-training");
        const FigureSpec spec = parsed(
            R"({"kind":"token_text","trace":"long.ponder","quantity":"nll_difference","width_mm":84,"tokens":[1,30],)"
            R"("runs":["adaponderlm-1m-of-a-long-training","vanilla-1m-of-a-long-training"]})");
        const QString words = texts_of(made(spec).page).join(u' ');
        QVERIFY2(words.contains(u"adaponderlm-1m-of-a-long-training − vanilla-1m-of-a-long-training "_s),
                 qPrintable(words));
        QVERIFY(!words.contains(u'…'));
    }

    void stepsBeginWhereASignalMeansSomething() {
        const fs::path trace = copied("signals.ponder");
        const auto from = [](int first) {
            return [=](std::size_t, int step) { return step < first ? 0.0F : 0.5F; };
        };
        add_run(trace, [](RunInfo& info) { info.name = "made"; },
                {{rank_by_step(),
                  [](std::size_t token, int) { return token % 3 == 0 ? 0.0F : static_cast<float>(token); }},
                 {by_step(signal::update_cosine), from(2)},
                 {by_step(signal::acceleration), from(2)},
                 {by_step(signal::latent_difference), from(0)},
                 {by_step(signal::entropy), [](std::size_t, int) { return 0.0F; }}});
        FigureSpec spec;
        spec.kind = FigureKind::signal_by_step;
        spec.runs = {{trace, "made"}};
        const auto chart = [&](const char* name) {
            spec.signal = name;
            return *gather(spec).chart;
        };
        QCOMPARE(chart("update_cosine").series[1].x.front(), 2.0);
        QCOMPARE(chart("acceleration").series[1].x.front(), 2.0);
        QCOMPARE(chart("latent_difference").series[1].x.front(), 0.0); // from a state of the model's own
        QCOMPARE(chart("entropy").series[1].x.front(), 0.0);           // 0 is a value
        double sum = 0;
        double count = 0;
        for (int token = 0; token < 120; ++token) {
            sum += token % 3 == 0 ? 0 : token;
            count += token % 3 == 0 ? 0 : 1;
        }
        QVERIFY(std::abs(chart("rank").series[1].y.front() - sum / count) < 1e-9);
        const FigureSpec map = parsed(
            R"({"kind":"step_heatmap","trace":"signals.ponder","runs":["made"],"signal":"rank","tokens":[1,20]})");
        const FigureData data = gather(map);
        QCOMPARE(data.signal->at(1, 0).kind, StepMap::Kind::missing); // row 0
        QCOMPARE(data.signal->at(2, 0).value, 1.0F);
        const std::string csv = compose(map, data, fonts_).tables.front().csv;
        QVERIFY2(csv.find(",0,0,\n") != std::string::npos && csv.find(",0,0,0\n") == std::string::npos,
                 csv.c_str());
    }

    void noticesCountTheTokensThatEntered() {
        const auto counts = [&](FigureKind kind, const char* number) {
            const Notice notice = gather(about(kind)).notices.back();
            return notice.id == NoticeId::figure_tokens && notice.text.find(number) != std::string::npos;
        };
        QVERIFY(counts(FigureKind::gate_curves, " 120 "));
        QVERIFY(counts(FigureKind::nll_by_halt_step, " 119 "));
    }

    void theChartForLatexIsTheChart() {
        FigureSpec spec;
        spec.kind = FigureKind::depth_weights;
        spec.title = "50 % of it";
        Chart chart;
        chart.note = u"a\nb"_s;
        chart.x.names = {u"p"_s, u"q"_s};
        chart.y.reversed = true;
        chart.dy = 2;
        Chart::Series cells;
        cells.mark = Chart::Mark::cell;
        cells.x = {0, 1};
        cells.y = {1, 3};
        cells.value = {0.1, 0.9};
        chart.series = {cells};
        FigureData data;
        data.chart = chart;
        const std::string latex = compose(spec, data, fonts_).pgfplots;
        for (const char* option : {"xmin=-0.5, xmax=1.5,", "ymin=0, ymax=4,", "y dir=reverse,",
                                   "title={50 \\% of it},", "% a b\n"}) {
            QVERIFY2(latex.find(option) != std::string::npos, latex.c_str());
        }
        spec.title.clear();
        spec.y_range = {0, 10};
        data.chart->y.reversed = false;
        const std::string other = compose(spec, data, fonts_).pgfplots;
        QVERIFY2(other.find("ymin=0, ymax=10,") != std::string::npos, other.c_str());
        QVERIFY(other.find("title=") == std::string::npos && other.find("dir=") == std::string::npos);
    }

    void aHiddenBandTakesNothingAlong() {
        const auto marks = [&](const char* hidden) {
            FigureSpec spec =
                parsed(R"({"kind":"nll_by_halt_step","trace":"story.ponder","runs":["adaponderlm-1m"]})");
            spec.series = {{hidden, "", false}};
            const std::string csv = made(spec).tables.front().csv;
            return QString::fromStdString(csv).split(u'\n').filter(QRegularExpression("^[^s]")).size() +
                   10 * QString::fromStdString(csv).split(u'\n').filter(QRegularExpression("^,")).size();
        };
        QCOMPARE(marks("middle half of the tokens"), 8 + 10 * 4); // the line and its points
        QCOMPARE(marks("mean"), 4);                               // the band
        // A dashed line leaves what belongs to the solid one of its colour.
        Chart::Series solid;
        solid.name = u"learned"_s;
        solid.x = solid.y = {1, 2};
        Chart::Series raw = solid;
        raw.name.clear();
        raw.faint = true;
        Chart::Series dashed = solid;
        dashed.name = u"held-out"_s;
        dashed.dashed = true;
        FigureData data;
        data.chart = Chart();
        data.chart->series = {raw, solid, dashed};
        FigureSpec spec;
        spec.kind = FigureKind::training_curves;
        spec.series = {{"held-out", "", false}};
        QCOMPARE(
            compose(spec, data, fonts_).tables.front().csv,
            std::string("series,x,y,low,high,value\n,1,1,,,\n,2,2,,,\nlearned,1,1,,,\nlearned,2,2,,,\n"));
    }

private:
    fs::path copied(const char* name) const {
        fs::copy_file(trace_, folder_ / name);
        return folder_ / name;
    }
};

QTEST_MAIN(FigureContentTest)
#include "figure_content_test.moc"
