// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/stats/labels.h"

#include "core/base/files.h"
#include "core/stats/rank_correlation.h"
#include "tests/core/trace/sample.h"
#include "tests/support/errors.h"
#include "tests/support/test_data.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace ponderscope {
namespace {

namespace fs = std::filesystem;

class LabelFiles : public ::testing::Test {
protected:
    /// Labels of the places in a table.
    Labels read(const std::string& text) const {
        write_file_atomically(folder_ / "labels.csv", text);
        PlacedTable table = PlacedTable::read(folder_ / "labels.csv", "document,begin,end,class");
        Labels labels{table.file, table.by_bytes, std::move(table.rows), {}};
        for (PlacedRow& row : labels.rows) {
            const std::string& name = table.columns.front()[static_cast<std::size_t>(row.entry)];
            const auto found = std::ranges::find(labels.classes, name);
            row.entry = static_cast<std::int32_t>(found - labels.classes.begin());
            if (found == labels.classes.end()) {
                labels.classes.push_back(name);
            }
        }
        return labels;
    }
    std::string sentence(const std::string& text) const {
        return testing::error_of([&] { (void)read(text); });
    }
    testing::TemporaryFolder folder_;
};

TEST_F(LabelFiles, AreReadByTheNamesOfTheirColumns) {
    const Labels labels = read("\xEF\xBB\xBF"
                               "class,end,begin,document\r\n"
                               "easy,3,0,\"a, \"\"b\"\"\"\r\n"
                               "\"two\nlines\",9,3,0\r\n"
                               "easy,12,9,0");
    EXPECT_EQ(labels.file.filename(), "labels.csv"); // later sentences name it
    EXPECT_TRUE(labels.by_bytes);
    EXPECT_EQ(labels.classes, (std::vector<std::string>{"easy", "two\nlines"}));
    ASSERT_EQ(labels.rows.size(), 3U);
    EXPECT_EQ(labels.rows[0].document, "a, \"b\"");
    EXPECT_EQ(labels.rows[1].begin, 3U);
    EXPECT_EQ(labels.rows[1].end, 9U);
    EXPECT_EQ(labels.rows[2].entry, 0);
    EXPECT_EQ(labels.rows[2].line, 5);

    const Labels tokens = read("sequence,token_index,label\n1,7,hard\n");
    EXPECT_FALSE(tokens.by_bytes);
    EXPECT_EQ(tokens.rows[0].begin, 7U);
    EXPECT_EQ(tokens.rows[0].end, 8U);

    // What counts tokens is no place where bytes are given.
    for (const char* name : {"token", "token_index", "position"}) {
        for (const std::string& header :
             {"sequence," + std::string(name) + ",begin,end,class\n0,7,30,34,x\n",
              "sequence,begin,end," + std::string(name) + ",class\n0,30,34,7,x\n"}) {
            const Labels both = read(header);
            EXPECT_TRUE(both.by_bytes);
            EXPECT_EQ(both.rows[0].begin, 30U) << header;
            EXPECT_EQ(both.rows[0].end, 34U) << header;
        }
    }
}

TEST_F(LabelFiles, EveryMistakeHasItsSentence) {
    const struct {
        const char* text;
        const char* says;
    } cases[] = {
        {"", "[annotation.table]"},
        {"a,b,c\n", "\"a,b,c\""},
        {"begin,end\n0,1\n", "\"begin,end\""},
        {"begin,class\n0,x\n", "document,begin,end,class"},
        {"token,end,class\n0,1,x\n", "document,begin,end,class"},
        {"begin,end,class\n0,1\n", "line 2 "},
        {"begin,end,class\n0,-1,x\n", "\"-1\""},
        {"begin,end,class\n5,5,x\n", "line 2: "},
        {"begin,end,class\n5,9,\"x\n", "line 2: "},
    };
    for (const auto& [text, says] : cases) {
        EXPECT_NE(sentence(text).find(says), std::string::npos) << text << ": " << sentence(text);
    }
}

class Labelled : public LabelFiles {
protected:
    void SetUp() override {
        testing::add_sample_run(folder_ / "t.ponder", "run", 1, {40, 20}, 15);
        reader_ = std::make_unique<TraceReader>(TraceReader::open(folder_ / "t.ponder"));
        run_ = find_run(*reader_, "run");
    }
    LabelledTokens label(const std::string& text, LabelPlace place = LabelPlace::prediction) const {
        return label_tokens(*reader_, run_, read(text), place);
    }
    std::string trouble(const std::string& text) const {
        return testing::error_of([&] { (void)label(text); });
    }
    std::unique_ptr<TraceReader> reader_;
    RunInfo run_;
};

TEST_F(Labelled, ALabelBelongsToThePredictionOfWhatItCovers) {
    const TokenColumns first = reader_->tokens(run_.id, 0);
    // Bytes of tokens 5 to 9 of the first sequence, and by its title a token of the second.
    const std::string text = "document,begin,end,class\n0," + std::to_string(first.begin[5]) + "," +
                             std::to_string(first.end[9]) + ",hard\n\"text 1\",0,1,easy\n";
    const LabelledTokens predicted = label(text);
    ASSERT_EQ(predicted.label.size(), 39U + 19U);
    for (std::size_t t = 0; t < 39; ++t) {
        EXPECT_EQ(predicted.label[t], t >= 4 && t <= 8 ? 0 : -1) << t;
        EXPECT_EQ(predicted.steps[t], first.steps[t]);
    }
    EXPECT_EQ(predicted.layout.stretches, (std::vector<std::int64_t>{39, 19}));
    EXPECT_EQ(predicted.unlabelled, 58 - 5); // nobody predicts a first token
    const LabelledTokens standing = label(text, LabelPlace::token);
    for (std::size_t t = 0; t < 39; ++t) {
        EXPECT_EQ(standing.label[t], t >= 5 && t <= 9 ? 0 : -1) << t;
    }
    EXPECT_EQ(standing.label[39], 1);
    // The same by tokens.
    EXPECT_EQ(label("sequence,token,class\n0,5,hard\n0,6,hard\n0,7,hard\n0,8,hard\n0,9,hard\n").label,
              predicted.label);
}

TEST_F(Labelled, MostOfATokensBytesDecide) {
    const TokenColumns first = reader_->tokens(run_.id, 0);
    const std::uint64_t cut = first.end[5] - 1; // all but its last byte
    const LabelledTokens tokens =
        label("document,begin,end,class\n0," + std::to_string(first.begin[5]) + "," + std::to_string(cut) +
              ",a\n0," + std::to_string(cut) + "," + std::to_string(first.end[6]) + ",b\n");
    EXPECT_EQ(tokens.label[4], 0);
    EXPECT_EQ(tokens.label[5], 1);
}

TEST_F(Labelled, OtherTextsAreRefused) {
    EXPECT_NE(trouble("document,begin,end,class\nno such,0,1,x\n").find("\"no such\""), std::string::npos);
    EXPECT_TRUE(trouble("begin,end,class\n0,1,x\n").ends_with("[trace.signal]"));
    EXPECT_NE(trouble("document,begin,end,class\n0,0,9999,x\n").find("byte 9999"), std::string::npos);
    EXPECT_NE(trouble("document,begin,end,class\n0,0,9,x\n0,20,9999,y\n").find("line 3 "), std::string::npos);
    EXPECT_NE(trouble("document,begin,end,class\n0,0,9,x\n0,5,12,y\n").find("lines 2 and 3"),
              std::string::npos);
    EXPECT_NE(trouble("document,begin,end,class\n0,0,1,x\n").find(" 1 "), std::string::npos);
}

TEST_F(Labelled, ATitleOfSeveralSequencesNamesNone) {
    testing::sql(folder_ / "t.ponder", "UPDATE sequence SET title = 'same'");
    reader_ = std::make_unique<TraceReader>(TraceReader::open(folder_ / "t.ponder"));
    EXPECT_NE(trouble("document,begin,end,class\nsame,0,1,x\n").find("[trace.signal]"), std::string::npos);
    EXPECT_EQ(label("document,begin,end,class\n1,0,1,x\n", LabelPlace::token).label[39], 0);
}

TEST_F(Labelled, BytesNeedAText) {
    TokenColumns tokens = testing::sample_tokens(1, 0, 5, 5);
    tokens.begin.clear();
    tokens.end.clear();
    testing::write_trace(folder_ / "ids.ponder", [&](TraceWriter& writer) {
        writer.begin_run(testing::sample_run("ids"), {});
        testing::add_sequence(writer, "s", "", tokens);
        writer.end_run(1);
    });
    reader_ = std::make_unique<TraceReader>(TraceReader::open(folder_ / "ids.ponder"));
    run_ = find_run(*reader_, "ids");
    EXPECT_TRUE(trouble("begin,end,class\n0,1,x\n").ends_with("[annotation.table]"));
}

TEST_F(Labelled, AnAnnotationsClassesAreLabelsOfItsTokens) {
    constexpr double none = std::numeric_limits<double>::quiet_NaN();
    Annotation parts{"part", true, {"NOUN", "VERB"}, {std::vector<double>(40, none), {}}};
    Annotation score{"score", false, {}, {{}, {}}};
    for (int t = 0; t < 20; ++t) {
        parts.values[0][static_cast<std::size_t>(t)] = t < 8 ? 1 : 0;
        parts.values[1].push_back(1);
    }
    for (int t = 0; t < 60; ++t) { // 0 for half of them, else 1, 2, 3, ...
        score.values[t < 40 ? 0 : 1].push_back(t % 2 == 0 ? 0 : t);
    }
    const fs::path trace = folder_ / "t.ponder";
    put_annotations(trace, run_, reader_->sequences(run_.id), {parts, score});
    const auto annotations = AnnotationReader::beside(trace);
    const AnnotationInfo part = find_annotation(annotations, trace, run_, "part");
    const LabelledTokens named =
        label_tokens(*reader_, run_, Labels::annotated(*annotations, part), LabelPlace::token);
    for (std::size_t t = 0; t < 39; ++t) {
        EXPECT_EQ(named.label[t], t < 8 ? 1 : t < 20 ? 0 : -1) << t;
    }
    EXPECT_EQ(named.unlabelled, 19);
    // Fifths of the values; what is equal stays together, so the zeros are one class.
    const AnnotationInfo number = find_annotation(annotations, trace, run_, "score");
    const Labels fifths = Labels::annotated(*annotations, number);
    EXPECT_EQ(fifths.classes, (std::vector<std::string>{"0", "1 to 11", "13 to 35", "37 to 59"}));
    const LabelledTokens binned = label_tokens(*reader_, run_, fifths, LabelPlace::token);
    for (std::size_t t = 0; t < 39; ++t) {
        EXPECT_EQ(binned.label[t], t % 2 == 0 ? 0 : t <= 11 ? 1 : t <= 35 ? 2 : 3) << t;
    }
}

TEST_F(Labelled, StepsAreSetAgainstAnAnnotationsNumbers) {
    // The steps of each token, but of every fifth none: given to the token itself, and to what it predicts.
    constexpr double none = std::numeric_limits<double>::quiet_NaN();
    Annotation own{"own", false, {}, {}};
    Annotation next{"next", false, {}, {}};
    for (const SequenceInfo& sequence : reader_->sequences(run_.id)) {
        const TokenColumns tokens = reader_->tokens(run_.id, sequence.number);
        own.values.emplace_back();
        next.values.push_back({none});
        for (std::size_t t = 0; t < tokens.size(); ++t) {
            const double value = t % 5 == 0 ? none : 10.0 + tokens.steps[t];
            own.values.back().push_back(value);
            next.values.back().push_back(value);
        }
        next.values.back().pop_back();
    }
    const fs::path trace = folder_ / "t.ponder";
    put_annotations(trace, run_, reader_->sequences(run_.id), {own, next});
    const auto annotations = AnnotationReader::beside(trace);
    BootstrapOptions options{.replicates = 100};
    for (const auto& [name, place] :
         {std::pair("own", LabelPlace::token), std::pair("next", LabelPlace::prediction)}) {
        const StepsCorrelation rho = correlate_steps(
            *reader_, run_, *annotations, find_annotation(annotations, trace, run_, name), place, options);
        EXPECT_EQ(rho.with, name);
        EXPECT_EQ(rho.tokens, 58 - 8 - 4); // scored, less every fifth
        EXPECT_NEAR(rho.rho.value, 1, 1e-12) << name;
    }
    // On the last token of each sequence alone: nothing is predicted there.
    Annotation last{"last", false, {}, {}};
    for (const std::vector<double>& values : own.values) {
        last.values.emplace_back(values.size(), none);
        last.values.back().back() = 3;
    }
    put_annotations(trace, run_, reader_->sequences(run_.id), {last});
    const auto with_last = AnnotationReader::beside(trace);
    const std::string refusal = testing::error_of([&] {
        (void)correlate_steps(*reader_, run_, *with_last, find_annotation(with_last, trace, run_, "last"),
                              LabelPlace::token, options);
    });
    EXPECT_NE(refusal.find("\"last\""), std::string::npos) << refusal;
    EXPECT_TRUE(refusal.ends_with("[run.unscored]")) << refusal;
}

TEST(CompareClasses, MeansAreTheClassesAndNoiseIsNotFound) {
    LabelledTokens tokens;
    tokens.classes = {"low", "high", "never"};
    tokens.max_steps = 3;
    for (int i = 0; i < 2000; ++i) {
        const int label = i / 40 % 3 - 1; // stretches without a label between
        tokens.label.push_back(label);
        tokens.steps.push_back(label == 1 ? 2 + i % 2 : i % 3);
        tokens.nll.push_back(label == 1 ? 3.0 : 1.0);
        tokens.unlabelled += label < 0 ? 1 : 0;
    }
    tokens.layout = {2000};
    BootstrapOptions options{.block = 64, .replicates = 500};
    const std::vector<LabelledClass> classes = compare_classes(tokens, options);
    ASSERT_EQ(classes.size(), 2U); // no token is of the third
    const LabelledClass& high = classes[1];
    EXPECT_EQ(high.group.name, "high");
    EXPECT_NEAR(high.group.mean_steps, 2.5, 0.01);
    EXPECT_NEAR(high.group.mean_nll, 3.0, 1e-12);
    EXPECT_NEAR(high.group.dropped, 0.5, 0.01);
    EXPECT_NEAR(high.group.steps_elsewhere, classes[0].group.mean_steps, 1e-12);
    EXPECT_LT(high.steps_difference.low, 1.5);
    EXPECT_GT(high.steps_difference.high, 1.5);
    EXPECT_LT(high.group.q, 1e-6);
    // Steps that do not depend on the class.
    for (double& steps : tokens.steps) {
        steps = 1;
    }
    EXPECT_TRUE(std::isnan(compare_classes(tokens, options)[0].group.p));
}

} // namespace
} // namespace ponderscope
