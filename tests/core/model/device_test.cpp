// SPDX-License-Identifier: GPL-3.0-or-later
// The CPU alone until a GPU is asked for; then LibTorch's CUDA half, which is loaded where no GPU is, too.
#include "core/model/device.h"

#include "core/kernels/cuda_library.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>

namespace ponderscope {
namespace {

bool is_mapped(const std::string& library) {
    std::ostringstream text;
    text << std::ifstream("/proc/self/maps").rdbuf();
    return text.str().find(library) != std::string::npos;
}

TEST(Device, TheCudaLibraryIsLoadedWhenItIsAskedFor) {
    const at::Tensor on_cpu = at::ones({4, 2, 8});
    Visibility visibility;
    visibility.causal = {{0, 4, 0, 0}};
    (void)attend(on_cpu, on_cpu, on_cpu, visibility, 1.0);
    EXPECT_EQ(device_from_string("cpu"), at::Device(at::kCPU));
    EXPECT_FALSE(is_mapped("libtorch_cuda.so"));
    EXPECT_FALSE(is_mapped("libponderscope_cuda.so"));

    std::string refused;
    try {
        EXPECT_TRUE(device_from_string("cuda").is_cuda());
    } catch (const InputError& error) {
        refused = error.what();
    }
#ifdef PONDERSCOPE_WITH_CUDA
    EXPECT_TRUE(is_mapped("libponderscope_cuda.so"));
    EXPECT_TRUE(is_mapped("libtorch_cuda.so"));
    const CudaKernels* cuda = cuda_kernels(at::Device(at::kCUDA, 0));
    ASSERT_NE(cuda, nullptr);
    EXPECT_NE(cuda->name_of, nullptr);
    EXPECT_FALSE(cuda->attend_fits(on_cpu)) << "what lies on the CPU is no business of it";
    EXPECT_NE(cuda->attend, nullptr);
    if (!refused.empty()) {
        EXPECT_NE(refused.find("driver"), std::string::npos) << refused;
    }
#else
    EXPECT_NE(refused.find("--cuda"), std::string::npos) << refused;
#endif
    EXPECT_EQ(cuda_kernels(on_cpu), nullptr);
}

#ifdef PONDERSCOPE_WITH_CUDA
TEST(DeviceDeathTest, TheCudaLibraryIsNotLoadedTooLate) {
    ::testing::FLAGS_gtest_death_test_style = "threadsafe"; // in a process that has not loaded it
    EXPECT_EXIT(
        {
            at::ones({1}).requires_grad_(true).sum().backward();
            try {
                load_cuda();
            } catch (const std::logic_error&) {
                std::_Exit(7);
            }
            std::_Exit(0);
        },
        ::testing::ExitedWithCode(7), "");
}
#endif

} // namespace
} // namespace ponderscope
