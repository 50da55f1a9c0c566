// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/view_command.h"
#include "views/common/view_context.h"
#include "views/figure/spec.h"

namespace ponderscope::figure {

/// A figure of what the window looks at: run A, run B where it is over the same text, sequence and
/// attribution. Without a run A it has no runs.
FigureSpec window_figure(const TraceData& data, const Selection& selection, FigureKind kind);
/// The run of an open trace that a specification names; null: there is none.
const RunInfo* run_named(const TraceData& data, const RunName& name);
/// Numbers of the palette for runs, so that they have the colours of the Library; empty if the order of
/// the runs gives the same.
std::vector<std::int64_t> window_colours(const ViewContext& window, const std::vector<RunName>& runs);
/// `ponderscope figure - -o KIND.pdf` with the specification as its input: nothing but the trace is needed.
QString figure_command(const FigureSpec& spec, const QString& file = {});
/// The same for "Copy as command", or why there is no run.
ViewCommand figure_view(const TraceData& data, const Selection& selection, const FigureSpec& spec);

} // namespace ponderscope::figure
