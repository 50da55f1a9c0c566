// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/theme.h"
#include "views/common/value_look.h"

#include <QString>
#include <QWidget>

namespace ponderscope {

/// The legend of a colour scale: name, low end, colours, high end, and the meaning of the neutral grey.
class ScaleBar : public QWidget {
    Q_OBJECT
public:
    explicit ScaleBar(Theme& theme, QWidget* parent = nullptr);
    /// \p diverging: two colours that meet in the middle. \p halted: grey stands for steps that did not run.
    void setScale(const QString& name, const QString& low, const QString& high, bool diverging,
                  bool halted = false);
    void setLook(const ValueLook& look, const QString& unit, bool halted);
    void clear();
    [[nodiscard]] QSize sizeHint() const override;

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    Theme& theme_;
    QString name_, low_, high_;
    bool diverging_ = false;
    bool halted_ = false;
    bool empty_ = true;
};

} // namespace ponderscope
