// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/view_context.h"
#include "views/depth/depth_map.h"

#include <QWidget>

#include <memory>
#include <optional>
#include <utility>

class QComboBox;
class QLabel;

namespace ponderscope {

class DepthGrid;
class ScaleBar;
class StepMapCanvas;

/// How layers mix the values of earlier layers: layer × source for the selected token, or its mean and spread
/// over tokens, and layer × token for the chosen source. Any signal with axes token, layer, source (and head)
/// of run A; a trace without one is told what to record.
///
/// Says that weights are not causes, and which layers hardly depend on the token.
class DepthView : public QWidget {
    Q_OBJECT
public:
    enum class Shown { token, mean, spread };
    explicit DepthView(ViewContext context, QWidget* parent = nullptr);

    [[nodiscard]] QString signalName() const { return signal_; }
    void setShown(Shown shown);
    [[nodiscard]] Shown shown() const { return shown_; }
    [[nodiscard]] int source() const { return source_; }
    void setSource(int source);
    [[nodiscard]] DepthGrid* grid() const { return grid_; }
    [[nodiscard]] StepMapCanvas* map() const { return map_; }
    [[nodiscard]] QString readout() const;
    [[nodiscard]] QString flag() const; ///< "Layers 2 and 5 hardly depend on the token", or empty
    [[nodiscard]] const std::optional<DepthMap>& depth() const { return depth_; }

private:
    void refreshSignals();
    void refreshData();
    void refreshGrid();
    void refreshMap();
    [[nodiscard]] QString sourceLabel(int source) const;
    void showCell(int layer, int source);

    TraceData& data_;
    Selection& selection_;
    Theme& theme_;
    QComboBox* chooser_;
    QComboBox* head_;
    QComboBox* what_;
    ScaleBar* scale_;
    QLabel* readout_;
    DepthGrid* grid_;
    QLabel* caption_;
    QLabel* flag_;
    QLabel* mapTitle_;
    StepMapCanvas* map_;
    QWidget* right_;

    QString signal_;
    SignalInfo info_;
    Shown shown_ = Shown::token;
    int source_ = 0;
    std::shared_ptr<const SequenceData> sequence_;
    std::shared_ptr<const SignalChunk> chunk_;
    std::optional<DepthMap> depth_;
    std::optional<DepthMap::Averages> averages_;       ///< of averagesOf_
    std::pair<std::int64_t, std::int64_t> averagesOf_; ///< step and head
};

} // namespace ponderscope
