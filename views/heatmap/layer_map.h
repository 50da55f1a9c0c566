// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/live_view.h"
#include "views/common/task.h"
#include "views/common/view_context.h"

#include <QWidget>

#include <optional>
#include <vector>

class QComboBox;

namespace ponderscope {

class ChartPlot;

/// The read-out of every layer at every step of the selected token: layers from top to bottom, steps to the
/// right, for any signal with a value for each token, step and layer (`record --record steps,layers`). Hidden
/// for runs without such a signal. A click selects step and layer in all views. Reads one row.
class LayerMap : public QWidget, public LiveView {
    Q_OBJECT
public:
    explicit LayerMap(const ViewContext& context, QWidget* parent = nullptr);

    [[nodiscard]] ChartPlot* chart() const { return chart_; }
    [[nodiscard]] QComboBox* chooser() const { return chooser_; }
    [[nodiscard]] bool isBusy() const override { return reading_.isBusy(); }

private:
    /// The key of a token's values.
    struct Place {
        RunKey run;
        qint64 sequence = -1;
        QString signal;
        qint64 row = -1;
        friend bool operator==(const Place&, const Place&) = default;
    };

    void renew() override; ///< reads the signals
    void refresh();
    void read(const Place& place);
    void nothing(const QString& hint);
    void draw();
    [[nodiscard]] const SignalInfo& info() const; ///< the chosen signal, which must exist
    [[nodiscard]] QString valueOf(float value) const;

    TraceData& data_;
    Selection& selection_;
    Theme& theme_;
    QComboBox* chooser_;
    ChartPlot* chart_;
    std::vector<SignalInfo> infos_;
    Task reading_;
    Place wanted_;                   ///< the row that is being read or is next
    Place shown_;                    ///< key of row_
    std::optional<SignalChunk> row_; ///< one token's values
};

} // namespace ponderscope
