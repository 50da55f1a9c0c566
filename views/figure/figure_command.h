// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/view_command.h"
#include "views/common/view_context.h"
#include "views/figure/spec.h"

namespace ponderscope::figure {

/// A figure of the window's content: run A, run B if both have the same text, and the sequence.
FigureSpec window_figure(const TraceData& data, const Selection& selection, FigureKind kind);
/// The run of an open trace that a specification names; null: not open.
const RunInfo* run_named(const TraceData& data, const RunName& name);
/// The colours that the runs have in the Library, as numbers in the palette. Empty means 0, 1, 2, …
std::vector<std::int64_t> window_colours(const ViewContext& window, const std::vector<RunName>& runs);
/// `ponderscope figure - -o KIND.pdf` with the specification as standard input.
QString figure_command(const FigureSpec& spec, const QString& file = {});
/// figure_command() for "Copy as Command". Without a run: no command, with the reason.
ViewCommand figure_view(const TraceData& data, const Selection& selection, const FigureSpec& spec);

} // namespace ponderscope::figure
