// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/desktop/launch.h"

namespace ponderscope {

class MainWindow;
class Theme;

/// Waits until the window has loaded and laid out all of it, then writes what it shows. An exit code; says on
/// stderr why there is no picture.
int write_screenshot(MainWindow& window, const Launch& launch);

/// A picture of every panel (of a run that has something for it), every zoom of the text, the welcome page,
/// the palette, the tour and the dialogs, in every appearance, into the folder Launch::screenshots:
/// "compare-dark.png".
int write_all_screenshots(MainWindow& window, Theme& theme, const Launch& launch);

} // namespace ponderscope
