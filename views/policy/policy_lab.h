// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/live_view.h"
#include "views/common/task.h"
#include "views/common/view_command.h"
#include "views/common/view_context.h"

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

/// The steps that a policy would have given to the tokens of one sequence, by replay.
struct ReplayedSteps {
    RunKey run;
    qint64 sequence = -1;
    QString policy;                  ///< "entropy:theta=1.37"
    qint64 maxSteps = 0;             ///< K
    std::vector<std::int32_t> steps; ///< by row of the sequence
};

/// Asks what another halting policy would have done: policy, threshold, histogram of steps, the text coloured
/// by the steps it would have had, and the point among the fronts of all policies. All numbers are replays of
/// recorded signals and marked as such, except the exact rerun of the policy: if an open trace has one, its
/// numbers and its difference from the replay are shown beside it.
class PolicyLab : public QWidget, public LiveView, public ShowsCommand {
    Q_OBJECT
public:
    explicit PolicyLab(ViewContext context, QWidget* parent = nullptr);
    [[nodiscard]] ViewCommand viewCommand() const override;
    ~PolicyLab() override;

    [[nodiscard]] bool isBusy() const override;
    /// Only policies whose signals the run has are offered.
    [[nodiscard]] QComboBox* policies() const { return policy_; }
    [[nodiscard]] QSlider* slider() const { return slider_; }
    /// Takes a number beside the slider's places.
    [[nodiscard]] QLineEdit* threshold() const { return threshold_; }
    /// Back to where the slider begins: the threshold of the model's own rule, if it has one.
    [[nodiscard]] QToolButton* reset() const { return reset_; }
    [[nodiscard]] ChartPlot* histogram() const { return histogram_; }
    /// The fronts of the chosen policy and of the model's own, with the replay that the slider chooses.
    [[nodiscard]] FigurePanel* front() const { return front_; }
    [[nodiscard]] QString policyText() const { return spec_; }
    [[nodiscard]] QString summary() const;
    [[nodiscard]] bool coloursText() const;
    void setColoursText(bool on);
    [[nodiscard]] QPushButton* rerunButton() const { return rerun_; }
    /// The result or the progress of the exact rerun; empty: none.
    [[nodiscard]] QString rerunText() const;
    /// A rerun that was requested is under way; negative: none is. Its end shows as a run of the trace.
    void setRerunProgress(int perMille);
    /// Completes a policy table (every policy at its slider, and the existing reruns) or a front (bands as in
    /// the window).
    void fillFigure(figure::FigureSpec& spec) const;

public Q_SLOTS:
    /// Shows it as if its slider had been moved there.
    void setPolicy(const QString& policy);

Q_SIGNALS:
    void rerunRequested(const ponderscope::RunKey& run, const QString& policy);
    void rerunCancelRequested();
    void figureWanted(); ///< the table of all policies
    /// Replayed steps of the shown sequence; null: the text shows the recorded steps.
    void replayed(std::shared_ptr<const ponderscope::ReplayedSteps> steps);

private:
    void renew() override; ///< another table
    void screenChanged() override;
    void choosePolicy();  ///< another kind: its thresholds
    void replayNow();     ///< another threshold
    void remember();      ///< the position of the slider
    void takeThreshold(); ///< takes the threshold that was typed
    void drawFront();
    void tellText();
    void findRerun(); ///< of the policy that is shown
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
    std::vector<std::string> drawn_;          ///< policies of the front
    QString exact_;                           ///< policy chosen elsewhere; empty: the slider's
    std::map<std::string, QString> followed_; ///< by kind: where its slider was moved to
    std::vector<double> values_;              ///< thresholds of the slider's places
    const PolicyKind* kind_ = nullptr;
    std::unique_ptr<ReplayResult> result_;
    QString spec_;
    Task comparing_;
    RunKey rerunKey_; ///< rerun of difference_ or of its running computation
    QString rerunSpec_;
    std::unique_ptr<RerunDifference> difference_;
    QString rerunProblem_;
    int rerunProgress_ = -1;
};

} // namespace ponderscope
