// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/view_context.h"

#include <QWidget>

class QComboBox;
class QLineEdit;
class QMenuBar;

namespace ponderscope {

/// The first row of the window: menus, runs A and B, and the search field.
class TopBar : public QWidget {
    Q_OBJECT
public:
    explicit TopBar(const ViewContext& context, QWidget* parent = nullptr);
    [[nodiscard]] QMenuBar& menus() { return *menus_; }
    [[nodiscard]] QComboBox& runA() { return *a_; }
    [[nodiscard]] QComboBox& runB() { return *b_; }

Q_SIGNALS:
    void findRequested();

protected:
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;

private:
    void fill();

    ViewContext context_;
    QMenuBar* menus_;
    QComboBox* a_;
    QComboBox* b_;
    QLineEdit* find_;
};

} // namespace ponderscope
