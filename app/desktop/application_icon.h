// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QIcon>
#include <QPixmap>

namespace ponderscope {

/// The program's icon from resources/icons/ponderscope.svg, at every size that desktops ask for. The drawing
/// is rectangles only; they are put on whole pixels, so that it is crisp at 16 as at 256.
QIcon application_icon();

/// One size of it; for the welcome page and the icon's own test.
QPixmap application_picture(int pixels);

} // namespace ponderscope
