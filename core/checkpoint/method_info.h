// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/checkpoint/model_config.h"

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
        below,    ///< a token stops where the number is below the threshold
        at_least, ///< where it has reached it
        at_most   ///< where it has not exceeded it
    };
    const char* signal = nullptr; ///< as it is recorded; nullptr: the method has no rule of its own
    Form form = Form::value_at_k;
    Stops stops = Stops::below;
};

/// What everybody but the engine needs to know of a method: its entry, in its own file
/// (core/ponder/methods). Those files are compiled twice, for this library without what needs torch.
struct MethodInfo {
    MethodKind kind = MethodKind::vanilla;
    /// A row of the documentation and of --help: what happens between two steps, and whose method it is.
    std::string summary;
    OwnRule own_rule = {};
    /// Keys of our "pondering" section that it reads beside `method`, `max_steps` and `embed_scale`; the
    /// section cannot name methods that have none and a format of their own.
    std::vector<std::string_view> section_keys = {};
    bool has_section = true;
    /// Another number of steps needs no other weights.
    bool any_steps = false;
    /// Its own exits choose the read-out, as in its authors' code, while every step runs.
    bool exits_select = false;
    /// Which of another token's slots a slot sees is the method's own rule, so that what later tokens see of
    /// one that stopped (--kv) cannot be chosen.
    bool sees_by_own_rule = false;
    /// A file beside config.json by which a folder says that it is of this method; nullptr: none.
    const char* companion = nullptr;
    /// Reads the keys of a format of its own, of a checkpoint whose architecture or companion means this
    /// method. nullptr: its keys are shared with other methods (config_ponder.cpp).
    void (*read)(const ConfigReader& reader, ModelConfig& config) = nullptr;
};

#define PONDERSCOPE_METHOD(name) MethodInfo name##_info();
#include "core/ponder/methods/methods.def"
#undef PONDERSCOPE_METHOD

/// All of them, in the order of methods.def.
const std::vector<MethodInfo>& method_infos();
const MethodInfo& method_info(MethodKind kind);
/// Of the method that a trace names; nullptr for one that this build does not know.
const MethodInfo* method_info(std::string_view name);
/// "vanilla, looped, ...", for messages; \p with_section_only: those that our config section can name.
std::string method_names(bool with_section_only = false);

} // namespace ponderscope
