// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string_view>

namespace ponderscope::page_template {

/// The page's files of app/python/ponderscope, embedded by CMake in template.cpp.
extern const std::string_view html;
extern const std::string_view data_and_text;
extern const std::string_view view;

} // namespace ponderscope::page_template
