// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/flow_layout.h"

#include <QWidget>

#include <algorithm>

namespace ponderscope {
namespace {

bool expands(const QLayoutItem& item) {
    return (item.expandingDirections() & Qt::Horizontal) != 0;
}

/// What expands, and what layouts ignore (a readout that may be cut), asks for its least.
int wanted(const QLayoutItem& item) {
    const QWidget* widget = const_cast<QLayoutItem&>(item).widget();
    const bool ignored = widget != nullptr && widget->sizePolicy().horizontalPolicy() == QSizePolicy::Ignored;
    return ignored || expands(item) ? item.minimumSize().width()
                                    : std::max(item.sizeHint().width(), item.minimumSize().width());
}

} // namespace

FlowLayout::FlowLayout(QWidget* parent) : QLayout(parent) {}

FlowLayout::~FlowLayout() = default;

void FlowLayout::addItem(QLayoutItem* item) {
    items_.emplace_back(item);
}

void FlowLayout::insertWidget(int place, QWidget* widget) {
    addChildWidget(widget);
    items_.insert(items_.begin() + std::clamp(place, 0, count()), std::make_unique<QWidgetItem>(widget));
    invalidate();
}

int FlowLayout::count() const {
    return static_cast<int>(items_.size());
}

QLayoutItem* FlowLayout::itemAt(int index) const {
    return index >= 0 && index < count() ? items_[static_cast<std::size_t>(index)].get() : nullptr;
}

QLayoutItem* FlowLayout::takeAt(int index) {
    if (index < 0 || index >= count()) {
        return nullptr;
    }
    QLayoutItem* taken = items_[static_cast<std::size_t>(index)].release();
    items_.erase(items_.begin() + index);
    return taken;
}

Qt::Orientations FlowLayout::expandingDirections() const {
    return Qt::Horizontal;
}

bool FlowLayout::hasHeightForWidth() const {
    return true;
}

int FlowLayout::heightForWidth(int width) const {
    return flow(QRect(0, 0, width, 0), false);
}

QSize FlowLayout::sizeHint() const {
    int width = 0;
    int height = 0;
    for (const auto& item : items_) {
        if (!item->isEmpty()) {
            width += (width > 0 ? spacing() : 0) + wanted(*item);
            height = std::max(height, item->sizeHint().height());
        }
    }
    const QMargins margins = contentsMargins();
    return {width + margins.left() + margins.right(), height + margins.top() + margins.bottom()};
}

QSize FlowLayout::minimumSize() const {
    QSize least;
    for (const auto& item : items_) {
        if (!item->isEmpty()) {
            least = least.expandedTo({wanted(*item), item->minimumSize().height()});
        }
    }
    const QMargins margins = contentsMargins();
    return least + QSize(margins.left() + margins.right(), margins.top() + margins.bottom());
}

void FlowLayout::setGeometry(const QRect& rect) {
    QLayout::setGeometry(rect);
    flow(rect, true);
}

int FlowLayout::flow(const QRect& rect, bool place) const {
    const QRect room = rect.marginsRemoved(contentsMargins());
    const int gap = std::max(0, spacing());
    int top = room.top();
    std::vector<QLayoutItem*> row;
    int used = 0;
    int high = 0;
    const auto end_row = [&] {
        if (place && !row.empty()) {
            const auto growing = static_cast<int>(std::count_if(
                row.begin(), row.end(), [](const QLayoutItem* item) { return expands(*item); }));
            const int more = growing > 0 ? std::max(0, room.width() - used) / growing : 0;
            int left = room.left();
            for (QLayoutItem* item : row) {
                const QSize size(
                    std::min(wanted(*item) + (expands(*item) ? more : 0), room.width()),
                    std::min(std::max(item->sizeHint().height(), item->minimumSize().height()), high));
                item->setGeometry(QRect(QPoint(left, top + (high - size.height()) / 2), size));
                left += size.width() + gap;
            }
        }
        top += high;
        row.clear();
        used = 0;
        high = 0;
    };
    for (const auto& item : items_) {
        if (item->isEmpty()) {
            continue;
        }
        const int width = wanted(*item);
        if (!row.empty() && used + gap + width > room.width()) {
            end_row();
            top += gap / 2;
        }
        used += (row.empty() ? 0 : gap) + width;
        high = std::max({high, item->sizeHint().height(), item->minimumSize().height()});
        row.push_back(item.get());
    }
    end_row();
    return top - rect.top() + contentsMargins().bottom();
}

} // namespace ponderscope
