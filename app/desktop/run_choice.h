// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/desktop/shell.h"

namespace ponderscope {

class OpenTraces;
class RunFollower;

/// Chooses runs A and B where the user has not: when the first trace opens, and when a run is gone.
class RunChoice : public ShellPart {
    Q_OBJECT
public:
    RunChoice(const Shell& shell, OpenTraces& traces);
    void compareOverTheSameText(); ///< B reads what A reads, where another run does

private:
    void chooseRuns();                                    ///< where A or B are not there any more
    void fitSequence();                                   ///< to one that run A has
    [[nodiscard]] bool isListed(const RunKey& key) const; ///< known, and not hidden

    RunFollower& follower_;
    RunKey lastB_;
    bool withoutB_ = false; ///< B was given up by choice: none is chosen for the user
};

} // namespace ponderscope
