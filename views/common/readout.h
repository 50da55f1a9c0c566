// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QLabel>

namespace ponderscope {

class Theme;

/// Numbers at the right end of a line: it takes the room that is left, shows the beginning of what does not
/// fit there and tells all of it as its tip.
class Readout : public QLabel {
public:
    explicit Readout(Theme& theme, QWidget* parent = nullptr);
    void say(const QString& text);
    [[nodiscard]] const QString& said() const { return said_; }

protected:
    void resizeEvent(QResizeEvent* event) override;

private:
    QString said_;
};

} // namespace ponderscope
