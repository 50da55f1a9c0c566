// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/text/quantity.h"

#include <QWidget>

namespace ponderscope {

class Theme;

/// The colour scale of the text with its numbers and unit, and beside it, as far as there is room, what it
/// means.
class Legend : public QWidget {
    Q_OBJECT
public:
    explicit Legend(Theme& theme, QWidget* parent = nullptr);
    /// \p values: the values' own vector is not kept.
    void show(const TokenValues& values);
    [[nodiscard]] QString meaning() const { return meaning_; }
    [[nodiscard]] const QStringList& classes() const { return classes_; } ///< that have a swatch
    [[nodiscard]] QSize sizeHint() const override { return {420, 34}; }
    [[nodiscard]] QSize minimumSizeHint() const override { return {118, 34}; }

Q_SIGNALS:
    void rangeWanted(); ///< the scale was clicked: its ends are to be set

protected:
    void mousePressEvent(QMouseEvent* event) override;
    void paintEvent(QPaintEvent* event) override;

private:
    void paintClasses(QPainter& painter) const;

    Theme& theme_;
    Quantity quantity_ = Quantity::nll;
    bool difference_ = false;
    bool annotation_ = false;
    bool held_ = false;
    QStringList classes_;
    ColourScale scale_{0, 8, false};
    QString meaning_;
};

} // namespace ponderscope
