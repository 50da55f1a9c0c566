// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/desktop/record_command.h"

#include <QString>
#include <QStringList>

namespace ponderscope {

/// What the Think panel asks for: one `ponderscope generate`.
struct ThinkRequest {
    QString checkpoint; ///< folder
    QString prompt;
    int tokens = 40; ///< new ones at most; 0: the prompt is read and nothing generated
    double temperature = 0;
    int topK = 0;    ///< of sampling: so many most probable tokens; 0: all
    double topP = 1; ///< of sampling: of those, the smallest set with this much of their probability
    int seed = 0;
    QString policy; ///< empty: the method's own
    RunSettings settings;
    QString device = QStringLiteral("cpu");
    QString trace; ///< where the run is recorded in the end
};

/// What is missing, as a sentence for the panel; empty when it can start.
QString problem_of(const ThinkRequest& request);
/// Arguments for `ponderscope`, from "generate" on.
QStringList generate_arguments(const ThinkRequest& request);

} // namespace ponderscope
