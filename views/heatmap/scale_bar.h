// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/colour_map.h"
#include "views/common/theme.h"

#include <QString>
#include <QWidget>

namespace ponderscope {

/// The scale of a heatmap: low end, colours, high end, unit, and what the neutral grey means.
class ScaleBar : public QWidget {
    Q_OBJECT
public:
    explicit ScaleBar(Theme& theme, QWidget* parent = nullptr);
    void setScale(const ColourScale& scale, const QString& unit, bool halted, bool diverging = false);
    void clear();
    [[nodiscard]] QSize sizeHint() const override;

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    Theme& theme_;
    ColourScale scale_;
    QString unit_;
    bool halted_ = false;
    bool diverging_ = false;
    bool empty_ = true;
};

} // namespace ponderscope
