// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/theme.h"
#include "views/common/value_look.h"

#include <QWidget>

#include <vector>

namespace ponderscope {

/// Paints a layer × source heatmap: layers from top to bottom, sources from left to right, the chosen layer
/// and source outlined. Emits the hovered cell; clicks and arrow keys choose a cell.
class DepthGrid : public QWidget {
    Q_OBJECT
public:
    explicit DepthGrid(Theme& theme, QWidget* parent = nullptr);

    /// \p values [layer * sources + source]; NaN cells are empty.
    void setValues(std::vector<float> values, int layers, int sources, const ValueLook& look);
    void setNames(const QString& layer, const QString& source, const QStringList& labels);
    void clear(const QString& hint);
    void setChosen(int layer, int source); ///< -1: none chosen
    [[nodiscard]] int layers() const { return layers_; }
    [[nodiscard]] int sources() const { return sources_; }
    [[nodiscard]] float value(int layer, int source) const; ///< NaN outside
    [[nodiscard]] const ColourScale& scale() const { return look_.scale; }
    [[nodiscard]] QString hint() const { return hint_; }
    [[nodiscard]] QRectF cell(int layer, int source) const;
    [[nodiscard]] QSize sizeHint() const override;
    [[nodiscard]] QSize minimumSizeHint() const override;

Q_SIGNALS:
    void hovered(int layer, int source); ///< -1, -1: none
    void chosen(int layer, int source);

protected:
    void paintEvent(QPaintEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void leaveEvent(QEvent* event) override;

private:
    [[nodiscard]] QRectF plot() const;
    [[nodiscard]] std::pair<int, int> at(QPointF position) const; ///< layer, source

    Theme& theme_;
    std::vector<float> values_;
    int layers_ = 0;
    int sources_ = 0;
    ValueLook look_;
    QString hint_;
    QString names_;      ///< names of the axes
    QStringList labels_; ///< [source]
    int layer_ = -1;
    int source_ = -1;
};

} // namespace ponderscope
