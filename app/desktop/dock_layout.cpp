// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/dock_layout.h"

#include "app/desktop/panel_frame.h"
#include "app/desktop/panel_help.h"
#include "app/desktop/panels.h"
#include "views/common/live_view.h"

#include <QApplication>
#include <QDockWidget>
#include <QLayout>
#include <QMouseEvent>

#include <algorithm>
#include <utility>

using namespace Qt::StringLiterals;

namespace ponderscope {

namespace {

/// Below this height of the window what stands under the text shares one place; below this width the
/// inspector stands with the library.
constexpr int lowest_for_both = 820;
constexpr int narrowest_for_both = 1200;

} // namespace

DockLayout::~DockLayout() {
    for (QDockWidget* one : docks_) {
        one->disconnect(this); // while they are destroyed they report that they are hidden
    }
    qDeleteAll(docks_);
}

void DockLayout::addPanels(const ViewContext& context) {
    for (const Panel& panel : panels()) {
        QWidget* view = panel.make(context, window_);
        addPanel(panel, view);
        if (auto* live = dynamic_cast<LiveView*>(view)) {
            live_.push_back(live);
            live->setOnScreen(false); // until its dock says otherwise
            connect(docks_.back(), &QDockWidget::visibilityChanged, this,
                    [live](bool visible) { live->setOnScreen(visible); });
        }
    }
}

void DockLayout::addPanel(const Panel& panel, QWidget* view) {
    const QString name = QString::fromLatin1(panel.name);
    auto* dock = new QDockWidget(QString::fromUtf8(panel.title), window_);
    dock->setObjectName(name);
    const PanelHelp* help = panel_help(dock->windowTitle());
    dock->setWidget(new PanelFrame(view, panel.caveat && help != nullptr ? help->brief : QString(), theme_));
    dock->setFeatures(QDockWidget::DockWidgetMovable | QDockWidget::DockWidgetFloatable |
                      QDockWidget::DockWidgetClosable);
    auto* line = new DockTitle(dock, help, QString::fromUtf8(panel.heading), theme_);
    connect(line, &DockTitle::copyRequested, this, [this, view] { Q_EMIT copyRequested(view); });
    connect(line, &DockTitle::maximiseRequested, this, [this, dock] { maximise(dock); });
    dock->setTitleBarWidget(line);
    docks_.push_back(dock);
    dockByName_[name] = dock;
}

QDockWidget* DockLayout::dock(const QString& name) const {
    const auto known = dockByName_.find(name);
    return known == dockByName_.end() ? nullptr : known->second;
}

QWidget* DockLayout::panel(const QString& name) const {
    const QDockWidget* known = dock(name);
    return known == nullptr ? nullptr : panel_of(*known);
}

bool DockLayout::raise(const QString& name) {
    QDockWidget* known = dock(name);
    if (known == nullptr) {
        return false;
    }
    if (maximised_ != known) {
        leaveMaximised();
    }
    known->show();
    known->raise();
    return true;
}

bool DockLayout::isBusy() const {
    return std::any_of(live_.begin(), live_.end(), [](const LiveView* view) { return view->isBusy(); });
}

QDockWidget* DockLayout::focusedDock() {
    for (QWidget* at = QApplication::focusWidget(); at != nullptr; at = at->parentWidget()) {
        if (auto* found = qobject_cast<QDockWidget*>(at)) {
            return found;
        }
    }
    return nullptr;
}

void DockLayout::arrange() {
    const QSize window = window_->size();
    leaveMaximised();
    layoutToCome_.clear();
    const int height = window.height();
    for (QDockWidget* dock : docks_) {
        dock->setFloating(false);
        window_->removeDockWidget(dock); // out of tabs and splits
    }
    low_ = height < lowest_for_both;
    narrow_ = window.width() < narrowest_for_both;
    const auto place_of = [this](std::size_t panel) {
        const PanelPlace wanted = panels()[panel].place;
        return low_ && wanted == PanelPlace::lower      ? PanelPlace::upper
               : narrow_ && wanted == PanelPlace::right ? PanelPlace::left
                                                        : wanted;
    };
    // The first of each place, then the others as its tabs: what is tabbed already cannot be split.
    std::map<PanelPlace, QDockWidget*> first;
    for (std::size_t i = 0; i < docks_.size(); ++i) {
        const PanelPlace place = place_of(i);
        if (first.emplace(place, docks_[i]).second) {
            window_->addDockWidget(place == PanelPlace::left    ? Qt::LeftDockWidgetArea
                                   : place == PanelPlace::right ? Qt::RightDockWidgetArea
                                                                : Qt::BottomDockWidgetArea,
                                   docks_[i]);
            if (place == PanelPlace::lower) {
                window_->splitDockWidget(first.at(PanelPlace::upper), docks_[i], Qt::Vertical);
            }
        }
    }
    for (std::size_t i = 0; i < docks_.size(); ++i) {
        if (QDockWidget* leader = first.at(place_of(i)); leader != docks_[i]) {
            window_->tabifyDockWidget(leader, docks_[i]);
        }
        docks_[i]->show();
    }
    // The text is what the window is for: it keeps nearly half of the height.
    QDockWidget* upper = first.at(PanelPlace::upper);
    if (low_) {
        window_->resizeDocks({upper}, {std::max(200, height * 4 / 10)}, Qt::Vertical);
    } else {
        const int room = height * 54 / 100;
        window_->resizeDocks({upper, first.at(PanelPlace::lower)}, {room * 38 / 100, room * 62 / 100},
                             Qt::Vertical);
        dockByName_.at(u"compare"_s)->raise();
    }
    upper->raise();
    first.at(PanelPlace::left)->raise();
    window_->resizeDocks({first.at(PanelPlace::left)}, {narrow_ ? 236 : 252}, Qt::Horizontal);
    if (!narrow_) {
        window_->resizeDocks({first.at(PanelPlace::right)}, {312}, Qt::Horizontal);
    }
}

void DockLayout::fitPanels() {
    // Move only panels at their default position: the user's own layout stays.
    const bool low = window_->height() < lowest_for_both;
    const bool narrow = window_->width() < narrowest_for_both;
    if (maximised_ != nullptr || (low == low_ && narrow == narrow_)) {
        return;
    }
    putDown();
    const auto docked = [this](QDockWidget* dock, Qt::DockWidgetArea area) {
        return !dock->isFloating() && !dock->isHidden() && window_->dockWidgetArea(dock) == area;
    };
    QDockWidget* leaders[4] = {};
    for (std::size_t i = 0; i < docks_.size(); ++i) {
        QDockWidget*& leader = leaders[static_cast<std::size_t>(panels()[i].place)];
        leader = leader == nullptr ? docks_[i] : leader;
    }
    const auto leader = [&](PanelPlace place) { return leaders[static_cast<std::size_t>(place)]; };
    const auto of_place = [&](PanelPlace place, Qt::DockWidgetArea area) {
        std::vector<QDockWidget*> found;
        for (std::size_t i = 0; i < docks_.size(); ++i) {
            if (panels()[i].place == place && docked(docks_[i], area)) {
                found.push_back(docks_[i]);
            }
        }
        return found;
    };
    if (narrow != std::exchange(narrow_, narrow)) {
        for (QDockWidget* dock :
             of_place(PanelPlace::right, narrow ? Qt::RightDockWidgetArea : Qt::LeftDockWidgetArea)) {
            if (narrow && docked(leader(PanelPlace::left), Qt::LeftDockWidgetArea)) {
                window_->tabifyDockWidget(leader(PanelPlace::left), dock);
                leader(PanelPlace::left)->raise();
            } else if (!narrow) {
                window_->addDockWidget(Qt::RightDockWidgetArea, dock);
                window_->resizeDocks({dock}, {312}, Qt::Horizontal);
            }
        }
    }
    if (low != std::exchange(low_, low)) {
        const std::vector<QDockWidget*> lower = of_place(PanelPlace::lower, Qt::BottomDockWidgetArea);
        QDockWidget* upper = leader(PanelPlace::upper);
        const bool upper_there = docked(upper, Qt::BottomDockWidgetArea);
        for (QDockWidget* dock : lower) {
            if (low && upper_there) {
                window_->tabifyDockWidget(upper, dock);
            } else if (!low && dock == lower.front()) {
                window_->addDockWidget(Qt::BottomDockWidgetArea, dock, Qt::Vertical);
            } else if (!low) {
                window_->tabifyDockWidget(lower.front(), dock);
            }
        }
        if (low && upper_there) {
            upper->raise();
            window_->resizeDocks({upper}, {std::max(200, window_->height() * 4 / 10)}, Qt::Vertical);
        } else if (!low && !lower.empty()) {
            const int room = window_->height() * 54 / 100;
            window_->resizeDocks({upper, lower.front()}, {room * 38 / 100, room * 62 / 100}, Qt::Vertical);
        }
    }
}

void DockLayout::maximise(QDockWidget* dock) {
    const bool again = maximised_ != nullptr;
    leaveMaximised();
    if (again || dock == nullptr) {
        return;
    }
    beforeMaximised_ = layoutState();
    layoutToCome_.clear();
    maximised_ = dock;
    dock->setFloating(false);
    for (QDockWidget* other : docks_) {
        other->setVisible(other == dock);
    }
    window_->centralWidget()->hide();
}

void DockLayout::leaveMaximised() {
    putDown();
    if (QDockWidget* dock = std::exchange(maximised_, nullptr)) {
        window_->centralWidget()->show();
        restoreLayout(std::exchange(beforeMaximised_, {}));
        dock->raise();
    }
}

void DockLayout::putDown() {
    if (QWidget* const dock = qobject_cast<QDockWidget*>(QWidget::mouseGrabber())) { // it hangs on the mouse
        QMouseEvent release(QEvent::MouseButtonRelease, dock->mapFromGlobal(QCursor::pos()), QCursor::pos(),
                            Qt::LeftButton, Qt::NoButton, {});
        QCoreApplication::sendEvent(dock, &release);
    }
}

QByteArray DockLayout::layoutState() const {
    return !layoutToCome_.isEmpty() ? layoutToCome_
           : maximised_ != nullptr  ? beforeMaximised_
                                    : window_->saveState();
}

bool DockLayout::restoreLayout(const QByteArray& layout) {
    if (!window_->isVisible()) {
        layoutToCome_ = layout;
        return true;
    }
    putDown();
    // Qt 6.4 ends by showing each tab bar of a list. What is shown activates the layout, and that makes the
    // list anew under the loop: it is activated once, afterwards.
    window_->layout()->setEnabled(false);
    const bool known = window_->restoreState(layout);
    window_->layout()->setEnabled(true);
    window_->layout()->activate();
    fitPanels();
    Q_EMIT restored();
    return known;
}

void DockLayout::showPending() {
    if (!layoutToCome_.isEmpty()) {
        restoreLayout(std::exchange(layoutToCome_, {}));
    }
}

void fit_window(QWidget& window, const QRect& screen) {
    // A window that fits is not moved: before the window is shown, Qt takes the position of its frame for
    // that of its contents.
    if ((window.windowState() & (Qt::WindowMaximized | Qt::WindowFullScreen)) != 0 ||
        screen.contains(window.geometry())) {
        return;
    }
    constexpr int title_bar = 36;
    const QRect room = screen.adjusted(4, title_bar, -4, -4);
    QRect wanted = window.geometry();
    wanted.setSize(wanted.size().boundedTo(room.size()));
    wanted.moveTo(std::clamp(wanted.x(), room.left(), room.right() + 1 - wanted.width()),
                  std::clamp(wanted.y(), room.top(), room.bottom() + 1 - wanted.height()));
    window.setGeometry(wanted);
}

} // namespace ponderscope
