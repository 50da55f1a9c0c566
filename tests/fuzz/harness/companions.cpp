// SPDX-License-Identifier: GPL-3.0-or-later
// The files beside config.json by which Think-at-Hard says what it is, one of them damaged.
#include "core/checkpoint/model_config.h"
#include "tests/fuzz/harness/harness.h"

#include <cmath>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace ponderscope;
    namespace fs = std::filesystem;
    static const fs::path whole = testing::source_tree() / "tests/golden/tah_qwen3_2iter_tied";
    static const fs::path checkpoint = [] {
        fs::copy(whole, fuzz::folder() / "tah", fs::copy_options::recursive);
        return fuzz::folder() / "tah";
    }();
    for (const char* const name : {"tah_config.json", "lora/adapter_config.json"}) {
        fuzz::put(fs::path("tah") / name, fuzz::text_of(data, size));
        fuzz::ask(
            [] {
                const ModelConfig config = read_model_config(checkpoint / "config.json");
                fuzz::require(config.ponder.method == MethodKind::tah, "the method");
                fuzz::require(std::isfinite(config.ponder.threshold), "threshold");
                fuzz::require(config.ponder.top_k >= 1 && config.ponder.top_k <= config.vocab_size, "top_k");
                fuzz::require(config.ponder.max_steps <= 4096, "max_steps");
                fuzz::require(std::isfinite(config.tah.lora_alpha) && config.tah.lora_rank >= 1, "adapters");
                for (const std::int64_t layer : config.tah.gate_layers) {
                    fuzz::require(layer >= 0 && layer <= config.layers, "a layer of the gate");
                }
                fuzz::require(!config.tah.gate_widths.empty(), "the gate's widths");
            },
            checkpoint);
        fs::copy_file(whole / name, checkpoint / name, fs::copy_options::overwrite_existing);
    }
    return 0;
}
