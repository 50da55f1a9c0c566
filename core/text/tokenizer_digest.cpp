// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/text/tokenizer_digest.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <set>

namespace ponderscope {

namespace {

using Json = nlohmann::json;

std::string dump_canonical(const Json& value) {
    return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

const Json& member(const Json& object, const char* name) {
    static const Json null;
    const auto found = object.is_object() ? object.find(name) : object.end();
    return found != object.end() ? *found : null;
}

bool says_nothing(const Json& value) {
    return value.is_null() || value == false || value == 0 ||
           (value.is_string() && value.get_ref<const std::string&>().empty()) ||
           (value.is_structured() && value.empty());
}

void add_sized(std::string& bytes, std::initializer_list<std::string_view> parts) {
    const char* blank = "";
    for (const std::string_view part : parts) {
        bytes += blank + std::to_string(part.size());
        blank = " ";
    }
    bytes += '\n';
    for (const std::string_view part : parts) {
        bytes += part;
    }
}

} // namespace

Json canonical_component(const Json& part) {
    if (part.is_array()) {
        Json items = Json::array();
        for (const Json& item : part) {
            items.push_back(canonical_component(item));
        }
        return items;
    }
    if (!part.is_object()) {
        return part;
    }
    const Json& type = member(part, "type");
    if (type == "Sequence") {
        Json flat = Json::array();
        for (const Json& item : part.at(part.contains("normalizers") ? "normalizers" : "pretokenizers")) {
            const Json one = canonical_component(item);
            const Json& inner = member(one, "sequence");
            for (const Json& piece : inner.is_array() ? inner : Json::array({one})) {
                if (!piece.is_null()) {
                    flat.push_back(piece);
                }
            }
        }
        return flat.empty() ? Json() : flat.size() == 1 ? flat.front() : Json{{"sequence", flat}};
    }
    Json items = part;
    if (type == "ByteLevel") {
        items.erase("trim_offsets");
    } else if (type == "Metaspace") {
        if (!items.contains("prepend_scheme")) {
            items["prepend_scheme"] = items.value("add_prefix_space", true) ? "always" : "never";
        }
        items.erase("add_prefix_space");
        items.erase("str_rep");
    }
    Json kept = Json::object();
    for (const auto& [key, value] : items.items()) {
        const bool usual = key == "use_regex" || key == "split";
        if (!value.is_null() && value != usual) {
            kept[key] = canonical_component(value);
        }
    }
    return kept;
}

CuttingRules CuttingRules::of(const Json& tokenizer) {
    const Json& model = member(tokenizer, "model");
    std::string ranks;
    for (const Json& merge : member(model, "merges")) {
        if (merge.is_array() && merge.size() == 2) {
            add_sized(ranks,
                      {merge[0].get_ref<const std::string&>(), merge[1].get_ref<const std::string&>()});
        } else if (merge.is_string()) {
            const std::string_view line = merge.get_ref<const std::string&>();
            const std::size_t blank = std::min(line.find(' '), line.size());
            add_sized(ranks, {line.substr(0, blank), line.substr(std::min(blank + 1, line.size()))});
        }
    }
    if (const Json& vocabulary = member(model, "vocab"); vocabulary.is_array()) { // of a Unigram model
        for (const Json& piece : vocabulary) {
            const auto bits = std::bit_cast<std::uint64_t>(piece.at(1).get<double>());
            for (int byte = 7; byte >= 0; --byte) {
                ranks += static_cast<char>(bits >> (8 * byte) & 255U);
            }
        }
    }
    const std::set<std::string> elsewhere{"vocab", "merges", "type", "dropout"};
    Json settings = Json::object();
    for (const auto& [key, value] : model.items()) {
        if (!elsewhere.contains(key) && !says_nothing(value)) {
            settings[key] = value;
        }
    }
    const Json normalizer = canonical_component(member(tokenizer, "normalizer"));
    return {sha256_hex(ranks),
            dump_canonical({{"model", settings},
                            {"normalizer", normalizer},
                            {"pre_tokenizer", canonical_component(member(tokenizer, "pre_tokenizer"))}}),
            !normalizer.is_null()};
}

std::string content_digest(const TokenTexts& vocabulary, std::vector<AddedToken> added,
                           const CuttingRules& rules) {
    std::ranges::sort(added, {}, &AddedToken::id);
    Sha256 digest;
    std::string rows;
    auto next = added.begin();
    for (std::int32_t id = 0; id < vocabulary.size(); ++id) {
        next = std::find_if(next, added.end(), [&](const AddedToken& token) { return token.id >= id; });
        if (vocabulary.has(id) && (next == added.end() || next->id != id)) {
            rows += std::to_string(id) + ' ';
            add_sized(rows, {vocabulary.text(id)});
        }
    }
    for (const AddedToken& token : added) {
        rows += dump_canonical(Json::array({token.id, token.content, token.normalized && rules.normalizes,
                                            token.lstrip, token.rstrip, token.single_word}));
    }
    return digest.update(rows).update(rules.merges).update(rules.components).finish_hex();
}

} // namespace ponderscope
