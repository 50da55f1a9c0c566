// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/record/jsonl.h"

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/utf8.h"

#include <algorithm>
#include <tuple>

namespace ponderscope {
namespace {

/// A field by its name, or by its path in nested objects: "meta.author". Null: no such field.
const nlohmann::json* find_field(const nlohmann::json& object, const std::string& name) {
    if (!object.is_object()) {
        return nullptr;
    }
    if (const auto whole = object.find(name); whole != object.end()) {
        return &*whole;
    }
    for (std::size_t point = name.find('.'); point != std::string::npos; point = name.find('.', point + 1)) {
        if (const auto outer = object.find(name.substr(0, point)); outer != object.end()) {
            if (const nlohmann::json* inner = find_field(*outer, name.substr(point + 1))) {
                return inner;
            }
        }
    }
    return nullptr;
}

/// The JSON object of one line. Error messages name the line.
class Line {
public:
    Line(std::string where, const nlohmann::json& object) : where_(std::move(where)), object_(object) {}

    [[noreturn]] void fail(const std::string& expected, const std::string& found) const {
        throw InputError(ErrorId::text_line, where_ + ": expected " + expected + ", found " + found + ".");
    }
    [[nodiscard]] const nlohmann::json& field(const std::string& name, const char* option) const {
        const nlohmann::json* value = find_field(object_, name);
        if (value == nullptr) {
            std::string keys;
            for (auto entry = object_.begin(); entry != object_.end() && keys.size() < 200; ++entry) {
                keys += (keys.empty() ? "" : ", ") + printable(entry.key(), 40);
            }
            fail("a field \"" + printable(name, 100) + "\" (" + option + ")",
                 keys.empty() ? "an empty object" : keys);
        }
        return *value;
    }
    /// A text without change; a number or boolean as in JSON.
    [[nodiscard]] std::string name_in(const nlohmann::json& value, const std::string& field) const {
        if (value.is_string()) {
            return value.get<std::string>();
        }
        if (value.is_number() || value.is_boolean()) {
            return value.dump();
        }
        fail("a text, number or truth value in \"" + printable(field, 100) + "\"", describe(value));
    }
    [[nodiscard]] std::vector<TextLabel> labels(const nlohmann::json& value, const std::string& field,
                                                std::uint64_t text_bytes) const {
        if (value.is_null()) {
            return {};
        }
        if (!value.is_array()) {
            return {{0, text_bytes, name_in(value, field)}};
        }
        std::vector<TextLabel> labels;
        for (const nlohmann::json& one : value) {
            const auto place = [&](const char* key) {
                const nlohmann::json* number = one.is_object() ? find_field(one, key) : nullptr;
                if (number == nullptr || !number->is_number_unsigned()) {
                    fail("labels {\"begin\", \"end\", \"class\"} with byte offsets in \"" +
                             printable(field, 100) + "\"",
                         describe(one));
                }
                return number->get<std::uint64_t>();
            };
            TextLabel label{place("begin"), place("end"), {}};
            const nlohmann::json* name = find_field(one, "class");
            label.name = name_in(name == nullptr ? nlohmann::json() : *name, field + ".class");
            if (label.begin >= label.end || label.end > text_bytes) {
                fail("labels within the text's " + std::to_string(text_bytes) + " bytes",
                     "a label of bytes " + std::to_string(label.begin) + " to " + std::to_string(label.end));
            }
            labels.push_back(std::move(label));
        }
        std::sort(labels.begin(), labels.end(),
                  [](const TextLabel& a, const TextLabel& b) { return a.begin < b.begin; });
        for (std::size_t i = 1; i < labels.size(); ++i) {
            if (labels[i].begin < labels[i - 1].end) {
                fail("labels that do not overlap",
                     "two labels at byte " + std::to_string(labels[i].begin) + " of the text");
            }
        }
        return labels;
    }

private:
    std::string where_;
    const nlohmann::json& object_;
};

/// Removes the parser's own line number from its message, because the parser gets one line at a time.
nlohmann::json parse_line(const std::string& line, const std::string& where) {
    try {
        return parse_json(line, where, {.max_bytes = LineReader::max_line_bytes, .python = true});
    } catch (const InputError& error) {
        std::string sentence = error.what();
        if (const std::size_t at = sentence.find("at line 1, "); at != std::string::npos) {
            sentence.replace(at, 11, "at ");
        }
        throw InputError(error.id(), sentence);
    }
}

} // namespace

JsonlSource::JsonlSource(JsonlOptions options, const Tokenizer& tokenizer, std::int64_t vocab_size,
                         const ProgressSink& progress, std::stop_token stop)
    : TextSource(options.file == "-" ? "standard input" : options.file.string(), std::move(stop)),
      options_(std::move(options)),
      name_(options_.file == "-" ? "standard input" : options_.file.string()),
      tokenizer_(tokenizer),
      vocab_size_(vocab_size) {
    start({options_.file}, progress);
}

void JsonlSource::go_to_begin() {
    lines_ = std::make_unique<LineReader>(options_.file, stop_);
    found_ = skipped_ = taken_tokens_ = 0;
    first_skipped_.clear();
}

void JsonlSource::read_through(const ProgressSink& progress) {
    SequenceInput sequence;
    // With limit_tokens, all texts are encoded to find the last one.
    while (next_line(sequence, options_.limit_tokens > 0)) {
        notices_.look_at(sequence.text, tokenizer_, options_.reading);
        hash_.update(sequence.text);
        text_bytes_ += static_cast<std::int64_t>(sequence.text.size());
        report_progress(progress, {"reading through " + options_.file.filename().string(),
                                   lines_->bytes_read(), lines_->file_bytes(), "bytes"});
    }
}

void JsonlSource::read(const std::string& line, SequenceInput& sequence, bool encode_all) const {
    const std::string where = name_ + ": line " + std::to_string(lines_->number());
    if (lines_->too_long()) {
        throw InputError(ErrorId::text_line, where + ": expected at most " +
                                                 std::to_string(LineReader::max_line_bytes >> 20) +
                                                 " MiB, found a longer line.");
    }
    const nlohmann::json object = parse_line(line, where);
    const Line content(where, object);
    if (!object.is_object()) {
        content.fail("a JSON object", describe(object));
    }
    const nlohmann::json& text = content.field(options_.text_field, "--text-field");
    if (!text.is_string()) {
        content.fail("a text in \"" + printable(options_.text_field, 100) + "\"", describe(text));
    }
    sequence = {};
    sequence.text = text.get<std::string>();
    check_text(sequence.text, where);
    sequence.title = (options_.file == "-" ? "-" : options_.file.filename().string()) + ":" +
                     std::to_string(lines_->number());
    if (!options_.group_field.empty()) {
        const nlohmann::json& group = content.field(options_.group_field, "--group-field");
        sequence.group = group.is_null() ? std::string() : content.name_in(group, options_.group_field);
    }
    if (!options_.label_field.empty()) {
        sequence.labels = content.labels(content.field(options_.label_field, "--label-field"),
                                         options_.label_field, sequence.text.size());
    }
    if (!encode_all && sequence.text.size() > short_text) {
        return;
    }
    sequence.set_tokens(options_.reading.encode(tokenizer_, sequence.text));
    if (sequence.ids.size() < 2) {
        content.fail("at least two tokens", std::to_string(sequence.ids.size()));
    }
    for (const std::int32_t id : sequence.ids) {
        if (id < 0 || id >= vocab_size_) {
            content.fail("token ids below the model's vocab_size " + std::to_string(vocab_size_),
                         std::to_string(id) + ", which is not in the model's vocabulary");
        }
    }
}

bool JsonlSource::next_line(SequenceInput& sequence, bool encode_all) {
    std::string line;
    while ((options_.limit_tokens == 0 || taken_tokens_ < options_.limit_tokens) && lines_->next(line)) {
        if (line.find_first_not_of(" \t") == std::string::npos && !lines_->too_long()) {
            continue;
        }
        try {
            read(line, sequence, encode_all);
            ++found_;
            taken_tokens_ += static_cast<std::int64_t>(sequence.ids.size());
            return true;
        } catch (const InputError& error) {
            if (!options_.skip_bad) {
                throw;
            }
            if (++skipped_ == 1) {
                first_skipped_ = error.what();
            }
        }
    }
    if (found_ == 0 && !is_stopped()) {
        throw InputError(ErrorId::text_empty, name_, "at least one line with a text",
                         skipped_ > 0 ? "only invalid lines, the first: " + first_skipped_ : "none",
                         "write one JSON object a line");
    }
    return false;
}

std::shared_ptr<const SequenceInput> JsonlSource::read_next() {
    auto sequence = std::make_shared<SequenceInput>();
    if (!next_line(*sequence, true)) {
        return nullptr;
    }
    hash_.update(sequence->text);
    return sequence;
}

std::string JsonlSource::left_out() const {
    if (skipped_ == 0) {
        return {};
    }
    return std::to_string(skipped_) + (skipped_ == 1 ? " line was" : " lines were") +
           " left out; the first: " + first_skipped_;
}

void JsonlSource::add_choices(nlohmann::json& choices) const {
    if (options_.limit_tokens > 0) {
        choices["limit_tokens"] = options_.limit_tokens;
    }
    for (const auto& [key, field, usual] : {std::tuple{"group_field", &options_.group_field, ""},
                                            std::tuple{"label_field", &options_.label_field, ""},
                                            std::tuple{"text_field", &options_.text_field, "text"}}) {
        if (*field != usual) {
            choices[key] = *field;
        }
    }
}

} // namespace ponderscope
