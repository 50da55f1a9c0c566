// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/chooser.h"

#include "views/common/format.h"

#include <QComboBox>
#include <QSignalBlocker>

#include <algorithm>

namespace ponderscope {

void fill_chooser(QComboBox& box, const std::vector<ChooserEntry>& entries, const QVariant& chosen) {
    const QSignalBlocker quiet(box);
    const auto listed = [&](const QVariant& data) {
        return std::any_of(entries.begin(), entries.end(),
                           [&](const ChooserEntry& entry) { return entry.data == data; });
    };
    for (int i = box.count(); i-- > 0;) {
        if (!listed(box.itemData(i))) {
            box.removeItem(i);
        }
    }
    const auto set = [&box](int i, const QVariant& value, int role) {
        if (box.itemData(i, role) != value) {
            box.setItemData(i, value, role);
        }
    };
    for (int i = 0; i < static_cast<int>(entries.size()); ++i) {
        const ChooserEntry& entry = entries[static_cast<std::size_t>(i)];
        while (i < box.count() && box.itemData(i) != entry.data &&
               std::any_of(entries.begin(), entries.begin() + i,
                           [&](const ChooserEntry& before) { return before.data == box.itemData(i); })) {
            box.removeItem(i); // it stands further up now
        }
        if (i >= box.count() || box.itemData(i) != entry.data) {
            box.insertItem(i, entry.text, entry.data);
        }
        set(i, entry.text, Qt::DisplayRole);
        set(i, entry.tip.isEmpty() ? QVariant() : QVariant(plain_tip(entry.tip)), Qt::ToolTipRole);
        for (const auto& [role, value] : entry.more) {
            set(i, value, role);
        }
    }
    while (box.count() > static_cast<int>(entries.size())) {
        box.removeItem(box.count() - 1);
    }
    const auto current = std::find_if(entries.begin(), entries.end(),
                                      [&](const ChooserEntry& entry) { return entry.data == chosen; });
    box.setCurrentIndex(current == entries.end() ? -1 : static_cast<int>(current - entries.begin()));
}

} // namespace ponderscope
