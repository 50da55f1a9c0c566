// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/trace_data.h"

#include <QString>

#include <vector>

namespace ponderscope {

/// The tokens that a query finds, ascending. "#412" finds token id 412, and so does "412" in a run of ids.
/// Any other query is text, which may span tokens and finds the first token that it touches. Case counts only
/// if the query has capitals. At most \p limit hits.
std::vector<qint64> find_tokens(const SequenceData& data, const QString& query, std::size_t limit = 100'000);

/// Tokens in which a match of a regular expression (Perl's syntax, over characters) begins. \p problem: the
/// error in the expression ("missing )"), else empty.
std::vector<qint64> find_pattern(const SequenceData& data, const QString& pattern, QString& problem,
                                 std::size_t limit = 100'000);

} // namespace ponderscope
