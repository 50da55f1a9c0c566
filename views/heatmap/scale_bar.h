// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/theme.h"
#include "views/common/value_look.h"

#include <QString>
#include <QWidget>

namespace ponderscope {

/// The scale of a heatmap: low end, colours, high end, unit, and what the neutral grey means.
class ScaleBar : public QWidget {
    Q_OBJECT
public:
    explicit ScaleBar(Theme& theme, QWidget* parent = nullptr);
    void setLook(const ValueLook& look, const QString& unit, bool halted);
    void clear();
    [[nodiscard]] QSize sizeHint() const override;

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    Theme& theme_;
    ValueLook look_;
    QString unit_;
    bool halted_ = false;
    bool empty_ = true;
};

} // namespace ponderscope
