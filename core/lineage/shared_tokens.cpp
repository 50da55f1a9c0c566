// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/lineage/shared_tokens.h"

#include "core/base/error.h"
#include "core/base/json.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>

namespace ponderscope {
namespace {

using Vocabulary = std::unordered_map<std::string, std::int64_t>;

/// The table alone: a tokenizer of a kind that we cannot run has one as well.
Vocabulary read_vocabulary(const std::filesystem::path& file, std::int64_t rows) {
    const nlohmann::json document = read_json_file(file, {.python = true});
    const JsonObject root(document, file);
    const bool whole = file.filename() == "vocab.json"; // is the table; in a tokenizer.json it is a part
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
