// SPDX-License-Identifier: GPL-3.0-or-later
// Nanbeige: the number of passes over the stack.
#include "core/checkpoint/config_reader.h"

#include "core/base/error.h"

namespace ponderscope {

void read_nanbeige_loops(const ConfigReader& reader, ModelConfig& config, std::optional<MethodKind> method) {
    for (const char* const key : {"enable_double_loop_split", "loop_share_kv", "enable_hyper_connection",
                                  "enable_mhc", "ngram_insert_all_layers"}) {
        reader.refuse_unless(key, false, cannot_run);
    }
    for (const char* const key :
         {"loop_middle_layers", "ngram_vocab_size_ratio", "emb_neighbor_num", "emb_split_num"}) {
        reader.refuse_unless(key, nullptr, cannot_run);
    }
    const JsonObject& json = reader.json();
    if (const nlohmann::json* inserted = json.array("insert_ngram_layer_idx");
        inserted != nullptr && !inserted->empty()) {
        json.fail("insert_ngram_layer_idx", "an empty array", cannot_run);
    }
    std::int64_t passes = reader.size("num_loops", 1, config_limits::steps);
    if (const nlohmann::json* weights = json.array("loop_loss_weights");
        weights != nullptr && !weights->empty()) {
        const auto by_weights = static_cast<std::int64_t>(weights->size()) + 1;
        if (by_weights > config_limits::steps) {
            json.fail("loop_loss_weights",
                      "at most " + std::to_string(config_limits::steps - 1) + " entries");
        }
        if (by_weights != passes) {
            reader.notice(NoticeId::config_overridden,
                          "\"loop_loss_weights\" overrides \"num_loops\": the stack runs " +
                              std::to_string(by_weights) + " times.");
        }
        passes = by_weights;
    }
    const MethodKind own = passes > 1 ? MethodKind::looped : MethodKind::vanilla;
    const MethodKind chosen = method.value_or(own);
    if (chosen != MethodKind::looped && chosen != MethodKind::vanilla) {
        throw InputError(ErrorId::usage_unsuited, json.source(),
                         "--method looped or vanilla for a Nanbeige checkpoint", to_string(chosen),
                         "leave --method out");
    }
    config.ponder.method = chosen;
    config.ponder.max_steps = chosen == MethodKind::looped ? passes - 1 : 0;
    config.ponder.loop_final_norm_each_pass =
        chosen == MethodKind::looped && !reader.flag("skip_loop_final_norm", false);
    config.candidate_methods = {chosen};
}

} // namespace ponderscope
