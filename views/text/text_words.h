// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/view_context.h"
#include "views/text/quantity.h"

#include <QStringList>

namespace ponderscope {

/// The lines of a token's tooltip, one for each group of numbers; empty: no such token.
QStringList token_lines(const SequenceData* shown, qint64 token, const TokenValues& values,
                        const Selection& selection, qint64 max_steps);
/// Why no text is shown; empty: \p shown has tokens.
QString text_hint(const ViewContext& context, const SequenceData* shown);

} // namespace ponderscope
