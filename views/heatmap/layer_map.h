// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/live_view.h"
#include "views/common/task.h"
#include "views/common/view_context.h"

#include <QWidget>

#include <optional>
#include <utility>
#include <vector>

class QComboBox;

namespace ponderscope {

class DepthGrid;
class ScaleBar;

/// The read-out of every layer at every step of the chosen token: layers downwards, steps to the right, of
/// any signal with a value a token, step and layer (`record --record steps,layers`). Hidden for runs that
/// have none. A click chooses step and layer for all views. Reads the row that it shows, and the range of all
/// rows.
class LayerMap : public QWidget, public LiveView {
    Q_OBJECT
public:
    explicit LayerMap(const ViewContext& context, QWidget* parent = nullptr);

    [[nodiscard]] DepthGrid* grid() const { return grid_; }
    [[nodiscard]] QComboBox* chooser() const { return chooser_; }
    [[nodiscard]] bool isBusy() const override { return reading_.isBusy() || ranging_.isBusy(); }

Q_SIGNALS:
    /// "layer 3 · step 1 · 2.31 nats", empty when the cursor is elsewhere.
    void readoutChanged(const QString& text);

private:
    /// Values of a signal; \p at: the row, or how many tokens there are.
    struct Place {
        RunKey run;
        qint64 sequence = -1;
        QString signal;
        qint64 at = -1;
        friend bool operator==(const Place&, const Place&) = default;
    };
    using Range = std::pair<float, float>;

    void renew() override; ///< other signals
    void refresh();
    void read(const Place& row);
    void readRange(const Place& all);
    void nothing(const QString& hint);
    void draw();
    void say(int row, int step);
    [[nodiscard]] const SignalInfo& info() const; ///< of the chosen signal; there is one
    [[nodiscard]] QString valueOf(float value) const;

    TraceData& data_;
    Selection& selection_;
    Theme& theme_;
    QComboBox* chooser_;
    DepthGrid* grid_;
    ScaleBar* scale_;
    std::vector<SignalInfo> infos_;
    std::vector<std::string> layers_; ///< name of the rows
    Task reading_;
    Task ranging_;
    Place wanted_;                   ///< the row that is read, or that shall be next
    Place shown_;                    ///< place of row_
    std::optional<SignalChunk> row_; ///< of one token
    Place ranged_;                   ///< place of range_ or of its running computation
    std::optional<Range> range_;     ///< of all tokens, so that words can be compared
};

} // namespace ponderscope
