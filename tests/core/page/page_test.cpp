// SPDX-License-Identifier: GPL-3.0-or-later
// What the page holds; tests/app/python looks at it in a browser.
#include "core/page/page.h"

#include "core/base/error.h"
#include "core/stats/paired.h"
#include "tests/support/sample_trace.h"
#include "tests/support/test_data.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <cstring>

namespace ponderscope {
namespace {

using testing::SampleTrace;
using testing::TemporaryFolder;

/// Head and arrays, as the page's script reads them.
struct Packed {
    explicit Packed(const std::string& bytes) {
        std::uint32_t length = 0;
        std::memcpy(&length, bytes.data(), sizeof length);
        head = nlohmann::json::parse(bytes.substr(4, length));
        data = bytes.substr(4 + length);
    }
    [[nodiscard]] std::vector<double> array(const std::string& name) const {
        const nlohmann::json& entry = head["arrays"].at(name);
        const std::string type = entry["type"];
        const std::size_t width = type == "u8" ? 1 : type == "u32" ? 4 : 2;
        std::vector<double> values;
        for (std::size_t i = 0; i < entry["count"].get<std::size_t>(); ++i) {
            std::uint32_t value = 0;
            std::memcpy(&value, data.data() + entry["offset"].get<std::size_t>() + i * width, width);
            const bool real = type == "q16";
            values.push_back(!real ? value
                             : value == 65535
                                 ? std::nan("")
                                 : entry["low"].get<double>() + value * entry["step"].get<double>());
        }
        return values;
    }
    nlohmann::json head;
    std::string data;
};

std::string sample(const TemporaryFolder& folder, const SampleTrace& what = {}) {
    const std::string path = (folder / "sample.ponder").string();
    testing::write_sample_trace(path, what);
    return path;
}

std::string bytes_under(const std::string& page, const std::string& before, const std::string& after) {
    const std::size_t begin = page.find(before) + before.size();
    return page.substr(begin, page.find(after, begin) - begin);
}

TEST(Page, HoldsWhatTheTraceHolds) {
    const TemporaryFolder folder;
    const TraceReader trace = TraceReader::open(sample(folder));
    const std::vector<RunInfo> runs = choose_page_runs(trace, {});
    ASSERT_EQ(runs.size(), 2U);
    PageOptions options;
    options.sequences = {2, 0};
    const Packed packed(packed_page(trace, runs, options));
    const TokenColumns tokens = trace.tokens(runs[1].id, 2);
    const TokenColumns first = trace.tokens(runs[0].id, 2);
    const std::vector<double> nll = packed.array("1.nll");
    const std::vector<double> steps = packed.array("0.steps");
    const double step = packed.head["arrays"]["1.nll"]["step"];
    ASSERT_EQ(nll.size(), tokens.size() + trace.tokens(runs[1].id, 0).size());
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        ASSERT_EQ(std::isnan(nll[i]), std::isnan(tokens.nll[i])) << i;
        if (!std::isnan(nll[i])) {
            ASSERT_NEAR(nll[i], tokens.nll[i], 0.51 * step) << i;
        }
        ASSERT_EQ(steps[i], first.steps[i]) << i;
    }
    const std::vector<double> text = packed.array("text");
    EXPECT_EQ(std::string(text.begin(), text.end()), trace.text(runs[0].id, 2) + trace.text(runs[0].id, 0));
    const PairedComparison pair = compare_paired(pair_runs(trace, runs[0], trace, runs[1]));
    EXPECT_EQ(packed.head["comparison"]["difference"][0].get<double>(), pair.difference.value);
    EXPECT_EQ(packed.head["comparison"]["difference"][1].get<double>(), pair.difference.low);
    EXPECT_EQ(packed.head["comparison"]["bits_per_byte_difference"][0].get<double>(),
              pair.bits_per_byte_difference.value);
    EXPECT_EQ(packed.head["comparison"]["bits_per_byte_difference"][2].get<double>(),
              pair.bits_per_byte_difference.high);
    EXPECT_EQ(packed.head["runs"][1]["scored_tokens"], runs[1].scored_tokens);
}

TEST(Page, CandidatesAndSignalsOfStepsComeFromTheirSignals) {
    const TemporaryFolder folder;
    const TraceReader trace = TraceReader::open(sample(folder, {.sequences = 1, .tokens = 200}));
    const std::vector<RunInfo> runs = choose_page_runs(trace, {trace.runs()[0].name});
    const Packed packed(packed_page(trace, runs));
    const auto chunk = trace.signal(runs[0].id, 0, signal::candidate_ids);
    ASSERT_TRUE(chunk);
    const std::vector<std::int64_t> ids = to_integers(*chunk);
    const nlohmann::json& about = packed.head["runs"][0]["candidates"];
    const auto count = about["count"].get<std::size_t>();
    const auto width = static_cast<std::size_t>(chunk->shape[2]);
    const std::vector<double> places = packed.array("0.candidate");
    const std::vector<double> lengths = packed.array("word_length");
    const std::vector<double> words = packed.array("word_bytes");
    const std::vector<double> begins = [&] {
        std::vector<double> sums{0};
        for (const double length : lengths) {
            sums.push_back(sums.back() + length);
        }
        return sums;
    }();
    for (std::size_t row = 0; row < ids.size() / width; ++row) {
        const std::int64_t id = ids[row * width];
        const auto place = static_cast<std::size_t>(places[row * count]);
        const std::string word(words.begin() + static_cast<std::ptrdiff_t>(begins[place]),
                               words.begin() + static_cast<std::ptrdiff_t>(begins[place + 1]));
        if (id >= 0) {
            const std::string bytes = trace.token_bytes(runs[0].id, static_cast<std::int32_t>(id));
            ASSERT_EQ(word, bytes.empty() ? "[" + std::to_string(id) + "]" : bytes) << row;
        }
    }
    const std::vector<double> packed_nll = packed.array("0.nll_by_step");
    const std::vector<double> nll = to_doubles(*trace.signal(runs[0].id, 0, signal::nll));
    ASSERT_EQ(packed_nll.size(), nll.size());
    for (std::size_t i = 0; i < nll.size(); ++i) {
        EXPECT_TRUE(std::abs(packed_nll[i] - nll[i]) < 1e-3 ||
                    (std::isnan(packed_nll[i]) && std::isnan(nll[i])))
            << i;
    }
}

TEST(Page, NothingOfATraceStandsInItAsMarkup) {
    const TemporaryFolder folder;
    SampleTrace what;
    what.texts = {
        "</script><script>alert(1)</script> and more of it. <img src=x onerror=alert(2)> @SCRIPT@ @PAYLOAD@"};
    const TraceReader trace = TraceReader::open(sample(folder, what));
    PageOptions options;
    options.title = "</title><script>alert(3)</script>";
    const std::string page = make_page(trace, choose_page_runs(trace, {}), options);
    EXPECT_EQ(page.find("alert("), std::string::npos);
    const std::string payload = bytes_under(page, "id=\"data\">", "</script>");
    EXPECT_EQ(payload.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="),
              std::string::npos);
    EXPECT_EQ(page.find("@PAYLOAD@"), std::string::npos);
    EXPECT_EQ(make_page(trace, choose_page_runs(trace, {}), options), page) << "the same bytes every time";
}

TEST(Page, ShowsNoMoreThanItIsAllowed) {
    const TemporaryFolder folder;
    const TraceReader trace = TraceReader::open(sample(folder, {.sequences = 3, .tokens = 200}));
    PageOptions options;
    options.max_tokens = 250;
    const Packed packed(packed_page(trace, choose_page_runs(trace, {}), options));
    ASSERT_EQ(packed.head["sequences"].size(), 2U);
    EXPECT_EQ(packed.head["sequences"][1]["tokens"], 50);
    EXPECT_EQ(packed.head["runs"][1]["reached"], nlohmann::json({200, 50}));
    EXPECT_EQ(packed.head["notice_ids"][0], "page.cut");
}

TEST(Page, SaysWhatItCannotShow) {
    const TemporaryFolder folder;
    const TraceReader trace = TraceReader::open(sample(folder, {.sequences = 1, .tokens = 100}));
    const std::vector<RunInfo> runs = choose_page_runs(trace, {});
    EXPECT_THROW((void)choose_page_runs(trace, {"nobody"}), InputError);
    EXPECT_THROW((void)choose_page_runs(trace, {runs[0].name, runs[1].name, runs[0].name}), InputError);
    PageOptions options;
    options.sequences = {1};
    EXPECT_THROW((void)make_page(trace, runs, options), InputError);
    options.sequences = {};
    options.max_tokens = 0;
    EXPECT_THROW((void)make_page(trace, runs, options), InputError);
    std::stop_source stop;
    stop.request_stop();
    options.max_tokens = 100;
    options.bootstrap.stop = stop.get_token();
    EXPECT_THROW((void)make_page(trace, runs, options), Cancelled);
}

} // namespace
} // namespace ponderscope
