// SPDX-License-Identifier: GPL-3.0-or-later
// What the text shows, as a figure or as a command.
#include "views/text/text_panel.h"

#include "views/figure/figure_command.h"
#include "views/text/text_view.h"

namespace ponderscope {

figure::FigureSpec TextPanel::figureSpec(figure::FigureKind kind) const {
    figure::FigureSpec spec = figure::window_figure(context_.data, context_.selection, kind);
    spec.sequence = context_.selection.sequence();
    // The span that was chosen, or what is on the screen: a figure of a whole book helps nobody.
    const TokenSpan span = view_->span().isEmpty()
                               ? TokenSpan{view_->firstVisibleToken(), view_->endVisibleToken()}
                               : view_->span();
    if (!span.isEmpty()) {
        spec.tokens = std::array<std::int64_t, 2>{span.first, span.last};
    }
    const TextLook& look = context_.selection.look();
    spec.annotation = look.annotation.toStdString();
    const bool difference = look.difference && look.annotation.isEmpty();
    spec.quantity = {look.quantity, difference && spec.runs.size() > 1};
    if (spec.quantity.minus_b == difference) {
        spec.range = view_->range();
    }
    return spec;
}

ViewCommand TextPanel::viewCommand() const {
    const TraceData& traces = context_.data;
    const Selection& selection = context_.selection;
    if (const QString why = why_no_run(traces, selection); !why.isEmpty()) {
        return no_command(why);
    }
    const RunInfo& a = *traces.run(selection.runA());
    const RunKey b = selection.runB();
    if (zoom_ == TextZoom::corpus) {
        QStringList line{QStringLiteral("page"), selection.runA().trace,
                         QStringLiteral("--run=") + run_name(a)};
        if (const RunInfo* other = traces.run(b); other != nullptr && b.trace == selection.runA().trace) {
            line << QStringLiteral("--run=") + run_name(*other);
        }
        return shell_view({line << QStringLiteral("--output=page.html")});
    }
    if (zoom_ == TextZoom::tokens) {
        return python_view(traces, selection,
                           {QStringLiteral("columns = a.columns(%1)").arg(selection.sequence()),
                            QStringLiteral("for at, text in enumerate(a.token_texts(%1, columns)):")
                                .arg(selection.sequence()),
                            QStringLiteral("    print(at, repr(text), *(columns[k][at] for k in (\"nll\", "
                                           "\"rank\", \"entropy\", \"steps\")))")});
    }
    if (view_->showsReplay()) {
        return shell_view({{QStringLiteral("policy"), run_a_reference(traces, selection),
                            QStringLiteral("--policy=") + view_->replay().policy,
                            QStringLiteral("--per-token=tokens.csv")}});
    }
    return figure::figure_view(traces, selection, figureSpec(figure::FigureKind::token_text));
}

} // namespace ponderscope
