// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/checkpoint/model_config.h"

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ponderscope {

class ConfigReader;

/// The method's own halting rule compares a number from a signal with a threshold (methods.md section 9,
/// `learned`).
struct OwnRule {
    enum class Form : std::uint8_t {
        value_at_k,     ///< the signal at step k itself
        product_up_to_k ///< the product of the signal's values at steps 0..k
    };
    enum class Stops : std::uint8_t {
        below,    ///< a token stops if the number is below the threshold
        at_least, ///< a token stops if the number is at least the threshold
        at_most   ///< a token stops if the number is at most the threshold
    };
    const char* signal = nullptr; ///< the signal's name in a trace; nullptr: no own rule
    Form form = Form::value_at_k;
    Stops stops = Stops::below;
};

/// Public config keys that several methods share. They do not identify a method.
struct PublicKeys {
    explicit PublicKeys(const ConfigReader& reader);

    std::optional<bool> pondering;               ///< `ponderinglm`
    std::optional<std::int64_t> pondering_steps; ///< `pondering_steps`
    std::optional<std::int64_t> thoughts;        ///< `num_latent_thoughts`
    bool recurrent = false;                      ///< `recurrent_model`
    bool scale_embeds = false;                   ///< `scale_embeds`
};

/// A method in the config format of PonderLM (arXiv 2505.20674) and PonderLM-2 (2509.23184). Several methods
/// share the keys of this format.
struct PublicForm {
    /// The certainty that the keys of a config mean this method. `surely` excludes all other methods.
    /// `likely` methods come first in the list of candidates.
    enum class Meant : std::uint8_t { no, perhaps, likely, surely };
    Meant (*meant)(const ModelConfig& config, const PublicKeys& keys) = nullptr;
    /// The name of the flag that switches the method off in this config. The authors' code then runs the
    /// plain model. nullptr: the method is on.
    const char* (*switched_off)(const ModelConfig& config, const PublicKeys& keys) = nullptr;
    /// The key that sets K (PonderConfig::max_steps); nullptr: the method has no steps.
    std::optional<std::int64_t> PublicKeys::*steps = &PublicKeys::thoughts;
    const char* steps_key = "num_latent_thoughts";
    void (*read)(const ConfigReader& reader, ModelConfig& config, const PublicKeys& keys) = nullptr;
    /// Keys that only this method reads and that a training recipe may set. PublicKeys are not listed here.
    std::vector<std::string_view> keys = {};

    /// Whether the config has latent thoughts and `recurrent_model` switches them on.
    static bool thinks(const PublicKeys& keys) { return keys.thoughts && keys.recurrent; }
    /// `switched_off` for methods whose only flag is `recurrent_model`.
    static const char* without_recurrence(const ModelConfig& config, const PublicKeys& keys);
};

/// A key of our "pondering" section, besides the keys of every method (`method`, `max_steps`, `embed_scale`).
struct SectionKey {
    std::string_view name;
    /// Reads the key, or takes its default. Returns whether the value is the default. In a section of a
    /// method that does not read the key, only the default is allowed.
    bool (*read)(const ConfigReader& section, ModelConfig& config) = nullptr;
};

/// Keys of several methods. The keys of a single method are in the method's file.
namespace section_keys {
extern const SectionKey threshold, multiply_start, top_k, remainder;
} // namespace section_keys

/// All facts about a method that code outside of the engine needs. methods/NAME_info.cpp has the entry of
/// each method. core/ponder/methods/NAME.cpp has the computation.
struct MethodInfo {
    MethodKind kind = MethodKind::vanilla;
    /// For the documents and --help: the computation between two steps, and the method's authors.
    std::string summary;
    OwnRule own_rule = {};
    /// Keys of our "pondering" section that the method reads.
    std::vector<SectionKey> section = {};
    /// False: our section cannot name this method, because the method has a format of its own.
    bool has_section = true;
    /// Reads and checks further keys at the top level, also if the config has our section.
    void (*read_beside)(const ConfigReader& reader, ModelConfig& config) = nullptr;
    PublicForm public_form = {};
    /// The number of steps can change without a change of weights.
    bool any_steps = false;
    /// Every step runs, as in the authors' code. The method's exits only choose the step that is read out.
    bool exits_select = false;
    /// The method decides which slots (token, step) of other tokens a slot sees. So --kv (the keys and values
    /// of stopped tokens) is not available.
    bool sees_by_own_rule = false;
    /// The method's own format. A checkpoint with this architecture, or with this file beside config.json,
    /// has this method. --method may also select a method in `instead`.
    std::optional<Architecture> architecture = {};
    const char* companion = nullptr;
    std::vector<MethodKind> instead = {};
    /// Reads the keys of the method's own format.
    void (*read)(const ConfigReader& reader, ModelConfig& config) = nullptr;
    /// Keys of a recipe's "penalty" section. Empty: the training loss has no penalty on steps.
    std::vector<std::string_view> penalty = {};
    /// The part of the method's training that `train` lacks. `train` then refuses the method. nullptr:
    /// `train` supports the method.
    const char* untrained = nullptr;
};

#define PONDERSCOPE_METHOD(name) MethodInfo name##_info();
#include "core/checkpoint/methods/methods.def"
#undef PONDERSCOPE_METHOD

/// All methods, in the order of methods.def.
const std::vector<MethodInfo>& method_infos();
const MethodInfo& method_info(MethodKind kind);
/// The method with this name, as traces store it; nullptr if this build does not know the name.
const MethodInfo* method_info(std::string_view name);
/// "vanilla, looped, ...", for messages. \p which selects methods; nullptr selects all.
std::string method_names(bool (*which)(const MethodInfo& info) = nullptr);
/// The method that the architecture, or a companion file beside \p config_json, names. nullptr: neither names
/// a method, so the keys of the config decide.
const MethodInfo* owner_of(const ModelConfig& config, const std::filesystem::path& config_json);

} // namespace ponderscope
