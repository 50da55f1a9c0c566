// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>
#include <QVariant>

#include <utility>
#include <vector>

class QComboBox;

namespace ponderscope {

/// An entry of a list that one chooses from.
struct ChooserEntry {
    QString text;
    QVariant data;                                   ///< tells entries apart
    QString tip = {};                                ///< plain text
    std::vector<std::pair<int, QVariant>> more = {}; ///< further roles
};

/// Makes \p box hold \p entries, the one with \p chosen (or none) current. Only what differs is touched and
/// nothing is signalled, so that an open list keeps its place and its marked entry.
void fill_chooser(QComboBox& box, const std::vector<ChooserEntry>& entries, const QVariant& chosen);

} // namespace ponderscope
