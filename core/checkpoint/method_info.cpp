// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/method_info.h"

namespace ponderscope {

const std::vector<MethodInfo>& method_infos() {
    static const std::vector<MethodInfo> infos{
#define PONDERSCOPE_METHOD(name) name##_info(),
#include "core/checkpoint/methods/methods.def"
#undef PONDERSCOPE_METHOD
    };
    return infos;
}

const MethodInfo& method_info(MethodKind kind) {
    return method_infos().at(static_cast<std::size_t>(kind)); // both are in the order of methods.def
}

const MethodInfo* method_info(std::string_view name) {
    for (const MethodInfo& info : method_infos()) {
        if (to_string(info.kind) == name) {
            return &info;
        }
    }
    return nullptr;
}

std::string method_names(bool (*which)(const MethodInfo& info)) {
    std::string names;
    for (const MethodInfo& info : method_infos()) {
        if (which == nullptr || which(info)) {
            names += (names.empty() ? "" : ", ") + to_string(info.kind);
        }
    }
    return names;
}

const MethodInfo* owner_of(const ModelConfig& config, const std::filesystem::path& config_json) {
    for (const MethodInfo& info : method_infos()) {
        std::error_code error;
        if (info.architecture == config.architecture ||
            (info.companion != nullptr &&
             std::filesystem::exists(config_json.parent_path() / info.companion, error))) {
            return &info;
        }
    }
    return nullptr;
}

} // namespace ponderscope
