// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/figure/spec.h"

#include <QListWidget>

#include <string>
#include <vector>

namespace ponderscope {

/// Runs or legend entries of a figure. Check boxes choose, dragging orders, a double click renames.
class NameList : public QListWidget {
    Q_OBJECT
public:
    NameList(const QString& name, const QString& tip, QWidget* parent);

    QListWidgetItem* add(const std::string& name, const std::string& shown, bool checked);
    /// The original name.
    [[nodiscard]] std::string nameAt(int row) const;
    /// Whether the list has exactly these names, in any order.
    [[nodiscard]] bool hasAll(const std::vector<std::string>& names) const;
    /// The renamed entries; with \p order also the unchecked entries, or all entries if their order changed.
    [[nodiscard]] std::vector<figure::SeriesSpec> changed(bool order) const;
};

} // namespace ponderscope
