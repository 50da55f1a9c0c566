// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/safetensors.h"
#include "tests/fuzz/harness/harness.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace ponderscope;
    const auto path = fuzz::put("model.safetensors", fuzz::text_of(data, size));
    fuzz::ask(
        [&] {
            const SafetensorsFile file = SafetensorsFile::open(path);
            std::uint64_t sum = 0;
            std::uint64_t bytes = 0;
            for (const TensorView& view : file.tensors()) {
                std::uint64_t due = size_of(view.dtype);
                for (const std::int64_t length : view.shape) {
                    fuzz::require(length >= 0, "a length is negative");
                    due *= static_cast<std::uint64_t>(length);
                }
                fuzz::require(view.bytes.size() == due && file.find(view.name) == &view, "a tensor lies");
                for (const std::byte byte : view.bytes) {
                    sum += static_cast<unsigned>(byte); // touches every byte that the view claims
                }
                bytes += due;
            }
            fuzz::require(bytes <= size && sum <= 255 * bytes, "the tensors are larger than the file");
            std::uint64_t header = 8;
            for (std::size_t i = 0; i < 8; ++i) {
                header += std::uint64_t{data[i]} << (8 * i);
            }
            fuzz::require(header + bytes == size || !file.unreadable().empty(), "bytes that are no tensor's");
        },
        path);
    return 0;
}
