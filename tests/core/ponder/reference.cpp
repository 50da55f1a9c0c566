// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/core/ponder/reference.h"

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/utf8.h"
#include "core/base/words.h"
#include "core/checkpoint/safetensors.h"
#include "core/policy/policy_spec.h"
#include "core/ponder/halting/halting_rules.h"
#include "core/ponder/halting/policy_halting.h"
#include "core/trace/reader.h"
#include "tests/core/ponder/reference_arrays.h"
#include "tests/core/ponder/tiny_models.h"
#include "tests/support/golden_policy.h"

#include <cmath>
#include <optional>
#include <set>

namespace ponderscope::testing {
namespace {

/// NaN against NaN is equal, NaN against a number infinitely far.
double largest_difference(const std::vector<float>& ours, const std::vector<float>& theirs) {
    double largest = 0;
    for (std::size_t i = 0; i < ours.size(); ++i) {
        if (std::isnan(ours[i]) && std::isnan(theirs[i])) {
            continue;
        }
        const double difference = std::abs(static_cast<double>(ours[i]) - static_cast<double>(theirs[i]));
        largest = std::isnan(difference) ? INFINITY : std::max(largest, difference);
    }
    return largest;
}

ReferenceComparison compare(const std::string& name, const NamedArray& ours, const NamedArray& theirs,
                            double tolerance, bool decides) {
    ReferenceComparison result;
    result.name = name;
    result.decides = decides;
    result.exact = theirs.dtype == DType::i64;
    result.shape_fits = ours.shape == theirs.shape && ours.dtype == theirs.dtype;
    if (!result.shape_fits) {
        result.difference = INFINITY;
        result.passed = false;
    } else if (result.exact) {
        std::int64_t unequal = 0;
        for (std::size_t i = 0; i < ours.integers.size(); ++i) {
            unequal += ours.integers[i] != theirs.integers[i] ? 1 : 0;
        }
        result.difference = static_cast<double>(unequal);
        result.passed = unequal == 0;
    } else {
        // Signals near a kink magnify the rounding of logits; the reference bounds them by what 1e-4 on every
        // logit does.
        result.tolerance = name.find("signal.") != std::string::npos ? 5 * tolerance : tolerance;
        result.difference = largest_difference(ours.floats, theirs.floats);
        result.passed = result.difference <= result.tolerance;
    }
    return result;
}

std::vector<std::vector<std::int32_t>> rows_of(const NamedArray& ids, const std::filesystem::path& path,
                                               std::int64_t length) {
    if (ids.shape.size() != 2 || ids.dtype != DType::i64) {
        throw InputError(ErrorId::input_invalid, path, "input_ids as integers [B, T]",
                         "another shape or type", "make the reference again");
    }
    std::vector<std::vector<std::int32_t>> rows;
    for (std::int64_t row = 0; row < ids.shape[0]; ++row) {
        std::vector<std::int32_t> values;
        for (std::int64_t t = 0; t < length; ++t) {
            values.push_back(
                static_cast<std::int32_t>(ids.integers[static_cast<std::size_t>(row * ids.shape[1] + t)]));
        }
        rows.push_back(std::move(values));
    }
    return rows;
}

NamedArray generate_like(const Engine& engine, const NamedArray& ids, const NamedArray& expected,
                         const nlohmann::json& description, const std::filesystem::path& path,
                         bool use_cache) {
    std::int64_t prompt = ids.shape[1];
    if (const auto settings = description.find("settings");
        settings != description.end() && settings->is_object()) {
        prompt = std::clamp<std::int64_t>(settings->value("greedy_prompt_tokens", prompt), 1, ids.shape[1]);
    }
    GenerateOptions options{.max_new_tokens = expected.shape.back(), .use_cache = use_cache};
    NamedArray result;
    result.dtype = DType::i64;
    result.shape = expected.shape;
    for (const std::vector<std::int32_t>& row : engine.generate(rows_of(ids, path, prompt), options)) {
        result.integers.insert(result.integers.end(), row.begin(), row.end());
    }
    return result;
}

/// The name under which we compute what the reference calls \p theirs.
std::string our_name(const std::string& theirs) {
    static const std::map<std::string, std::string> others{
        {"gate", "signal.gate"},
        {"lambda", "signal.gate"},
        {"p", "signal.exit_probability"},
        {"cdf", "signal.exit_cdf"},
        {"expected.nll", "signal.expected_nll"},
        {"reach", "signal.reach"},
        {"halting_mass", "signal.halting_mass"},
        {"router.probability", "signal.router_probability"},
        {"router.log_tail_mass", "signal.router_log_tail_mass"}};
    const std::string weights = "depth_weights.";
    if (theirs.starts_with(weights + "layer")) {
        return weights + "step0." + theirs.substr(weights.size()); // one pass only
    }
    const std::string router = "router.layer";
    if (const std::size_t dot = theirs.rfind('.'); theirs.starts_with(router)) {
        return "router_" + theirs.substr(dot + 1) + ".step0.layer" +
               theirs.substr(router.size(), dot - router.size());
    }
    if (theirs.starts_with("hidden.step") && theirs.find(".layer") != std::string::npos) {
        return "layer_output" + theirs.substr(std::string("hidden").size());
    }
    const auto found = others.find(theirs);
    return found != others.end()              ? found->second
           : theirs.starts_with("input.step") ? "embeds" + theirs.substr(5)
                                              : theirs;
}

/// The same ids, with the whole sequence computed for each.
constexpr const char* uncached = "generated without a cache";

/// Reference files hold 0 where a step did not run.
void zero_unrun_steps(ArrayMap& arrays) {
    const NamedArray steps = arrays.at("steps");
    for (auto& [name, array] : arrays) {
        const std::size_t fixed = name.find(".step");
        const bool signal = name.starts_with("signal.");
        if (array.shape.size() < 3 || (!signal && fixed == std::string::npos)) {
            continue;
        }
        const std::int64_t only = signal ? -1 : std::stoll(name.substr(fixed + 5));
        const std::int64_t columns = signal ? array.shape[2] : 1; // steps, where the array has several
        const std::int64_t tokens = array.shape[1];
        const auto all = static_cast<std::int64_t>(std::max(array.floats.size(), array.integers.size()));
        const std::int64_t each = all / std::max<std::int64_t>(array.shape[0] * tokens * columns, 1);
        for (std::int64_t i = 0; i < all; ++i) {
            const std::int64_t row = i / each / columns;
            const std::int64_t step = signal ? i / each % columns : only;
            const std::int64_t token = row / tokens * steps.shape[1] + row % tokens;
            if (step <= steps.integers[static_cast<std::size_t>(token)]) {
                continue;
            }
            const auto at = static_cast<std::size_t>(i);
            if (array.dtype == DType::i64) {
                array.integers[at] = array.integers[at] == did_not_run ? 0 : array.integers[at];
            } else if (std::isnan(array.floats[at])) {
                array.floats[at] = 0;
            }
        }
    }
}

/// What we compute, in the form of the reference.
ArrayMap compute(const Engine& engine, const std::vector<std::vector<std::int32_t>>& rows) {
    ArrayMap arrays = engine.inspect_batch(rows);
    zero_unrun_steps(arrays);
    return arrays;
}

/// The outputs of a layer at all steps, [B, T, d] each, as one array of slots, [B, T * steps, d]: where one
/// pass runs all slots, the reference has them so. \p name: of step 0.
NamedArray interleaved(const ArrayMap& arrays, std::int64_t steps, const std::string& name) {
    const std::string before = "layer_output.step";
    NamedArray all;
    all.shape = arrays.at(name).shape;
    const auto d = static_cast<std::ptrdiff_t>(all.shape[2]);
    const std::int64_t tokens = all.shape[0] * all.shape[1];
    all.shape[1] *= steps;
    for (std::int64_t token = 0; token < tokens; ++token) {
        for (std::int64_t k = 0; k < steps; ++k) {
            const std::string of_step = before + std::to_string(k) + name.substr(before.size() + 1);
            const auto begin = arrays.at(of_step).floats.begin() + token * d;
            all.floats.insert(all.floats.end(), begin, begin + d);
        }
    }
    return all;
}

/// The parallel form of slots that follow each other: K growth passes, refreshes, and a last one.
void compute_passes(Engine& engine, const std::vector<std::vector<std::int32_t>>& rows,
                    const ArrayMap& golden, ArrayMap& ours) {
    const std::string begin = "jacobi.pass";
    for (const auto& [name, theirs] : golden) {
        if (name.starts_with(begin) && name.ends_with(".logits")) {
            const std::string pass = name.substr(0, name.size() - std::string("logits").size());
            const auto number = parse_number<std::int64_t>(
                std::string_view(pass).substr(begin.size(), pass.size() - begin.size() - 1));
            if (!number) {
                throw InputError(ErrorId::input_invalid, "Reference array \"" + printable(name) +
                                                             "\": expected the number of a pass in its "
                                                             "name, as in jacobi.pass3.logits.");
            }
            engine.choose(&RunPlan::refreshes, *number - engine.config().ponder.max_steps - 1);
            ArrayMap refreshed = compute(engine, rows);
            ours[pass + "logits"] = std::move(refreshed.at("logits"));
            ours[pass + "steps"] = std::move(refreshed.at("steps"));
            engine.choose(&RunPlan::refreshes, std::nullopt);
        }
    }
}

/// Sequence attention of the layers that the reference kept, [1, head, query, key] of the first sequence (its
/// beginning, perhaps). Ours are fp16.
void compare_attention(Engine& engine, const ArrayMap& golden,
                       const std::vector<std::vector<std::int32_t>>& rows, ReferenceResult& result) {
    for (const auto& [name, theirs] : golden) {
        if (!name.starts_with("attention.layer") && !name.starts_with("attention_head.layer")) {
            continue;
        }
        engine.choose(&RunPlan::attention,
                      AttentionChoice::parse(name.substr(name.rfind("layer") + 5), engine.config()));
        const ArrayMap arrays = engine.inspect_batch({rows.front()});
        engine.choose(&RunPlan::attention, {});
        const NamedArray& ours = arrays.at("signal.attention"); // [1, token, step, layer, head, back]
        const auto heads = static_cast<std::size_t>(theirs.shape[1]);
        const auto length = static_cast<std::size_t>(theirs.shape[2]);
        const auto back = static_cast<std::size_t>(ours.shape.back());
        NamedArray square = theirs;
        for (std::size_t i = 0; i < square.floats.size() && ours.shape[4] == theirs.shape[1]; ++i) {
            const std::size_t key = i % length;
            const std::size_t query = i / length % length;
            const std::size_t head = i / length / length;
            square.floats[i] = key <= query ? ours.floats[(query * heads + head) * back + query - key] : 0.0F;
        }
        result.comparisons.push_back(compare(name, square, theirs, 5e-4, false));
        result.comparisons.back().shape_fits = ours.shape[4] == theirs.shape[1];
    }
}

/// Runs in which nothing halts, and reruns of policies, where the reference has them. Leaves the engine with
/// another rule.
void compute_policies(Engine& engine, const std::vector<std::vector<std::int32_t>>& rows,
                      const ArrayMap& golden, const nlohmann::json& description, ArrayMap& ours) {
    const bool exits = golden.contains("exit_entropy");
    const auto first_full = golden.lower_bound("full.");
    if (exits || (first_full != golden.end() && first_full->first.starts_with("full."))) {
        engine.choose(&RunPlan::rule, rule_of(PolicySpec::parse("full"), engine));
        ArrayMap full = compute(engine, rows);
        for (const auto& [name, theirs] : golden) {
            const std::string block = "hidden.block";
            if (name.starts_with("full.")) {
                if (const auto found = full.find(our_name(name.substr(5))); found != full.end()) {
                    ours[name] = found->second;
                }
            } else if (name.starts_with(block)) {
                if (const auto found = full.find("hidden.step" + name.substr(block.size()));
                    found != full.end()) {
                    ours[name] = found->second;
                }
            }
        }
        static const std::pair<const char*, const char*> signals[] = {
            {"exit_margin", "signal.margin"}, {"exit_entropy", "signal.entropy"},
            {"exit_argmax", "signal.argmax"}, {"exit_kl", "signal.kl_previous_current"},
            {"exit_cosine", "signal.cosine"}, {"exit_latent_diff", "signal.latent_difference"}};
        for (const auto& [theirs, mine] : signals) {
            if (exits && golden.contains(theirs)) {
                const bool pairs = golden.at(theirs).shape[0] < golden.at("exit_entropy").shape[0];
                ours[theirs] = exit_rows(full.at(mine), pairs ? 1 : 0);
            }
        }
    }
    for (const nlohmann::json& entry : description.value("rerun", nlohmann::json::array())) {
        const std::string name = entry.value("name", "");
        engine.choose(&RunPlan::rule,
                      rule_of(PolicySpec::parse(golden_policy_named(description, name)), engine));
        ArrayMap arrays = compute(engine, rows);
        for (const char* const what : {"steps", "nll", "logits"}) {
            ours["rerun." + name + "." + what] = std::move(arrays.at(what));
        }
    }
}

/// Exits of released models (in the two ways of methods.md section 9): replays by the thresholds of the
/// case, and runs whose tokens stop, under each policy of what later tokens see. Given steps are prescribed.
void compute_exits(Engine& engine, const std::vector<std::vector<std::int32_t>>& rows, const ArrayMap& golden,
                   const nlohmann::json& description, ArrayMap& ours) {
    const auto take = [&](const std::string& prefix, ArrayMap arrays) {
        for (const char* const what : {"steps", "nll", "logits"}) {
            if (golden.contains(prefix + what)) {
                ours[prefix + what] = std::move(arrays.at(what));
            }
        }
    };
    const nlohmann::json exits = description.value("exits", nlohmann::json::array());
    for (std::size_t i = 0; i < exits.size(); ++i) {
        const std::string number = std::to_string(i) + ".";
        const std::string policy = "learned:theta=" + exits[i].at("threshold").dump();
        engine.choose(&RunPlan::rule, rule_of(PolicySpec::parse(policy), engine));
        engine.choose(&RunPlan::kv, KvPolicy::full);
        take("exit." + number, engine.inspect_batch(rows));
        for (const KvPolicy kv : {KvPolicy::per_step, KvPolicy::shared, KvPolicy::skip}) {
            const std::string prefix = "rerun." + number + to_string(kv) + ".";
            if (golden.contains(prefix + "nll") || golden.contains(prefix + "logits")) {
                engine.choose(&RunPlan::kv, kv);
                take(prefix, engine.inspect_batch(rows));
            }
        }
    }
    const auto given = golden.find("rerun.steps");
    if (given == golden.end() || given->second.shape.size() != 2) {
        return;
    }
    std::vector<std::vector<std::int32_t>> steps;
    const auto length = static_cast<std::size_t>(given->second.shape[1]);
    for (std::size_t row = 0; row < rows.size(); ++row) {
        const auto begin = given->second.integers.begin() + static_cast<std::ptrdiff_t>(row * length);
        steps.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(length));
    }
    engine.choose(&RunPlan::rule, prescribed_halting("given", steps));
    for (const auto& [name, kv] : {std::pair{"latest", KvPolicy::per_step},
                                   {"per_step", KvPolicy::per_step},
                                   {"shared", KvPolicy::shared},
                                   {"skip", KvPolicy::skip}}) {
        const std::string prefix = std::string("rerun.") + name + ".";
        if (golden.contains(prefix + "logits")) {
            engine.choose(&RunPlan::kv, kv);
            ArrayMap arrays = engine.inspect_batch(rows);
            ours["rerun.steps"] = arrays.at("steps");
            take(prefix, std::move(arrays));
        }
    }
}

/// What the authors of stacks of prelude, core and coda call the parts of a step.
void rename_parts(const ModelConfig& config, ArrayMap& ours) {
    ArrayMap renamed;
    for (const auto& [name, array] : ours) {
        const std::string block = ".layer";
        if (name.starts_with("embeds.step")) {
            renamed["adapter" + name.substr(6)] = array;
            renamed["injected" + name.substr(6)] = array;
        } else if (const std::size_t at = name.find(block);
                   name.starts_with("layer_output.step") && at != std::string::npos) {
            const std::int64_t l = std::stoll(name.substr(at + block.size())) - config.core_begin();
            renamed["latent" + name.substr(12, at - 12) + block + std::to_string(l)] = array;
        }
    }
    ours.merge(renamed);
}

} // namespace

ArrayMap read_arrays(const std::filesystem::path& path) {
    const SafetensorsFile file = SafetensorsFile::open(path);
    ArrayMap arrays;
    for (const TensorView& tensor : file.tensors()) {
        SignalChunk chunk; // the trace's conversions know every dtype
        chunk.dtype = tensor.dtype;
        chunk.shape = tensor.shape;
        chunk.data.assign(tensor.bytes.begin(), tensor.bytes.end());
        NamedArray array;
        array.shape = tensor.shape;
        switch (tensor.dtype) {
        case DType::f16:
        case DType::bf16:
        case DType::f32:
        case DType::f64:
            array.dtype = DType::f32;
            array.floats = to_floats(chunk);
            break;
        default:
            array.dtype = DType::i64;
            array.integers = to_integers(chunk);
        }
        arrays.emplace(tensor.name, std::move(array));
    }
    return arrays;
}

ReferenceResult compare_with_reference(Engine& engine, const std::filesystem::path& folder) {
    const nlohmann::json description = read_json_file(folder / "case.json");
    const std::filesystem::path golden_path = folder / "golden.safetensors";
    const ArrayMap golden = read_arrays(golden_path);
    const auto ids = golden.find("input_ids");
    if (ids == golden.end()) {
        throw InputError(ErrorId::input_invalid, golden_path, "a tensor input_ids", "none",
                         "make the reference again");
    }
    const std::vector<std::vector<std::int32_t>> rows =
        rows_of(ids->second, golden_path, ids->second.shape[1]);
    ArrayMap ours = compute(engine, rows);
    // A reference that scores by refreshes holds the exact result beside it.
    const bool exact_too = golden.contains("logits_sequential");
    const bool exact_only = exact_too && engine.scoring() == "exact";
    if (exact_too) {
        if (!exact_only) {
            engine.choose(&RunPlan::refreshes, std::nullopt);
        }
        ArrayMap exact = exact_only ? ours : compute(engine, rows);
        for (const char* const name : {"logits", "nll"}) {
            ours[std::string(name) + "_sequential"] = std::move(exact.at(name));
        }
        for (std::int64_t k = 0; k <= engine.config().ponder.max_steps; ++k) {
            ours["hidden_sequential.slot" + std::to_string(k)] =
                std::move(exact.at("hidden.step" + std::to_string(k)));
        }
    }

    if (engine.config().architecture == Architecture::hrm_text) {
        engine.choose(&RunPlan::prefix, 0); // what a reference generates without saying more is causal
    }
    if (const auto generated = golden.find("generated"); generated != golden.end()) {
        for (const auto& [name, cached] : {std::pair{"generated", true}, {uncached, false}}) {
            ours[name] =
                generate_like(engine, ids->second, generated->second, description, golden_path, cached);
        }
    }
    if (const auto generated = golden.find("prefix.generated");
        generated != golden.end() && engine.config().released.prefix_lm) {
        engine.choose(&RunPlan::prefix, std::nullopt);
        ours["prefix.generated"] =
            generate_like(engine, ids->second, generated->second, description, golden_path, true);
        engine.choose(&RunPlan::prefix, description.at("prefix").at("tokens").get<std::int64_t>());
        ours["prefix.logits"] = compute(engine, rows).at("logits");
        engine.choose(&RunPlan::prefix, 0);
    }
    if (const auto generated = golden.find("last_loop.generated");
        generated != golden.end() && engine.config().released.last_loop_kv) {
        ours["last_loop.generated"] =
            generate_like(engine, ids->second, generated->second, description, golden_path, true);
        ours["per_loop.generated"] =
            generate_like(engine, ids->second, generated->second, description, golden_path, false);
    }
    if (golden.contains("last_loop.token_by_token.logits")) {
        engine.choose(&RunPlan::kv, KvPolicy::shared);
        ours["last_loop.token_by_token.logits"] = compute(engine, rows).at("logits");
        engine.choose(&RunPlan::kv, std::nullopt);
    }
    ReferenceResult result;
    compare_attention(engine, golden, rows, result);
    compute_passes(engine, rows, golden, ours);
    compute_policies(engine, rows, golden, description, ours);
    compute_exits(engine, rows, golden, description, ours);
    if (engine.config().recurs()) {
        rename_parts(engine.config(), ours);
    }

    result.tolerance = description.value("tolerance", 1e-4);
    static const std::set<std::string> deciding{
        "logits",         "logits_tail", "nll", "generated", "steps",       "flops", "logits_sequential",
        "nll_sequential", "lambda",      "p",   "cdf",       "expected.nll"};
    for (const auto& [name, theirs] : golden) {
        if (name == "input_ids") {
            continue;
        }
        const bool rerun = name.starts_with("rerun.") || name.starts_with("last_loop.") ||
                           name.starts_with("per_loop.") || name.starts_with("prefix.") ||
                           name.starts_with("exit.") || name == "full.logits";
        const bool decides =
            (deciding.contains(name) || rerun) && !(exact_only && (name == "logits" || name == "nll"));
        if (name == "logits_tail" && theirs.shape.size() == 3) {
            result.comparisons.push_back(
                compare(name, tail(ours.at("logits"), theirs.shape[1]), theirs, result.tolerance, decides));
        } else if (const auto exits = ours.find(name); name.starts_with("exit_") && exits != ours.end()) {
            result.comparisons.push_back(
                compare(name, exits->second, without_embeddings(theirs), result.tolerance, false));
        } else if (name == "generated") {
            for (const char* const one : {"generated", uncached}) {
                result.comparisons.push_back(compare(one, ours.at(one), theirs, result.tolerance, decides));
            }
        } else if (const auto found = ours.find(our_name(name)); found != ours.end()) {
            const NamedArray& array = found->second;
            const std::int64_t steps = engine.max_steps() + 1;
            const bool turned = name.starts_with("depth_weights") && array.shape.size() == 4;
            const bool in_one_pass = name.starts_with("layer_output.step0") && steps > 1 &&
                                     theirs.shape.size() == 3 && theirs.shape[1] == steps * array.shape[1];
            result.comparisons.push_back(compare(name,
                                                 turned        ? heads_first(array)
                                                 : in_one_pass ? interleaved(ours, steps, name)
                                                               : array,
                                                 theirs, result.tolerance, decides));
        } else {
            const bool compared = name.starts_with("attention") && name.find(".layer") != std::string::npos;
            if (!compared) {
                result.missing.push_back(name);
            }
        }
    }
    return result;
}

ReferenceResult compare_case(const std::filesystem::path& folder) {
    const nlohmann::json description = read_json_file(folder / "case.json");
    std::optional<MethodKind> method;
    std::string start_state;
    const nlohmann::json arguments = description.value("arguments", nlohmann::json::array());
    for (std::size_t i = 0; i + 1 < arguments.size(); i += 2) {
        const auto flag = arguments[i].get<std::string>();
        const auto value = arguments[i + 1].get<std::string>();
        if (flag == "--method") {
            method = method_from_string(value);
        } else if (flag == "--initial-state") {
            start_state = value;
        } else {
            throw InputError(ErrorId::input_invalid, folder / "case.json", "--method or --initial-state",
                             "'" + flag + "'", "read it in compare_case()");
        }
    }
    Engine engine = load_engine(Checkpoint::open(folder, method));
    if (!start_state.empty()) {
        engine.choose(&RunPlan::start_state, start_state);
    }
    return compare_with_reference(engine, folder);
}

} // namespace ponderscope::testing
