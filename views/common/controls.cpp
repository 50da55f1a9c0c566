// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/controls.h"

#include "views/common/format.h"
#include "views/common/theme.h"

#include <QClipboard>
#include <QGuiApplication>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QRegularExpression>
#include <QSignalBlocker>
#include <QToolButton>

#include <algorithm>

using namespace Qt::StringLiterals;

namespace ponderscope {

namespace {

/// Replaces a point by the locale's decimal sign. To the locale, a point may be a thousands separator.
QString in_locale(QString text, const QLocale& locale) {
    return text.replace(u'.', locale.decimalPoint());
}

QBoxLayout* make_box(QBoxLayout::Direction direction, QWidget* parent, const QMargins& margins, int spacing,
                     std::initializer_list<BoxItem> items) {
    auto* box = new QBoxLayout(direction, parent);
    box->setContentsMargins(margins);
    box->setSpacing(spacing);
    for (const BoxItem& item : items) {
        if (item.widget != nullptr) {
            box->addWidget(item.widget, item.stretch, item.alignment);
        } else {
            box->addLayout(item.layout, item.stretch);
        }
    }
    return box;
}

} // namespace

QBoxLayout* make_row(QWidget* parent, const QMargins& margins, int spacing,
                     std::initializer_list<BoxItem> items) {
    return make_box(QBoxLayout::LeftToRight, parent, margins, spacing, items);
}

QBoxLayout* make_column(QWidget* parent, const QMargins& margins, int spacing,
                        std::initializer_list<BoxItem> items) {
    return make_box(QBoxLayout::TopToBottom, parent, margins, spacing, items);
}

QValidator::State NumberBox::validate(QString& text, int& position) const {
    text = in_locale(std::move(text), locale());
    return QDoubleSpinBox::validate(text, position);
}

double NumberBox::valueFromText(const QString& text) const {
    return QDoubleSpinBox::valueFromText(in_locale(text, locale()));
}

QValidator::State NumberValidator::validate(QString& text, int&) const {
    if (typed_number(text)) {
        return Acceptable;
    }
    static const QRegularExpression begun(uR"re(^\s*[-+−]?\d*[.,]?\d*(?:[eE][-+−]?\d*)?\s*$)re"_s);
    return begun.match(text).hasMatch() ? Intermediate : Invalid;
}

QLabel* soft_label(QWidget* parent, const QString& text) {
    auto* made = new QLabel(text, parent);
    made->setTextFormat(Qt::PlainText);
    made->setForegroundRole(QPalette::PlaceholderText);
    made->setWordWrap(true);
    return made;
}

QLabel* field_label(const QString& text, QWidget* field, QWidget* parent) {
    auto* made = new QLabel(text, parent);
    made->setForegroundRole(QPalette::PlaceholderText);
    made->setBuddy(field);
    return made;
}

QComboBox* make_chooser(const QString& name, const QString& tip, QWidget* parent) {
    auto* made = new QComboBox(parent);
    made->setAccessibleName(name);
    made->setToolTip(tip);
    made->setSizeAdjustPolicy(QComboBox::AdjustToContents);
    return made;
}

QToolButton* flat_button(const QString& text, const QString& tip, QWidget* parent) {
    auto* made = new QToolButton(parent);
    made->setText(text);
    made->setToolTip(tip);
    made->setAccessibleName(text.size() == 1 ? tip : QString());
    made->setAutoRaise(true);
    return made;
}

void fill_chooser(QComboBox& box, const std::vector<ChooserEntry>& entries, const QVariant& chosen) {
    const QSignalBlocker quiet(box);
    const auto listed = [&](const QVariant& data) {
        return std::ranges::any_of(entries, [&](const ChooserEntry& entry) { return entry.data == data; });
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
        if (const int known = box.findData(entry.data); known != i) {
            if (known > i) {
                box.removeItem(known);
            }
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
    const auto current = std::ranges::find(entries, chosen, &ChooserEntry::data);
    box.setCurrentIndex(current == entries.end() ? -1 : static_cast<int>(current - entries.begin()));
}

CommandLine::CommandLine(const Theme& theme, QWidget* parent) : QWidget(parent), edit_(new QLineEdit(this)) {
    edit_->setReadOnly(true);
    edit_->setFont(theme.mono());
    edit_->setAccessibleName(u"Command line"_s);
    auto* button = new QPushButton(u"Copy"_s, this);
    button->setAutoDefault(false);
    button->setAccessibleName(u"Copy as Command"_s);
    button->setToolTip(u"Copy a terminal command that gives the same numbers"_s);
    make_row(this, {}, 6, {{edit_, 1}, button});
    setFocusProxy(edit_);
    connect(button, &QPushButton::clicked, this, &CommandLine::copy);
}

void CommandLine::setCommand(const QString& shown, const QString& copied) {
    edit_->setText(shown);
    edit_->setCursorPosition(0);
    copied_ = copied.isEmpty() ? shown : copied;
}

QString CommandLine::shown() const {
    return edit_->text();
}

void CommandLine::copy() const {
    QGuiApplication::clipboard()->setText(copied_);
}

namespace {

bool expands(const QLayoutItem& item) {
    return (item.expandingDirections() & Qt::Horizontal) != 0;
}

/// The width that \p item asks for. Expanding items, and items with an ignored size policy (a readout that
/// may be cut), ask for their minimum.
int wanted(const QLayoutItem& item) {
    const QWidget* widget = const_cast<QLayoutItem&>(item).widget();
    const bool ignored = widget != nullptr && widget->sizePolicy().horizontalPolicy() == QSizePolicy::Ignored;
    return ignored || expands(item) ? item.minimumSize().width()
                                    : std::max(item.sizeHint().width(), item.minimumSize().width());
}

} // namespace

void FlowLayout::insertWidget(int place, QWidget* widget) {
    addChildWidget(widget);
    items_.insert(items_.begin() + std::clamp(place, 0, count()), std::make_unique<QWidgetItem>(widget));
    invalidate();
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
            const auto growing = static_cast<int>(
                std::ranges::count_if(row, [](const QLayoutItem* item) { return expands(*item); }));
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
