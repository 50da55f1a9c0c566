// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/view_context.h"
#include "views/heatmap/step_map.h"

#include <QWidget>

#include <memory>

class QComboBox;
class QLabel;

namespace ponderscope {

class ScaleBar;
class StepMapCanvas;

/// The step × token heatmap of any signal that has a value a token and step: a chooser of the signal, the
/// map, its scale with unit, and the value under the cursor in numbers. Shows run A and the sequence of the
/// selection; follows a run that is being recorded.
///
/// Needs per-step signals in the trace (`record --record steps`, or what a method computes anyway, such as
/// gates); says so otherwise.
class HeatmapView : public QWidget {
    Q_OBJECT
public:
    explicit HeatmapView(ViewContext context, QWidget* parent = nullptr);

    [[nodiscard]] QString signalName() const { return signal_; }
    void
    setSignalName(const QString& name); ///< kept for runs that have it; otherwise the first of a run is shown
    [[nodiscard]] StepMapCanvas* canvas() const { return canvas_; }
    /// "token 5 “seventeen” · step 2 · 0.71", empty when the cursor is elsewhere.
    [[nodiscard]] QString readout() const;

signals:
    void signalNameChanged(const QString& name);

private:
    void refreshSignals(); ///< of run A
    void refreshMap();
    void showCell(qint64 token, int step);

    TraceData& data_;
    Selection& selection_;
    Theme& theme_;
    QComboBox* chooser_;
    QComboBox* merge_;
    QLabel* readout_;
    ScaleBar* scale_;
    StepMapCanvas* canvas_;
    QString signal_;
    QString unreadable_; ///< the signal that was asked for and could not be read
    // What the map was made from, so that nothing is made twice.
    std::shared_ptr<const SequenceData> sequence_;
    std::shared_ptr<const SignalChunk> chunk_;
    Attribution attribution_ = Attribution::predicted;
};

/// The scale of a heatmap: low end, colours, high end, unit, and what the neutral grey means.
class ScaleBar : public QWidget {
    Q_OBJECT
public:
    explicit ScaleBar(Theme& theme, QWidget* parent = nullptr);
    void setScale(const ColourScale& scale, const QString& unit, bool halted);
    void clear();
    [[nodiscard]] QSize sizeHint() const override;

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    Theme& theme_;
    ColourScale scale_;
    QString unit_;
    bool halted_ = false;
    bool empty_ = true;
};

} // namespace ponderscope
