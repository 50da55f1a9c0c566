// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/dock_layout.h"

#include "app/desktop/panel_frame.h"
#include "app/desktop/panel_help.h"
#include "views/common/live_view.h"

#include <QApplication>
#include <QDockWidget>
#include <QLayout>
#include <QMouseEvent>

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

using namespace Qt::StringLiterals;

namespace ponderscope {

namespace {

constexpr int lowest_for_both = 820;     ///< in lower windows all panels below the text are tabs
constexpr int narrowest_for_both = 1200; ///< in narrower windows the inspector is beside the library

Qt::DockWidgetArea area_of(PanelPlace place) {
    return place == PanelPlace::left    ? Qt::LeftDockWidgetArea
           : place == PanelPlace::right ? Qt::RightDockWidgetArea
                                        : Qt::BottomDockWidgetArea;
}

} // namespace

DockLayout::~DockLayout() {
    for (QDockWidget* one : docks_) {
        one->disconnect(this); // a dock in destruction reports that it is hidden
    }
    qDeleteAll(docks_);
}

void DockLayout::addPanels(const ViewContext& context) {
    for (const Panel& panel : panels()) {
        QWidget* view = panel.make(context, window_);
        auto* dock = new QDockWidget(QString::fromUtf8(panel.title), window_);
        dock->setObjectName(QString::fromLatin1(panel.name));
        const PanelHelp& help = *panel_help(dock->windowTitle());
        dock->setWidget(new PanelFrame(view, panel.caveat ? help.brief : QString(), theme_));
        auto* line = new DockTitle(dock, help, QString::fromUtf8(panel.heading), theme_);
        connect(line, &DockTitle::copyRequested, this, [this, view] { Q_EMIT copyRequested(view); });
        connect(line, &DockTitle::maximiseRequested, this, [this, dock] { maximise(dock); });
        dock->setTitleBarWidget(line);
        docks_.push_back(dock);
        if (auto* live = dynamic_cast<LiveView*>(view)) {
            live_.push_back(live);
            live->setOnScreen(false); // until its dock becomes visible
            connect(dock, &QDockWidget::visibilityChanged, this,
                    [live](bool visible) { live->setOnScreen(visible); });
        }
    }
}

QDockWidget* DockLayout::dock(const QString& name) const {
    const auto known =
        std::ranges::find_if(docks_, [&](const QDockWidget* one) { return one->objectName() == name; });
    return known == docks_.end() ? nullptr : *known;
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
    return std::ranges::any_of(live_, [](const LiveView* view) { return view->isBusy(); });
}

QDockWidget* DockLayout::focusedDock() {
    for (QWidget* at = QApplication::focusWidget(); at != nullptr; at = at->parentWidget()) {
        if (auto* found = qobject_cast<QDockWidget*>(at)) {
            return found;
        }
    }
    return nullptr;
}

PanelPlace DockLayout::placeOf(std::size_t panel) const {
    const PanelPlace wanted = panels()[panel].place;
    return low_ && wanted == PanelPlace::lower      ? PanelPlace::upper
           : narrow_ && wanted == PanelPlace::right ? PanelPlace::left
                                                    : wanted;
}

void DockLayout::arrange() {
    leaveMaximised();
    layoutToCome_.clear();
    low_ = window_->height() < lowest_for_both;
    narrow_ = window_->width() < narrowest_for_both;
    std::vector<std::size_t> all(docks_.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    place(all);
    if (!low_) {
        dock(u"compare"_s)->raise();
    }
}

void DockLayout::place(const std::vector<std::size_t>& which) {
    for (const std::size_t i : which) {
        docks_[i]->setFloating(false);
        window_->removeDockWidget(docks_[i]); // removes it from tabs and splits
    }
    // First place one panel at each position, then add the others as its tabs: Qt cannot split tabs.
    std::map<PanelPlace, QDockWidget*> first;
    for (const std::size_t i : which) {
        if (const PanelPlace place = placeOf(i); first.emplace(place, docks_[i]).second) {
            window_->addDockWidget(area_of(place), docks_[i]);
            if (place == PanelPlace::lower && first.contains(PanelPlace::upper)) {
                window_->splitDockWidget(first.at(PanelPlace::upper), docks_[i], Qt::Vertical);
            }
        }
    }
    for (const std::size_t i : which) {
        if (QDockWidget* leader = first.at(placeOf(i)); leader != docks_[i]) {
            window_->tabifyDockWidget(leader, docks_[i]);
        }
        docks_[i]->show();
    }
    // The text keeps nearly half of the height, because it is the main content.
    const int room = window_->height() * 54 / 100;
    const std::map<PanelPlace, int> sizes{
        {PanelPlace::left, narrow_ ? 236 : 252},
        {PanelPlace::right, 312},
        {PanelPlace::upper, low_ ? std::max(200, window_->height() * 4 / 10) : room * 38 / 100},
        {PanelPlace::lower, room * 62 / 100}};
    for (const Qt::Orientation way : {Qt::Vertical, Qt::Horizontal}) {
        QList<QDockWidget*> leaders;
        QList<int> lengths;
        for (const auto& [place, leader] : first) {
            if ((area_of(place) == Qt::BottomDockWidgetArea) == (way == Qt::Vertical)) {
                leaders << leader;
                lengths << sizes.at(place);
                leader->raise();
            }
        }
        window_->resizeDocks(leaders, lengths, way);
    }
}

void DockLayout::fitPanels() {
    const bool low = window_->height() < lowest_for_both;
    const bool narrow = window_->width() < narrowest_for_both;
    if (maximised_ != nullptr || (low == low_ && narrow == narrow_)) {
        return;
    }
    endDockDrag();
    // Only panels at their default place: panels that the user moved or closed stay.
    std::vector<std::size_t> own;
    std::vector<QDockWidget*> seen;
    for (std::size_t i = 0; i < docks_.size(); ++i) {
        if (!docks_[i]->isFloating() && !docks_[i]->isHidden() &&
            window_->dockWidgetArea(docks_[i]) == area_of(placeOf(i))) {
            own.push_back(i);
            if (!docks_[i]->visibleRegion().isEmpty()) {
                seen.push_back(docks_[i]);
            }
        }
    }
    low_ = low;
    narrow_ = narrow;
    place(own);
    for (auto dock = seen.rbegin(); dock != seen.rend(); ++dock) { // the first ends in front
        (*dock)->raise();
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
    endDockDrag();
    if (QDockWidget* dock = std::exchange(maximised_, nullptr)) {
        window_->centralWidget()->show();
        restoreLayout(std::exchange(beforeMaximised_, {}));
        dock->raise();
    }
}

void DockLayout::endDockDrag() {
    if (QWidget* const dock = qobject_cast<QDockWidget*>(QWidget::mouseGrabber())) { // the dragged dock
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
    endDockDrag();
    // Qt 6.4 shows all tab bars in a loop at the end. Each show would activate the layout, which changes the
    // list of tab bars during the loop. So the layout is disabled, and activated once afterwards.
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
    // Do not move a window that fits: before it is shown, Qt confuses the positions of frame and contents.
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
