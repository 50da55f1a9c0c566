// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/matrix_unit.h"

#include "core/model/kernels/tile.h"

#include <ATen/Context.h>
#include <ATen/native/CPUBlas.h>

#include <string_view>

#if !defined(CPUBLAS_BRGEMM_BF16BF16F32)
#error "This LibTorch has no batch-reduce product of bfloat16."
#endif

namespace ponderscope {

namespace cpublas = at::native::cpublas;

bool MatrixUnit::available() {
    // The library packs an operand in pairs just where there is a matrix unit.
    return kernels::tile_kernels().split_columns != nullptr && cpublas::could_pack(at::kBFloat16);
}

MatrixUnit::~MatrixUnit() {
    if (used_) {
        cpublas::brgemm_release();
    }
}

void MatrixUnit::multiply(const Rows& rows, std::int64_t depth, const std::uint32_t* pairs,
                          std::int64_t columns, float* c, bool add) {
    used_ = true;
    cpublas::brgemm(rows.rows, columns, depth, rows.stride, columns, columns, add,
                    static_cast<const at::BFloat16*>(rows.data), reinterpret_cast<const at::BFloat16*>(pairs),
                    c);
}

bool library_multiplies_fp32() {
    return kernels::tile_kernels().name != std::string_view("baseline") &&
           at::globalContext().userEnabledMkldnn();
}

void multiply_fp32(const float* a, std::int64_t a_stride, std::int64_t rows, std::int64_t depth,
                   const float* b, std::int64_t b_stride, std::int64_t columns, float* c) {
    cpublas::brgemm(rows, columns, depth, a_stride, b_stride, columns, true, a, b, c);
}

} // namespace ponderscope
