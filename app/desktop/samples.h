// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>
#include <QStringList>

namespace ponderscope {

/// What is installed with the program, in the source tree or below share/ponderscope.
struct Samples {
    QStringList checkpoints; ///< folders
    QString text;            ///< sample text for the recordings; empty: none
    QString recorded;        ///< an existing trace of the samples; empty: none
};

/// Searches from \p start upwards; empty: from the program's folder. Reads names only.
Samples find_samples(const QString& start = {});

} // namespace ponderscope
