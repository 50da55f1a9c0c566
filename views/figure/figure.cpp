// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/figure/figure.h"

#include "core/base/error.h"
#include "core/trace/reader.h"

#include <QString>

#include <algorithm>

using namespace Qt::StringLiterals;

namespace ponderscope::figure {

FigureData gather(const FigureSpec& asked, const ProgressSink& progress, const std::stop_token& stop,
                  GatherCache* shared) {
    GatherCache own;
    GatherCache& cache = shared != nullptr ? *shared : own;
    FigureSpec spec = asked;
    for (RunName& run : spec.runs) {
        if (run.numbered) {
            run = by_name(run, TraceReader::open(run.trace).runs());
        }
    }
    FigureData data;
    if (spec.kind == FigureKind::panels) {
        for (const FigureSpec& panel : spec.panels) {
            data.panels.push_back(gather(panel, progress, stop, &cache));
        }
        return data;
    }
    if (spec.kind == FigureKind::nll_comparison || spec.kind == FigureKind::perplexity_table) {
        ComparisonRequest request;
        for (const RunName& run : spec.runs) {
            request.runs.push_back({run.trace, run.run});
        }
        request.sequence = spec.sequence;
        request.tokens = spec.tokens;
        request.block = spec.block;
        request.replicates = spec.replicates;
        data.comparison = compare_runs(request, progress, stop);
        return data;
    }
    if (spec.kind == FigureKind::policy_table) {
        data.table = gather_policy_table(spec, data, progress, stop);
        return data;
    }
    if (is_chart(spec.kind)) {
        data.chart = gather_chart(spec, data, progress, stop, cache);
        return data;
    }
    const bool text = spec.kind == FigureKind::token_text;
    const bool annotated = text && !spec.annotation.empty();
    const std::size_t needed = text && !annotated && spec.quantity.minus_b ? 2 : 1;
    for (std::size_t i = 0; i < needed; ++i) {
        if (stop.stop_requested()) {
            throw Cancelled();
        }
        data.runs.push_back(load_rows(spec, spec.runs.at(i)));
    }
    if (needed == 2) {
        const RunRows& a = data.runs[0];
        const RunRows& b = data.runs[1];
        if (a.rows.id != b.rows.id) {
            throw InputError(b.name.trace,
                             "run \"" + b.info.name + "\" over the same tokens as \"" + a.info.name + "\"",
                             "other tokens", "compare runs of the same text and tokenizer");
        }
    }
    if (annotated) {
        data.annotation = load_annotation(spec, data.runs.front());
    }
    if (spec.kind == FigureKind::step_heatmap) {
        data.signal = load_step_signal(spec, data.runs.front());
    }
    return data;
}

Figure compose(const FigureSpec& spec, const FigureData& data, const Fonts& fonts) {
    const auto make = [&]() -> Figure {
        switch (spec.kind) {
        case FigureKind::token_text:
            return compose_token_text(spec, data, fonts);
        case FigureKind::step_heatmap:
            return compose_step_heatmap(spec, data, fonts);
        case FigureKind::nll_comparison:
            return compose_nll_comparison(spec, data, fonts);
        case FigureKind::perplexity_table:
            return compose_perplexity_table(spec, data, fonts);
        case FigureKind::policy_table:
            return compose_table(spec, *data.table, fonts);
        case FigureKind::panels:
            return compose_panels(spec, data, fonts);
        default:
            return compose_chart(spec, data, fonts);
        }
    };
    Figure figure = make();
    const std::vector<char32_t> missing = missing_characters(figure.page, fonts);
    if (!missing.empty()) {
        QString shown;
        for (std::size_t i = 0; i < missing.size() && i < 10; ++i) {
            shown += (i > 0 ? u", "_s : QString()) +
                     u"U+%1"_s.arg(static_cast<uint>(missing[i]), 4, 16, QChar(u'0')).toUpper();
        }
        if (missing.size() > 10) {
            shown += u" and %1 more"_s.arg(missing.size() - 10);
        }
        const auto is_emoji = [](char32_t c) {
            return (c >= 0x2600 && c < 0x27c0) || (c >= 0x1f000 && c < 0x1fb00);
        };
        const bool emoji = std::any_of(missing.begin(), missing.end(), is_emoji);
        const bool letters = !std::all_of(missing.begin(), missing.end(), is_emoji);
        figure.notices.push_back(
            "No font of this machine has letters for " + shown.toStdString() + "; they are drawn as boxes." +
            (letters ? " The packages fonts-noto-core and fonts-noto-cjk have those of most scripts." : "") +
            (emoji ? " The package fonts-noto-color-emoji has emoji." : ""));
    }
    if (data.comparison) {
        figure.notices.insert(figure.notices.end(), data.comparison->notices.begin(),
                              data.comparison->notices.end());
    }
    figure.notices.insert(figure.notices.end(), data.notices.begin(), data.notices.end());
    for (const RunRows& run : data.runs) {
        if (!run.info.complete) {
            figure.notices.push_back("Run \"" + run.info.name +
                                     "\" is partial: it was cut off or is still being recorded.");
        }
    }
    return figure;
}

} // namespace ponderscope::figure
