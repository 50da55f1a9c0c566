// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>

class QDockWidget;
class QLabel;

namespace ponderscope {

class Theme;
struct PanelHelp;

/// A panel in its dock, with a warning against wrong conclusions below the panel. A dock smaller than the
/// panel scrolls. In docks of small height only the help ("?") shows the warning.
class PanelFrame : public QWidget {
    Q_OBJECT
public:
    /// \p caveat: the warning; may be empty.
    PanelFrame(QWidget* panel, const QString& caveat, Theme& theme);
    [[nodiscard]] QWidget* panel() const { return panel_; }

protected:
    void resizeEvent(QResizeEvent* event) override;

private:
    QWidget* panel_;
    QLabel* caveat_;
};

/// The panel inside a dock's frame.
QWidget* panel_of(const QDockWidget& dock);

/// The title bar of a dock, for dragging. Shows the panel's name. If a tab or the view already shows the
/// name, shows the warning instead. On the right are buttons for help, copy, float and close.
class DockTitle : public QWidget {
    Q_OBJECT
public:
    /// \p help must outlive the title. \p heading: title of the panel's content.
    DockTitle(QDockWidget* dock, const PanelHelp& help, const QString& heading, Theme& theme);
    [[nodiscard]] QSize sizeHint() const override { return {120, 22}; }
    [[nodiscard]] QSize minimumSizeHint() const override { return {70, 22}; }

Q_SIGNALS:
    void copyRequested();
    void maximiseRequested(); ///< the user wants to maximize the panel, or to restore it

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    QString heading_;
    Theme& theme_;
};

} // namespace ponderscope
