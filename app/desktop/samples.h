// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>
#include <QStringList>

namespace ponderscope {

/// The samples that belong to the program, in the source tree or below share/ponderscope.
struct Samples {
    QStringList checkpoints; ///< folders
    QString text;            ///< sample text for the recordings; empty: none
    QString recorded;        ///< an existing trace of the samples; empty: none
};

/// Searches from \p start upwards; empty: from the program's folder. Reads names only.
Samples find_samples(const QString& start = {});

/// Copies the recorded sample to the user's \p folder, so that annotations and new names do not change the
/// program's files. Replaces the copy if the sample is newer. Empty: \p problem has the reason.
QString copy_of_recorded(const QString& recorded, const QString& folder, QString& problem);

} // namespace ponderscope
