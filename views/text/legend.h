// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/text/quantity.h"

#include <QWidget>

namespace ponderscope {

class Theme;

/// The colour scale of the text with numbers and unit, and with its meaning if there is room.
class Legend : public QWidget {
    Q_OBJECT
public:
    explicit Legend(Theme& theme, QWidget* parent = nullptr);
    /// Does not store the vector of \p values.
    void show(const TokenValues& values);
    /// Size of the letters for a presentation; 0: small letters.
    void setLetters(int pixels);
    [[nodiscard]] QString meaning() const { return meaning_; }
    [[nodiscard]] const QStringList& classes() const { return classes_; } ///< classes with a colour sample
    [[nodiscard]] QSize sizeHint() const override;
    [[nodiscard]] QSize minimumSizeHint() const override;

Q_SIGNALS:
    void rangeWanted(); ///< the user clicked the scale to set its ends

protected:
    void mousePressEvent(QMouseEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void paintEvent(QPaintEvent* event) override;

private:
    void paintClasses(QPainter& painter) const;

    [[nodiscard]] QFont letters() const;

    Theme& theme_;
    int pixels_ = 0; ///< size of the letters; 0: small letters
    ValueLook look_;
    bool whole_ = false; ///< label the middle of the scale only if it is an integer
    QString unit_;
    QStringList classes_;
    QString meaning_;
};

} // namespace ponderscope
