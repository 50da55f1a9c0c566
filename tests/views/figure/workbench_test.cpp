// SPDX-License-Identifier: GPL-3.0-or-later
// Every kind of figure in every format, twice: equal bytes, the page's size, embedded fonts; and the numbers
// of the charts that no other test looks at.
#include "core/base/words.h"
#include "core/policy/replay.h"
#include "core/stats/significance.h"
#include "core/trace/column_labels.h"
#include "core/trace/writer.h"
#include "tests/support/expert_trace.h"
#include "tests/views/figure/added_run.h"
#include "tests/views/figure/figure_stage.h"
#include "tests/views/figure/page_fit.h"
#include "views/compare/compare_charts.h"
#include "views/depth/depth_charts.h"
#include "views/figure/command.h"
#include "views/figure/parts.h"
#include "views/figure/writer/backends.h"
#include "views/halting/step_charts.h"
#include "views/policy/policy_charts.h"

#include <QProcess>
#include <QStandardPaths>
#include <QtTest>

#include <cmath>
#include <fstream>

using namespace Qt::StringLiterals;
using namespace ponderscope;
using namespace ponderscope::figure;
namespace fs = std::filesystem;

namespace {

/// A run like the first one of \p trace, but for its name, what it says of itself and its NLL.
void copy_run(const fs::path& trace, const std::string& name, const std::string& notice, float more_nll,
              bool with_refreshes) {
    std::vector<SignalInfo> infos;
    if (with_refreshes) {
        infos.push_back({signal::jacobi_difference, {"token", "iteration"}, "", "Movement", "Of latents."});
        infos.push_back({signal::layer_nll,
                         {"token", "step", "layer"},
                         "nats",
                         "NLL by step and layer",
                         with_column_labels("What layers say.", {"3", "4", "5"})});
    }
    std::int32_t steps = 0;
    const auto change = [&](RunInfo& info) {
        info.name = name;
        info.notices = notice.empty() ? "[]" : "[\"" + notice + "\"]";
        steps = static_cast<std::int32_t>(info.max_steps + 1);
    };
    testing::add_run(trace, change, infos, [&](TokenColumns& tokens) {
        for (float& nll : tokens.nll) {
            nll += more_nll;
        }
        std::vector<std::pair<std::string, SignalChunk>> all;
        if (with_refreshes) {
            std::vector<float> values;
            std::vector<float> lens; // of steps that did not run NaN; step and layer are told by the digits
            for (const std::int32_t last : tokens.steps) {
                values.insert(values.end(), {1.0F, 0.4F, 0.16F});
                for (std::int32_t k = 0; k < steps; ++k) {
                    for (std::int32_t l = 0; l < 3; ++l) {
                        lens.push_back(k > last ? std::nanf("") : static_cast<float>(10 * k + l + 1));
                    }
                }
            }
            const auto count = static_cast<std::int64_t>(tokens.size());
            all.emplace_back(signal::jacobi_difference, testing::packed(DType::f32, {count, 3}, values));
            all.emplace_back(signal::layer_nll, testing::packed(DType::f32, {count, steps, 3}, lens));
        }
        return all;
    });
}

} // namespace

class WorkbenchTest : public QObject, private FigureStage {
    Q_OBJECT
private Q_SLOTS:
    void initTestCase() {
        testing::write_sample_trace(trace_, {.sequences = 2, .tokens = 240, .withDepth = true});
        copy_run(trace_, "fast", "", 0.01F, true);
        copy_run(trace_, "ablated",
                 "Changed for this run: the value of layer 0 is left out of the depth attention of layer 1; "
                 "the other weights add up to 1 without it.",
                 0.25F, false);
        testing::add_run(
            trace_, [](RunInfo& info) { info.name = "answers"; }, {},
            [](TokenColumns&) { return std::vector<std::pair<std::string, SignalChunk>>(); }, "letters");
        testing::write_expert_run(trace_, "mixture", 4,
                                  {{0, 1, 0, 3}, {1, 0, 3, 0}, {2, 3, 0, 3}, {2, 3, 0, 3}});
        {
            TraceWriter writer(trace_);
            TrainingInfo info;
            info.name = "learned";
            const std::int64_t id = writer.begin_training(
                info, {{"loss", "", "nats", "Loss", ""}, {"held_out_gate", "step", "", "Gate", ""}});
            for (std::int64_t step = 1; step <= 40; ++step) {
                writer.put_points(id, {step * 10, step * 640, static_cast<double>(step)},
                                  {{"loss", 0, 8.0 / static_cast<double>(step)},
                                   {"held_out_gate", 0, 0.9},
                                   {"held_out_gate", 1, 0.5}});
            }
            writer.end_training(id, true);
            writer.finish();
        }
    }

    void everyKindInEveryFormat_data() {
        QTest::addColumn<QString>("kind");
        QTest::addColumn<QString>("rest");
        // What a kind needs beside the runs that a window gives it.
        const char* const replicates = R"("runs":["adaponderlm-1m"],"replicates":200)";
        const std::map<FigureKind, const char*> needs{
            {FigureKind::jacobi_convergence, R"("runs":["fast"])"},
            {FigureKind::layers_by_step, R"("runs":["fast"])"},
            {FigureKind::task_accuracy, R"("runs":["answers"],"cost":"steps","replicates":200)"},
            {FigureKind::experts, R"("runs":["mixture"])"},
            {FigureKind::expert_agreement, R"("runs":["mixture","mixture"])"},
            {FigureKind::signal_by_step, R"("runs":["adaponderlm-1m"],"signal":"kl_previous_current")"},
            {FigureKind::policy_comparison, replicates},
            {FigureKind::matched_rules, replicates},
            {FigureKind::depth_ablation, replicates},
            {FigureKind::training_curves, R"("curve":"loss","axis":"tokens","smoothing":0.8)"},
            {FigureKind::panels,
             R"("panels":[{"kind":"steps_histogram","runs":["adaponderlm-1m"]},)"
             R"({"kind":"depth_weights","runs":["adaponderlm-1m"]},)"
             R"({"kind":"token_text","runs":["adaponderlm-1m"],"tokens":[0,30]}],"width_mm":174)"}};
        for (const KindInfo& info : figure_kinds()) {
            const auto own = needs.find(info.kind);
            const char* rest = own != needs.end() ? own->second
                               : info.runs == RunUse::one
                                   ? R"("runs":["adaponderlm-1m"])"
                                   : R"("runs":["adaponderlm-1m","vanilla-1m"],"replicates":200)";
            QTest::newRow(std::string(info.name).c_str())
                << QString::fromUtf8(info.name.data(), static_cast<qsizetype>(info.name.size()))
                << QString::fromUtf8(rest);
        }
        const auto variant = [](const char* name, const char* kind, const char* rest) {
            QTest::newRow(name) << QString::fromLatin1(kind) << QString::fromLatin1(rest);
        };
        variant("part of a text", "token_text",
                R"("runs":["adaponderlm-1m"],"sequence":1,"tokens":[10,150])");
        variant("difference", "token_text",
                R"("runs":["adaponderlm-1m","vanilla-1m"],"quantity":"nll_difference")");
        variant("gates", "step_heatmap", R"("runs":["adaponderlm-1m"],"signal":"gate")");
        variant("named tokens", "step_heatmap", R"("runs":[1],"signal":"rank","tokens":[0,20])");
        variant("bands", "policy_front",
                R"("runs":[1],"policies":["kl"],"bands":true,"log":"both","replicates":200)");
        variant("policies", "policy_table",
                R"("runs":[1],"policies":["entropy:theta=2","fixed:n=1"],"replicates":200)");
    }

    void everyKindInEveryFormat() {
        QFETCH(QString, kind);
        QFETCH(QString, rest);
        const QString json = uR"({"trace":"story.ponder","kind":"%1",%2})"_s.arg(kind, rest);
        FigureSpec spec;
        try {
            spec = parsed(json.toStdString());
            // What is written reads back as the same figure.
            QCOMPARE(write_figure_spec(read_back(spec), folder_.path()),
                     write_figure_spec(spec, folder_.path()));
            const Figure first = made(spec);
            const Figure second = made(spec);
            QCOMPARE(first.tables.size(), second.tables.size());
            QVERIFY(!first.tables.empty());
            for (std::size_t i = 0; i < first.tables.size(); ++i) {
                QCOMPARE(first.tables[i].csv, second.tables[i].csv);
                QVERIFY(first.tables[i].csv.find('\n') != std::string::npos);
            }
            QVERIFY(std::abs(first.page.size().width() - spec.width_mm * points_per_mm) < 0.01);
            for (const Item& item : first.page.items()) {
                const auto* text = std::get_if<TextItem>(&item);
                QVERIFY(text == nullptr || text->style.size >= 7);
            }
            for (const std::string format : {"pdf", "svg", "png", "tex"}) {
                const bool table = info_of(spec.kind).name.ends_with("_table");
                if (format == "tex" && first.pgfplots.empty() && !table) {
                    QVERIFY_EXCEPTION_THROWN(encode(first, fonts_, format, 150), InputError);
                    continue;
                }
                const QByteArray bytes = encode(first, fonts_, format, 150);
                QVERIFY(bytes.size() > 200);
                QCOMPARE(bytes, encode(second, fonts_, format, 150));
                if (format == "png") {
                    QVERIFY(std::abs(QImage::fromData(bytes).width() - spec.width_mm / 25.4 * 150) <= 1);
                } else if (format == "tex") {
                    QVERIFY(bytes.contains(table ? "\\begin{tabular}" : "\\begin{axis}"));
                    QCOMPARE(bytes.count("\\begin{"), bytes.count("\\end{"));
                    QCOMPARE(bytes.count('{'), bytes.count('}'));
                } else if (format == "pdf") {
                    checkPdf(bytes, spec, first.page.size());
                }
            }
        } catch (const Error& error) {
            QFAIL(error.what());
        }
    }

    void nothingLeavesItsPage_data() { everyKindInEveryFormat_data(); }
    void nothingLeavesItsPage() {
        QFETCH(QString, kind);
        QFETCH(QString, rest);
        for (const char* look : {R"("width_mm":84)", R"("width_mm":174)", R"("width_mm":84,"theme":"dark")",
                                 R"("width_mm":60,"font_size":9)", R"("width_mm":120,"title":"A title")"}) {
            if (kind == QLatin1String("panels") && !QByteArray(look).contains(":1")) {
                continue; // its panels need 40 mm each
            }
            QString json = uR"({"trace":"story.ponder","kind":"%1",%2})"_s.arg(kind, rest);
            json.replace(uR"(,"width_mm":174})"_s, u"}"_s);
            json.insert(1, QLatin1String(look) + u',');
            try {
                const FigureSpec spec = parsed(json.toStdString());
                const QStringList faults = testing::misplaced(made(spec).page, fonts_);
                QVERIFY2(faults.isEmpty(), qPrintable(QLatin1String(look) + u'\n' + faults.join(u'\n')));
            } catch (const Error& error) {
                QFAIL(error.what());
            }
        }
    }

    void theFilesStandBesideEachOther() {
        const FigureSpec spec = parsed(
            R"({"trace":"story.ponder","kind":"perplexity_table","runs":["adaponderlm-1m","vanilla-1m"],"replicates":200})");
        const auto written = write_figure(made(spec), fonts_, folder_ / "t.tex", 150);
        QCOMPARE(written.size(), 2U);
        QCOMPARE(written[1].filename().string(), std::string("t.csv"));
        std::ifstream file(written[0]);
        const std::string latex((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
        QVERIFY(latex.find("\\toprule") != std::string::npos);
        const std::size_t plain = latex.find("vanilla-1m & ");
        QVERIFY(plain != std::string::npos);
        const std::string row = latex.substr(plain, latex.find('\n', plain) - plain);
        QVERIFY2(row.find("& -- &") != std::string::npos && row.find("& 0.00 &") == std::string::npos,
                 row.c_str()); // it has no steps to count
    }

    void winnersAddUp() {
        ComparisonRequest request;
        request.runs = {{trace_, "adaponderlm-1m"}, {trace_, "ablated"}};
        request.replicates = 100;
        const RunComparison comparison = compare_runs(request);
        for (const char* by : {"class", "position", "difficulty"}) {
            const Winners winners = winners_of(comparison, request, by);
            std::int64_t tokens = 0;
            for (const Winners::Row& row : winners.rows) {
                tokens += row.tokens;
                // Every token of B is dearer by the same amount.
                QVERIFY(std::abs(row.difference.value + 0.25) < 1e-5);
                QCOMPARE(row.b_lower, 0.0);
                QVERIFY(row.difference.low <= row.difference.value &&
                        row.difference.value <= row.difference.high);
                QVERIFY(row.q < 0.05);
            }
            QCOMPARE(tokens, static_cast<std::int64_t>(comparison.places.size()));
        }
        const Winners types = winners_of(comparison, request, "type");
        QCOMPARE(types.rows.size(), 20U);
        QVERIFY(types.rows[0].tokens >= types.rows[19].tokens);
        const Chart density = token_density_chart(comparison);
        double counted = 0;
        for (const double value : density.series[0].value) {
            counted += std::pow(10, value);
        }
        QVERIFY(std::abs(counted - static_cast<double>(comparison.places.size())) < 1e-6 * counted);
        // What the intervals are over is said below the figure.
        QVERIFY(!gather(about(FigureKind::winners, {"adaponderlm-1m", "ablated"})).chart->note.isEmpty());
        request.runs.pop_back();
        QVERIFY_EXCEPTION_THROWN(winners_of(compare_runs(request), request, "class"), InputError);
    }

    void stepsByTypeKnowThatTokensOfATextBelongTogether() {
        // Every text has its own number of steps and its own kind of token: as many facts as texts.
        constexpr std::int64_t texts = 40;
        constexpr std::size_t length = 50;
        const fs::path path = folder_ / "alike.ponder";
        TraceWriter writer(path);
        RunInfo info;
        info.name = "alike";
        info.tokenizer_digest = "t";
        info.versions = "{}";
        info.notices = "[]";
        info.vocab_size = 2;
        info.max_steps = 3;
        writer.begin_run(info, {});
        std::vector<double> sums;
        for (std::int64_t s = 0; s < texts; ++s) {
            TokenColumns tokens = testing::equal_tokens(length);
            const auto steps = static_cast<std::int32_t>((s / 2 * 7) % 4);
            tokens.id.assign(length, static_cast<std::int32_t>(s % 2));
            tokens.nll.back() = std::nanf("");
            tokens.rank.back() = 0;
            tokens.steps.assign(length, steps);
            if (s % 2 == 0) {
                sums.push_back(steps * static_cast<double>(length - 1));
            }
            writer.begin_sequence("s", "");
            writer.append(std::move(tokens), {});
            writer.end_sequence();
        }
        writer.put_vocabulary({{0, " a"}, {1, " b"}});
        writer.end_run(1);
        writer.finish();
        const Chart chart = steps_by_type_chart(path, "alike", "type", Attribution::predicted);
        const Chart::Series& types = chart.series.front();
        QCOMPARE(types.x.size(), 2U);
        const UnitMean mean =
            unit_mean(sums, std::vector<double>(sums.size(), static_cast<double>(length - 1)));
        QVERIFY(std::abs(types.y[0] - mean.mean) < 1e-9);
        // A normal interval on the logit of the mean is nearly as wide as one on the mean.
        const double half = (types.high[0] - types.low[0]) / 2;
        QVERIFY2(half > 1.7 * mean.standard_error && half < 2.3 * mean.standard_error,
                 qPrintable(QString::number(half / mean.standard_error)));
    }

    void effectsStandBesideTheirWeights() {
        BootstrapOptions options;
        options.replicates = 200;
        const TraceReader reader = TraceReader::open(trace_);
        std::vector<std::pair<fs::path, std::string>> candidates;
        for (const RunInfo& run : reader.runs()) {
            candidates.emplace_back(trace_, run.name);
        }
        const auto effects = ablation_effects(trace_, "adaponderlm-1m", candidates, options);
        QCOMPARE(effects.size(), 1U); // the others left nothing out
        QCOMPARE(effects[0].run, std::string("ablated"));
        QVERIFY(effects[0].what == (AblatedSource{0, 1}));
        QVERIFY(std::abs(effects[0].difference.value - 0.25) < 1e-5);
        const RunInfo run = find_run(reader, "adaponderlm-1m");
        const DepthMap map = sampled_depth(reader, run, depth_signal(reader, run));
        const auto averages = map.averages(-1, -1);
        const auto place = static_cast<std::size_t>(1 * map.sources() + 0);
        QVERIFY(std::abs(effects[0].weight - static_cast<double>(averages.mean[place])) < 1e-6);
    }

    void randomHaltingIsSetAgainstAPolicyAtItsSteps() {
        const TraceReader reader = TraceReader::open(trace_);
        const ReplayTable table = ReplayTable::load(reader, find_run(reader, "adaponderlm-1m"));
        BootstrapOptions options;
        options.replicates = 200;
        const auto named = [](const Chart& chart, const char* name, Chart::Mark mark) {
            return std::find_if(chart.series.begin(), chart.series.end(), [&](const Chart::Series& one) {
                return one.name == QLatin1String(name) && one.mark == mark;
            });
        };
        const Chart chart = policy_comparison_chart(table, "entropy", options);
        const auto zero = named(chart, "entropy", Chart::Mark::line);
        const auto uniform = named(chart, "uniform", Chart::Mark::line);
        const auto blind = named(chart, "blind", Chart::Mark::line);
        QVERIFY(zero != chart.series.end() && uniform != chart.series.end() && blind != chart.series.end());
        QVERIFY(uniform->x.size() > 3 && uniform->x.size() == blind->x.size());
        for (std::size_t i = 0; i < uniform->x.size(); ++i) {
            QCOMPARE(zero->y[i], 0.0);
            QVERIFY(std::isfinite(blind->y[i]) && std::isfinite(uniform->y[i]));
        }
        QVERIFY_EXCEPTION_THROWN(policy_comparison_chart(table, "full", options), InputError);
        const ScoredRows scored(table);
        MatchedLook look;
        look.policies = {"entropy", "oracle"};
        const Chart matched = matched_rules_chart(table, look, options);
        for (const char* name : {"blind", "entropy", "oracle (a bound)"}) {
            QVERIFY2(named(matched, name, Chart::Mark::line) != matched.series.end(), name);
        }
        QVERIFY(named(matched, "entropy", Chart::Mark::band) != matched.series.end());
        QVERIFY(matched.note.contains(u"oracle"_s));
        look.policies = {"entropy"};
        QVERIFY(!matched_rules_chart(table, look, options).note.contains(u"oracle"_s));
        const QStringList csv = QString::fromStdString(chart_table(matched)).split(u'\n');
        for (const QString& row : csv) {
            QVERIFY2(!row.startsWith(u','), qPrintable(row)); // whose it is
        }
        for (const Chart::Series& series : matched.series) {
            QVERIFY(!series.x.empty());
            for (std::size_t i = 0; i < series.low.size(); ++i) {
                QVERIFY(series.low[i] <= series.y[i] && series.y[i] <= series.high[i]);
            }
        }
        // What the model did stands beside it, as points with bands of their own.
        const std::vector<double> costs = even_costs(scored.layout().mean(scored.of(table.ran)), 3);
        MatchedComparison reruns = compare_matched(
            2,
            [&](std::size_t i, const MatchedCosts& at) {
                return replayed_rule(table, scored, i == 0 ? "blind" : "entropy", 9, at);
            },
            0, {costs, {}}, scored.layout(), options);
        for (MatchedCell& cell : reruns.rows[1].at_steps) {
            cell.difference.value += 1;
            cell.band.low += 1;
            cell.band.high += 1;
        }
        look.reruns = reruns;
        const Chart both = matched_rules_chart(table, look, options);
        const Chart::Series& points = both.series.back();
        QVERIFY(points.mark == Chart::Mark::point);
        QCOMPARE(points.name, u"entropy (rerun)"_s);
        QVERIFY(!points.listed); // the legend names its line
        QCOMPARE(points.ink, named(matched, "entropy", Chart::Mark::line)->ink);
        QCOMPARE(points.x, costs);
        for (std::size_t i = 0; i < points.y.size(); ++i) {
            QCOMPARE(points.y[i], reruns.rows[1].at_steps[i].difference.value);
            QCOMPARE(points.low[i], reruns.rows[1].at_steps[i].band.low);
            QCOMPARE(points.high[i], reruns.rows[1].at_steps[i].band.high);
        }
        QVERIFY_EXCEPTION_THROWN(matched_rules_chart(table, {{"full"}}, options), InputError);
        const Chart sweep = sweep_chart(table, {"entropy"}, Quantity::steps, {});
        QVERIFY(std::is_sorted(sweep.series[0].x.begin(), sweep.series[0].x.end()));
        QCOMPARE(sweep.x.label, u"theta"_s); // a column is too narrow for what it does
        QVERIFY(!sweep.note.isEmpty());
        QVERIFY(sweep.series[0].y.front() >= sweep.series[0].y.back()); // a higher threshold stops more
    }

    void signalsByStepAreTheirMeans() {
        const Chart chart = signal_by_step_chart(trace_, "fast", signal::jacobi_difference);
        QVERIFY(chart.y.log);
        QCOMPARE(chart.series[1].y.size(), 3U);
        QVERIFY(std::abs(chart.series[1].y[1] - 0.4) < 1e-6);
        const Chart cosine = signal_by_step_chart(trace_, "adaponderlm-1m", signal::cosine);
        QCOMPARE(cosine.series[1].x.front(), 1.0); // step 0 has no step before it
        const auto said = thrown([&] { signal_by_step_chart(trace_, "vanilla-1m", "nothing"); });
        QVERIFY(said.contains(u"entropy"_s)); // what there is
    }

    void layersByStepAreTheirMeans() {
        const Chart chart = layers_by_step_chart(trace_, "fast", "nll");
        QCOMPARE(chart.y.names, (std::vector<QString>{u"3"_s, u"4"_s, u"5"_s}));
        QCOMPARE(chart.x.names.size(), 4U);
        const Chart::Series& cells = chart.series.front();
        QCOMPARE(cells.value.size(), 12U);
        for (std::size_t i = 0; i < cells.value.size(); ++i) {
            QCOMPARE(cells.value[i], 10 * cells.x[i] + cells.y[i] + 1);
        }
        QVERIFY(thrown([&] { layers_by_step_chart(trace_, "fast", "nothing"); }).contains(u"layer_nll"_s));
        QVERIFY_EXCEPTION_THROWN(layers_by_step_chart(trace_, "vanilla-1m", "nll"), InputError);
    }

private:
    void checkPdf(const QByteArray& bytes, const FigureSpec& spec, const QSizeF& page) {
        const fs::path path = folder_ / (std::string(name_of(spec.kind)) + ".pdf");
        QFile file(QString::fromStdString(path.string()));
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write(bytes);
        file.close();
        if (const QString qpdf = QStandardPaths::findExecutable(u"qpdf"_s); !qpdf.isEmpty()) {
            QProcess check;
            check.start(qpdf, {u"--check"_s, file.fileName()});
            QVERIFY(check.waitForFinished(20'000));
            QVERIFY2(check.exitCode() == 0, check.readAllStandardOutput() + check.readAllStandardError());
        }
        const QString pdffonts = QStandardPaths::findExecutable(u"pdffonts"_s);
        const QString pdfinfo = QStandardPaths::findExecutable(u"pdfinfo"_s);
        if (pdffonts.isEmpty() || pdfinfo.isEmpty()) {
            QWARN("pdffonts and pdfinfo (poppler-utils) are not installed: fonts and size are not checked");
            return;
        }
        const QStringList lines = output_of(pdffonts, {file.fileName()}).trimmed().split(u'\n');
        QVERIFY(lines.size() > 2); // two lines of heading
        for (qsizetype i = 2; i < lines.size(); ++i) {
            // name, type, encoding, emb, sub, uni
            QVERIFY2(lines[i].contains("DejaVuSans") && lines[i].contains(" yes yes yes "),
                     qPrintable(lines[i]));
        }
        const QString text = output_of(pdfinfo, {file.fileName()});
        const auto match = QRegularExpression(u"Page size:\\s+([0-9.]+) x ([0-9.]+)"_s).match(text);
        QVERIFY(match.hasMatch());
        QVERIFY(std::abs(match.captured(1).toDouble() - page.width()) < 0.1);
        QVERIFY(std::abs(match.captured(2).toDouble() - page.height()) < 0.1);
    }
};

QTEST_MAIN(WorkbenchTest)
#include "workbench_test.moc"
