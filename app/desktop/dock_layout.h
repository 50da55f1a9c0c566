// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/desktop/panels.h"
#include "app/desktop/shell.h"

#include <QByteArray>
#include <QRect>
#include <QString>

#include <vector>

class QDockWidget;

namespace ponderscope {

class LiveView;

/// The docks of a window, one for each panel. Handles the default layout, small windows, a maximized panel.
class DockLayout : public ShellPart {
    Q_OBJECT
public:
    using ShellPart::ShellPart;
    ~DockLayout() override;

    void addPanels(const ViewContext& context);
    [[nodiscard]] const std::vector<QDockWidget*>& docks() const { return docks_; }
    [[nodiscard]] QDockWidget* dock(const QString& name) const; ///< null: no such dock
    [[nodiscard]] QWidget* panel(const QString& name) const;    ///< null: no such panel
    [[nodiscard]] static QDockWidget* focusedDock();            ///< null: the text has the focus
    /// Brings a panel to the front. False: no such panel.
    bool raise(const QString& name);
    [[nodiscard]] bool isBusy() const; ///< whether a panel is computing

    /// Applies the default layout for this window size: in low windows the docks below the text become tabs,
    /// in narrow windows the inspector is beside the library.
    void arrange();
    void fitPanels(); ///< after a resize, updates the places of panels that the user has not moved
    /// Maximizes a panel; a second call restores the layout.
    void maximise(QDockWidget* dock);
    void leaveMaximised();
    [[nodiscard]] QDockWidget* maximised() const { return maximised_; }
    [[nodiscard]] QByteArray layoutState() const; ///< layout of all panels, also while a panel is maximized
    /// Restores the result of layoutState(). In a hidden window, stores \p layout for showPending(), because
    /// Qt overwrites the layout when it maximizes the window. False: the layout has another version.
    bool restoreLayout(const QByteArray& layout);
    void showPending(); ///< call it when the window is shown

Q_SIGNALS:
    void copyRequested(QWidget* panel);
    void restored();

private:
    [[nodiscard]] PanelPlace placeOf(std::size_t panel) const; ///< default place in a window of this size
    /// Moves the panels with these numbers to their default places in a window of this size.
    void place(const std::vector<std::size_t>& which);
    /// Ends a dock drag: during a drag Qt refers to parts of the layout, so the layout must not change.
    void endDockDrag();

    std::vector<QDockWidget*> docks_;
    std::vector<LiveView*> live_;
    bool low_ = false;    ///< the lower panels are tabs of the upper ones
    bool narrow_ = false; ///< the inspector is beside the library
    QDockWidget* maximised_ = nullptr;
    QByteArray beforeMaximised_; ///< layout before a panel was maximized
    QByteArray layoutToCome_;    ///< layout to restore when the window is shown
};

/// Limits a window to a share of the screen and moves the window into the screen. A window that fits is
/// unchanged.
void fit_window(QWidget& window, const QRect& screen);

} // namespace ponderscope
