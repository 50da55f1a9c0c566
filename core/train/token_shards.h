// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/progress.h"
#include "core/checkpoint/safetensors.h"
#include "core/train/token_stream.h"

#include <cstdint>
#include <filesystem>
#include <stop_token>
#include <string>
#include <vector>

namespace ponderscope {

/// A tokenised corpus on disk, which trainings map instead of reading: a folder with
///   00000.safetensors, 00001.safetensors ...   a tensor "ids" [n], U16 or U32, and in the metadata the
///   format,
///                    `tokenizer` (SHA-256 of tokenizer.json) and `tokens` (SHA-256 of the ids' bytes)
///   shards.json      written last: what is in them all, see TokenShardInfo; resources/docs/training.md
/// Texts follow each other without a gap, each closed by `document_end` where there is one; a text may go on
/// in the next shard.
struct TokenShardInfo {
    struct Source {
        std::string name;   ///< of the file
        std::string sha256; ///< of its text; of all texts, one after the other, for JSON Lines
        std::int64_t documents = 0;
        std::int64_t bytes = 0;
        std::int64_t tokens = 0; ///< document_end included
    };
    std::string tokenizer; ///< SHA-256 of tokenizer.json
    std::int64_t vocab_size = 0;
    std::string document_end; ///< the token's text; empty: none
    std::vector<Source> sources;
};

/// Writes such a folder; memory grows by a shard, not by the corpus. Not thread-safe.
class TokenShardWriter {
public:
    /// InputError: the folder is there and not empty. EnvironmentError.
    TokenShardWriter(std::filesystem::path folder, TokenShardInfo info, std::int64_t shard_tokens);
    /// Without finish(): takes out what was written.
    ~TokenShardWriter();
    TokenShardWriter(const TokenShardWriter&) = delete;
    TokenShardWriter& operator=(const TokenShardWriter&) = delete;

    void add(const std::vector<std::int32_t>& ids);
    /// \p sources: what was added came from. Returns the number of shards.
    std::int64_t finish(std::vector<TokenShardInfo::Source> sources);
    [[nodiscard]] std::int64_t tokens() const { return tokens_; }

private:
    void write_shard();

    std::filesystem::path folder_;
    TokenShardInfo info_;
    std::int64_t shard_tokens_;
    std::vector<std::uint32_t> waiting_;
    std::vector<std::string> written_; ///< SHA-256 of each
    std::vector<std::int64_t> lengths_;
    std::int64_t tokens_ = 0;
    bool made_folder_ = false;
    bool finished_ = false;
};

/// A folder of token shards, mapped.
class TokenShards {
public:
    /// Opens and reads all of it through once, so that what is damaged is said before a training begins.
    /// InputError: no such folder, not finished, damaged, of another tokenizer than \p tokenizer (SHA-256).
    /// Cancelled.
    static TokenShards open(const std::filesystem::path& folder, const std::string& tokenizer,
                            const ProgressSink& progress = {}, const std::stop_token& stop = {});

    [[nodiscard]] const TokenShardInfo& info() const { return info_; }
    [[nodiscard]] const std::string& digest() const { return digest_; } ///< SHA-256 over all ids' digests
    [[nodiscard]] TokenStream stream() const;

private:
    TokenShardInfo info_;
    std::string digest_;
    std::vector<SafetensorsFile> files_;
};

} // namespace ponderscope
