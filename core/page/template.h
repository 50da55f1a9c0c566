// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

/// The page's files, embedded by CMake.
namespace ponderscope::page_template {

extern const char* const page;
extern const char* const data_and_text;
extern const char* const view;

} // namespace ponderscope::page_template
