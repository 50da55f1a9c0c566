// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/live_view.h"
#include "views/common/view_command.h"
#include "views/common/view_context.h"
#include "views/heatmap/mip_loader.h"
#include "views/heatmap/step_map.h"

#include <QWidget>

#include <memory>
#include <vector>

class QComboBox;

namespace ponderscope {

class LayerMap;
class MapHeader;
class StepMapCanvas;

/// The step × token heatmap of any signal that has a value a token and step: a chooser of the signal, the
/// map, its scale with unit, and the value under the cursor in numbers. Shows run A and the sequence of the
/// selection; follows a run that is being recorded. Long sequences are drawn from a pyramid that is made in
/// the background when they are shown; of the trace only what is near is read then.
///
/// Needs signals by step in the trace (`record --record steps`, or the method's own, such as gates); says so
/// otherwise.
class HeatmapView : public QWidget, public LiveView, public ShowsCommand {
    Q_OBJECT
public:
    explicit HeatmapView(ViewContext context, QWidget* parent = nullptr);
    /// Another map below this one, over the same tokens: they move together. Null when as many stand there as
    /// can be told apart.
    HeatmapView* addMap(const QString& signal);
    void removeMap(HeatmapView* map);
    [[nodiscard]] const std::vector<HeatmapView*>& maps() const { return more_; } ///< the maps below
    [[nodiscard]] ViewCommand viewCommand() const override;

    [[nodiscard]] QString signalName() const { return signal_; }
    [[nodiscard]] bool hasSignal() const; ///< run A has it; a hidden panel may show that of another run
    void
    setSignalName(const QString& name); ///< kept for runs that have it; otherwise the first of a run is shown
    [[nodiscard]] StepMapCanvas* canvas() const { return canvas_; }
    /// The layers of the selected token, for runs with a read-out at every layer.
    [[nodiscard]] LayerMap* layers() const { return layers_; }
    [[nodiscard]] bool isBusy() const override;
    /// From this number of cells on a pyramid is used; for tests.
    void setWholeCells(qint64 cells) { wholeCells_ = cells; }

    /// "token 5 “seventeen” · step 2 · 0.71", empty when the cursor is elsewhere.
    [[nodiscard]] QString readout() const;

private:
    HeatmapView(ViewContext context, HeatmapView& first); ///< below another one
    void fillMore(class QMenu& menu);
    void moveWith(HeatmapView& other);
    void takeView();
    void renew() override; ///< the signals of run A
    void screenChanged() override;
    void refreshMap();
    void refreshLong(const std::shared_ptr<const SequenceData>& sequence, const SignalInfo& info);
    void showScale();
    void showCell(qint64 token, int step);

    ViewContext context_;
    TraceData& data_;
    Selection& selection_;
    Theme& theme_;
    HeatmapView* above_ = nullptr;   ///< the first map, if this one is below it
    std::vector<HeatmapView*> more_; ///< of the first one
    StepMapCanvas* canvas_;
    MapHeader* header_;
    LayerMap* layers_;
    QComboBox* chooser_;
    MipLoader loader_;
    double scaledFor_ = 0; ///< tokens in view
    qint64 wholeCells_ = qint64{1} << 20;
    QString signal_;
    QString unreadable_; ///< the signal that was requested and could not be read
    // Inputs of the current map, so that nothing is made twice.
    std::shared_ptr<const SequenceData> sequence_;
    std::shared_ptr<const SignalChunk> chunk_;
    Attribution attribution_ = Attribution::predicted;
};

} // namespace ponderscope
