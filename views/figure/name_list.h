// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/figure/spec.h"

#include <QListWidget>

#include <string>
#include <vector>

namespace ponderscope {

/// Runs or legend entries of a figure: checked where they are drawn, dragged into their order, renamed by a
/// double click.
class NameList : public QListWidget {
    Q_OBJECT
public:
    NameList(const QString& name, const QString& tip, QWidget* parent);

    QListWidgetItem* add(const std::string& name, const std::string& shown, bool checked);
    /// The name as it was added.
    [[nodiscard]] std::string nameAt(int row) const;
    /// Whether these are the names of the list, in any order.
    [[nodiscard]] bool hasAll(const std::vector<std::string>& names) const;
    /// Renamed entries; with \p order also omitted entries, or all if they were moved.
    [[nodiscard]] std::vector<figure::SeriesSpec> changed(bool order) const;
};

} // namespace ponderscope
