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

/// The number that a method's own rule compares with its threshold (methods.md section 9, `learned`).
struct OwnRule {
    enum class Form : std::uint8_t {
        value_at_k,     ///< the signal at step k itself
        product_up_to_k ///< the product of its values at steps 0..k
    };
    enum class Stops : std::uint8_t {
        below,    ///< a token stops if the number is below the threshold
        at_least, ///< if the number has reached it
        at_most   ///< if the number has not exceeded it
    };
    const char* signal = nullptr; ///< as recorded; nullptr: the method has no rule of its own
    Form form = Form::value_at_k;
    Stops stops = Stops::below;
};

/// The public keys of a config that several methods share and that do not name a method.
struct PublicKeys {
    explicit PublicKeys(const ConfigReader& reader);

    std::optional<bool> pondering;               ///< `ponderinglm`
    std::optional<std::int64_t> pondering_steps; ///< `pondering_steps`
    std::optional<std::int64_t> thoughts;        ///< `num_latent_thoughts`
    bool recurrent = false;                      ///< `recurrent_model`
    bool scale_embeds = false;                   ///< `scale_embeds`
};

/// A method in the format of PonderLM (arXiv 2505.20674) and of the PonderLM-2 code base (2509.23184), whose
/// keys several methods share.
struct PublicForm {
    /// How certain it is that the keys of a config name this method. `surely` excludes all other methods;
    /// `likely` methods are listed before `perhaps`.
    enum class Meant : std::uint8_t { no, perhaps, likely, surely };
    Meant (*meant)(const ModelConfig& config, const PublicKeys& keys) = nullptr;
    /// The flag that switches the method off because it is not true; the authors' code then runs the plain
    /// model. nullptr: the method is on.
    const char* (*switched_off)(const ModelConfig& config, const PublicKeys& keys) = nullptr;
    /// Where K stands; nullptr: the method has no steps.
    std::optional<std::int64_t> PublicKeys::*steps = &PublicKeys::thoughts;
    const char* steps_key = "num_latent_thoughts";
    void (*read)(const ConfigReader& reader, ModelConfig& config, const PublicKeys& keys) = nullptr;
    /// Keys of its own, beside the shared ones, that a training recipe may set.
    std::vector<std::string_view> keys = {};

    /// Latent thoughts that `recurrent_model` switches on.
    static bool thinks(const PublicKeys& keys) { return keys.thoughts && keys.recurrent; }
    /// `switched_off` of methods whose only flag is `recurrent_model`.
    static const char* without_recurrence(const ModelConfig& config, const PublicKeys& keys);
};

/// A key of our "pondering" section beside the keys of every method (`method`, `max_steps`, `embed_scale`).
struct SectionKey {
    std::string_view name;
    /// Reads the key, or takes its default. Returns whether the value is the default: a default value is
    /// harmless in a section whose method does not read the key.
    bool (*read)(const ConfigReader& section, ModelConfig& config) = nullptr;
};

/// Keys of several methods; keys of a single method are in the method's file.
namespace section_keys {
extern const SectionKey threshold, multiply_start, top_k, remainder;
} // namespace section_keys

/// The facts about a method that all code outside of the engine needs: its entry, in methods/NAME_info.cpp.
/// Its computation is in core/ponder/methods/NAME.cpp.
struct MethodInfo {
    MethodKind kind = MethodKind::vanilla;
    /// A row of the documentation and of --help: what happens between two steps, and whose method it is.
    std::string summary;
    OwnRule own_rule = {};
    /// Keys of our "pondering" section that the method reads.
    std::vector<SectionKey> section = {};
    /// False: the section cannot name this method, because the method has a format of its own.
    bool has_section = true;
    /// Reads and checks keys beside the section or among the public keys.
    void (*read_beside)(const ConfigReader& reader, ModelConfig& config) = nullptr;
    PublicForm public_form = {};
    /// The number of steps can be changed without other weights.
    bool any_steps = false;
    /// The method's own exits choose the step that is read out, while every step runs, as in its authors'
    /// code.
    bool exits_select = false;
    /// The method itself decides which slots of other tokens a slot sees, so --kv (what later tokens see of a
    /// stopped token) cannot be chosen.
    bool sees_by_own_rule = false;
    /// A format of its own: checkpoints of this architecture, or folders with this file beside config.json,
    /// have this method, unless --method names one of \c instead.
    std::optional<Architecture> architecture = {};
    const char* companion = nullptr;
    std::vector<MethodKind> instead = {};
    /// Reads the keys of that format.
    void (*read)(const ConfigReader& reader, ModelConfig& config) = nullptr;
    /// A phrase about how a checkpoint runs, and why its authors' numbers may differ; nullptr: none.
    std::string (*peculiarity)(const ModelConfig& config) = nullptr;
    /// Keys of a recipe's "penalty" section; none: its training loss has no penalty on steps.
    std::vector<std::string_view> penalty = {};
    /// What training needs beside the cross-entropy of the output, so that `train` refuses the method;
    /// nullptr: it is trained.
    const char* untrained = nullptr;
};

#define PONDERSCOPE_METHOD(name) MethodInfo name##_info();
#include "core/checkpoint/methods/methods.def"
#undef PONDERSCOPE_METHOD

/// All methods, in the order of methods.def.
const std::vector<MethodInfo>& method_infos();
const MethodInfo& method_info(MethodKind kind);
/// The method that a trace names; nullptr if this build does not know it.
const MethodInfo* method_info(std::string_view name);
/// "vanilla, looped, ...", for messages: the methods for which \p which is true; nullptr: all.
std::string method_names(bool (*which)(const MethodInfo& info) = nullptr);
/// The method that the architecture, or a companion file beside \p config_json, names; nullptr: neither names
/// one, and the keys of the config decide.
const MethodInfo* owner_of(const ModelConfig& config, const std::filesystem::path& config_json);

/// The unusual features of a model, in phrases for people who know the architecture. Empty if it has none.
std::vector<std::string> peculiarities(const ModelConfig& config);

} // namespace ponderscope
