// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/live_view.h"
#include "views/inspector/token_report.h"

#include <QTextBrowser>
#include <QTimer>

namespace ponderscope {

/// The panel at the right: the results of runs A and B at the shown token (Selection::shown). Candidates and
/// curves need per-step signals. Shows a hovered token within one frame. Text can be selected and copied.
class InspectorView : public QTextBrowser, public LiveView {
    Q_OBJECT
public:
    explicit InspectorView(ViewContext context, QWidget* parent = nullptr);
    [[nodiscard]] ViewCommand viewCommand() const override;

    [[nodiscard]] const TokenReport& report() const { return report_; }
    /// Candidates for each step: 3, or 10 after a click on "more".
    [[nodiscard]] int candidatesShown() const { return most_; }
    void setCandidatesShown(int most);
    [[nodiscard]] QSize sizeHint() const override { return {320, 600}; }
    [[nodiscard]] bool isBusy() const override { return pending_.isActive(); }

public Q_SLOTS:
    void refresh(); ///< fills the page at once; changes of selection or data schedule a refresh

protected:
    QMimeData* createMimeDataFromSelection() const override;
    void resizeEvent(QResizeEvent* event) override;

private:
    void renew() override { pending_.start(); } ///< at most one refresh() in a turn of the event loop

    TraceData& data_;
    Selection& selection_;
    Theme& theme_;
    QTimer pending_;
    TokenReport report_;
    int most_ = 3;
    int written_width_ = 0; ///< the widget's width at the last refresh
};

} // namespace ponderscope
