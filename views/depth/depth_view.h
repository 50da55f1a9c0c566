// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/live_view.h"
#include "views/common/task.h"
#include "views/depth/depth_charts.h"
#include "views/heatmap/map_loader.h"

#include <QWidget>

#include <memory>
#include <optional>
#include <utility>

class QComboBox;

namespace ponderscope {

class ChartPlot;
class Readout;
class ScaleBar;
class StepMapCanvas;

/// How much each layer reads the values of each earlier layer (source). Shows layer × source for the selected
/// token, or mean and spread over tokens, and layer × token for the chosen source. Shows any signal of run A
/// with axes token, layer, source (and head). Without such a signal, a hint says what to record.
///
/// Reads only a part of a sequence: sampled rows for averages, the row of the selected token, and in the
/// background the chosen source's map.
///
/// The chart's note warns that weights are not causes, and names layers that hardly depend on the token.
class DepthView : public QWidget, public LiveView {
    Q_OBJECT
public:
    using Shown = DepthShown;
    explicit DepthView(ViewContext context, QWidget* parent = nullptr);
    [[nodiscard]] ViewCommand viewCommand() const override;

    [[nodiscard]] QString signalName() const { return signal_; }
    void setShown(Shown shown);
    [[nodiscard]] Shown shown() const { return shown_; }
    [[nodiscard]] int source() const { return source_; }
    void setSource(int source);
    [[nodiscard]] ChartPlot* chart() const { return chart_; }
    [[nodiscard]] StepMapCanvas* map() const { return map_; }
    [[nodiscard]] bool isBusy() const override {
        return sampling_.isBusy() || reading_.isBusy() || loader_.isBusy();
    }
    [[nodiscard]] const std::optional<DepthMap>& depth() const { return depth_; }

private:
    void renew() override; ///< reads the signals
    void refreshData();
    void refreshChart();
    void refreshMap();
    void redraw(); ///< redraws both maps
    void sample(const QString& wanted);
    void readRow(qint64 row);
    void showMapScale();

    TraceData& data_;
    Selection& selection_;
    Theme& theme_;
    QComboBox* chooser_;
    QComboBox* head_;
    QComboBox* what_;
    ChartPlot* chart_;
    Readout* mapTitle_;
    ScaleBar* mapScale_;
    StepMapCanvas* map_;
    QWidget* right_;
    QString sampleOf_; ///< names the run, sequence and signal of depth_, or of the running sampling
    QString problem_;  ///< why there is no sample
    Task sampling_;
    std::optional<DepthMap> row_; ///< the row of the shown token
    qint64 rowOf_ = -1;
    Task reading_;
    MapLoader loader_;

    QString signal_;
    SignalInfo info_;
    Shown shown_ = Shown::token;
    int source_ = 0;
    std::shared_ptr<const SequenceData> sequence_;
    std::optional<DepthMap> depth_;
    std::optional<DepthMap::Averages> averages_;       ///< averages for averagesOf_
    std::pair<std::int64_t, std::int64_t> averagesOf_; ///< step and head
};

} // namespace ponderscope
