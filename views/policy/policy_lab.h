// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/live_view.h"
#include "views/common/task.h"

#include <QWidget>

#include <map>
#include <memory>
#include <string>
#include <vector>

class QCheckBox;
class QComboBox;
class QLabel;
class QLineEdit;
class QPushButton;
class QSlider;
class QToolButton;

namespace ponderscope {

namespace figure {
struct FigureSpec;
}

class ChartPlot;
class FigurePanel;
class PolicyData;
struct PolicyKind;
struct ReplayResult;
struct RerunDifference;

/// Shows the effect of another halting policy: policy, threshold, histogram of steps, the text coloured by
/// these steps, and the policy's point in a chart of fronts. All numbers are replays of recorded signals and
/// labelled as replays. If an open trace has an exact rerun of the policy, the panel also shows the rerun and
/// its difference from the replay.
class PolicyLab : public QWidget, public LiveView {
    Q_OBJECT
public:
    explicit PolicyLab(ViewContext context, QWidget* parent = nullptr);
    [[nodiscard]] ViewCommand viewCommand() const override;
    ~PolicyLab() override;

    [[nodiscard]] bool isBusy() const override;
    /// Offers only policies whose signals the run has.
    [[nodiscard]] QComboBox* policies() const { return policy_; }
    [[nodiscard]] QSlider* slider() const { return slider_; }
    /// Accepts numbers between the slider's positions.
    [[nodiscard]] QLineEdit* threshold() const { return threshold_; }
    /// Resets the slider to its start: the threshold of the model's own rule, if it has one.
    [[nodiscard]] QToolButton* reset() const { return reset_; }
    [[nodiscard]] ChartPlot* histogram() const { return histogram_; }
    /// The fronts of the chosen policy, the model's own rule and the oracle, with the slider's replay.
    [[nodiscard]] FigurePanel* front() const { return front_; }
    [[nodiscard]] QString policyText() const { return spec_; }
    [[nodiscard]] QString summary() const;
    [[nodiscard]] bool coloursText() const;
    void setColoursText(bool on);
    [[nodiscard]] QPushButton* rerunButton() const { return rerun_; }
    /// The result or progress of the exact rerun; empty: none.
    [[nodiscard]] QString rerunText() const;
    /// Progress of a requested rerun; negative: none is running.
    void setRerunProgress(int perMille);
    /// Completes a figure's specification. A policy table gets every policy at its slider's position and the
    /// existing reruns. A front gets bands, as in the window.
    void fillFigure(figure::FigureSpec& spec) const;

public Q_SLOTS:
    /// Shows this policy, even if its threshold is between positions of the slider.
    void setPolicy(const QString& policy);

Q_SIGNALS:
    void rerunRequested(const ponderscope::RunKey& run, const QString& policy);
    void rerunCancelRequested();
    void figureWanted(); ///< the user wants the table of all policies
    /// Replayed steps of the shown sequence; none: the text shows the recorded steps.
    void replayed(const ponderscope::ReplayedSteps& steps);

private:
    void renew() override; ///< shows the current table
    void screenChanged() override;
    void choosePolicy();  ///< chooses another kind with its thresholds
    void replayNow();     ///< replays the policy with the current threshold
    void remember();      ///< stores the slider's position
    void takeThreshold(); ///< uses the typed threshold
    void drawFront();
    void tellText();
    void findRerun(); ///< finds a rerun of the shown policy
    void showRerun();

    ViewContext context_;
    PolicyData& shared_;
    QComboBox* policy_;
    QSlider* slider_;
    QLineEdit* threshold_;
    QToolButton* reset_;
    QLabel* summary_;
    QLabel* note_;
    QCheckBox* colour_;
    QPushButton* rerun_;
    QLabel* rerunLabel_;
    QLabel* hint_;
    QWidget* body_;
    ChartPlot* histogram_;
    FigurePanel* front_;
    std::vector<std::string> drawn_; ///< policies in the front
    QString exact_;                  ///< a policy chosen in another panel; empty: the slider's policy
    std::map<std::string, QString> followed_; ///< the last slider position of each kind
    std::vector<double> values_;              ///< thresholds at the slider's positions
    const PolicyKind* kind_ = nullptr;
    std::unique_ptr<ReplayResult> result_;
    QString spec_;
    Task comparing_;
    RunKey rerunKey_; ///< the rerun of difference_, or of the running comparison
    QString rerunSpec_;
    std::unique_ptr<RerunDifference> difference_;
    QString rerunProblem_;
    int rerunProgress_ = -1;
};

} // namespace ponderscope
