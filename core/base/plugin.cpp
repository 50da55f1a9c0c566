// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/plugin.h"

#include <dlfcn.h>

namespace ponderscope {

void* function_of_plugin(const char* library, const char* function, std::string& why) {
    void* opened = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    void* found = opened != nullptr ? dlsym(opened, function) : nullptr;
    if (found == nullptr) {
        const char* said = dlerror(); // NOLINT(concurrency-mt-unsafe): of this thread
        why = said != nullptr ? said : "it is not there";
    }
    return found;
}

} // namespace ponderscope
