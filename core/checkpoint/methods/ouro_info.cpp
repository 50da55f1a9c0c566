// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/config_reader.h"
#include "core/checkpoint/method_info.h"

#include <limits>

namespace ponderscope {

namespace {

void read_ouro_keys(const ConfigReader& reader, ModelConfig& config) {
    PonderConfig& ponder = config.ponder;
    ponder.max_steps = reader.size("total_ut_steps", 4, config_limits::steps) - 1;
    ponder.loop_final_norm_each_pass = true;
    if (ponder.method != MethodKind::ouro) {
        return; // method looped: all passes, without the gate
    }
    // Not checked, as in the authors' code: at most 0 stops at step 0, and above 1 at the last step.
    ponder.threshold = reader.is_null("early_exit_threshold")
                           ? std::numeric_limits<double>::infinity()
                           : reader.json().number("early_exit_threshold").value_or(1.0);
    if (const nlohmann::json* step = reader.json().find("early_exit_step")) {
        const bool counts = step->is_number_integer() && (!step->is_number_unsigned() ||
                                                          step->get<std::uint64_t>() <= config_limits::steps);
        if (counts && step->get<std::int64_t>() >= 0 && step->get<std::int64_t>() <= ponder.max_steps) {
            ponder.own["exit_step"] = step->get<double>();
        } else {
            reader.notice(
                NoticeId::config_ignored,
                "\"early_exit_step\" is ignored, as in the authors' code: it is no step from 0 to " +
                    std::to_string(ponder.max_steps) + ".");
        }
    }
}

} // namespace

MethodInfo ouro_info() {
    return {
        .kind = MethodKind::ouro,
        .summary =
            "The stack runs over its own normed output, with an exit gate after each pass (Ouro / LoopLM, "
            "arXiv 2510.25741)",
        .own_rule = {"exit_cdf", OwnRule::Form::value_at_k, OwnRule::Stops::at_least},
        .has_section = false,
        .any_steps = true,
        .exits_select = true,
        .architecture = Architecture::ouro,
        .instead = {MethodKind::looped, MethodKind::vanilla}, // the stack also runs without the gate
        .read = &read_ouro_keys,
        .untrained = "whose loss weighs the read-outs of all steps with its gate"};
}

} // namespace ponderscope
