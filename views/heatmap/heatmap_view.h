// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/live_view.h"
#include "views/heatmap/map_loader.h"
#include "views/heatmap/step_map.h"

#include <QWidget>

#include <memory>

class QComboBox;

namespace ponderscope {

class FigurePanel;
class MapHeader;
class StepMapCanvas;

/// The step × token heatmap of any signal with a value for each token and step. Shows a chooser of the
/// signal, the map, its scale with unit, and the numbers under the cursor. Shows run A and the sequence of
/// the selection; follows a run that is being recorded. Long sequences are read in the background. Needs
/// per-step signals in the trace (from `record --record steps`, or the method's own signals, such as gates).
class HeatmapView : public QWidget, public LiveView {
    Q_OBJECT
public:
    explicit HeatmapView(ViewContext context, QWidget* parent = nullptr);
    [[nodiscard]] ViewCommand viewCommand() const override;

    [[nodiscard]] QString signalName() const { return signal_; }
    [[nodiscard]] bool hasSignal() const { return info() != nullptr; } ///< whether run A has the signal
    void setSignalName(const QString& name); ///< selects the signal in runs that have it
    [[nodiscard]] StepMapCanvas* canvas() const { return canvas_; }
    /// The layers of the selected token, for runs with a read-out at every layer.
    [[nodiscard]] FigurePanel* layers() const { return layers_; }
    [[nodiscard]] bool isBusy() const override;
    /// Sets the number of cells from which a map is read in the background; for tests.
    void setWholeCells(qint64 cells) { wholeCells_ = cells; }

    [[nodiscard]] MapHeader* header() const { return header_; }

private:
    [[nodiscard]] const SignalInfo* info() const; ///< info of the signal in run A; null: none
    void renew() override;                        ///< reads the signals of run A
    void screenChanged() override;
    void refreshMap();
    void refreshLong(const std::shared_ptr<const SequenceData>& sequence, const SignalInfo& info);
    void showScale();
    void showCell(qint64 token, int step);

    TraceData& data_;
    Selection& selection_;
    StepMapCanvas* canvas_;
    MapHeader* header_;
    FigurePanel* layers_;
    QComboBox* chooser_;
    MapLoader loader_;
    double scaledFor_ = 0; ///< number of visible tokens when the scale was fitted
    qint64 wholeCells_ = qint64{1} << 20;
    QString signal_;
    QString unreadable_; ///< name of a signal that could not be read
    // Inputs of the current map, to avoid making it twice.
    std::shared_ptr<const SequenceData> sequence_;
    std::shared_ptr<const SignalChunk> chunk_;
    Attribution attribution_ = Attribution::predicted;
};

} // namespace ponderscope
