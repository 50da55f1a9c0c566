// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/architecture_info.h"

namespace ponderscope {
namespace {

constexpr const char* layers_or_methods = "layers; passes of a method";
constexpr const char* oldest = "transformers 5.23, 4.57, 4.40";
constexpr const char* newest = "transformers 5.24, 5.8, 4.57";

} // namespace

const std::vector<ArchitectureInfo>& architecture_infos() {
    using A = Architecture;
    static const std::vector<ArchitectureInfo> infos{
        {A::gpt2, "GPT-2", layers_or_methods, oldest, ""},
        {A::gpt_neox, "Pythia, GPT-NeoX", layers_or_methods, oldest, ""},
        {A::llama, "Llama 1 to 3, SmolLM 2, TinyLlama", layers_or_methods, oldest, ""},
        {A::mistral, "Mistral 7B", layers_or_methods, newest, "`layer_types` says which layers slide"},
        {A::ministral, "Ministral 8B", layers_or_methods, newest, "`ministral3` and `mistral3` are refused"},
        {A::qwen2, "Qwen 2, 2.5", layers_or_methods, oldest, ""},
        {A::qwen3, "Qwen 3", layers_or_methods, oldest, ""},
        {A::qwen3_moe, "Qwen 3 mixtures (30B-A3B, 235B-A22B)", layers_or_methods, newest,
         "`--record experts` keeps what the routers choose"},
        {A::phi, "Phi-1, 1.5, 2", layers_or_methods, oldest, ""},
        {A::phi3, "Phi-3, Phi-3.5-mini, Phi-4, Phi-4-mini", layers_or_methods, newest,
         "longrope: beyond the original length the whole sequence turns by other angles"},
        {A::gemma2, "Gemma 2", layers_or_methods, newest, "softcaps on scores and logits"},
        {A::gemma3_text, "Gemma 3 270M, 1B", layers_or_methods, newest, "EmbeddingGemma is refused"},
        {A::gemma3, "Gemma 3 4B, 12B, 27B", layers_or_methods, newest, "the text part; images are not read"},
        {A::olmo2, "OLMo 2", layers_or_methods, newest, ""},
        {A::olmo3, "OLMo 3", layers_or_methods, newest,
         "a `rope_theta` at the top is for all layers; transformers 5.24 gives it to full layers only"},
        {A::olmoe, "OLMoE", layers_or_methods, newest, "`--record experts` keeps what the routers choose"},
        {A::smollm3, "SmolLM 3", layers_or_methods, newest, "every fourth layer does not rotate"},
        {A::nanochat, "nanochat", layers_or_methods, "transformers 5.24, 5.8",
         "files with further tensors (value embeddings) are refused"},
        {A::granite, "Granite 3", layers_or_methods, newest, ""},
        {A::gpt_oss, "GPT-OSS", layers_or_methods, "transformers 5.24",
         "MXFP4 files are refused: save the model dequantised; `--record experts`"},
        {A::opt, "OPT, Galactica", layers_or_methods, oldest, ""},
        {A::nanbeige, "Nanbeige", "passes of the stack", "the model's own code", ""},
        {A::ouro, "Ouro", "passes of the stack", "the authors' code", ""},
        {A::huginn_raven, "Huginn-0125 and retrofits", "passes of the core", "the authors' code",
         "a random start state (`--initial-state`)"},
        {A::parcae, "Parcae", "passes of the core", "the authors' code",
         "a random start state (`--initial-state`)"},
        {A::dory, "Dory (NVIDIA)", "loops of the middle layers", "transformers 5.24",
         "released, saved and class names of tensors; both spellings of the config"},
        {A::hrm_text, "HRM-Text", "cycles of both stacks", "transformers 5.24", "scores are causal; `--prefix N` lets the first tokens see each other"},
    };
    return infos;
}

std::string architectures_as_markdown() {
    std::string table =
        "| `model_type` | opens | a step is | exact against | notes |\n| --- | --- | --- | --- | --- |\n";
    for (const ArchitectureInfo& info : architecture_infos()) {
        table += "| `" + to_string(info.architecture) + "` | " + info.opens + " | " + info.steps + " | " +
                 info.exact_against + " | " + info.notes + " |\n";
    }
    return table;
}

} // namespace ponderscope
