// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/desktop/launch.h"

namespace ponderscope {

class MainWindow;

/// Waits until the window has loaded and drawn all that it will, then writes it to launch.screenshot. Returns
/// the exit code; one sentence on stderr when a path could not be opened or the file could not be written.
int write_screenshot(MainWindow& window, const Launch& launch);

} // namespace ponderscope
