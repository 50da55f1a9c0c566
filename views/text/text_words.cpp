// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/text/text_words.h"

#include "views/common/format.h"
#include "views/common/view_command.h"

#include <algorithm>
#include <cmath>

using namespace Qt::StringLiterals;

namespace ponderscope {

QStringList token_lines(const SequenceData* shown, qint64 token, const TokenValues& values,
                        const Selection& selection, qint64 max_steps) {
    if (shown == nullptr || token < 0 || token >= static_cast<qint64>(shown->tokens.size())) {
        return {};
    }
    const auto index = static_cast<std::size_t>(token);
    const std::string_view bytes = token_bytes(shown->tokens, shown->text, index);
    const QString dot = u" · "_s;
    QStringList lines{u"token %1"_s.arg(format_count(token)) + dot +
                      (bytes.empty()
                           ? u"id %1"_s.arg(shown->tokens.id[index])
                           : u'“' + visible_token_of(shown->tokens, shown->text, index, 24) + u'”')};
    const qint64 row = selection.rowOf(token);
    QStringList numbers;
    for (const Quantity one : {Quantity::nll, Quantity::rank, Quantity::entropy, Quantity::steps}) {
        const double value =
            row < 0 ? std::nan("") : quantity_of(one, shown->tokens, static_cast<std::size_t>(row));
        if (!std::isnan(value) && (one != Quantity::steps || max_steps > 0)) {
            numbers << quantity_name(one) + u' ' + format_quantity(one, value);
        }
    }
    if (!numbers.isEmpty()) {
        lines << numbers.join(dot);
    }
    constexpr std::size_t most_annotations = 6;
    for (std::size_t i = 0; i < std::min(shown->annotations.size(), most_annotations); ++i) {
        const TokenAnnotation& one = shown->annotations[i];
        if (const QString value = short_annotation(one, index); !value.isEmpty()) {
            lines << one.name + u' ' + value;
        }
    }
    if (const QString value = values.textAt(index); !value.isEmpty()) {
        if (!values.replay.isEmpty()) {
            lines << u"replay of %1: steps %2"_s.arg(values.replay, value);
        } else if (values.difference) {
            lines << u"%1 A − B %2"_s.arg(quantity_name(values.quantity), value);
        }
    }
    return lines;
}

QString text_hint(const ViewContext& context, const SequenceData* shown) {
    if (context.data.traces().isEmpty()) {
        return u"Drop a trace or a checkpoint folder here.\nTo record a run, choose Run → Record…"_s;
    }
    if (!context.selection.runA().isValid()) {
        return u"Choose a run in the library."_s;
    }
    if (shown == nullptr) {
        return why_no_sequence(context.data, context.selection);
    }
    return shown->tokens.size() == 0 ? u"This sequence has no tokens yet."_s : QString();
}

} // namespace ponderscope
