// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/desktop/launch.h"

namespace ponderscope {

class MainWindow;

/// Waits until the window has loaded and laid out all of it, then writes what it shows. An exit code; says on
/// stderr why there is no picture.
int write_screenshot(MainWindow& window, const Launch& launch);

} // namespace ponderscope
