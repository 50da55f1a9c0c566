// SPDX-License-Identifier: GPL-3.0-or-later
// What goes to flash attention in half precision, on a device that has it: sequences whose lengths the device
// alone knows, but none with a bias of rows.
#include "core/kernels/attend.h"
#include "core/kernels/cuda_library.h"
#include "core/model/device.h"
#include "tests/support/poison.h"
#include "tests/support/test_data.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace ponderscope {
namespace {

at::Device tests_device() {
    return device_from_string(testing::test_accelerator());
}

/// Sequences of these many rows each, all of them queries.
struct Case {
    at::Tensor q, k, v, bias;
    Visibility blocks;

    /// The same on the device of the tests, seeing rows by \p seen.
    [[nodiscard]] at::Tensor attended(const Visibility& seen, double scale) const {
        return attend(q.to(tests_device()), k.to(tests_device()), v.to(tests_device()), seen, scale,
                      bias.defined() ? bias.to(tests_device()) : at::Tensor());
    }
    /// The blocks as ranges that the device alone knows.
    [[nodiscard]] Visibility as_ranges() const {
        Visibility seen;
        seen.window = blocks.window;
        seen.ranges = visible_ranges({blocks.causal, {}, {}, 0, 0}, q.size(0), at::kCPU)
                          .to(at::kInt)
                          .to(tests_device());
        return seen;
    }
};

Case make_case(const std::vector<std::int64_t>& lengths, std::int64_t heads, std::int64_t kv_heads,
               std::int64_t size, at::ScalarType type) {
    at::Generator generator = at::detail::createCPUGenerator(11);
    Case made;
    std::int64_t rows = 0;
    for (const std::int64_t length : lengths) {
        made.blocks.causal.push_back({rows, length, rows, 0});
        rows += length;
    }
    const auto normal = [&](std::int64_t count) {
        return at::normal(0.0, 1.0, {rows, count, size}, generator).to(type);
    };
    made.q = normal(heads);
    made.k = normal(kv_heads);
    made.v = normal(kv_heads);
    // log w: 0 of every first slot, down to that of the threshold 1e-4.
    made.bias = at::rand({rows}, generator).mul(-9.21);
    made.bias.narrow(0, 0, 1).fill_(0);
    return made;
}

/// Beyond what rounding the result and each weight explains.
double excess(const at::Tensor& got, const Case& of, double scale, at::ScalarType type) {
    const auto from = [&](const at::Tensor& v) {
        return attend_plain(of.q.to(at::kDouble), of.k.to(at::kDouble), v, of.blocks, scale, of.bias);
    };
    const auto v = of.v.to(at::kDouble);
    const auto expected = from(v);
    const auto allowed = expected.abs() + from(v.abs());
    const double unit = type == at::kHalf ? 0x1p-11 : 0x1p-8;
    return ((got.cpu().to(at::kDouble) - expected).abs() - allowed * unit)
        .nan_to_num(1e9)
        .max()
        .item<double>();
}

class AttendOnADevice : public ::testing::Test {
protected:
    void SetUp() override {
        ASSERT_TRUE(
            at::empty({3}, at::TensorOptions(at::kHalf).device(tests_device())).isnan().all().item<bool>());
    }
    testing::Poison poison_;
};

TEST_F(AttendOnADevice, RunsWithoutBiasGoToFlashAttention) {
    const CudaKernels* kernels = cuda_kernels(tests_device());
    if (kernels != nullptr && kernels->attend == nullptr) {
        kernels = nullptr; // that compute
    }
    const std::vector<std::int64_t> lengths{40, 0, 1, 17};
    for (const auto type : {at::kBFloat16, at::kHalf}) {
        for (const std::int64_t size : {8, 64, 80, 248, 256, 12}) {
            for (const std::int64_t window : {0, 5}) {
                SCOPED_TRACE(std::to_string(size) + " elements of " + c10::toString(type) + ", window " +
                             std::to_string(window));
                Case given = make_case(lengths, 4, 2, size, type);
                given.blocks.window = window;
                const double scale = 1 / std::sqrt(static_cast<double>(size));
                Visibility runs = given.as_ranges();
                runs.runs = at::tensor({0, 40, 40, 41, 58}, at::kInt).to(tests_device());
                runs.longest_run = 58;
                Case plain = given;
                plain.bias = at::Tensor();
                for (const Case& one : {plain, given}) {
                    if (kernels != nullptr) {
                        const bool biased = one.bias.defined();
                        EXPECT_EQ(kernels->flash_fits(one.q.to(tests_device()), runs,
                                                      biased ? one.bias.to(tests_device()) : at::Tensor()),
                                  size % 8 == 0 && !biased);
                    }
                    EXPECT_LE(excess(one.attended(runs, scale), one, scale, type), 2e-5);
                }
                given.blocks.causal.erase(given.blocks.causal.begin() + 1); // no queries
                EXPECT_LE(excess(given.attended(given.blocks, scale), given, scale, type), 2e-5);
            }
        }
    }
}

TEST_F(AttendOnADevice, SequencesOfOneLengthGoToTheLibrary) {
    for (const auto type : {at::kBFloat16, at::kHalf}) {
        for (const std::int64_t kv_heads : {2, 4}) {
            Case given = make_case({33, 33, 33}, 4, kv_heads, 64, type);
            given.bias = at::Tensor();
            EXPECT_LE(excess(given.attended(given.blocks, 0.125), given, 0.125, type), 2e-5)
                << kv_heads << " of " << c10::toString(type);
        }
    }
}

TEST_F(AttendOnADevice, ARowFarBelowIsSeenByNobody) {
    for (const auto type : {at::kBFloat16, at::kHalf}) {
        Case given = make_case({9}, 2, 2, 16, type);
        for (const double far : {-1e3, -1e9, -HUGE_VAL}) {
            given.bias.fill_(far);
            given.bias[0] = 0;
            const at::Tensor got = given.attended(given.blocks, 0.25).cpu();
            EXPECT_TRUE(at::equal(got, given.v.narrow(0, 0, 1).expand_as(got))) << far;
        }
    }
}

TEST_F(AttendOnADevice, ManyQueriesOverRanges) {
    for (const auto type : {at::kBFloat16, at::kHalf}) {
        for (const std::int64_t size : {12, 64}) {
            for (const std::int64_t window : {0, 40}) {
                Case given = make_case({150, 1, 130}, 4, 2, size, type);
                given.blocks.window = window;
                const double scale = 1 / std::sqrt(static_cast<double>(size));
                EXPECT_LE(excess(given.attended(given.as_ranges(), scale), given, scale, type), 1e-6)
                    << size << " elements of " << c10::toString(type) << ", window " << window;
            }
        }
    }
}

} // namespace
} // namespace ponderscope
