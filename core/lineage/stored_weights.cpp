// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/lineage/stored_weights.h"

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/utf8.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <unordered_map>
#include <utility>

namespace ponderscope {
namespace {

using Matrix = StoredWeights::Matrix;

/// The tensor names of a backbone's matrices.
struct Names {
    const char* stem; ///< a prefix that some files omit; may be ""
    const char* block;
    const char* embedding;
    const char* fused; ///< query, key and value in one tensor; nullptr: separate tensors
    /// In the order of Matrix; nullptr: no such matrix.
    const char* matrices[7];
    bool transposed = false; ///< stored [in, out]
};

constexpr Names gpt2_names{"transformer.",
                           "h.",
                           "wte.weight",
                           "attn.c_attn",
                           {nullptr, nullptr, nullptr, "attn.c_proj", "mlp.c_fc", nullptr, "mlp.c_proj"},
                           true};
constexpr Names gpt_neox_names{
    "gpt_neox.",
    "layers.",
    "embed_in.weight",
    "attention.query_key_value",
    {nullptr, nullptr, nullptr, "attention.dense", "mlp.dense_h_to_4h", nullptr, "mlp.dense_4h_to_h"}};
constexpr Names opt_names{"model.",
                          "decoder.layers.",
                          "decoder.embed_tokens.weight",
                          nullptr,
                          {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.out_proj",
                           "fc1", nullptr, "fc2"}};
constexpr Names phi_names{"model.",
                          "layers.",
                          "embed_tokens.weight",
                          nullptr,
                          {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.dense",
                           "mlp.fc1", nullptr, "mlp.fc2"}};
constexpr Names llama_names{"model.",
                            "layers.",
                            "embed_tokens.weight",
                            nullptr,
                            {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
                             "mlp.up_proj", "mlp.gate_proj", "mlp.down_proj"}};

const Names& names_of(Architecture architecture) {
    switch (architecture) {
    case Architecture::gpt2:
        return gpt2_names;
    case Architecture::gpt_neox:
        return gpt_neox_names;
    case Architecture::opt:
        return opt_names;
    case Architecture::phi:
        return phi_names;
    default:
        return llama_names; // and those of its relatives
    }
}

at::ScalarType scalar_type(const Checkpoint& checkpoint, const TensorView& view) {
    switch (view.dtype) {
    case DType::f64:
        return at::kDouble;
    case DType::f32:
        return at::kFloat;
    case DType::f16:
        return at::kHalf;
    case DType::bf16:
        return at::kBFloat16;
    default:
        throw InputError(ErrorId::checkpoint_tensor, checkpoint.folder,
                         "F32, F16, BF16 or F64 values in tensor " + printable(view.name),
                         std::string(name_of(view.dtype)), "convert the weights to one of these types");
    }
}

/// Copies whole rows, then converts them, because mapped elements may be unaligned.
at::Tensor read_rows(const Checkpoint& checkpoint, const TensorView& view,
                     std::span<const std::int64_t> rows) {
    const std::int64_t columns = view.shape[1];
    at::Tensor stored = at::empty({static_cast<std::int64_t>(rows.size()), columns},
                                  at::TensorOptions(scalar_type(checkpoint, view)));
    const std::size_t row_bytes = static_cast<std::size_t>(columns) * size_of(view.dtype);
    auto* to = static_cast<std::byte*>(stored.data_ptr());
    for (const std::int64_t row : rows) {
        std::memcpy(to, view.bytes.data() + static_cast<std::size_t>(row) * row_bytes, row_bytes);
        to += row_bytes;
    }
    at::Tensor values = stored.to(at::kFloat);
    if (!at::isfinite(values).all().item<bool>()) {
        throw InputError(ErrorId::checkpoint_numbers, checkpoint.folder,
                         "finite numbers in tensor " + printable(view.name), "NaN or infinity",
                         "get the checkpoint again, or one from before it diverged");
    }
    return values;
}

[[noreturn]] void wrong_shape(const Checkpoint& checkpoint, const TensorView& view,
                              const std::string& expected) {
    throw InputError(ErrorId::checkpoint_tensor, checkpoint.folder,
                     "the shape " + expected + " for tensor " + printable(view.name), shape_text(view.shape),
                     "config.json belongs to other weights: get both from one source");
}

using Vocabulary = std::unordered_map<std::string, std::int64_t>;

/// Reads only the vocabulary, which also works for tokenizers that we cannot run.
Vocabulary read_vocabulary(const std::filesystem::path& file, std::int64_t rows) {
    const nlohmann::json document = read_json_file(file, {.python = true});
    const JsonObject root(document, file);
    const bool whole = file.filename() == "vocab.json"; // the whole file is the vocabulary
    const JsonObject model = whole ? root : root.required_object("model");
    Vocabulary vocabulary;
    const nlohmann::json* table = whole ? &document : model.find("vocab");
    if (table != nullptr && table->is_object()) {
        for (auto entry = table->begin(); entry != table->end(); ++entry) {
            if (!entry->is_number_integer()) {
                model.fail(whole ? entry.key() : "vocab", "a whole number for each token");
            }
            if (const auto id = entry->get<std::int64_t>(); id >= 0 && id < rows) {
                vocabulary.emplace(entry.key(), id);
            }
        }
    } else if (table != nullptr && table->is_array()) { // Unigram: [token, score] by id
        for (std::size_t id = 0; id < table->size() && static_cast<std::int64_t>(id) < rows; ++id) {
            const nlohmann::json& entry = (*table)[id];
            if (!entry.is_array() || entry.empty() || !entry[0].is_string()) {
                model.fail("vocab", "pairs of a token and its score");
            }
            vocabulary.emplace(entry[0].get<std::string>(), static_cast<std::int64_t>(id));
        }
    } else {
        model.fail("vocab", "a table of tokens", "take the tokenizer file from its source again");
    }
    return vocabulary;
}

} // namespace

StoredWeights::StoredWeights(const Checkpoint& checkpoint)
    : checkpoint_(checkpoint), width_(checkpoint.config.hidden_size) {
    const Names& names = names_of(checkpoint.config.architecture);
    embedding_ = find(names.embedding);
    if (embedding_ == nullptr) {
        throw InputError(ErrorId::checkpoint_tensor, checkpoint.folder,
                         std::string("an input embedding ") + names.stem + names.embedding, "none",
                         "config.json belongs to other weights: get both from one source");
    }
    if (embedding_->shape.size() != 2 || embedding_->shape[0] < 1 ||
        embedding_->shape[1] != checkpoint.config.embed_dim) {
        wrong_shape(checkpoint, *embedding_,
                    shape_text({checkpoint.config.vocab_size, checkpoint.config.embed_dim}));
    }
    for (std::int64_t layer = 0; layer < checkpoint.config.layers; ++layer) {
        const char* query = names.fused != nullptr ? names.fused : names.matrices[0];
        const char* key = names.fused != nullptr ? names.fused : names.matrices[1];
        if (find_in_layer(layer, query) != nullptr && find_in_layer(layer, key) != nullptr) {
            layers_.push_back(layer);
        }
    }
    if (layers_.empty()) {
        throw InputError(ErrorId::checkpoint_tensor, checkpoint.folder, "a layer with query and key weights",
                         "none",
                         "the weights are of another kind than config.json says: get both from one source");
    }
}

std::int64_t StoredWeights::vocabulary() const {
    return embedding_->shape[0];
}

const TensorView* StoredWeights::find(const std::string& name) const {
    const Names& names = names_of(checkpoint_.config.architecture);
    if (const TensorView* view = checkpoint_.weights.find(names.stem + name)) {
        return view;
    }
    return checkpoint_.weights.find(name);
}

const TensorView* StoredWeights::find_in_layer(std::int64_t layer, const std::string& name) const {
    const Names& names = names_of(checkpoint_.config.architecture);
    return find(names.block + std::to_string(layer) + "." + name + ".weight");
}

at::Tensor StoredWeights::read(const TensorView& view, std::int64_t rows, std::int64_t columns) const {
    const bool transposed = names_of(checkpoint_.config.architecture).transposed;
    const std::vector<std::int64_t> stored =
        transposed ? std::vector{columns, rows} : std::vector{rows, columns};
    if (view.shape != stored) {
        wrong_shape(checkpoint_, view, shape_text(stored));
    }
    MappedFile::will_need(view.bytes);
    std::vector<std::int64_t> all(static_cast<std::size_t>(stored[0]));
    std::iota(all.begin(), all.end(), 0);
    const at::Tensor values = read_rows(checkpoint_, view, all);
    MappedFile::done_with(view.bytes);
    return transposed ? values.t() : values;
}

at::Tensor StoredWeights::embedding(std::span<const std::int64_t> rows) const {
    at::Tensor values = read_rows(checkpoint_, *embedding_, rows);
    MappedFile::done_with(embedding_->bytes);
    if (embedding_->shape[1] != width_) {
        const TensorView* const into = find("decoder.project_in.weight");
        if (into == nullptr) {
            throw InputError(ErrorId::checkpoint_tensor, checkpoint_.folder,
                             "a tensor model.decoder.project_in.weight", "none",
                             "config.json belongs to other weights: get both from one source");
        }
        values = at::mm(values, read(*into, width_, embedding_->shape[1]).t());
    }
    return values;
}

/// A part of a fused tensor: all queries, all keys, all values (GPT-2), or these head by head (GPT-NeoX).
at::Tensor StoredWeights::fused(std::int64_t layer, Matrix which) const {
    const ModelConfig& config = checkpoint_.config;
    const Names& names = names_of(config.architecture);
    const TensorView* const view = find_in_layer(layer, names.fused);
    if (view == nullptr) {
        return {};
    }
    const std::int64_t outputs = config.query_heads * config.head_dim;
    const at::Tensor all = read(*view, 3 * outputs, width_);
    const auto part = static_cast<std::int64_t>(which);
    if (config.architecture == Architecture::gpt2) {
        return all.narrow(0, part * outputs, outputs);
    }
    return all.view({config.query_heads, 3, config.head_dim, width_})
        .select(1, part)
        .reshape({outputs, width_});
}

at::Tensor StoredWeights::matrix(std::int64_t layer, Matrix which) const {
    const ModelConfig& config = checkpoint_.config;
    const Names& names = names_of(config.architecture);
    if (names.fused != nullptr && which <= Matrix::value) {
        return fused(layer, which);
    }
    const char* const name = names.matrices[static_cast<int>(which)];
    const TensorView* const view = name == nullptr ? nullptr : find_in_layer(layer, name);
    if (view == nullptr) {
        return {};
    }
    const std::int64_t queries = config.query_heads * config.head_dim;
    switch (which) {
    case Matrix::query:
        return read(*view, queries, width_);
    case Matrix::key:
    case Matrix::value:
        return read(*view, config.kv_heads * config.head_dim, width_);
    case Matrix::output:
        return read(*view, width_, queries);
    case Matrix::down:
        return read(*view, width_, config.intermediate_size);
    case Matrix::up:
    case Matrix::gate:
        break;
    }
    return read(*view, config.intermediate_size, width_);
}

at::Tensor StoredWeights::repeated(const at::Tensor& heads) const {
    const ModelConfig& config = checkpoint_.config;
    if (config.kv_heads == config.query_heads) {
        return heads;
    }
    return heads.view({config.kv_heads, config.head_dim, width_})
        .repeat_interleave(config.query_heads / config.kv_heads, 0)
        .reshape({config.query_heads * config.head_dim, width_});
}

std::optional<SharedTokens> shared_tokens(const Checkpoint& a, std::int64_t rows_a, const Checkpoint& b,
                                          std::int64_t rows_b) {
    if (!a.vocabulary || !b.vocabulary) {
        return std::nullopt;
    }
    const Vocabulary of_a = read_vocabulary(*a.vocabulary, rows_a);
    std::vector<std::pair<std::int64_t, std::int64_t>> pairs;
    {
        const Vocabulary of_b = read_vocabulary(*b.vocabulary, rows_b);
        for (const auto& [token, id] : of_a) {
            if (const auto found = of_b.find(token); found != of_b.end()) {
                pairs.emplace_back(id, found->second);
            }
        }
    }
    std::sort(pairs.begin(), pairs.end());
    SharedTokens shared;
    for (const auto& [row_a, row_b] : pairs) {
        shared.a.push_back(row_a);
        shared.b.push_back(row_b);
    }
    return shared;
}

} // namespace ponderscope
