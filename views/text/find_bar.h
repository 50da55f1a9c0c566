// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/view_context.h"

#include <QWidget>

#include <vector>

class QLabel;
class QLineEdit;
class QListView;
class QTimer;
class QToolButton;

namespace ponderscope {

class HitModel;
class TextView;

/// Ctrl+F: finds text, "#id", a /pattern/ or a condition in the shown sequence; Enter next, Shift+Enter
/// previous, Escape closes. Hits are ticks on the minimap and, when wanted, a list with the words around
/// them.
class FindBar : public QWidget {
    Q_OBJECT
public:
    FindBar(const ViewContext& context, TextView& view, QWidget* parent = nullptr);
    void open();
    void setQuery(const QString& query);
    [[nodiscard]] QString query() const; ///< empty when the bar is closed
    [[nodiscard]] HitModel& model() { return *model_; }
    void setListed(bool on);
    [[nodiscard]] const std::vector<qint64>& hits() const { return hits_; }
    [[nodiscard]] QString status() const;

signals:
    void queryChanged();

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
    QToolButton* listed_;
    HitModel* model_;
    QListView* list_;
};

} // namespace ponderscope
