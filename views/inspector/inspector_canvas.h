// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/theme.h"
#include "views/inspector/token_report.h"

#include <QWidget>

namespace ponderscope {

/// Paints a TokenReport; independent of traces. A click or Up and Down select a number. Ctrl+C copies the
/// number, or all numbers without a selection. Left and Right select a step, Space shows more candidates.
class InspectorCanvas : public QWidget {
    Q_OBJECT
public:
    explicit InspectorCanvas(Theme& theme, QWidget* parent = nullptr);

    void setReport(const TokenReport* report); ///< must live until the next call; null: empty
    void setExpanded(bool expanded);
    [[nodiscard]] bool hasHeightForWidth() const override { return true; }
    [[nodiscard]] int heightForWidth(int width) const override;
    /// The report as text, one number on each line, columns separated by tabs.
    [[nodiscard]] QString text() const;

Q_SIGNALS:
    void candidatesClicked();
    void stepClicked(int step);

protected:
    void paintEvent(QPaintEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void contextMenuEvent(QContextMenuEvent* event) override;

private:
    /// Clickable areas. A pass without a painter fills them.
    struct Spots {
        QRect candidates;
        std::vector<QRect> rows;
        std::vector<std::pair<QRect, int>> steps;
    };
    /// Paints with a painter; without one only measures. Returns the height.
    int pass(QPainter* painter, int width, Spots* spots) const;
    int numbers(QPainter* painter, int width, int y, Spots* spots) const;
    void selectRow(int row);
    void selectStep(int by);
    void copy() const; ///< copies the selected number, or all numbers
    int candidates(QPainter* painter, int width, int y, Spots* spots) const;
    int curve(QPainter* painter, int width, int y, const TokenReport::Curve& curve, int height) const;
    int gates(QPainter* painter, int width, int y) const;
    int section(QPainter* painter, int width, int y, const QString& name, const QString& remark = {}) const;
    int paragraph(QPainter* painter, int width, int y, const QString& text, const QColor& colour,
                  const QColor& paper) const;

    Theme& theme_;
    const TokenReport* report_ = nullptr;
    bool expanded_ = false;
    int selected_ = -1; ///< index of the selected number; -1: none
};

} // namespace ponderscope
