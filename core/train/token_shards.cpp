// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/train/token_shards.h"

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/sha256.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

namespace ponderscope {
namespace {

constexpr std::string_view shards_format = "ponderscope-tokens-1";
constexpr const char* remedy = "make the folder anew by ponderscope tokenize --shards";

std::filesystem::path shard_file(const std::filesystem::path& folder, std::size_t number) {
    char name[32];
    std::snprintf(name, sizeof name, "%05zu.safetensors", number);
    return folder / name;
}

std::int64_t largest(const TensorView& ids) {
    const auto of = [&]<typename Id>(Id found) {
        for (std::size_t at = 0; at < ids.bytes.size(); at += sizeof(Id)) {
            Id id{};
            std::memcpy(&id, ids.bytes.data() + at, sizeof id);
            found = std::max(found, id);
        }
        return static_cast<std::int64_t>(found);
    };
    return ids.dtype == DType::u16 ? of(std::uint16_t{0}) : of(std::uint32_t{0});
}

std::string in_metadata(const SafetensorsFile& file, const char* key) {
    const auto found = file.metadata().find(key);
    return found == file.metadata().end() ? "" : found->second;
}

} // namespace

TokenShardWriter::TokenShardWriter(std::filesystem::path folder, TokenShardInfo info,
                                   std::int64_t shard_tokens)
    : folder_(std::move(folder)), info_(std::move(info)), shard_tokens_(shard_tokens) {
    std::error_code error;
    if (std::filesystem::exists(folder_, error) &&
        (!std::filesystem::is_directory(folder_, error) || !std::filesystem::is_empty(folder_, error))) {
        throw InputError(folder_, "a new folder or an empty one for the shards",
                         std::filesystem::is_directory(folder_, error) ? "files in it" : "a file",
                         "choose another name, or remove it");
    }
    made_folder_ = std::filesystem::create_directories(folder_, error);
    if (error) {
        throw_file_error(folder_, error.value(), "written");
    }
}

TokenShardWriter::~TokenShardWriter() {
    if (finished_) {
        return;
    }
    std::error_code ignored;
    for (std::size_t shard = 0; shard < written_.size(); ++shard) {
        std::filesystem::remove(shard_file(folder_, shard), ignored);
    }
    if (made_folder_) {
        std::filesystem::remove(folder_, ignored);
    }
}

void TokenShardWriter::add(const std::vector<std::int32_t>& ids) {
    for (const std::int32_t id : ids) {
        waiting_.push_back(static_cast<std::uint32_t>(id));
        if (static_cast<std::int64_t>(waiting_.size()) == shard_tokens_) {
            write_shard();
        }
    }
    tokens_ += static_cast<std::int64_t>(ids.size());
}

void TokenShardWriter::write_shard() {
    std::vector<std::uint16_t> narrow;
    TensorView view;
    view.name = "ids";
    view.shape = {static_cast<std::int64_t>(waiting_.size())};
    view.dtype = DType::u32;
    view.bytes = std::as_bytes(std::span(waiting_));
    if (info_.vocab_size <= 65'536) {
        narrow.assign(waiting_.begin(), waiting_.end());
        view.dtype = DType::u16;
        view.bytes = std::as_bytes(std::span(narrow));
    }
    const std::string digest = Sha256().update(view.bytes).finish_hex();
    write_safetensors(
        shard_file(folder_, written_.size()), {view},
        {{"format", std::string(shards_format)}, {"tokenizer", info_.tokenizer}, {"tokens", digest}});
    written_.push_back(digest);
    lengths_.push_back(view.shape.front());
    waiting_.clear();
}

std::int64_t TokenShardWriter::finish(std::vector<TokenShardInfo::Source> sources) {
    if (!waiting_.empty()) {
        write_shard();
    }
    nlohmann::json from = nlohmann::json::array();
    for (const TokenShardInfo::Source& source : sources) {
        from.push_back({{"name", source.name},
                        {"sha256", source.sha256},
                        {"documents", source.documents},
                        {"bytes", source.bytes},
                        {"tokens", source.tokens}});
    }
    nlohmann::json shards = nlohmann::json::array();
    for (std::size_t shard = 0; shard < written_.size(); ++shard) {
        shards.push_back({{"file", shard_file("", shard).string()},
                          {"tokens", lengths_[shard]},
                          {"sha256", written_[shard]}});
    }
    write_file_atomically(folder_ / "shards.json", nlohmann::json{{"format", std::string(shards_format)},
                                                                  {"tokenizer", info_.tokenizer},
                                                                  {"vocab_size", info_.vocab_size},
                                                                  {"document_end", info_.document_end},
                                                                  {"tokens", tokens_},
                                                                  {"sources", std::move(from)},
                                                                  {"shards", std::move(shards)}}
                                                           .dump(2) +
                                                       "\n");
    finished_ = true;
    return static_cast<std::int64_t>(written_.size());
}

TokenShards TokenShards::open(const std::filesystem::path& folder, const std::string& tokenizer,
                              const ProgressSink& progress, const std::stop_token& stop) {
    const std::filesystem::path index = folder / "shards.json";
    std::error_code error;
    if (!std::filesystem::exists(index, error)) {
        throw InputError(folder, "a folder of token shards, with a shards.json",
                         std::filesystem::is_directory(folder, error) ? "none in it" : "no such folder",
                         remedy);
    }
    const nlohmann::json document = read_json_file(index);
    const JsonObject root(document, index);
    if (root.required_text("format") != shards_format) {
        throw InputError(index, "token shards of this version (" + std::string(shards_format) + ")",
                         "\"" + root.required_text("format") + "\"", remedy);
    }
    TokenShards result;
    TokenShardInfo& info = result.info_;
    info.tokenizer = root.required_text("tokenizer");
    if (info.tokenizer != tokenizer) {
        throw InputError(
            folder, "shards made with the recipe's tokenizer (SHA-256 " + tokenizer.substr(0, 12) + "...)",
            "those of another (" + info.tokenizer.substr(0, 12) + "...)",
            "name the tokenizer.json that they were made with, or make them anew with this one");
    }
    info.vocab_size = root.required_integer("vocab_size", 1);
    info.document_end = root.required_text("document_end");
    for (const nlohmann::json& each : root.value().value("sources", nlohmann::json::array())) {
        const JsonObject source(each, index, "sources");
        info.sources.push_back({source.required_text("name"), source.required_text("sha256"),
                                source.required_integer("documents", 0), source.required_integer("bytes", 0),
                                source.required_integer("tokens", 0)});
    }
    Progress done{"reading token shards", 0, root.required_integer("tokens", 1), "tokens"};
    Sha256 all;
    all.update(shards_format).update(tokenizer);
    for (const nlohmann::json& each : root.value().value("shards", nlohmann::json::array())) {
        if (stop.stop_requested()) {
            throw Cancelled();
        }
        if (progress) {
            progress(done);
        }
        const JsonObject shard(each, index, "shards");
        const std::string name = shard.required_text("file");
        if (std::filesystem::path(name).filename() != name) {
            throw InputError(index, "names of files in its folder", "\"" + name + "\"", remedy);
        }
        SafetensorsFile file = SafetensorsFile::open(folder / name);
        const TensorView* ids = file.find("ids");
        const std::string digest = shard.required_text("sha256");
        if (in_metadata(file, "format") != shards_format || in_metadata(file, "tokenizer") != tokenizer ||
            in_metadata(file, "tokens") != digest || ids == nullptr ||
            ids->dtype != (info.vocab_size <= 65'536 ? DType::u16 : DType::u32) ||
            ids->shape != std::vector{shard.required_integer("tokens", 1)}) {
            throw InputError(folder / name, "the shard that shards.json names", "another one", remedy);
        }
        file.will_need(*ids);
        if (largest(*ids) >= info.vocab_size) {
            throw InputError(folder / name, "ids below the vocabulary's " + std::to_string(info.vocab_size),
                             std::to_string(largest(*ids)), remedy);
        }
        if (Sha256().update(ids->bytes).finish_hex() != digest) {
            throw InputError(folder / name,
                             "the tokens that were written (SHA-256 " + digest.substr(0, 12) + "...)",
                             "others: the file is damaged", remedy);
        }
        file.done_with(*ids);
        all.update(digest);
        done.done += ids->shape.front();
        result.files_.push_back(std::move(file));
    }
    if (done.done != done.total) {
        throw InputError(index, "shards of " + std::to_string(done.total) + " tokens in all",
                         "of " + std::to_string(done.done), remedy);
    }
    result.digest_ = all.finish_hex();
    return result;
}

TokenStream TokenShards::stream() const {
    TokenStream stream;
    for (const SafetensorsFile& file : files_) {
        const TensorView* ids = file.find("ids");
        stream.add(ids->bytes, ids->dtype == DType::u16 ? 2 : 4);
    }
    return stream;
}

} // namespace ponderscope
