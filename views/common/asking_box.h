// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QComboBox>
#include <QStandardItemModel>
#include <QVariant>

#include <utility>

namespace ponderscope {

/// A combo box with an entry that opens a dialog, told by its data. Arrows, letters and the wheel pass over
/// this entry: only its choice in the open list activates it.
class AskingBox : public QComboBox {
public:
    AskingBox(QVariant asks, QWidget* parent) : QComboBox(parent), asks_(std::move(asks)) {}

protected:
    void keyPressEvent(QKeyEvent* event) override {
        setAsksEnabled(false);
        QComboBox::keyPressEvent(event);
        setAsksEnabled(true);
    }
    void wheelEvent(QWheelEvent* event) override {
        setAsksEnabled(false);
        QComboBox::wheelEvent(event);
        setAsksEnabled(true);
    }

private:
    void setAsksEnabled(bool enabled) {
        if (const int at = findData(asks_); at >= 0) {
            static_cast<QStandardItemModel*>(model())->item(at)->setEnabled(enabled);
        }
    }

    QVariant asks_;
};

} // namespace ponderscope
