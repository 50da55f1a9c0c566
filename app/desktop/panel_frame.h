// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>

class QDockWidget;
class QLabel;
class QToolButton;

namespace ponderscope {

class Theme;
struct PanelHelp;

/// A panel in its dock: what must not be concluded is below it, and a dock smaller than the panel scrolls.
/// Low docks leave the caveat to the title's "?".
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

/// The slim line above a panel, by which it is dragged: the panel's name, or, if a tab or the view shows the
/// name, what must not be concluded; help, copy, float and close at the right.
class DockTitle : public QWidget {
    Q_OBJECT
public:
    /// \p help may be null; \p heading: what the panel shows.
    DockTitle(QDockWidget* dock, const PanelHelp* help, const QString& heading, Theme& theme);
    [[nodiscard]] QSize sizeHint() const override { return {120, 22}; }
    [[nodiscard]] QSize minimumSizeHint() const override { return {70, 22}; }
    void showHelp();

Q_SIGNALS:
    void copyRequested();
    void maximiseRequested(); ///< over the whole window, or back

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    QDockWidget* dock_;
    const PanelHelp* help_;
    QString heading_;
    int buttons_ = 0;
    Theme& theme_;
    QToolButton* ask_;
};

} // namespace ponderscope
