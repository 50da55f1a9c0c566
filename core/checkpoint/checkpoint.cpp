// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/checkpoint.h"

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/sha256.h"
#include "core/base/words.h"
#include "core/checkpoint/checkpoint_folder.h"
#include "core/checkpoint/config_reader.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace ponderscope {

namespace fs = std::filesystem;

namespace {

/// Reads generation_config.json. Its start and end tokens replace the tokens in config.json. Adds a notice
/// about other settings that would change greedy generation.
void read_generation_config(const fs::path& folder, ModelConfig& config) {
    const fs::path file = folder / "generation_config.json";
    if (!exists_in_any_form(file)) {
        return;
    }
    const nlohmann::json document = read_json_file(file, {.python = true});
    const JsonObject json(document, file);
    const ConfigReader reader(json, config.notices);
    ModelConfig tokens;
    read_token_ids(reader, tokens, std::nullopt, std::nullopt);
    if (json.has("bos_token_id")) {
        config.bos_token_id = tokens.bos_token_id;
    }
    if (json.has("eos_token_id")) {
        config.eos_token_ids = tokens.eos_token_ids;
    }
    std::vector<std::string> changing;
    for (const char* const key :
         {"repetition_penalty", "encoder_repetition_penalty", "no_repeat_ngram_size", "min_length",
          "min_new_tokens", "bad_words_ids", "sequence_bias", "suppress_tokens", "begin_suppress_tokens",
          "forced_bos_token_id", "forced_eos_token_id", "exponential_decay_length_penalty",
          "guidance_scale"}) {
        const nlohmann::json* value = json.find(key);
        if (value != nullptr && *value != 0 && *value != 1 && !(value->is_array() && value->empty())) {
            changing.emplace_back(key);
        }
    }
    if (!changing.empty()) {
        config.notices.push_back(
            {NoticeId::config_generation,
             "generation_config.json has settings that ponderscope generate does not apply: " +
                 joined(changing) + '.'});
    }
}

} // namespace

Checkpoint Checkpoint::open(const fs::path& path, std::optional<MethodKind> method,
                            std::optional<std::int64_t> steps) {
    const fs::path folder = checkpoint_folder_of(path);
    check_checkpoint_folder(folder);
    refuse_adapter_folder(folder);
    const fs::path config = folder / "config.json";
    std::error_code error;
    if (!exists_in_any_form(config)) {
        if (!fs::exists(folder / "model.safetensors", error) &&
            !fs::exists(folder / "model.safetensors.index.json", error)) {
            refuse_folder_without_weights(folder);
        }
        throw InputError(ErrorId::checkpoint_files, folder, "a config.json", "none",
                         "download it from the source of the weights");
    }
    ModelConfig model_config =
        read_model_config(config, method, steps, [&folder] { return Weights::open(folder).names(); });
    read_generation_config(folder, model_config);
    Weights weights = Weights::open(folder, model_config.companions);
    std::optional<fs::path> vocabulary;
    // The file may be a link, because models of a family share a tokenizer. Reading it reports a broken link.
    if (exists_in_any_form(folder / "tokenizer.json")) {
        vocabulary = folder / "tokenizer.json";
    } else if (fs::exists(folder / "vocab.json", error) && fs::exists(folder / "merges.txt", error)) {
        vocabulary = folder / "vocab.json";
    }
    return {folder, std::move(model_config), std::move(weights), std::move(vocabulary)};
}

std::string checkpoint_digest(const Checkpoint& checkpoint, const ProgressSink& progress,
                              const std::stop_token& stop) {
    constexpr std::size_t piece_bytes = std::size_t{16} << 20;
    std::vector<std::pair<std::string, fs::path>> files{{"config.json", checkpoint.folder / "config.json"}};
    for (const fs::path& path : checkpoint.weights.files()) {
        files.emplace_back(path.lexically_relative(checkpoint.folder).generic_string(), path);
    }
    for (const ModelConfig::Companion& companion : checkpoint.config.companions) {
        if (companion.prefix.empty()) {
            files.emplace_back(companion.file, checkpoint.folder / companion.file);
        }
    }
    std::sort(files.begin(), files.end());

    Progress report{"computing the digest", 0, 0, "bytes"};
    std::vector<MappedFile> maps;
    for (const auto& [name, path] : files) {
        maps.push_back(MappedFile::open(path));
        report.total += static_cast<std::int64_t>(maps.back().bytes().size());
    }
    auto next_report = std::chrono::steady_clock::now();
    Sha256 digest;
    for (std::size_t i = 0; i < files.size(); ++i) {
        const std::span<const std::byte> bytes = maps[i].bytes();
        const std::uint64_t size = bytes.size(); // little-endian
        digest.update(files[i].first + '\0').update(std::as_bytes(std::span(&size, 1)));
        maps[i].expect_sequential_reads();
        for (std::size_t offset = 0; offset < bytes.size(); offset += piece_bytes) {
            throw_if_stopped(stop);
            const auto piece = bytes.subspan(offset, std::min(piece_bytes, bytes.size() - offset));
            digest.update(piece);
            maps[i].done_with(piece);
            report.done += static_cast<std::int64_t>(piece.size());
            const auto now = std::chrono::steady_clock::now();
            if (progress && (now >= next_report || report.done == report.total)) {
                progress(report);
                next_report = now + std::chrono::milliseconds(200);
            }
        }
    }
    return digest.finish_hex();
}

} // namespace ponderscope
