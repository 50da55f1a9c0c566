// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/theme.h"
#include "views/common/token_subset.h"

#include <QWidget>

class QLabel;

namespace ponderscope {

/// Says which found tokens a panel speaks of instead of all, and lets go of them. Hidden while there are
/// none.
class SubsetChip : public QWidget {
    Q_OBJECT
public:
    explicit SubsetChip(Theme& theme, QWidget* parent = nullptr);
    void show(const TokenSubset& subset);
    [[nodiscard]] QString words() const; ///< empty while it is hidden

Q_SIGNALS:
    void released();

private:
    QLabel* label_;
};

} // namespace ponderscope
