// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/live_view.h"
#include "views/common/task.h"
#include "views/common/view_command.h"
#include "views/common/view_context.h"
#include "views/training/training_charts.h"

#include <QWidget>

#include <array>
#include <vector>

class QComboBox;
class QLabel;
class QSlider;

namespace ponderscope {

class ChartView;
class Readout;

/// How models were trained: loss, mean steps and whatever else the trainings of all open traces tell, over
/// steps, tokens or time. Follows a training that is still running. Rings are runs that it recorded on its
/// way; a click selects one. Reads in the background, while it can be seen.
class TrainingView : public QWidget, public LiveView, public ShowsCommand {
    Q_OBJECT
public:
    explicit TrainingView(ViewContext context, QWidget* parent = nullptr);
    [[nodiscard]] ViewCommand viewCommand() const override;

    [[nodiscard]] bool isBusy() const override { return work_.isBusy(); }

    enum Place { loss, steps, further, places };
    [[nodiscard]] ChartView* chart(Place place) const { return charts_[place]; }
    [[nodiscard]] const std::vector<TrainingRecord>& trainings() const { return trainings_; }
    [[nodiscard]] QComboBox* axis() const { return axis_; }
    [[nodiscard]] QSlider* smoothing() const { return smoothing_; }
    [[nodiscard]] QComboBox* quantities() const { return quantities_; }
    [[nodiscard]] QString readout() const;
    [[nodiscard]] QLabel* legend() const { return legend_; }
    [[nodiscard]] QString hint() const;

private:
    void renew() override;
    void fillQuantities();
    void showCharts();
    void showLegend();
    void showReadout(Place place, int series, int index);
    void choose(Place place, int series, int index);
    void showHint(const QString& sentence);
    [[nodiscard]] QString standing() const;

    ViewContext context_;
    Task work_;
    QString asked_; ///< what the curves are of
    std::vector<TrainingRecord> trainings_;
    std::size_t found_ = 0; ///< there are so many; the last of them are shown
    std::array<std::vector<TrainingChart::Source>, places> sources_;
    QComboBox* axis_;
    QSlider* smoothing_;
    Readout* readout_;
    QLabel* legend_;
    QComboBox* quantities_; ///< of the third chart
    std::array<ChartView*, places> charts_{};
    QWidget* body_;
    QLabel* hint_;
};

} // namespace ponderscope
