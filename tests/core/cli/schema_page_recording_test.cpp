// SPDX-License-Identifier: GPL-3.0-or-later
// The examples of the page on traces, over what the program records of models that halt.
#include "core/trace/reader.h"
#include "tests/core/cli/run_program.h"
#include "tests/core/trace/page_examples.h"
#include "tests/support/test_data.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <sstream>

namespace ponderscope {
namespace {

using testing::run_ponderscope;

TEST(SchemaPageOfARecording, EveryPythonExampleIsRightOfARunThatHalts) {
    const testing::TemporaryFolder folder;
    const std::filesystem::path tree = testing::source_tree();
    const std::filesystem::path trace = folder / "halting.ponder";
    for (const char* model : {"adaponderlm-neox-1m", "cabinet/adaptive_latent_cot-llama"}) {
        const auto recorded = run_ponderscope({"record", (tree / "sample_models" / model).string(), "--text",
                                               (tree / "sample_models/texts/passage.txt").string(),
                                               "--attention", "0:0", "-o", trace.string()});
        ASSERT_EQ(recorded.code, 0) << recorded.err;
    }
    // What the mean over the tokens that got there is, from the rows themselves.
    const TraceReader reader = TraceReader::open(trace);
    const RunInfo run = reader.runs().front();
    const TokenColumns tokens = reader.tokens(run.id, 0);
    const SignalChunk chunk = *reader.signal(run.id, 0, signal::nll);
    const std::vector<float> nll = to_floats(chunk);
    const auto steps = static_cast<std::size_t>(chunk.shape[1]);
    std::vector<double> means;
    for (std::size_t k = 0; k < steps; ++k) {
        double sum = 0;
        int count = 0;
        for (std::size_t t = 0; t + 1 < tokens.size(); ++t) {
            if (static_cast<std::size_t>(tokens.steps[t]) >= k) {
                sum += nll[t * steps + k];
                ++count;
            }
        }
        ASSERT_GT(count, 0);
        means.push_back(sum / count);
        ASSERT_TRUE(k + 1 < steps || static_cast<std::size_t>(count) + 1 < tokens.size())
            << "some token must halt";
    }
    if (!testing::python_has("sqlite3")) {
        GTEST_SKIP() << "python3 with its sqlite3 module is not installed";
    }
    int of_steps = 0;
    for (const testing::PythonExample& example : testing::run_python_examples(trace)) {
        EXPECT_EQ(example.code, 0) << example.program << example.output;
        EXPECT_FALSE(example.output.empty()) << example.program;
        // "tokens 0 to N: mean NLL after step k: X".
        std::istringstream lines(example.output);
        for (std::string line; std::getline(lines, line);) {
            std::size_t first = 0;
            std::size_t end = 0;
            std::size_t k = 0;
            double mean = 0;
            if (std::sscanf(line.c_str(), "tokens %zu to %zu: mean NLL after step %zu: %lf", &first, &end, &k,
                            &mean) == 4) {
                ASSERT_EQ(end, tokens.size()) << "one chunk";
                EXPECT_NEAR(mean, means.at(k), 1e-4) << line;
                ++of_steps;
            }
        }
    }
    EXPECT_GE(of_steps, static_cast<int>(steps));
}

} // namespace
} // namespace ponderscope
