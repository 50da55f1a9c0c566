// SPDX-License-Identifier: GPL-3.0-or-later
// What runs on a GPU alone, as the kernels of the tests' own device.
#include "core/kernels/cuda/kernels.h"
#include "tests/support/host_device/host_device.h"
#include "tests/support/host_device/host_graph.h"

#include <ATen/ATen.h>
#include <torch/library.h>

#include <cstdlib>
#include <optional>
#include <tuple>

namespace ponderscope::testing {

namespace {

using Flash = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

/// LibTorch's flash attention over sequences of any lengths, from its definition: sequence b has the queries
/// [first_query[b], first_query[b + 1]) and the rows [first_row[b], first_row[b] + used[b]), without `used`
/// those up to the next one's; the last query sees the last row, and each of them `left` rows before its own.
Flash flash(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
            const std::optional<at::Tensor>& first_query, const std::optional<at::Tensor>& first_row,
            std::int64_t most_queries, std::int64_t most_rows, double dropout, bool is_causal, bool,
            std::optional<double> scale, std::optional<std::int64_t> left, std::optional<std::int64_t> right,
            const std::optional<at::Tensor>& used, const std::optional<at::Tensor>& slopes) {
    TORCH_CHECK(is_causal && dropout == 0 && !slopes && right.value_or(0) == 0,
                "not what is asked of it here");
    TORCH_CHECK(q.scalar_type() == at::kHalf || q.scalar_type() == at::kBFloat16, "flash: dtype");
    TORCH_CHECK(q.size(2) % 8 == 0 && q.size(2) <= 256, "flash: head size");
    TORCH_CHECK(q.stride(2) == 1 && k.stride(2) == 1 && v.stride(2) == 1, "flash: strides");
    for (const auto& numbers : {first_query, first_row, used}) {
        TORCH_CHECK(!numbers || (numbers->scalar_type() == at::kInt && numbers->is_contiguous() &&
                                 numbers->device() == q.device()),
                    "flash: offsets");
    }
    const HostWork before = take_host_work(); // one kernel of the library
    const at::Tensor queries = first_query->cpu(), rows = first_row->cpu(),
                     rows_used = used ? used->cpu() : rows.diff();
    TORCH_CHECK(queries.size(0) == rows.size(0) && rows_used.size(0) + 1 == rows.size(0), "flash: sequences");
    at::Tensor out = at::empty(q.sizes(), q.options());
    for (std::int64_t b = 0; b < rows_used.size(0); ++b) {
        const auto number = [b](const at::Tensor& of, std::int64_t next = 0) -> std::int64_t {
            return of.const_data_ptr<std::int32_t>()[b + next];
        };
        const std::int64_t length = number(queries, 1) - number(queries);
        TORCH_CHECK(length <= most_queries && number(rows_used) <= most_rows, "flash: longest sequence");
        Visibility visibility;
        visibility.causal = {{0, length, 0, number(rows_used) - length}};
        visibility.window = left ? *left + 1 : 0;
        out.narrow(0, number(queries), length)
            .copy_(attend_plain(q.narrow(0, number(queries), length),
                                k.narrow(0, number(rows), number(rows_used)),
                                v.narrow(0, number(rows), number(rows_used)), visibility, scale.value()));
    }
    (void)take_host_work();
    add_host_work(
        {before.kernels + 1, before.bytes + static_cast<std::int64_t>(2 * q.nbytes() + 2 * k.nbytes())});
    return {out, {}, {}, {}, {}};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
    library.impl("_flash_attention_forward", flash);
}

[[maybe_unused]] const bool kernels_registered = [] {
    static CudaKernels kernels;
    kernels.capture = HostGraph::capture;
    const bool all = std::getenv("PONDERSCOPE_TEST_KERNELS") != nullptr;
    if (all) {
        add_kernels(kernels);
        show_host_memory();
    }
    use_kernels(kernels);
    return all;
}();

} // namespace

} // namespace ponderscope::testing
