// SPDX-License-Identifier: GPL-3.0-or-later
// From a specification to files: every kind of figure over a trace that was made up.
#include "core/trace/reader.h"
#include "core/trace/tools/annotations.h"

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/policy/matched.h"
#include "tests/support/sample_trace.h"
#include "tests/support/test_data.h"
#include "tests/views/figure/story.h"
#include "views/common/colour_map.h"
#include "views/figure/command.h"
#include "views/figure/token_pieces.h"

#include <QtTest>

#include <charconv>
#include <cmath>
#include <fstream>
#include <sstream>

using namespace Qt::StringLiterals;
using namespace ponderscope;
using namespace ponderscope::figure;
namespace fs = std::filesystem;

namespace {

/// Of a table's cell: its decimal point is one, whatever the locale.
template <typename Number>
Number number(const std::string& cell) {
    Number value{};
    if (std::from_chars(cell.data(), cell.data() + cell.size(), value).ec != std::errc()) {
        qFatal("%s is no number", cell.c_str());
    }
    return value;
}

/// RFC 4180, for what the figures write.
std::vector<std::vector<std::string>> read_csv(const std::string& text) {
    std::vector<std::vector<std::string>> rows;
    std::vector<std::string> row(1);
    bool quoted = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (quoted) {
            if (c == '"' && i + 1 < text.size() && text[i + 1] == '"') {
                row.back() += '"';
                ++i;
            } else if (c == '"') {
                quoted = false;
            } else {
                row.back() += c;
            }
        } else if (c == '"') {
            quoted = true;
        } else if (c == ',') {
            row.emplace_back();
        } else if (c == '\n') {
            rows.push_back(std::move(row));
            row.assign(1, {});
        } else {
            row.back() += c;
        }
    }
    return rows;
}

} // namespace

class FiguresTest : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void initTestCase() {
        trace_ = write_story(folder_);
        testing::SampleTrace odd;
        odd.texts = {"A 😀 smile, naïve\ttab\nand 漢字 <&> \uE123 \x01 end.", ""}; // U+E123 is nobody's letter
        odd.texts.pop_back();
        testing::write_sample_trace(folder_ / "odd.ponder", odd);
        fonts_ = std::make_unique<Fonts>(Fonts::load());
    }

    void frontsHoldTheReplaysNumbers() {
        FigureSpec spec = parse_figure_spec(
            R"({"kind":"policy_front","trace":"story.ponder","runs":["adaponderlm-1m"],"policies":["fixed"]})",
            folder_ / "spec.json");
        auto rows = read_csv(compose(spec, gather(spec), *fonts_).tables.front().csv);
        QVERIFY(std::erase_if(rows, [](const auto& row) { return row[0] == blind_rule; }) > 0);
        QCOMPARE(rows.size(), 1 + 4 + 1); // fixed:n=0..3, and the run
        QCOMPARE(rows[0], (std::vector<std::string>{"series", "x", "y", "low", "high", "value"}));
        QCOMPARE(rows[1][0], std::string("fixed"));
        QCOMPARE(number<double>(rows[1][1]), 0.0);
        QCOMPARE(rows[5][0], std::string("adaponderlm-1m"));
        const TraceReader reader = TraceReader::open(trace_);
        const RunInfo run = find_run(reader, "adaponderlm-1m");
        const double mean = run.nll_sum / static_cast<double>(run.scored_tokens);
        QVERIFY(std::abs(number<double>(rows[5][2]) - std::exp(mean)) < 1e-9);
        QVERIFY(std::abs(number<double>(rows[4][2]) - std::exp(mean)) < 1e-4); // fixed:n=3 is the run itself
        QCOMPARE(parse_figure_spec(write_figure_spec(spec, folder_.path()), folder_ / "spec.json"), spec);
        // What the perplexity is set against.
        spec.cost = "steps";
        QCOMPARE(parse_figure_spec(write_figure_spec(spec, folder_.path()), folder_ / "spec.json"), spec);
        const Chart steps = *gather(spec).chart;
        QVERIFY(steps.x.label.contains(u"step"_s));
        spec.cost = "time";
        QVERIFY(gather(spec).chart->x.label != steps.x.label);
        QVERIFY(thrown([&] {
                    parse_figure_spec(R"({"kind":"policy_front","trace":"story.ponder","cost":"euros"})",
                                      folder_ / "spec.json");
                }).find("euros") != std::string::npos);
        spec.cost = "compute";
        spec.policies = {"luck"};
        QVERIFY(thrown([&] { gather(spec); }).find("luck") != std::string::npos);
        spec.kind = FigureKind::gate_curves;
        spec.runs[0].run = "vanilla-1m";
        QVERIFY(thrown([&] { gather(spec); }).find("gates") != std::string::npos);
        spec.kind = FigureKind::policy_front;
        spec.policies.clear();
        spec.runs = {{folder_ / "basic.ponder", "adaponderlm-1m"}};
        QVERIFY(thrown([&] { gather(spec); }).find("--record steps") != std::string::npos);
    }

    void aRunThatIsChosenAndNotDrawnIsNamed() {
        FigureSpec spec = parse_figure_spec(
            R"({"kind":"matched_rules","trace":"story.ponder","runs":["adaponderlm-1m","vanilla-1m"],)"
            R"("policies":["entropy"],"replicates":100})",
            folder_ / "spec.json");
        const auto named = [&] {
            const std::vector<std::string> notices = gather(spec).notices;
            return std::any_of(notices.begin(), notices.end(), [](const std::string& notice) {
                return notice.find("vanilla-1m") != std::string::npos;
            });
        };
        QVERIFY(named());
        spec.runs.resize(1);
        QVERIFY(!named());
        // Rows of bands say whose band it is.
        for (const auto& row : read_csv(compose(spec, gather(spec), *fonts_).tables.front().csv)) {
            QVERIFY(!row[0].empty());
        }
    }

    void cellsAreVectorsUpToALimitAndThenAnImage() {
        const auto images = [&](const char* tokens) {
            const FigureSpec spec = parse_figure_spec(
                std::string(R"({"kind":"step_heatmap","trace":"long.ponder","runs":[1],"tokens":)") + tokens +
                    "}",
                folder_ / "spec.json");
            const Figure figure = compose(spec, gather(spec), *fonts_);
            int count = 0;
            for (const Item& item : figure.page.items()) {
                count += std::holds_alternative<ImageItem>(item) ? 1 : 0;
            }
            return count;
        };
        testing::SampleTrace what;
        what.sequences = 1;
        what.tokens = 21'000;
        testing::write_sample_trace(folder_ / "long.ponder", what);
        QCOMPARE(images("[0,50]"), 0);
        QCOMPARE(images("[0,1500]"), 2); // cells thinner than viewers draw: values, and halted steps
        // More columns than print can show are the mean of several, which is said; an image is lossless.
        const FigureSpec wide =
            parse_figure_spec(R"({"kind":"step_heatmap","trace":"long.ponder","runs":[1],"width_mm":900})",
                              folder_ / "spec.json");
        const Figure figure = compose(wide, gather(wide), *fonts_);
        QVERIFY(!figure.notices.empty());
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
        const FigureSpec spec = parse_figure_spec(
            R"({"kind":"token_text","trace":"story.ponder","runs":["adaponderlm-1m"],"sequence":1,"tokens":[0,40]})",
            folder_ / "s.json");
        const Figure figure = compose(spec, gather(spec), *fonts_);
        const auto rows = read_csv(figure.tables.at(0).csv);
        QCOMPARE(rows.size(), std::size_t{41});
        const TraceReader reader = TraceReader::open(trace_);
        const TokenColumns tokens = reader.tokens(1, 1);
        const std::string text = reader.text(1, 1);
        QCOMPARE(rows[1][4], std::string()); // nobody predicted the first token
        for (std::size_t t = 0; t < 40; ++t) {
            const auto& row = rows[t + 1];
            QCOMPARE(std::stoi(row[0]), static_cast<int>(t));
            QCOMPARE(std::stoi(row[1]), tokens.id[t]);
            QCOMPARE(row[2], text.substr(tokens.begin[t], tokens.end[t] - tokens.begin[t]));
            if (t > 0) {
                QCOMPARE(number<float>(row[4]), tokens.nll[t - 1]);
                QCOMPARE(std::stoi(row[5]), tokens.steps[t - 1]);
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
        const Figure figure = compose(spec, gather(spec), *fonts_);
        const auto rows = read_csv(figure.tables[0].csv);
        QCOMPARE(rows[0][4], std::string("part_of_speech"));
        for (std::size_t t = 5; t < 12; ++t) {
            QCOMPARE(rows[t - 4][4], std::string(t % 3 == 0 ? "NOUN" : t % 3 == 1 ? "VERB" : ""));
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
        const auto numbers = read_csv(compose(spec, gather(spec), *fonts_).tables[0].csv);
        QCOMPARE(numbers[1][4], std::string("1.25"));
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
        QString named;
        const Figure crowded = compose(spec, gather(spec), *fonts_);
        for (const Item& item : crowded.page.items()) {
            if (const auto* text = std::get_if<TextItem>(&item)) {
                named += text->text + u' ';
            }
        }
        QVERIFY2(named.contains(u" c199. "_s), qPrintable(named));
        QVERIFY(named.contains(u" c1. "_s) && named.contains(u" c23. "_s));
        QVERIFY(!named.contains(u" c0. "_s) && !named.contains(u" c24. "_s));
        QVERIFY(named.contains(u" and 175 more "_s));
        spec.annotation = "other";
        QVERIFY(thrown([&] { gather(spec); }).find("part_of_speech, score") != std::string::npos);
        QVERIFY(thrown([&] {
                    parse_figure_spec(R"({"kind":"token_text","trace":"a.ponder","quantity":"nll",)"
                                      R"("annotation":"score"})",
                                      folder_ / "x.json");
                }).find("either \"quantity\" or \"annotation\"") != std::string::npos);
    }

    void predictingShowsEachRowAtItsOwnToken() {
        const FigureSpec spec = parse_figure_spec(
            R"({"kind":"token_text","trace":"story.ponder","runs":["adaponderlm-1m"],"tokens":[5,9],"attribution":"predicting","quantity":"rank"})",
            folder_ / "s.json");
        const auto rows = read_csv(compose(spec, gather(spec), *fonts_).tables.at(0).csv);
        const TokenColumns tokens = TraceReader::open(trace_).tokens(1, 0);
        for (std::size_t i = 0; i < 4; ++i) {
            QCOMPARE(std::stoi(rows[i + 1][3]), static_cast<int>(5 + i));
            QCOMPARE(std::stoi(rows[i + 1][4]), tokens.rank[5 + i]);
        }
    }

    void heatmapTableHoldsTheStepsThatRan() {
        const FigureSpec spec = parse_figure_spec(
            R"({"kind":"step_heatmap","trace":"story.ponder","runs":["adaponderlm-1m"],"signal":"nll","tokens":[1,60]})",
            folder_ / "s.json");
        const auto rows = read_csv(compose(spec, gather(spec), *fonts_).tables.at(0).csv);
        const TraceReader reader = TraceReader::open(trace_);
        const TokenColumns tokens = reader.tokens(1, 0);
        const std::vector<float> values = to_floats(*reader.signal(1, 0, "nll"));
        std::size_t at = 1;
        for (std::int64_t token = 1; token < 60; ++token) {
            const auto row = static_cast<std::size_t>(token - 1);
            for (int step = 0; step <= tokens.steps[row]; ++step, ++at) {
                QCOMPARE(std::stoll(rows.at(at)[0]), token);
                QCOMPARE(std::stoi(rows[at][4]), step);
                QCOMPARE(number<float>(rows[at][5]), values[row * 4 + static_cast<std::size_t>(step)]);
            }
        }
        QCOMPARE(rows.size(), at);
    }

    void comparisonTablesHoldMeansAndTokens() {
        const FigureSpec spec = parse_figure_spec(
            R"({"kind":"nll_comparison","trace":"story.ponder","runs":["adaponderlm-1m","vanilla-1m"],"replicates":200})",
            folder_ / "s.json");
        const Figure figure = compose(spec, gather(spec), *fonts_);
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
                QCOMPARE(std::stoll(points.at(count)[0]), sequence);
                QCOMPARE(std::stoull(points[count][1]), row + 1);
                QCOMPARE(number<float>(points[count][2]), a.nll[row]);
                QCOMPARE(number<float>(points[count][3]), b.nll[row]);
            }
        }
        QCOMPARE(points.size(), count + 1);
        QCOMPARE(runs[1][0], std::string("adaponderlm-1m"));
        QVERIFY(qAbs(number<double>(runs[1][2]) - sum / static_cast<double>(count)) < 1e-6);
        QVERIFY(number<double>(runs[2][3]) < number<double>(runs[2][2]) &&
                number<double>(runs[2][2]) < number<double>(runs[2][4]));
        QVERIFY(qAbs(number<double>(runs[2][5]) - (number<double>(runs[1][2]) - number<double>(runs[2][2]))) <
                1e-9);
    }

    void piecesSpellTheText() {
        const FigureSpec spec =
            parse_figure_spec(R"({"kind":"token_text","trace":"odd.ponder","runs":[1]})", folder_ / "s.json");
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
        const Figure figure = compose(spec, data, *fonts_);
        QVERIFY(!figure.notices.empty());
        QVERIFY2(QString::fromStdString(figure.notices[0]).contains(u"U+E123"_s), figure.notices[0].c_str());
        QVERIFY(to_size(figure) > 0);
    }

    void idsOnlyAreShownAsNumbers() {
        const FigureSpec spec = parse_figure_spec(
            R"({"kind":"token_text","trace":"basic.ponder","runs":[1]})", folder_ / "s.json");
        const FigureData data = gather(spec);
        QVERIFY(token_pieces(data.runs.front()).front().text.startsWith(u'#'));
        QVERIFY(to_size(compose(spec, data, *fonts_)) > 0);
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
    static std::size_t to_size(const Figure& figure) { return figure.page.items().size(); }
    static int command(std::vector<std::string> arguments) {
        arguments.insert(arguments.begin(), "ponderscope-desktop");
        std::vector<char*> pointers;
        for (std::string& argument : arguments) {
            pointers.push_back(argument.data());
        }
        return run_figure_command(static_cast<int>(pointers.size()), pointers.data());
    }

    testing::TemporaryFolder folder_;
    fs::path trace_;
    std::unique_ptr<Fonts> fonts_;
};

QTEST_MAIN(FiguresTest)
#include "figures_test.moc"
