// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>

namespace ponderscope {

/// The file for runs that nobody asked to keep: what ifs, reruns, what was thought. One a window, in the
/// user's cache; nothing is made before it is needed, and files of earlier sessions go after two weeks.
class Scratch {
public:
    Scratch();
    [[nodiscard]] const QString& trace() const { return trace_; } ///< absolute; perhaps not there yet
    /// Makes its folder. Why it cannot be written, one sentence; empty: it can.
    [[nodiscard]] QString prepare() const;
    /// The same for what is computed on \p machine ("ssh://host"): a file in /tmp there. Empty: trace().
    [[nodiscard]] QString on(const QString& machine) const;

private:
    QString trace_;
};

} // namespace ponderscope
