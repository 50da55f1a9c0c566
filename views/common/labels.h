// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QLabel>

namespace ponderscope {

class Theme;

/// Numbers at the right end of a line, shortened to the remaining width. The tooltip has the whole text.
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
