// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/error.h"
#include "core/base/utf8.h"
#include "core/text/tokenizer_config.h"

#include <algorithm>

namespace ponderscope {

namespace {

using Path = std::filesystem::path;

// The type of the model. Old files have no "type"; their keys identify it.
std::string model_type(const JsonObject& model) {
    if (const auto type = model.text("type")) {
        return *type;
    }
    const nlohmann::json* vocabulary = model.find("vocab");
    return model.has("merges")                               ? "BPE"
           : vocabulary != nullptr && vocabulary->is_array() ? "Unigram"
           : model.has("max_input_chars_per_word")           ? "WordPiece"
                                                             : "WordLevel";
}

std::pair<std::string_view, std::string_view> parse_merge(const nlohmann::json& merge, std::size_t number,
                                                          const Path& file) {
    if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
        return {merge[0].get_ref<const std::string&>(), merge[1].get_ref<const std::string&>()};
    }
    if (merge.is_string()) {
        const std::string_view text = merge.get_ref<const std::string&>();
        const std::size_t space = text.find(' ');
        if (space != std::string_view::npos && text.find(' ', space + 1) == std::string_view::npos) {
            return {text.substr(0, space), text.substr(space + 1)};
        }
    }
    throw InputError(ErrorId::tokenizer_file, file, "merges of two tokens each",
                     describe(merge) + " as merge " + std::to_string(number),
                     "take the tokenizer file from its source again");
}

Unigram parse_unigram(const JsonObject& model, const Path& file) {
    std::vector<std::pair<std::string_view, double>> vocabulary;
    for (const nlohmann::json& entry : model.required_array("vocab")) {
        if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() || !entry[1].is_number()) {
            throw InputError(ErrorId::tokenizer_file, file,
                             "a token and its score in every entry of the vocabulary",
                             describe(entry) + " as entry " + std::to_string(vocabulary.size()),
                             "take the tokenizer file from its source again");
        }
        vocabulary.emplace_back(entry[0].get_ref<const std::string&>(), entry[1].get<double>());
    }
    if (vocabulary.empty()) {
        model.fail("vocab", "at least one token", "take the tokenizer file from its source again");
    }
    return Unigram::build(vocabulary, model.integer("unk_id"), model.boolean("byte_fallback").value_or(false),
                          file);
}

Bpe parse_bpe(const JsonObject& model, bool byte_level, const Path& file, const Path& merges_file) {
    for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
        if (!model.text(key).value_or("").empty()) {
            model.fail(key, "no value", "this option is not supported");
        }
    }
    if (model.number("dropout").value_or(0) != 0) {
        model.fail("dropout", "0", "set it to 0: dropout makes every encoding of a text different");
    }
    Bpe::Settings settings;
    settings.byte_level = byte_level;
    settings.byte_fallback = model.boolean("byte_fallback").value_or(false);
    settings.fuse_unk = model.boolean("fuse_unk").value_or(false);
    settings.ignore_merges = model.boolean("ignore_merges").value_or(false);
    settings.unk_token = model.text("unk_token");

    const JsonObject vocab = model.required_object("vocab");
    if (vocab.value().empty()) {
        model.fail("vocab", "at least one token", "take the tokenizer file from its source again");
    }
    std::vector<std::pair<std::string_view, std::int64_t>> vocabulary;
    vocabulary.reserve(vocab.value().size());
    // These texts refer to the document until the model copies them.
    for (auto entry = vocab.value().begin(); entry != vocab.value().end(); ++entry) {
        const nlohmann::json& id = entry.value();
        if (!id.is_number_integer()) {
            throw InputError(ErrorId::tokenizer_file, file, "a whole number as the id of each token",
                             describe(id) + " for \"" + printable(entry.key()) + "\"",
                             "take the tokenizer file from its source again");
        }
        constexpr std::int64_t too_large = std::int64_t{1} << 62;
        const bool fits = !id.is_number_unsigned() || id.get<std::uint64_t>() < std::uint64_t{1} << 62;
        vocabulary.emplace_back(entry.key(), fits ? id.get<std::int64_t>() : too_large);
    }
    std::vector<std::pair<std::string_view, std::string_view>> merges;
    const nlohmann::json& list = model.required_array("merges");
    merges.reserve(list.size());
    for (const nlohmann::json& merge : list) {
        merges.push_back(parse_merge(merge, merges.size() + 1, merges_file));
    }
    return Bpe::build(std::move(vocabulary), merges, std::move(settings), merges_file);
}

bool is_token_id(const nlohmann::json& id) {
    return id.is_number_integer() && id.get<std::int64_t>() >= 0 && id.get<std::int64_t>() < 1 << 24;
}

// Collects the ids to add around a text. In a sequence, each processor adds its ids around those of earlier
// ones.
class PostProcessor {
public:
    explicit PostProcessor(TokenizerParts& parts) : parts_(parts) {}

    void add(const JsonObject& object, const std::string& type) {
        if (type == "TemplateProcessing") {
            add_template(object);
        } else if (type == "BertProcessing" || type == "RobertaProcessing") {
            wrap({pair_id(object, "cls")}, {pair_id(object, "sep")}, object);
        } else if (type != "ByteLevel") { // ByteLevel only trims offsets
            object.fail("type",
                        "a post-processor among TemplateProcessing, ByteLevel, BertProcessing, "
                        "RobertaProcessing, Sequence",
                        "this post-processor is not supported");
        }
    }

private:
    void add_template(const JsonObject& object) {
        std::vector<std::int32_t> before;
        std::vector<std::int32_t> after;
        int texts = 0;
        for (const nlohmann::json& piece : object.required_array("single")) {
            const JsonObject item(piece, parts_.file(), object.name_of("single"));
            if (const auto special = item.object("SpecialToken")) {
                const std::string token = special->required_text("id");
                const JsonObject tokens = object.required_object("special_tokens").required_object(token);
                for (const nlohmann::json& id : tokens.required_array("ids")) {
                    if (!is_token_id(id)) {
                        tokens.fail("ids", "token ids");
                    }
                    (texts == 0 ? before : after).push_back(id.get<std::int32_t>());
                }
            } else if (item.has("Sequence")) {
                if (item.required_object("Sequence").required_text("id") != "A") {
                    object.fail("single", "only the sequence A");
                }
                ++texts;
            } else {
                object.fail("single", "special tokens and the sequence A");
            }
        }
        if (texts != 1) {
            object.fail("single", "the sequence A once");
        }
        wrap(before, after, object);
    }

    std::int32_t pair_id(const JsonObject& object, std::string_view key) {
        const nlohmann::json& pair = object.required_array(key);
        if (pair.size() != 2 || !is_token_id(pair[1])) {
            object.fail(key, "a token and its id");
        }
        return pair[1].get<std::int32_t>();
    }

    void wrap(const std::vector<std::int32_t>& before, const std::vector<std::int32_t>& after,
              const JsonObject& object) {
        for (const auto* ids : {&before, &after}) {
            for (const std::int32_t id : *ids) {
                const bool added = std::any_of(parts_.added.begin(), parts_.added.end(),
                                               [&](const AddedToken& t) { return t.id == id; });
                if (!added && !parts_.texts().has(id)) {
                    throw InputError(ErrorId::tokenizer_file, parts_.file(),
                                     "special tokens that are in the vocabulary",
                                     "id " + std::to_string(id) + " in the " + object.required_text("type"),
                                     "take the tokenizer file from its source again");
                }
            }
        }
        parts_.prefix.insert(parts_.prefix.begin(), before.begin(), before.end());
        parts_.suffix.insert(parts_.suffix.end(), after.begin(), after.end());
    }

    TokenizerParts& parts_;
};

} // namespace

TokenizerParts parts_of(const nlohmann::json& document, const Path& file, const Path& merges_file) {
    const JsonObject root(document, file);
    TokenizerParts parts;
    parts.files = {file};
    // Read the model first, so that the first error about an unsupported tokenizer names the kind of model.
    const JsonObject model = root.required_object("model");
    const std::string type = model_type(model);
    if (type != "BPE" && type != "Unigram") {
        throw InputError(ErrorId::tokenizer_file, file, "a BPE or Unigram tokenizer",
                         "a " + printable(type) + " tokenizer",
                         "this kind is not supported; give token ids instead of text");
    }
    parts.normalizer = Normalizer::parse(root.object("normalizer"));
    parts.pre_tokenizer = PreTokenizer::parse(root.object("pre_tokenizer"));
    parts.decoder = TokenDecoder::parse(root.object("decoder"));
    if (type == "Unigram" && parts.pre_tokenizer.is_byte_level()) {
        model.fail("type", "BPE after ByteLevel", "this combination is not supported");
    }
    if (type == "Unigram") {
        parts.unigram = parse_unigram(model, file);
    } else {
        parts.model = parse_bpe(model, parts.pre_tokenizer.is_byte_level(), file, merges_file);
    }
    parts.rules = CuttingRules::of(document);
    AddedTokens added(parts);
    if (const nlohmann::json* list = root.array("added_tokens")) {
        for (const nlohmann::json& item : *list) {
            const JsonObject object(item, file, "added_tokens");
            AddedToken token = read_added_token(object);
            token.id =
                static_cast<std::int32_t>(object.required_integer("id", 0, (std::int64_t{1} << 24) - 1));
            added.append(std::move(token));
        }
    }
    PostProcessor processor(parts);
    each_component(root.object("post_processor"), "processors",
                   [&](const JsonObject& object, const std::string& kind) { processor.add(object, kind); });
    return parts;
}

} // namespace ponderscope
