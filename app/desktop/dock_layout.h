// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/desktop/panels.h"
#include "app/desktop/shell.h"

#include <QByteArray>
#include <QRect>
#include <QSize>
#include <QString>

#include <map>
#include <vector>

class QDockWidget;

namespace ponderscope {

class LiveView;

/// The docks of a window: one for every registered panel, their first layout, folding in small windows, and a
/// maximized panel.
class DockLayout : public ShellPart {
    Q_OBJECT
public:
    using ShellPart::ShellPart;
    ~DockLayout() override;

    void addPanels(const ViewContext& context);
    [[nodiscard]] const std::vector<QDockWidget*>& docks() const { return docks_; }
    [[nodiscard]] QDockWidget* dock(const QString& name) const; ///< null: there is none of that name
    [[nodiscard]] QWidget* panel(const QString& name) const;    ///< in the dock; null: none
    [[nodiscard]] static QDockWidget* focusedDock();            ///< null: the text has the focus
    /// Brings a panel to the front. False: there is none of that name.
    bool raise(const QString& name);
    [[nodiscard]] bool isBusy() const; ///< a panel computes

    /// The panels as they come, for a window of this size: low windows show the docks under the text as tabs,
    /// narrow windows show the inspector beside the library.
    void arrange();
    void fitPanels(); ///< the same after the window was resized, for panels that are where they came
    /// Maximizes a panel; a second call restores the layout.
    void maximise(QDockWidget* dock);
    void leaveMaximised();
    [[nodiscard]] QDockWidget* maximised() const { return maximised_; }
    [[nodiscard]] QByteArray layoutState() const; ///< of all panels, whatever fills the window
    /// Restores the result of saveState(). Every change of the whole layout goes through here. The layout of
    /// a window that was not shown yet is kept until showPending(): Qt keeps a copy of the layout of a window
    /// that will be maximised, and restores it over a newer layout. False: the layout has another version.
    bool restoreLayout(const QByteArray& layout);
    void showPending(); ///< the window is shown

Q_SIGNALS:
    void copyRequested(QWidget* panel);
    void restored();

private:
    void addPanel(const Panel& panel, QWidget* view);
    [[nodiscard]] PanelPlace placeOf(std::size_t panel) const; ///< in a window of this size
    /// Puts these panels, by number, where they come in a window of this size.
    void place(const std::vector<std::size_t>& which);
    /// Ends a dock drag in progress: Qt keeps places of the layout in a drag, which must not change then.
    void putDown();

    std::vector<QDockWidget*> docks_;
    std::map<QString, QDockWidget*> dockByName_;
    std::vector<LiveView*> live_;
    bool low_ = false;    ///< the lower panels were put among the upper ones
    bool narrow_ = false; ///< the inspector was put beside the library
    QDockWidget* maximised_ = nullptr;
    QByteArray beforeMaximised_; ///< the layout
    QByteArray layoutToCome_;    ///< once the window is on the screen
};

/// No larger than this part of a screen, and within it; untouched where it is.
void fit_window(QWidget& window, const QRect& screen);

} // namespace ponderscope
