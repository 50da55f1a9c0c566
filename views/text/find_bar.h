// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/view_context.h"

#include <QWidget>

#include <vector>

class QLabel;
class QLineEdit;
class QTimer;

namespace ponderscope {

class TextView;

/// Ctrl+F: finds text or "#id" in the shown sequence; Enter next, Shift+Enter previous, Escape closes. Hits
/// are ticks on the minimap.
class FindBar : public QWidget {
    Q_OBJECT
public:
    FindBar(const ViewContext& context, TextView& view, QWidget* parent = nullptr);
    void open();
    void setQuery(const QString& query);
    [[nodiscard]] const std::vector<qint64>& hits() const { return hits_; }
    [[nodiscard]] QString status() const;

public slots:
    void next();
    void previous();
    void close();

protected:
    void keyPressEvent(QKeyEvent* event) override;
    void paintEvent(QPaintEvent* event) override;

private:
    void search(bool jump);
    void go(qint64 direction);
    void showStatus();

    ViewContext context_;
    TextView& view_;
    QLineEdit* edit_;
    QLabel* status_;
    std::vector<qint64> hits_;
    QString problem_; ///< with the pattern; empty when all is well
    QTimer* delay_;
};

} // namespace ponderscope
