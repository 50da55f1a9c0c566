// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>

class QDockWidget;
class QLabel;

namespace ponderscope {

class Theme;

/// A panel in its dock: what must not be concluded stands below it, and a dock that is smaller than what the
/// panel needs scrolls instead of cutting it. Low docks leave the caveat to the title's "?".
class PanelFrame : public QWidget {
    Q_OBJECT
public:
    /// \p caveat may be empty.
    PanelFrame(QWidget* panel, const QString& caveat, Theme& theme);
    [[nodiscard]] QWidget* panel() const { return panel_; }

protected:
    void resizeEvent(QResizeEvent* event) override;

private:
    QWidget* panel_;
    QLabel* caveat_;
};

/// The panel that a dock frames.
QWidget* panel_of(const QDockWidget& dock);

} // namespace ponderscope
