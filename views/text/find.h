// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/trace_data.h"

#include <QString>

#include <vector>

namespace ponderscope {

/// The first token of each match of a text, ascending. Ignores case, unless the query has capitals.
std::vector<qint64> find_tokens(const SequenceData& data, const QString& query, std::size_t limit = 100'000);

/// Tokens in which a match begins. The pattern is a regular expression in Perl's syntax, over characters. \p
/// problem: the error in the expression ("missing )"), else empty.
std::vector<qint64> find_pattern(const SequenceData& data, const QString& pattern, QString& problem,
                                 std::size_t limit = 100'000);

} // namespace ponderscope
