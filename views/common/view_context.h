// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/selection.h"
#include "views/common/theme.h"
#include "views/common/trace_data.h"

namespace ponderscope {

/// The objects that all views of a window share. They outlive the views. Passed by value.
struct ViewContext {
    TraceData& data;
    Selection& selection;
    Theme& theme;
};

} // namespace ponderscope
