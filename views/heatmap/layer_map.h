// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/view_context.h"

#include <QWidget>

#include <memory>
#include <utility>
#include <vector>

class QComboBox;

namespace ponderscope {

class DepthGrid;
class ScaleBar;

/// What every layer says at every step of the chosen token: layers downwards, steps to the right, of any
/// signal with a value a token, step and layer (`record --record steps,layers`). Hidden for runs that have
/// none. A click chooses step and layer for all views.
class LayerMap : public QWidget {
    Q_OBJECT
public:
    explicit LayerMap(const ViewContext& context, QWidget* parent = nullptr);

    [[nodiscard]] DepthGrid* grid() const { return grid_; }
    [[nodiscard]] QComboBox* chooser() const { return chooser_; }
    [[nodiscard]] bool hasSignals() const;

signals:
    /// "layer 3 · step 1 · 2.31 nats", empty when the cursor is elsewhere.
    void readoutChanged(const QString& text);

private:
    void refreshSignals();
    void refresh();
    void say(int row, int step);
    [[nodiscard]] QString valueOf(float value) const;
    [[nodiscard]] std::pair<float, float> range(const std::shared_ptr<const SignalChunk>& chunk);

    TraceData& data_;
    Selection& selection_;
    Theme& theme_;
    QComboBox* chooser_;
    DepthGrid* grid_;
    ScaleBar* scale_;
    std::vector<SignalInfo> infos_;
    std::vector<std::string> layers_;           ///< what the rows are called
    std::shared_ptr<const SignalChunk> scaled_; ///< what range_ is of
    std::pair<float, float> range_{0, 1};
};

} // namespace ponderscope
