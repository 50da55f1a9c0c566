// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>

class QRect;
class QWidget;

namespace ponderscope {

/// Text for tooltips, which take for markup what looks like it: `<s>` is a token, and words of a stranger's
/// trace stand as they are.
QString plain_tip(const QString& text);

/// Shows a tooltip of plain text above \p box (in coordinates of \p widget): the line of text below stays
/// readable. Below it where there is no room above. Goes when the pointer leaves the box.
void show_tip_above(QWidget& widget, const QRect& box, const QString& text);

} // namespace ponderscope
