// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/selection.h"
#include "views/common/theme.h"

#include <QString>
#include <QWidget>

#include <cstdint>
#include <map>
#include <vector>

class QLabel;

namespace ponderscope {

/// Tokens of a run that were found and that panels speak of instead of all.
struct TokenSubset {
    RunKey run;    ///< run that was searched; other runs over its text have the same tokens
    QString query; ///< the query that found them
    QString where; ///< searched part: "in sequence 3", "in the whole run"
    /// For each sequence, the rows of the trace that hold the tokens' values, ascending. The rows take the
    /// attribution of the window into account. Sequences without such rows are left out.
    std::map<std::int64_t, std::vector<std::int64_t>> rows;
    [[nodiscard]] bool isEmpty() const { return rows.empty(); }
    [[nodiscard]] std::int64_t size() const {
        std::int64_t all = 0;
        for (const auto& [sequence, own] : rows) {
            all += static_cast<std::int64_t>(own.size());
        }
        return all;
    }
    friend bool operator==(const TokenSubset&, const TokenSubset&) = default;
};

/// \p tokens, ascending, of the sequence that the selection shows in run A.
TokenSubset subset_of(const Selection& selection, const QString& query, const std::vector<qint64>& tokens);

/// Shows which found tokens a panel covers, with a button that returns to all tokens. Hidden while there are
/// none.
class SubsetChip : public QWidget {
    Q_OBJECT
public:
    explicit SubsetChip(Theme& theme, QWidget* parent = nullptr);
    void show(const TokenSubset& subset);
    [[nodiscard]] QString words() const; ///< empty while it is hidden

Q_SIGNALS:
    void released();

private:
    QLabel* label_;
};

} // namespace ponderscope
