// SPDX-License-Identifier: GPL-3.0-or-later
// Trainings and their curves in a trace.
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/trace/reader.h"
#include "core/trace/tools/export_csv.h"
#include "core/trace/tools/merge.h"
#include "core/trace/tools/summary.h"
#include "core/trace/writer.h"
#include "tests/core/trace/sample.h"
#include "tests/core/trace/trace_test.h"
#include "tests/support/errors.h"

#include <cmath>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace ponderscope {
namespace {

namespace fs = std::filesystem;

TrainingInfo sample_training(const std::string& name) {
    TrainingInfo info;
    info.name = name;
    info.description = "a \"description\", with a comma";
    info.architecture = "gpt_neox";
    info.method = "adaponderlm";
    info.depth_mixing = "none";
    info.recipe = R"({"training":{"steps":30}})";
    info.config = "{}";
    info.device = "cpu";
    info.precision = "float32";
    info.versions = R"({"ponderscope":"1"})";
    info.parameters = 12345;
    info.max_steps = 2;
    info.planned_steps = 30;
    info.planned_tokens = 1920;
    info.started = "2026-11-21T20:00:00Z";
    return info;
}

std::vector<TrainingQuantity> sample_quantities() {
    return {{"loss", "", "nats", "Loss", "Cross-entropy."},
            {"held_out_gate", "step", "", "Gate", "Mean gate after step k."}};
}

/// Points at steps 10, 20, 30, the gates at every other one.
std::int64_t write_sample_training(TraceWriter& writer, const std::string& name) {
    const std::int64_t id = writer.begin_training(sample_training(name), sample_quantities());
    for (const std::int64_t step : {10, 20, 30}) {
        std::vector<TrainingValue> values{{"loss", 0, 10.0 / static_cast<double>(step)}};
        if (step != 20) {
            values.push_back({"held_out_gate", 0, 0.75});
            values.push_back({"held_out_gate", 1, 0.25});
        }
        writer.put_points(id, {step, step * 64, static_cast<double>(step) / 8}, values);
    }
    return id;
}

const TrainingCurve& curve(const std::vector<TrainingCurve>& curves, const std::string& name,
                           std::int64_t place) {
    for (const TrainingCurve& one : curves) {
        if (one.quantity == name && one.place == place) {
            return one;
        }
    }
    throw std::runtime_error("no curve " + name);
}

using Training = testing::TraceTest;

TEST_F(Training, ComesBackAsItWasWritten) {
    testing::write_trace(path, [&](TraceWriter& writer) {
        EXPECT_EQ(write_sample_training(writer, "one"), 1);
        EXPECT_EQ(write_sample_training(writer, "one"), 2);
        writer.end_training(2, true);
    });
    const TraceReader reader = TraceReader::open(path);
    const std::vector<TrainingInfo> trainings = reader.trainings();
    ASSERT_EQ(trainings.size(), 2U);
    TrainingInfo want = sample_training("one");
    want.id = 1;
    want.step = 30;
    want.tokens = 1920;
    want.seconds = 3.75;
    testing::expect_same_row(trainings[0], want);
    EXPECT_EQ(trainings[1].name, "one (2)");
    EXPECT_TRUE(trainings[1].complete);
    const auto quantities = reader.training_quantities(1);
    ASSERT_EQ(quantities.size(), 2U);
    testing::expect_same_row(quantities[0], sample_quantities()[1]);
    testing::expect_same_row(quantities[1], sample_quantities()[0]);
    const auto curves = reader.training_curves(1);
    ASSERT_EQ(curves.size(), 3U);
    const TrainingCurve loss = curve(curves, "loss", 0);
    EXPECT_EQ(loss.step, (std::vector<std::int64_t>{10, 20, 30}));
    EXPECT_EQ(loss.tokens, (std::vector<std::int64_t>{640, 1280, 1920}));
    EXPECT_EQ(loss.seconds, (std::vector<double>{1.25, 2.5, 3.75}));
    EXPECT_EQ(loss.value, (std::vector<double>{1.0, 0.5, 10.0 / 30}));
    EXPECT_EQ(curve(curves, "held_out_gate", 1).value, (std::vector<double>{0.25, 0.25}));
    EXPECT_EQ(curve(curves, "held_out_gate", 1).step, (std::vector<std::int64_t>{10, 30}));
    EXPECT_TRUE(reader.training_curves(3).empty());
}

TEST_F(Training, EveryPointIsReadableAtOnce) {
    TraceWriter writer(path);
    const std::int64_t id = writer.begin_training(sample_training("slow"), sample_quantities());
    for (std::int64_t step = 1; step <= 3; ++step) {
        writer.put_points(id, {step, step, 0.5}, {{"loss", 0, 1.0}, {"held_out_gate", 0, 0.5}});
        // The writer's thread needs a moment; nothing else does.
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        const auto points = [&] {
            try {
                const auto curves = TraceReader::open(path).training_curves(id);
                EXPECT_TRUE(curves.empty() || curves.size() == 2) << "a moment is whole or not there";
                return curves.empty() ? 0 : static_cast<std::int64_t>(curves.front().size());
            } catch (const InputError&) {
                return std::int64_t{0}; // not made yet
            }
        };
        while (points() < step && std::chrono::steady_clock::now() < deadline) {
        }
        EXPECT_EQ(points(), step);
    }
}

TEST_F(Training, NotANumberIsKeptAsOne) {
    testing::write_trace(path, [&](TraceWriter& writer) {
        const std::int64_t id = writer.begin_training(sample_training("bad"), sample_quantities());
        writer.put_points(id, {1, 1, 1}, {{"loss", 0, std::nan("")}});
        writer.end_training(id, false, "the loss is nan");
    });
    const TraceReader reader = TraceReader::open(path);
    EXPECT_TRUE(std::isnan(reader.training_curves(1).at(0).value.at(0)));
    EXPECT_EQ(reader.trainings().at(0).fault, "the loss is nan");
    EXPECT_NE(trace_summary(reader).find("(failed)"), std::string::npos);
    EXPECT_NE(trace_summary(reader).find("the loss is nan"), std::string::npos);
}

TEST_F(Training, ForgetsWhatCameAfterAStep) {
    testing::write_trace(path, [&](TraceWriter& writer) {
        write_sample_training(writer, "other");
        write_sample_training(writer, "one");
        writer.end_training(2, false, "stopped");
    });
    TraceWriter::forget_after(path, 2, 20);
    const TraceReader reader = TraceReader::open(path);
    EXPECT_TRUE(testing::is_sound(path));
    const auto trainings = reader.trainings();
    EXPECT_EQ(trainings.at(0).step, 30) << "the other one is left alone";
    EXPECT_EQ(trainings.at(1).step, 20);
    EXPECT_EQ(trainings.at(1).tokens, 1280);
    EXPECT_EQ(trainings.at(1).fault, "");
    EXPECT_EQ(curve(reader.training_curves(1), "loss", 0).size(), 3U);
    EXPECT_EQ(curve(reader.training_curves(2), "loss", 0).size(), 2U);
    EXPECT_THROW(TraceWriter::forget_after(folder / "absent.ponder", 1, 0), InputError);
}

TEST_F(Training, TracesWithoutOneTakeOne) {
    testing::add_sample_run(path, "first", 1, {30}, 10);
    {
        const TraceReader reader = TraceReader::open(path);
        EXPECT_TRUE(reader.trainings().empty());
        EXPECT_TRUE(reader.training_quantities(1).empty());
        EXPECT_TRUE(reader.training_curves(1).empty());
        EXPECT_EQ(trace_summary_json(reader).at("trainings").size(), 0U);
    }
    export_csv(TraceReader::open(path), folder / "tables");
    EXPECT_FALSE(fs::exists(folder / "tables" / "training.csv"));
    merge_runs({{path, ""}}, folder / "merged.ponder");
    testing::write_trace(path, [&](TraceWriter& writer) { write_sample_training(writer, "new"); });
    const TraceReader reader = TraceReader::open(path);
    EXPECT_EQ(reader.trainings().size(), 1U);
    EXPECT_EQ(reader.runs().size(), 1U);
}

TEST_F(Training, MergeCarriesCurves) {
    for (const char* name : {"one.ponder", "two.ponder"}) {
        TraceWriter writer(folder / name);
        testing::write_sample_run(writer, "plain", 1, {30}, 10);
        write_sample_training(writer, "one");
        writer.end_training(1, true);
        writer.finish();
    }
    merge_runs({{folder / "one.ponder", ""}, {folder / "two.ponder", ""}}, path);
    const TraceReader reader = TraceReader::open(path);
    const auto trainings = reader.trainings();
    ASSERT_EQ(trainings.size(), 2U);
    EXPECT_EQ(trainings[1].name, "one (2)");
    EXPECT_TRUE(trainings[1].complete);
    EXPECT_EQ(trainings[1].step, 30);
    const auto want = TraceReader::open(folder / "two.ponder").training_curves(1);
    const auto have = reader.training_curves(2);
    ASSERT_EQ(have.size(), want.size());
    for (std::size_t i = 0; i < want.size(); ++i) {
        EXPECT_EQ(have[i].quantity, want[i].quantity);
        EXPECT_EQ(have[i].place, want[i].place);
        EXPECT_EQ(have[i].step, want[i].step);
        EXPECT_EQ(have[i].tokens, want[i].tokens);
        EXPECT_EQ(have[i].seconds, want[i].seconds);
        EXPECT_EQ(have[i].value, want[i].value);
    }
    EXPECT_EQ(reader.runs().size(), 2U);
}

TEST_F(Training, TablesAndWords) {
    testing::write_trace(path, [&](TraceWriter& writer) { write_sample_training(writer, "one, two"); });
    const TraceReader reader = TraceReader::open(path);
    export_csv(reader, folder / "tables");
    EXPECT_EQ(read_file(folder / "tables" / "training.csv"),
              "training,name,quantity,unit,place,step,tokens,seconds,value\n"
              "1,\"one, two\",held_out_gate,,0,10,640,1.25,0.75\n"
              "1,\"one, two\",held_out_gate,,0,30,1920,3.75,0.75\n"
              "1,\"one, two\",held_out_gate,,1,10,640,1.25,0.25\n"
              "1,\"one, two\",held_out_gate,,1,30,1920,3.75,0.25\n"
              "1,\"one, two\",loss,nats,0,10,640,1.25,1\n"
              "1,\"one, two\",loss,nats,0,20,1280,2.5,0.5\n"
              "1,\"one, two\",loss,nats,0,30,1920,3.75,0.3333333333333333\n");
    const std::string words = trace_summary(reader);
    EXPECT_NE(words.find("1,920"), std::string::npos) << words;
    EXPECT_NE(words.find("held_out_gate, loss"), std::string::npos) << words;
    const auto json = trace_summary_json(reader);
    EXPECT_EQ(json.at("trainings").at(0).at("step"), 30);
    EXPECT_EQ(json.at("trainings").at(0).at("quantities").size(), 2U);
}

TEST_F(Training, MistakesAreNamedInTheCallThatMakesThem) {
    TraceWriter writer(path);
    EXPECT_THROW(writer.put_points(1, {1, 1, 1}, {}), InputError);
    EXPECT_THROW(writer.end_training(1, true), InputError);
    EXPECT_THROW(writer.begin_training({}, {{"a b", "", "", "", ""}}), InputError);
    EXPECT_THROW(writer.begin_training({}, {{"a", "", "", "", ""}, {"a", "", "", "", ""}}), InputError);
    const std::int64_t id = writer.begin_training({}, sample_quantities());
    EXPECT_THROW(writer.put_points(id, {-1, 0, 0}, {{"loss", 0, 1}}), InputError);
    EXPECT_THROW(writer.put_points(id, {1, 0, 0}, {{"loss", max_training_places, 1}}), InputError);
    writer.put_points(id, {0, 0, 0}, {{"loss", 0, 1}}); // before the first step
    writer.finish();
    const TraceReader reader = TraceReader::open(path);
    EXPECT_EQ(reader.trainings().at(0).name, "training");
    EXPECT_EQ(reader.training_curves(id).at(0).step, std::vector<std::int64_t>{0});
}

TEST_F(Training, AbsurdValuesAreSentences) {
    testing::write_trace(path, [&](TraceWriter& writer) { write_sample_training(writer, "one"); });
    const std::string sound = read_file(path);
    const auto read = [&] {
        return testing::error_of([&] {
            const TraceReader reader = TraceReader::open(path);
            (void)reader.trainings();
            (void)reader.training_curves(1);
            (void)trace_summary(reader);
        });
    };
    EXPECT_EQ(read(), "");
    for (const char* change :
         {"UPDATE training SET step = -1", "UPDATE training SET id = -1", "UPDATE training SET tokens = -9",
          "UPDATE training SET max_steps = 99999999", "UPDATE training SET parameters = -1"}) {
        write_file_atomically(path, sound);
        testing::sql(path, change);
        EXPECT_TRUE(read().ends_with("[trace.damaged]")) << change << read();
    }
    for (const char* change :
         {"UPDATE training_point SET place = 1099511627776 WHERE step = 30 AND place = 1",
          "UPDATE training_point SET step = -30 WHERE step = 30", "UPDATE training_point SET tokens = -1"}) {
        write_file_atomically(path, sound);
        testing::sql(path, change);
        EXPECT_TRUE(read().ends_with("[trace.damaged]")) << change << read();
    }
    write_file_atomically(path, sound.substr(0, sound.size() / 2));
    EXPECT_TRUE(read().ends_with("[trace.damaged]")) << read();
}

} // namespace
} // namespace ponderscope
