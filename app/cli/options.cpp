// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/options.h"

#include "core/base/error.h"

#include <map>

namespace ponderscope::cli {

void ModelOptions::add_to(CLI::App& verb, bool positional) {
    if (positional) {
        verb.add_option("checkpoint", checkpoint, "Checkpoint folder in Hugging Face layout")->required();
    }
    verb.add_option("--method", method,
                    "Method, where the config does not tell: vanilla looped pause ponderlm ponderlm_reset "
                    "ponderlm_hidden ponderlm2 "
                    "adaponderlm ponderlm3 adaptive_latent_cot");
    verb.add_option("--device", device, "cpu, cuda or cuda:N")->capture_default_str();
    verb.add_option("--dtype", dtype, "float32, bfloat16 or float16: the precision of the products")
        ->capture_default_str();
}

Checkpoint ModelOptions::open() const {
    std::optional<MethodKind> kind;
    if (!method.empty()) {
        kind = method_from_string(method);
        if (!kind) {
            throw InputError("--method: expected one of vanilla, looped, pause, ponderlm, ponderlm_reset, "
                             "ponderlm_hidden, ponderlm2, "
                             "adaponderlm, ponderlm3, adaptive_latent_cot; found '" +
                             method + "'.");
        }
    }
    Checkpoint opened = Checkpoint::open(checkpoint, kind);
    if (!kind && opened.config.candidate_methods.size() > 1) {
        std::string names;
        for (const MethodKind candidate : opened.config.candidate_methods) {
            names += (names.empty() ? "" : ", ") + to_string(candidate);
        }
        throw InputError((opened.folder / "config.json").string() + ": its keys fit several methods (" +
                         names + ") and name none; choose one with --method.");
    }
    return opened;
}

LoadOptions ModelOptions::load_options(ProgressPrinter& progress, std::stop_token stop) const {
    const std::optional<Precision> precision = precision_from_string(dtype);
    if (!precision) {
        throw InputError("--dtype: expected float32, bfloat16 or float16, found '" + dtype + "'.");
    }
    LoadOptions options;
    options.device = device;
    options.precision = *precision;
    options.progress = progress.sink();
    options.stop = std::move(stop);
    return options;
}

void InputOptions::add_to(CLI::App& verb, bool with_ids) {
    verb.add_option("--text", texts, "Text file in UTF-8; several make several sequences")->type_name("FILE");
    verb.add_option("--prompt", prompt, "Text given on the command line")->type_name("STR");
    if (with_ids) {
        verb.add_option("--ids", ids, "Token ids: JSON [[...], ...] or a safetensors file with input_ids")
            ->type_name("FILE");
    }
    verb.add_flag("--no-special-tokens", no_special_tokens,
                  "Leave out the tokens that the tokenizer adds by itself");
}

void InputOptions::check() const {
    const int kinds =
        static_cast<int>(!texts.empty()) + static_cast<int>(!prompt.empty()) + static_cast<int>(!ids.empty());
    if (kinds != 1) {
        throw InputError(kinds == 0 ? "Nothing to read: give --text FILE, --prompt STR or --ids FILE."
                                    : "--text, --prompt and --ids exclude each other; give one of them.");
    }
}

std::vector<SequenceInput> InputOptions::read(const Tokenizer* tokenizer,
                                              const Checkpoint& checkpoint) const {
    check();
    std::vector<SequenceInput> sequences;
    if (!ids.empty()) {
        std::vector<std::vector<std::int32_t>> rows = read_ids(ids);
        for (std::size_t row = 0; row < rows.size(); ++row) {
            SequenceInput sequence;
            sequence.title =
                ids.filename().string() + (rows.size() > 1 ? " [" + std::to_string(row) + "]" : "");
            sequence.ids = std::move(rows[row]);
            if (tokenizer != nullptr) {
                // With a tokenizer at hand the ids can be read as text; the spans are the decoded tokens'.
                attach_decoded_text(sequence, *tokenizer);
            }
            sequences.push_back(std::move(sequence));
        }
        return sequences;
    }
    if (tokenizer == nullptr) {
        throw InputError(
            checkpoint.folder.string() +
            ": expected a tokenizer.json to read text with, found none; give token ids with --ids.");
    }
    if (!prompt.empty()) {
        sequences.push_back(sequence_from_prompt(prompt, *tokenizer, !no_special_tokens));
    }
    for (const std::filesystem::path& file : texts) {
        sequences.push_back(sequence_from_text_file(file, *tokenizer, !no_special_tokens));
    }
    return sequences;
}

std::string InputOptions::source() const {
    if (!prompt.empty()) {
        return "prompt";
    }
    if (!ids.empty()) {
        return ids.string();
    }
    std::string names;
    for (const std::filesystem::path& file : texts) {
        names += (names.empty() ? "" : ", ") + file.string();
    }
    return names;
}

void ProgressOption::add_to(CLI::App& verb) {
    static const std::map<std::string, ProgressStyle> styles{
        {"auto", ProgressStyle::automatic}, {"json", ProgressStyle::json}, {"none", ProgressStyle::none}};
    verb.add_option("--progress", style, "auto (on a terminal), json (one object a line on stderr) or none")
        ->transform(CLI::CheckedTransformer(styles));
}

std::optional<Tokenizer> open_tokenizer(const Checkpoint& checkpoint) {
    if (!checkpoint.tokenizer_json) {
        return std::nullopt;
    }
    Tokenizer tokenizer = Tokenizer::load(*checkpoint.tokenizer_json);
    tokenizer.require_vocabulary(checkpoint.config.vocab_size);
    return tokenizer;
}

Tokenizer require_tokenizer(const Checkpoint& checkpoint) {
    std::optional<Tokenizer> tokenizer = open_tokenizer(checkpoint);
    if (!tokenizer) {
        throw InputError(checkpoint.folder, "a tokenizer.json", "none",
                         "put the model's tokenizer.json there, or work with ids");
    }
    return std::move(*tokenizer);
}

} // namespace ponderscope::cli
