// SPDX-License-Identifier: GPL-3.0-or-later
// What a GPU would be asked to do, counted on the tests' own device: a number of this table may only fall.
#include "tests/core/ponder/every_model.h"
#include "tests/support/host_device/host_device.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace ponderscope {
namespace {

using namespace testing;

HostWork less(const HostWork& all, const HostWork& part, std::int64_t times = 1) {
    return {all.kernels - times * part.kernels, all.bytes - times * part.bytes};
}

/// In bf16, of two texts of 24 and 12 tokens, or (\p decodes) of the next token of both.
HostWork work_of(nlohmann::json config, std::int64_t layers, bool decodes) {
    config["num_hidden_layers"] = layers;
    const TemporaryFolder folder;
    const Engine engine = Engine::load(make_checkpoint(folder.path(), config),
                                       {.device = "hostgpu", .precision = Precision::bfloat16});
    const std::vector<std::vector<std::int32_t>> texts{random_ids(24, vocabulary, 71),
                                                       random_ids(12, vocabulary, 72)};
    const std::vector<Window> windows{whole(texts[0]), whole(texts[1])};
    const auto run = [&](std::int64_t tokens) {
        if (decodes) {
            (void)engine.generate(texts, {.max_new_tokens = tokens, .repeat_steps = false});
        } else {
            (void)engine.score(windows, RecordLevel::nll);
        }
        return take_host_work();
    };
    (void)run(2); // rotations travel once
    const HostWork before = decodes ? run(3) : HostWork();
    return less(run(4), before);
}

TEST(Work, KernelsAndBytesOfAStep) {
    if (std::getenv("PONDERSCOPE_TEST_KERNELS") == nullptr) {
        GTEST_SKIP() << "counted with the kernels of a GPU";
    }
    struct Row {
        std::string name;
        nlohmann::json config;
        bool decodes;
        HostWork block, rest; ///< of one block, and of all else
    };
    nlohmann::json llama = tiny_llama();
    llama["head_dim"] = 16; // the kernels take whole chunks
    const nlohmann::json ponderlm = with_ponderlm(tiny_gpt_neox(), 3);
    const std::vector<Row> rows{
        {"gpt_neox, scoring", tiny_gpt_neox(), false, {38, 220720}, {29, 211724}},
        {"gpt_neox, decoding", tiny_gpt_neox(), true, {40, 54272}, {36, 35392}},
        {"llama, scoring", llama, false, {52, 509728}, {35, 233292}},
        {"llama, decoding", llama, true, {54, 117536}, {42, 30984}},
        {"ponderlm, scoring", ponderlm, false, {152, 882880}, {97, 1039220}},
        {"ponderlm, decoding", ponderlm, true, {160, 373760}, {122, 193540}},
    };
    for (const Row& row : rows) {
        SCOPED_TRACE(row.name);
        const HostWork two = work_of(row.config, 2, row.decodes);
        const HostWork block = less(work_of(row.config, 3, row.decodes), two);
        const HostWork rest = less(two, block, 2);
        EXPECT_LE(block.kernels, row.block.kernels);
        EXPECT_LE(block.bytes, row.block.bytes);
        EXPECT_LE(rest.kernels, row.rest.kernels);
        EXPECT_LE(rest.bytes, row.rest.bytes);
    }
}

} // namespace
} // namespace ponderscope
