// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/stats/expert_use.h"
#include "views/common/live_view.h"

#include <QWidget>

#include <memory>
#include <optional>
#include <vector>

class QComboBox;

namespace ponderscope {

class FigurePanel;
class MapHeader;
class StepMapCanvas;

/// The experts that the routers of a mixture chose in run A (`record --record steps,experts`). Shows the
/// experts of one layer by token, coloured by weight, and figures of load and of agreement with run B.
class ExpertsView : public QWidget, public LiveView {
    Q_OBJECT
public:
    explicit ExpertsView(ViewContext context, QWidget* parent = nullptr);
    [[nodiscard]] ViewCommand viewCommand() const override;

    [[nodiscard]] bool isBusy() const override;
    [[nodiscard]] StepMapCanvas* map() const { return map_; }
    [[nodiscard]] QComboBox* layerBox() const { return layer_; }
    [[nodiscard]] FigurePanel* charts() const { return charts_; }
    [[nodiscard]] MapHeader* header() const { return header_; }

private:
    void renew() override; ///< reads the signal of run A
    void screenChanged() override;
    void refreshMap(); ///< shows the chosen layer of the sequence
    void nothing(const QString& hint);
    void showCell(qint64 token, int expert);
    void sayToken();                         ///< shows the experts of the selected token
    void showLayer();                        ///< shows the selected layer, if this layer has experts
    [[nodiscard]] std::size_t layer() const; ///< index among the layers with experts
    [[nodiscard]] QString layerName() const;

    TraceData& data_;
    Selection& selection_;
    StepMapCanvas* map_;
    MapHeader* header_;
    QComboBox* layer_;
    FigurePanel* charts_;
    std::optional<SignalInfo> info_;
    std::vector<std::string> layers_; ///< the model's numbers of its layers with experts
    std::shared_ptr<const SequenceData> sequence_;
    std::optional<ExpertRows> rows_;
    std::vector<float> weights_;
};

} // namespace ponderscope
