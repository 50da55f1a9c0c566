// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/figure/name_list.h"

#include <algorithm>

namespace ponderscope {
namespace {

constexpr int name_role = Qt::UserRole;
constexpr int place_role = Qt::UserRole + 7; ///< position at which the name was added

} // namespace

NameList::NameList(const QString& name, const QString& tip, QWidget* parent) : QListWidget(parent) {
    setAccessibleName(name);
    setToolTip(tip);
    setDragDropMode(QAbstractItemView::InternalMove);
    setEditTriggers(QAbstractItemView::DoubleClicked | QAbstractItemView::EditKeyPressed);
    setTextElideMode(Qt::ElideMiddle);
    setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    setFixedHeight(104);
}

QListWidgetItem* NameList::add(const std::string& name, const std::string& shown, bool checked) {
    auto* item = new QListWidgetItem(QString::fromStdString(shown), this);
    item->setFlags((item->flags() | Qt::ItemIsEditable | Qt::ItemIsUserCheckable) & ~Qt::ItemIsDropEnabled);
    item->setCheckState(checked ? Qt::Checked : Qt::Unchecked);
    item->setData(name_role, QString::fromStdString(name));
    item->setData(place_role, count() - 1);
    return item;
}

std::string NameList::nameAt(int row) const {
    return item(row)->data(name_role).toString().toStdString();
}

bool NameList::hasAll(const std::vector<std::string>& names) const {
    std::vector<std::string> mine;
    for (int row = 0; row < count(); ++row) {
        mine.push_back(nameAt(row));
    }
    return mine.size() == names.size() && std::is_permutation(mine.begin(), mine.end(), names.begin());
}

std::vector<figure::SeriesSpec> NameList::changed(bool order) const {
    bool moved = false;
    for (int row = 0; order && row < count(); ++row) {
        moved = moved || item(row)->data(place_role).toInt() != row;
    }
    std::vector<figure::SeriesSpec> all;
    for (int row = 0; row < count(); ++row) {
        figure::SeriesSpec one{nameAt(row), item(row)->text().trimmed().toStdString(),
                               !order || item(row)->checkState() == Qt::Checked};
        one.as = one.as == one.name ? std::string() : one.as;
        if (moved || !one.as.empty() || !one.show) {
            all.push_back(std::move(one));
        }
    }
    return all;
}

} // namespace ponderscope
