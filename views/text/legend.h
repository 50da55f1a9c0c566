// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/text/quantity.h"

#include <QWidget>

namespace ponderscope {

class Theme;

/// The colour scale of the text with numbers and unit, and its meaning if there is room.
class Legend : public QWidget {
    Q_OBJECT
public:
    explicit Legend(Theme& theme, QWidget* parent = nullptr);
    /// Does not keep the vector of \p values.
    void show(const TokenValues& values);
    /// Size of its letters, for a presentation; 0: small ones.
    void setLetters(int pixels);
    [[nodiscard]] QString meaning() const { return meaning_; }
    [[nodiscard]] const QStringList& classes() const { return classes_; } ///< that have a swatch
    [[nodiscard]] QSize sizeHint() const override;
    [[nodiscard]] QSize minimumSizeHint() const override;

Q_SIGNALS:
    void rangeWanted(); ///< the scale was clicked, to set its ends

protected:
    void mousePressEvent(QMouseEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void paintEvent(QPaintEvent* event) override;

private:
    void paintClasses(QPainter& painter) const;

    [[nodiscard]] QFont letters() const;

    Theme& theme_;
    int pixels_ = 0; ///< of its letters; 0: small ones
    ValueLook look_;
    bool whole_ = false; ///< the middle of the scale is named only if it is a whole number
    QString unit_;
    QStringList classes_;
    QString meaning_;
};

} // namespace ponderscope
