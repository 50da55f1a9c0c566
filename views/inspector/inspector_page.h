// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/theme.h"
#include "views/inspector/token_report.h"

#include <QImage>

class QTextDocument;

namespace ponderscope {

/// Writes \p report into \p page. An empty report gives an empty page. Links: "step:K", and "more" at the
/// candidates. \p width: the page's width, with margins. \p ratio: pixels of a picture per pixel of the page.
void write_report(QTextDocument& page, const TokenReport& report, const Theme& theme, int width,
                  bool expanded, qreal ratio);

/// Plots a signal by step and labels both ends of the value axis.
QImage curve_image(const TokenReport::Curve& curve, const Theme& theme, const QSize& size, qreal ratio);

} // namespace ponderscope
