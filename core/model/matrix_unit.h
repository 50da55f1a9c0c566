// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>

namespace ponderscope {

/// One thread's use of the processor's matrix unit (AMX): bfloat16 times bfloat16 with fp32 sums, through the
/// library, which compiles a kernel for every shape and thread: shapes should be few. An element's sum is
/// the same chain of additions in any shape, bit for bit.
class MatrixUnit {
public:
    /// Whether processor, system and library have one. ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 says no.
    static bool available();

    MatrixUnit() = default;
    ~MatrixUnit();
    MatrixUnit(const MatrixUnit&) = delete;
    MatrixUnit& operator=(const MatrixUnit&) = delete;

    /// A row-major matrix of bfloat16 as it lies.
    struct Rows {
        const void* data;
        std::int64_t rows;
        std::int64_t stride; ///< elements
    };
    /// c = rows · pairs, or c += rows · pairs when `add`. pairs: [depth / 2][columns] of elements (2k, 2k +
    /// 1) of a column, depth being even; c: [rows][columns].
    void multiply(const Rows& rows, std::int64_t depth, const std::uint32_t* pairs, std::int64_t columns,
                  float* c, bool add);

private:
    bool used_ = false;
};

/// Whether the library's product of small fp32 matrices sums up an element by the same chain of additions in
/// any shape: it does where it compiles it for the processor (AVX2 and later).
bool library_multiplies_fp32();
/// c += a · b; a: [rows][depth], b: [depth][columns], row-major with the given distances between rows; c:
/// [rows][columns].
void multiply_fp32(const float* a, std::int64_t a_stride, std::int64_t rows, std::int64_t depth,
                   const float* b, std::int64_t b_stride, std::int64_t columns, float* c);

} // namespace ponderscope
