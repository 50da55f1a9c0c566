// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/attention/attention_row.h"
#include "views/common/live_view.h"
#include "views/common/task.h"

#include <QWidget>

#include <optional>

class QComboBox;

namespace ponderscope {

class MapHeader;
class StepMapCanvas;

/// The attention of the selected token to every earlier token, by layer (mean over heads) or by head of one
/// layer. Shows run A, or a hint if run A has no recorded attention. Reads only the shown row.
///
/// The map shows the pinned token, so hovering over the map does not change the map.
class AttentionView : public QWidget, public LiveView {
    Q_OBJECT
public:
    explicit AttentionView(ViewContext context, QWidget* parent = nullptr);
    [[nodiscard]] ViewCommand viewCommand() const override;

    [[nodiscard]] bool isBusy() const override { return reading_.isBusy(); }
    [[nodiscard]] StepMapCanvas* map() const { return map_; }
    [[nodiscard]] QComboBox* rowsBox() const { return rows_; }
    [[nodiscard]] const std::optional<AttentionRow>& attention() const { return row_; }
    /// "“Quill” reads “Hester” 0.31, ...": the largest weights over all layers and heads.
    [[nodiscard]] MapHeader* header() const { return header_; }

private:
    void renew() override; ///< reads the signal of run A
    void refreshToken();
    void showRow();
    void showReach(); ///< zooms the map to the tokens that the shown token can attend to
    void showCell(qint64 token, int row);
    void nothing(const QString& hint);
    [[nodiscard]] QString tokenName(qint64 row) const;
    [[nodiscard]] std::int64_t step() const; ///< the selected step, or the last step that ran

    TraceData& data_;
    Selection& selection_;
    StepMapCanvas* map_;
    MapHeader* header_;
    QComboBox* rows_;
    Task reading_;
    std::optional<SignalInfo> info_; ///< the signal in run A
    std::optional<AttentionRow> row_;
    AttentionChoiceNumbers numbers_;
    std::shared_ptr<const SequenceData> sequence_;
    QString rowOf_; ///< the key of row_, to avoid reading it again
    QString summary_;
};

} // namespace ponderscope
