// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QtGlobal>

// QCustomPlot's header uses Qt's short keywords, which this project switches off.
#define signals Q_SIGNALS
#define foreach Q_FOREACH
#include <qcustomplot.h>
#undef signals
#undef foreach
