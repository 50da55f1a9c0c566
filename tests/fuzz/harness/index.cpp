// SPDX-License-Identifier: GPL-3.0-or-later
// model.safetensors.index.json beside a shard that is sound.
#include "core/checkpoint/checkpoint.h"
#include "tests/fuzz/harness/harness.h"

#include <array>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace ponderscope;
    static const bool shard = [] {
        static const std::array<float, 6> values{1, 2, 3, 4, 5, 6};
        write_safetensors(fuzz::folder() / "model-00001-of-00001.safetensors",
                          {{"a", DType::f32, {2, 3}, std::as_bytes(std::span(values))},
                           {"b", DType::f32, {6}, std::as_bytes(std::span(values))}});
        return true;
    }();
    fuzz::require(shard, "no shard");
    fuzz::put("model.safetensors.index.json", fuzz::text_of(data, size));
    fuzz::ask(
        [] {
            const Weights weights = Weights::open(fuzz::folder());
            const auto inside = std::filesystem::weakly_canonical(fuzz::folder());
            for (const auto& file : weights.files()) {
                fuzz::require(std::filesystem::weakly_canonical(file).parent_path() == inside, file.string());
            }
            for (const std::string& name : weights.names()) {
                fuzz::require(weights.find(name) != nullptr, name);
            }
        },
        fuzz::folder());
    return 0;
}
