// SPDX-License-Identifier: GPL-3.0-or-later
// From a specification to files: every kind of figure over a trace that was made up.
#include "core/trace/reader.h"
#include "core/trace/tools/annotations.h"

#include "core/base/files.h"
#include "core/policy/matched.h"
#include "tests/views/figure/figure_stage.h"
#include "views/common/colour_map.h"
#include "views/figure/command.h"
#include "views/figure/token_pieces.h"

#include <QRegularExpression>
#include <QtTest>

#include <cmath>
#include <fstream>

using namespace Qt::StringLiterals;
using namespace ponderscope;
using namespace ponderscope::figure;
namespace fs = std::filesystem;

namespace {

/// RFC 4180, for what the figures write.
std::vector<QStringList> read_csv(const std::string& text) {
    static const QRegularExpression field(u"(?:\"((?:[^\"]|\"\")*)\"|([^,\n]*))([,\n])"_s);
    std::vector<QStringList> rows(1);
    for (const QRegularExpressionMatch& match : field.globalMatch(QString::fromStdString(text))) {
        rows.back() << match.captured(2) + match.captured(1).replace(u"\"\""_s, u"\""_s);
        if (match.captured(3) == u'\n') {
            rows.emplace_back();
        }
    }
    rows.pop_back();
    return rows;
}

} // namespace

class FiguresTest : public QObject, private FigureStage {
    Q_OBJECT
private Q_SLOTS:
    void initTestCase() {
        write_story();
        testing::SampleTrace odd;
        odd.texts = {"A 😀 smile, naïve\ttab\nand 漢字 <&> \uE123 \x01 end."}; // U+E123 is nobody's letter
        testing::write_sample_trace(folder_ / "odd.ponder", odd);
    }

    void frontsHoldTheReplaysNumbers() {
        FigureSpec spec = parsed(
            R"({"kind":"policy_front","trace":"story.ponder","runs":["adaponderlm-1m"],"policies":["fixed"]})");
        auto rows = read_csv(made(spec).tables.front().csv);
        QVERIFY(std::erase_if(rows, [](const auto& row) { return row[0] == QLatin1String(blind_rule); }) > 0);
        QCOMPARE(rows.size(), 1 + 4 + 1); // fixed:n=0..3, and the run
        QCOMPARE(rows[0], (QStringList{u"series"_s, u"x"_s, u"y"_s, u"low"_s, u"high"_s, u"value"_s}));
        QCOMPARE(rows[1][0], u"fixed"_s);
        QCOMPARE(rows[1][1].toDouble(), 0.0);
        QCOMPARE(rows[5][0], u"adaponderlm-1m"_s);
        const TraceReader reader = TraceReader::open(trace_);
        const RunInfo run = find_run(reader, "adaponderlm-1m");
        const double mean = run.nll_sum / static_cast<double>(run.scored_tokens);
        QVERIFY(std::abs(rows[5][2].toDouble() - std::exp(mean)) < 1e-9);
        QVERIFY(std::abs(rows[4][2].toDouble() - std::exp(mean)) < 1e-4); // fixed:n=3 is the run itself
        QCOMPARE(read_back(spec), spec);
        // What the perplexity is set against.
        spec.cost = "steps";
        QCOMPARE(read_back(spec), spec);
        const Chart steps = *gather(spec).chart;
        QVERIFY(steps.x.label.contains(u"step"_s));
        spec.cost = "time";
        QVERIFY(gather(spec).chart->x.label != steps.x.label);
        QVERIFY(thrown([&] {
                    (void)parsed(R"({"kind":"policy_front","trace":"story.ponder","cost":"euros"})");
                }).contains(u"euros"_s));
        spec.cost = "compute";
        spec.policies = {"luck"};
        QVERIFY(thrown([&] { (void)gather(spec); }).contains(u"luck"_s));
        spec.kind = FigureKind::gate_curves;
        spec.runs[0].run = "vanilla-1m";
        QVERIFY(thrown([&] { (void)gather(spec); }).contains(u"gates"_s));
        spec.kind = FigureKind::policy_front;
        spec.policies.clear();
        spec.runs = {{folder_ / "basic.ponder", "adaponderlm-1m"}};
        QVERIFY(thrown([&] { (void)gather(spec); }).contains(u"--record steps"_s));
    }

    void aRunThatIsChosenAndNotDrawnIsNamed() {
        FigureSpec spec =
            parsed(R"({"kind":"matched_rules","trace":"story.ponder","runs":["adaponderlm-1m","vanilla-1m"],)"
                   R"("policies":["entropy"],"replicates":100})");
        const auto named = [&] {
            return std::ranges::any_of(gather(spec).notices, [](const Notice& notice) {
                return notice.id == NoticeId::figure_left_out &&
                       notice.text.find("vanilla-1m") != std::string::npos;
            });
        };
        QVERIFY(named());
        spec.runs.resize(1);
        QVERIFY(!named());
        // Rows of bands say whose band it is.
        for (const auto& row : read_csv(made(spec).tables.front().csv)) {
            QVERIFY(!row[0].isEmpty());
        }
    }

    void cellsAreVectorsUpToALimitAndThenAnImage() {
        const auto images = [&](const char* tokens) {
            const FigureSpec spec =
                parsed(std::string(R"({"kind":"step_heatmap","trace":"long.ponder","runs":[1],"tokens":)") +
                       tokens + "}");
            const Figure figure = made(spec);
            int count = 0;
            for (const Item& item : figure.page.items()) {
                count += std::holds_alternative<ImageItem>(item) ? 1 : 0;
            }
            return count;
        };
        testing::write_sample_trace(folder_ / "long.ponder", {.sequences = 1, .tokens = 21'000});
        QCOMPARE(images("[0,50]"), 0);
        QCOMPARE(images("[0,1500]"), 2); // cells thinner than viewers draw: values, and halted steps
        // More columns than print can show are the mean of several, which is said; an image is lossless.
        const FigureSpec wide =
            parsed(R"({"kind":"step_heatmap","trace":"long.ponder","runs":[1],"width_mm":900})");
        const Figure figure = made(wide);
        QCOMPARE(figure.notices.at(0).id, NoticeId::figure_averaged);
        int count = 0;
        for (const Item& item : figure.page.items()) {
            if (const auto* image = std::get_if<ImageItem>(&item)) {
                if (++count == 1) {
                    QCOMPARE(image->image.width(), 3500); // 21,000 tokens in columns of 6
                }
            }
        }
        QVERIFY(count > 0);
    }

    void textTableHoldsTheTracesNumbers() {
        const Figure figure = made(
            R"({"kind":"token_text","trace":"story.ponder","runs":["adaponderlm-1m"],"sequence":1,"tokens":[0,40]})");
        const auto rows = read_csv(figure.tables.at(0).csv);
        QCOMPARE(rows.size(), std::size_t{41});
        const TraceReader reader = TraceReader::open(trace_);
        const TokenColumns tokens = reader.tokens(1, 1);
        const std::string text = reader.text(1, 1);
        QCOMPARE(rows[1][4], QString()); // nobody predicted the first token
        for (std::size_t t = 0; t < 40; ++t) {
            const auto& row = rows[t + 1];
            QCOMPARE(row[0].toInt(), static_cast<int>(t));
            QCOMPARE(row[1].toInt(), tokens.id[t]);
            QCOMPARE(row[2].toStdString(), text.substr(tokens.begin[t], tokens.end[t] - tokens.begin[t]));
            if (t > 0) {
                QCOMPARE(row[4].toFloat(), tokens.nll[t - 1]);
                QCOMPARE(row[5].toInt(), tokens.steps[t - 1]);
            }
        }
    }

    void annotationsColourTheText() {
        const fs::path trace = folder_ / "annotated.ponder";
        fs::copy_file(trace_, trace);
        const TraceReader reader = TraceReader::open(trace);
        const RunInfo run = find_run(reader, "adaponderlm-1m");
        constexpr double none = std::numeric_limits<double>::quiet_NaN();
        Annotation tag{"part_of_speech", true, {"NOUN", "VERB", "never"}, {}};
        Annotation score{"score", false, {}, {}};
        for (int s = 0; s < 2; ++s) {
            for (int t = 0; t < 300; ++t) {
                (t == 0 ? tag.values.emplace_back() : tag.values.back()).push_back(t % 3 == 2 ? none : t % 3);
                (t == 0 ? score.values.emplace_back() : score.values.back()).push_back(t / 4.0);
            }
        }
        put_annotations(trace, run, reader.sequences(run.id), {tag, score});
        FigureSpec spec;
        spec.runs = {{trace, "adaponderlm-1m"}};
        spec.sequence = 1;
        spec.tokens = {5, 12}; // the first of them has no class
        spec.annotation = "part_of_speech";
        const Figure figure = made(spec);
        const auto rows = read_csv(figure.tables[0].csv);
        QCOMPARE(rows[0][4], u"part_of_speech"_s);
        for (std::size_t t = 5; t < 12; ++t) {
            QCOMPARE(rows[t - 4][4], QLatin1String(t % 3 == 0 ? "NOUN" : t % 3 == 1 ? "VERB" : ""));
        }
        const fs::path svg = folder_ / "annotated.svg";
        std::ofstream(folder_ / "annotated.json") << write_figure_spec(spec, folder_.path());
        QCOMPARE(command({"--figure", folder_ / "annotated.json", "-o", svg}), 0);
        const std::string drawn = read_file(svg);
        const auto has = [&](std::size_t number) {
            return drawn.find(QColor(ColourMap::classes(false).table()[number]).name().toStdString()) !=
                   std::string::npos;
        };
        QVERIFY(has(0) && has(1));
        QVERIFY(!has(2)); // no token is of it: no swatch
        spec.annotation = "score";
        const auto numbers = read_csv(made(spec).tables[0].csv);
        QCOMPARE(numbers[1][4], u"1.25"_s);
        // Of more classes than anybody tells apart, those of the most tokens are named.
        Annotation many{"many", true, {}, {}};
        for (int c = 0; c < 200; ++c) {
            many.classes.push_back("c" + std::to_string(c) + ".");
        }
        for (int s = 0; s < 2; ++s) {
            many.values.emplace_back(300, none);
            for (int t = 1; t < 300; ++t) {
                many.values.back()[static_cast<std::size_t>(t)] = t < 200 ? t : 199;
            }
        }
        put_annotations(trace, run, reader.sequences(run.id), {many});
        spec.annotation = "many";
        spec.tokens = {0, 300};
        const QString named = texts_of(made(spec).page).join(u' ') + u' ';
        QVERIFY2(named.contains(u" c199. "_s), qPrintable(named));
        QVERIFY(named.contains(u" c1. "_s) && named.contains(u" c23. "_s));
        QVERIFY(!named.contains(u" c0. "_s) && !named.contains(u" c24. "_s));
        QVERIFY(named.contains(u" and 175 more "_s));
        spec.annotation = "other";
        QVERIFY(thrown([&] { (void)gather(spec); }).contains(u"part_of_speech, score"_s));
        QVERIFY(thrown([&] {
                    (void)parsed(R"({"kind":"token_text","trace":"a.ponder","quantity":"nll",)"
                                 R"("annotation":"score"})");
                }).contains(u"a figure without \"quantity\""_s));
    }

    void predictingShowsEachRowAtItsOwnToken() {
        const auto rows = read_csv(
            made(
                R"({"kind":"token_text","trace":"story.ponder","runs":["adaponderlm-1m"],"tokens":[5,9],"attribution":"predicting","quantity":"rank"})")
                .tables.at(0)
                .csv);
        const TokenColumns tokens = TraceReader::open(trace_).tokens(1, 0);
        for (std::size_t i = 0; i < 4; ++i) {
            QCOMPARE(rows[i + 1][3].toInt(), static_cast<int>(5 + i));
            QCOMPARE(rows[i + 1][4].toInt(), tokens.rank[5 + i]);
        }
    }

    void heatmapTableHoldsTheStepsThatRan() {
        const auto rows = read_csv(
            made(
                R"({"kind":"step_heatmap","trace":"story.ponder","runs":["adaponderlm-1m"],"signal":"nll","tokens":[1,60]})")
                .tables.at(0)
                .csv);
        const TraceReader reader = TraceReader::open(trace_);
        const TokenColumns tokens = reader.tokens(1, 0);
        const std::vector<float> values = to_floats(*reader.signal(1, 0, "nll"));
        std::size_t at = 1;
        for (std::int64_t token = 1; token < 60; ++token) {
            const auto row = static_cast<std::size_t>(token - 1);
            for (int step = 0; step <= tokens.steps[row]; ++step, ++at) {
                QCOMPARE(rows.at(at)[0].toLongLong(), token);
                QCOMPARE(rows[at][4].toInt(), step);
                QCOMPARE(rows[at][5].toFloat(), values[row * 4 + static_cast<std::size_t>(step)]);
            }
        }
        QCOMPARE(rows.size(), at);
    }

    void comparisonTablesHoldMeansAndTokens() {
        const Figure figure = made(
            R"({"kind":"nll_comparison","trace":"story.ponder","runs":["adaponderlm-1m","vanilla-1m"],"replicates":200})");
        QCOMPARE(figure.tables.size(), std::size_t{2});
        const auto runs = read_csv(figure.tables[0].csv);
        const auto points = read_csv(figure.tables[1].csv);
        const TraceReader reader = TraceReader::open(trace_);
        double sum = 0;
        std::size_t count = 0;
        for (std::int64_t sequence = 0; sequence < 2; ++sequence) {
            const TokenColumns a = reader.tokens(1, sequence);
            const TokenColumns b = reader.tokens(2, sequence);
            for (std::size_t row = 0; row < a.size(); ++row) {
                if (std::isnan(a.nll[row]) || std::isnan(b.nll[row])) {
                    continue;
                }
                ++count;
                sum += a.nll[row];
                QCOMPARE(points.at(count)[0].toLongLong(), sequence);
                QCOMPARE(points[count][1].toULongLong(), row + 1);
                QCOMPARE(points[count][2].toFloat(), a.nll[row]);
                QCOMPARE(points[count][3].toFloat(), b.nll[row]);
            }
        }
        QCOMPARE(points.size(), count + 1);
        QCOMPARE(runs[1][0], u"adaponderlm-1m"_s);
        QVERIFY(qAbs(runs[1][2].toDouble() - sum / static_cast<double>(count)) < 1e-6);
        QVERIFY(runs[2][3].toDouble() < runs[2][2].toDouble() &&
                runs[2][2].toDouble() < runs[2][4].toDouble());
        QVERIFY(qAbs(runs[2][5].toDouble() - (runs[1][2].toDouble() - runs[2][2].toDouble())) < 1e-9);
    }

    void piecesSpellTheText() {
        const FigureSpec spec = parsed(R"({"kind":"token_text","trace":"odd.ponder","runs":[1]})");
        const FigureData data = gather(spec);
        QString spelled;
        int breaks = 0;
        for (const TokenPiece& piece : token_pieces(data.runs.front())) {
            if (!piece.invisible) {
                spelled += piece.text;
            }
            breaks += piece.breaks;
        }
        QVERIFY2(spelled.contains(u"😀"_s) && spelled.contains(u"naïve"_s) && spelled.contains(u"漢字"_s),
                 qPrintable(spelled));
        QVERIFY(spelled.contains(u"‹01›"_s));
        QCOMPARE(breaks, 1);
        const Figure figure = compose(spec, data, fonts_);
        QCOMPARE(figure.notices.at(0).id, NoticeId::figure_glyphs);
        QVERIFY(figure.notices[0].text.find("U+E123") != std::string::npos);
        QVERIFY(!figure.page.items().empty());
    }

    void idsOnlyAreShownAsNumbers() {
        const FigureSpec spec = parsed(R"({"kind":"token_text","trace":"basic.ponder","runs":[1]})");
        const FigureData data = gather(spec);
        QVERIFY(token_pieces(data.runs.front()).front().text.startsWith(u'#'));
        QVERIFY(!compose(spec, data, fonts_).page.items().empty());
    }

    void commandWritesTheFigureAndItsNumbers() {
        std::ofstream(folder_ / "a.json")
            << R"({"kind":"token_text","trace":"story.ponder","runs":[1],"tokens":[0,30]})";
        for (const char* format : formats) {
            const fs::path out = folder_ / (std::string("made.") + format);
            if (std::string_view(format) == "tex") { // of charts and tables only
                QCOMPARE(command({"--figure", folder_ / "a.json", "-o", out}), 2);
                QVERIFY(!fs::exists(out));
                continue;
            }
            QCOMPARE(command({"--figure", folder_ / "a.json", "-o", out}), 0);
            QVERIFY(fs::file_size(out) > 100);
            QVERIFY(fs::exists(folder_ / "made.csv"));
        }
        const std::string first = read_file(folder_ / "made.pdf");
        QCOMPARE(command({"--figure", folder_ / "a.json", "-o", folder_ / "made.pdf"}), 0);
        QCOMPARE(read_file(folder_ / "made.pdf"), first);
    }

    void panelsFitAsTheyAre() {
        std::ofstream(folder_ / "p.json")
            << R"({"kind":"panels","trace":"story.ponder","runs":[1],"panels":[{"kind":"steps_histogram"},)"
               R"({"kind":"steps_entropy"}]})";
        QCOMPARE(command({"--figure", folder_ / "p.json", "-o", folder_ / "p.pdf"}), 0);
        QVERIFY(fs::exists(folder_ / "p.a.csv") && fs::exists(folder_ / "p.b.csv"));
    }

    void wrongCommandsLeaveNothingBehind() {
        std::ofstream(folder_ / "b.json")
            << R"({"kind":"token_text","trace":"story.ponder","runs":[1],"tokens":[0,30]})";
        QCOMPARE(command({"--figure", folder_ / "b.json"}), 2);
        QCOMPARE(command({"--figure"}), 2);
        QCOMPARE(command({"--figure", folder_ / "b.json", "-o", folder_ / "b.docx"}), 2);
        QVERIFY(!fs::exists(folder_ / "b.docx"));
        QCOMPARE(command({"--figure", folder_ / "missing.json", "-o", folder_ / "b.pdf"}), 2);
        QVERIFY(!fs::exists(folder_ / "b.pdf"));
        QCOMPARE(command({"--figure", folder_ / "b.json", "-o", folder_ / "no" / "such" / "folder.pdf"}), 2);
        QCOMPARE(command({"--figure", folder_ / "b.json", "-o", folder_ / "b.pdf", "--colour"}), 2);
    }

private:
    static int command(std::vector<std::string> arguments) {
        arguments.insert(arguments.begin(), "ponderscope-desktop");
        std::vector<char*> pointers;
        for (std::string& argument : arguments) {
            pointers.push_back(argument.data());
        }
        return run_figure_command(static_cast<int>(pointers.size()), pointers.data());
    }
};

QTEST_MAIN(FiguresTest)
#include "figures_test.moc"
