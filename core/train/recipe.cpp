// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/train/recipe.h"

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/words.h"
#include "core/checkpoint/method_info.h"

#include <algorithm>
#include <numbers>
#include <utility>

namespace ponderscope {

namespace {

using nlohmann::json;

constexpr std::int64_t most_steps = 100'000'000;
constexpr std::int64_t most_context = 1 << 20;
constexpr std::int64_t most_batch = 1 << 16;
/// Limit of context times batch. Products with this number fit into 64 bits.
constexpr std::int64_t most_tokens_per_step = std::int64_t{1} << 30;

using Keys = std::vector<std::string_view>;

/// Keys of config.json that a recipe may set. Other keys are errors: in a recipe they are typing mistakes.
const Keys common_keys({"model_type", "vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads",
                        "intermediate_size", "hidden_act", "max_position_embeddings", "tie_word_embeddings",
                        "attention_bias", "initializer_range", "bos_token_id", "eos_token_id", "pad_token_id",
                        "rope_scaling", "rope_parameters", "use_cache"});
/// The config keys of all methods, and of depth mixing.
const Keys& method_keys() {
    static const Keys all = [] {
        Keys keys({"pondering", "scale_embeds", "recurrent_model", "num_latent_thoughts",
                   "use_depth_attention", "depth_attention_stride", "depth_attention_recent_window",
                   "use_qk_norm", "baseline_mode", "residual_baseline", "residual_baseline_num_streams",
                   "mhc_num_streams", "mhc_sinkhorn_iters", "attnres_block_size", "denseformer_dwa_dilation",
                   "denseformer_dwa_period"});
        for (const MethodInfo& info : method_infos()) {
            keys.insert(keys.end(), info.public_form.keys.begin(), info.public_form.keys.end());
        }
        return keys;
    }();
    return all;
}

/// Keys of one architecture; empty for a model_type that cannot be trained.
Keys architecture_keys(const std::string& model_type) {
    if (model_type == "gpt_neox") {
        return {"layer_norm_eps", "rotary_pct", "rotary_emb_base", "use_parallel_residual"};
    }
    if (model_type == "llama") {
        return {"num_key_value_heads", "rms_norm_eps", "rope_theta", "mlp_bias", "head_dim"};
    }
    return {};
}

void allow_only(const JsonObject& object, const Keys& known) {
    for (const auto& key : object.keys()) {
        if (std::find(known.begin(), known.end(), key) == known.end()) {
            throw InputError(ErrorId::json_key, object.source().string() + ": \"" + object.name_of(key) +
                                                    "\" is not a key of a recipe" +
                                                    did_you_mean_or_list(key, known));
        }
    }
}

std::filesystem::path from_folder_of(const std::filesystem::path& source, const std::string& path) {
    const std::filesystem::path given(path);
    return given.is_absolute() ? given : (source.parent_path() / given).lexically_normal();
}

double number_in(const JsonObject& object, std::string_view key, double fallback, double least, double most,
                 const std::string& range) {
    const auto value = object.number(key);
    if (value && !(*value >= least && *value <= most)) {
        object.fail(key, range);
    }
    return value.value_or(fallback);
}

std::vector<std::string> texts_in(const JsonObject& object, std::string_view key, bool required) {
    std::vector<std::string> result;
    const json* list = required ? &object.required_array(key) : object.array(key);
    if (list == nullptr) {
        return result;
    }
    for (const auto& entry : *list) {
        if (!entry.is_string() || entry.get_ref<const std::string&>().empty()) {
            object.fail(key, "a list of file names");
        }
        result.push_back(entry.get<std::string>());
    }
    if (required && result.empty()) {
        object.fail(key, "at least one file name");
    }
    return result;
}

/// The model of a training that starts from a checkpoint. The recipe sets only keys of the method.
void read_continued_model(const std::optional<JsonObject>& model, Recipe& recipe) {
    const auto path = (std::filesystem::is_regular_file(recipe.start)
                           ? std::filesystem::absolute(recipe.start).parent_path()
                           : recipe.start) /
                      "config.json";
    if (!std::filesystem::exists(path)) {
        throw InputError(ErrorId::training_recipe,
                         recipe.source.string() + ": \"initialization.from\" is " + recipe.start.string() +
                             ", which has no config.json; name the folder of a checkpoint.");
    }
    recipe.start = path.parent_path();
    recipe.model = read_json_file(path);
    if (!model) {
        return;
    }
    for (const auto& key : model->keys()) {
        if (std::find(method_keys().begin(), method_keys().end(), key) == method_keys().end()) {
            throw InputError(ErrorId::json_key,
                             recipe.source.string() + ": \"" + model->name_of(key) + "\" is already set by " +
                                 path.string() +
                                 ", the checkpoint that this training starts from; a recipe with " +
                                 "\"initialization.from\" may set only keys of the method. Remove the key.");
        }
    }
    recipe.model.merge_patch(model->value());
    recipe.initial_deviation = number_in(JsonObject(recipe.model, path), "initializer_range", 0.02, 1e-6, 10,
                                         "a number between 1e-6 and 10");
}

void read_model(const JsonObject& model, Recipe& recipe) {
    const std::string type = model.required_text("model_type");
    const Keys own = architecture_keys(type);
    if (own.empty()) {
        model.fail("model_type", "gpt_neox or llama", "other architectures can be run but not trained");
    }
    Keys known = common_keys;
    known.insert(known.end(), method_keys().begin(), method_keys().end());
    known.insert(known.end(), own.begin(), own.end());
    allow_only(model, known);
    // Require the sizes. The defaults of transformers are the sizes of the original models.
    for (const auto* key : {"hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size"}) {
        static_cast<void>(model.required_integer(key, 1));
    }
    recipe.model = model.value();
    recipe.initial_deviation =
        number_in(model, "initializer_range", 0.02, 1e-6, 10, "a number between 1e-6 and 10");
}

void read_texts(const JsonObject& texts, Recipe& recipe) {
    allow_only(texts, {"folder", "train", "held_out", "held_out_fraction", "document_end"});
    recipe.texts = from_folder_of(recipe.source, texts.text("folder").value_or("."));
    recipe.train_texts = texts_in(texts, "train", true);
    recipe.held_out_texts = texts_in(texts, "held_out", false);
    recipe.held_out_fraction = number_in(texts, "held_out_fraction", 0, 0, 0.9, "a share between 0 and 0.9");
    recipe.document_end = texts.text("document_end").value_or("");
}

void read_training(const JsonObject& training, Recipe& recipe) {
    allow_only(training, {"steps", "tokens", "context", "batch", "seed", "precision", "clip_norm",
                          "jacobi_iterations", "shifted"});
    recipe.context = training.required_integer("context", 1, most_context);
    recipe.batch = training.required_integer("batch", 1, most_batch);
    if (recipe.context * recipe.batch > most_tokens_per_step) {
        training.fail("batch", "a batch of at most " + std::to_string(most_tokens_per_step) +
                                   " tokens (context x batch)");
    }
    if (training.has("steps") == training.has("tokens")) {
        throw InputError(ErrorId::training_recipe,
                         training.source().string() +
                             ": \"training\" needs either \"steps\" or \"tokens\"; give one of them.");
    }
    if (training.has("steps")) {
        recipe.steps = training.required_integer("steps", 1, most_steps);
    } else {
        const std::int64_t tokens = training.required_integer("tokens", 1, most_steps * 100'000);
        recipe.steps = (tokens + recipe.tokens_per_step() - 1) / recipe.tokens_per_step();
    }
    recipe.seed = static_cast<std::uint64_t>(training.integer("seed", 0).value_or(0));
    const std::string precision = training.text("precision").value_or("auto");
    recipe.precision = precision_from_string(precision);
    if (recipe.precision ? recipe.precision == Precision::float16 : precision != "auto") {
        training.fail("precision", "auto, float32, tf32 or bfloat16");
    }
    recipe.shifted = training.boolean("shifted").value_or(true);
    recipe.jacobi_iterations = training.integer("jacobi_iterations", 0, 1000);
    recipe.clip_norm = number_in(training, "clip_norm", 1.0, 0, 1e9, "a number from 0 (off)");
}

/// Keys of the penalty of the method in the "pondering" section. Methods with public keys have no penalty.
Keys penalty_keys(const Recipe& recipe) {
    const auto section = recipe.model.find("pondering");
    if (section == recipe.model.end() || !section->is_object()) {
        return {};
    }
    const auto name = section->find("method");
    const MethodInfo* info = name != section->end() && name->is_string()
                                 ? method_info(name->get_ref<const std::string&>())
                                 : nullptr;
    return info != nullptr ? info->penalty : Keys();
}

void read_penalty(const std::optional<JsonObject>& penalty, Recipe& recipe) {
    recipe.ramp_start = recipe.steps / 2;
    recipe.ramp_end = recipe.steps;
    if (!penalty) {
        return;
    }
    const Keys known = penalty_keys(recipe);
    if (known.empty()) {
        throw InputError(ErrorId::json_key,
                         penalty->source().string() + ": \"penalty\" is of the methods " +
                             method_names([](const MethodInfo& info) { return !info.penalty.empty(); }) +
                             " in \"model.pondering\"; this model has no penalty on steps.");
    }
    allow_only(*penalty, known);
    recipe.penalty_weight =
        number_in(*penalty, "lambda", recipe.penalty_weight, 0, 1e6, "a number from 0 to 1e6");
    recipe.penalty_beta = number_in(*penalty, "beta", recipe.penalty_beta, 0, 100, "a number from 0 to 100");
    recipe.gate_share = number_in(*penalty, "k_max", recipe.gate_share, 0, 1, "a share between 0 and 1");
    recipe.ramp_start = penalty->integer("ramp_start", 0, most_steps).value_or(recipe.ramp_start);
    recipe.ramp_end = penalty->integer("ramp_end", 0, most_steps).value_or(recipe.ramp_end);
    if (recipe.ramp_end < recipe.ramp_start) {
        penalty->fail("ramp_end", "at least ramp_start, " + std::to_string(recipe.ramp_start));
    }
}

void read_optimizer(const JsonObject& optimizer, Recipe& recipe) {
    recipe.learning_rate = number_in(optimizer, "learning_rate", recipe.learning_rate, 1e-12, 10,
                                     "a number between 1e-12 and 10");
    if (const json* betas = optimizer.array("betas")) {
        const auto valid = [](const json& beta) {
            return beta.is_number() && beta.get<double>() >= 0 && beta.get<double>() < 1;
        };
        if (betas->size() != 2 || !valid((*betas)[0]) || !valid((*betas)[1])) {
            optimizer.fail("betas", "two numbers from 0 to below 1");
        }
        recipe.beta1 = (*betas)[0].get<double>();
        recipe.beta2 = (*betas)[1].get<double>();
    }
    recipe.weight_decay =
        number_in(optimizer, "weight_decay", recipe.weight_decay, 0, 10, "a number from 0 to 10");
    recipe.warmup_steps = optimizer.integer("warmup_steps", 0, most_steps)
                              .value_or(std::min<std::int64_t>(recipe.steps / 20, 2000));
    if (recipe.warmup_steps > recipe.steps) {
        optimizer.fail("warmup_steps",
                       "at most the " + std::to_string(recipe.steps) + " steps of the training",
                       "lower it in the file or with --set optimizer.warmup_steps=N, or train longer");
    }
    recipe.final_fraction =
        number_in(optimizer, "final_fraction", recipe.final_fraction, 0, 1, "a share between 0 and 1");
}

} // namespace

Recipe parse_recipe(std::string_view text, const std::filesystem::path& source) {
    const json document = parse_json(text, source);
    const JsonObject root(document, source);
    allow_only(root, {"extends", "name", "description", "model", "initialization", "tokenizer", "texts",
                      "training", "penalty", "optimizer", "evaluation", "checkpoint", "log", "output"});
    Recipe recipe;
    recipe.source = source;
    recipe.name = root.text("name").value_or(source.stem().string());
    recipe.description = root.text("description").value_or("");
    const json empty = json::object();
    const auto section = [&](const char* name, const Keys& known) {
        JsonObject object = root.object(name).value_or(JsonObject(empty, source, name));
        allow_only(object, known);
        return object;
    };
    if (const auto start = section("initialization", {"from"}).text("from")) {
        recipe.start = from_folder_of(source, *start);
    }
    if (recipe.start.empty()) {
        read_model(root.required_object("model"), recipe);
        recipe.tokenizer = from_folder_of(source, root.required_text("tokenizer"));
    } else {
        read_continued_model(root.object("model"), recipe);
        const auto tokenizer = root.text("tokenizer");
        recipe.tokenizer = tokenizer ? from_folder_of(source, *tokenizer) : recipe.start;
    }
    read_texts(root.required_object("texts"), recipe);
    read_training(root.required_object("training"), recipe);
    read_penalty(root.object("penalty"), recipe);
    read_optimizer(
        section("optimizer", {"learning_rate", "betas", "weight_decay", "warmup_steps", "final_fraction"}),
        recipe);
    const JsonObject evaluation = section("evaluation", {"every", "windows", "final_windows"});
    const auto or_default = [](std::int64_t& value, const JsonObject& object, const char* key,
                               std::int64_t least) {
        value = object.integer(key, least, most_steps).value_or(value);
    };
    or_default(recipe.evaluate_every, evaluation, "every", 0);
    or_default(recipe.evaluate_windows, evaluation, "windows", 1);
    or_default(recipe.final_windows, evaluation, "final_windows", 0);
    or_default(recipe.checkpoint_every, section("checkpoint", {"every"}), "every", 0);
    or_default(recipe.log_every, section("log", {"every"}), "every", 1);
    recipe.output_dtype = choice<DType>(section("output", {"dtype"}), "dtype",
                                        {{"bfloat16", DType::bf16}, {"float32", DType::f32}}, DType::bf16);
    return recipe;
}

namespace {

/// Turns "training.seed=2" into {"training": {"seed": 2}}.
json change_of(const std::string& text) {
    const std::size_t equal = text.find('=');
    json value = equal == std::string::npos ? json() : json::parse(text.substr(equal + 1), nullptr, false);
    if (value.is_discarded()) {
        value = text.substr(equal + 1);
    }
    std::vector<std::string> keys{{}};
    for (const char c : text.substr(0, std::min(equal, text.size()))) {
        if (c == '.') {
            keys.emplace_back();
        } else {
            keys.back() += c;
        }
    }
    if (equal == std::string::npos ||
        std::any_of(keys.begin(), keys.end(), [](const std::string& key) { return key.empty(); })) {
        throw InputError(ErrorId::usage_missing, "\"" + text +
                                                     "\" is not a setting of a recipe; write a key with its "
                                                     "sections and a value, such as training.seed=2.");
    }
    for (auto key = keys.rbegin(); key != keys.rend(); ++key) {
        value = json{{*key, std::move(value)}};
    }
    return value;
}

} // namespace

Recipe read_recipe(const std::filesystem::path& path, const std::vector<std::string>& changes) {
    std::vector<json> chain{read_json_file(path)}; // the recipe, the recipe that it extends, and so on
    std::vector<std::string> names{path.filename().string()};
    for (;;) {
        const auto source = path.parent_path() / names.back();
        const JsonObject object(chain.back(), source);
        if (!chain.back().contains("extends")) {
            break;
        }
        const std::string name = object.required_text("extends");
        if (name.empty() || name[0] == '.' || name != std::filesystem::path(name).filename()) {
            object.fail("extends", "the name of a recipe in the same folder");
        }
        if (std::find(names.begin(), names.end(), name) != names.end()) {
            throw InputError(ErrorId::training_recipe, source.string() + ": \"extends\" leads back to " +
                                                           name +
                                                           "; one of these recipes must extend no other.");
        }
        names.push_back(name);
        chain.push_back(read_json_file(path.parent_path() / name));
    }
    json merged = chain.back();
    for (auto next = std::next(chain.rbegin()); next != chain.rend(); ++next) {
        // Name and description are not inherited.
        merged.erase("name");
        merged.erase("description");
        merged.merge_patch(*next);
        merged.erase("extends");
    }
    for (const std::string& change : changes) {
        merged.merge_patch(change_of(change));
    }
    if (merged.contains("extends")) {
        throw InputError(ErrorId::json_key, "\"extends\" can be set only in the recipe's file; write a "
                                            "recipe that extends the other recipe.");
    }
    return parse_recipe(merged.dump(), path);
}

double Recipe::learning_rate_at(std::int64_t step) const {
    if (step < warmup_steps) {
        return learning_rate * static_cast<double>(step + 1) / static_cast<double>(warmup_steps);
    }
    const std::int64_t begin = std::max<std::int64_t>(warmup_steps - 1, 0);
    const std::int64_t end = steps - 1;
    if (end <= begin) {
        return learning_rate;
    }
    const double done = std::min(1.0, static_cast<double>(step - begin) / static_cast<double>(end - begin));
    const double cosine = 0.5 * (1.0 + std::cos(std::numbers::pi * done));
    return learning_rate * (final_fraction + (1.0 - final_fraction) * cosine);
}

double Recipe::gate_share_at(std::int64_t step) const {
    if (step < ramp_start) {
        return 0;
    }
    const auto length = static_cast<double>(ramp_end - ramp_start);
    const double way = length > 0 ? static_cast<double>(step - ramp_start) / length : 1.0;
    return gate_share * std::clamp(way, 0.0, 1.0);
}

nlohmann::json essence(const Recipe& recipe) {
    const json every = {{"lambda", recipe.penalty_weight},
                        {"beta", recipe.penalty_beta},
                        {"k_max", recipe.gate_share},
                        {"ramp_start", recipe.ramp_start},
                        {"ramp_end", recipe.ramp_end}};
    json penalty;
    for (const std::string_view key : penalty_keys(recipe)) {
        penalty[std::string(key)] = every.at(key);
    }
    nlohmann::json all = {{"model", recipe.model},
                          {"texts",
                           {{"train", recipe.train_texts},
                            {"held_out", recipe.held_out_texts},
                            {"held_out_fraction", recipe.held_out_fraction},
                            {"document_end", recipe.document_end}}},
                          {"training",
                           {{"steps", recipe.steps},
                            {"context", recipe.context},
                            {"batch", recipe.batch},
                            {"seed", recipe.seed},
                            {"precision", recipe.precision ? to_string(*recipe.precision) : "auto"},
                            {"clip_norm", recipe.clip_norm}}},
                          {"optimizer",
                           {{"learning_rate", recipe.learning_rate},
                            {"betas", {recipe.beta1, recipe.beta2}},
                            {"weight_decay", recipe.weight_decay},
                            {"warmup_steps", recipe.warmup_steps},
                            {"final_fraction", recipe.final_fraction}}}};
    if (!recipe.start.empty()) {
        all["initialization"]["from"] = recipe.start_digest;
    }
    if (!recipe.shifted) {
        all["training"]["shifted"] = false; // true is left out, so that older recipes keep their digest
    }
    if (recipe.jacobi_iterations) {
        all["training"]["jacobi_iterations"] = *recipe.jacobi_iterations;
    }
    if (!penalty.is_null()) {
        all["penalty"] = penalty;
    }
    return all;
}

} // namespace ponderscope
