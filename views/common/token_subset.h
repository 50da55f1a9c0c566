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

/// Found tokens of a run. Panels can be restricted to these tokens.
struct TokenSubset {
    RunKey run;    ///< the searched run; other runs over the same text have the same tokens
    QString query; ///< the query that found the tokens
    QString where; ///< the searched part: "in sequence 3", "in the whole run"
    /// For each sequence, the trace rows that hold these tokens' values under the window's attribution, in
    /// ascending order. Sequences without such rows are left out.
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

/// A subset of \p tokens (ascending), which are tokens of run A's selected sequence.
TokenSubset subset_of(const Selection& selection, const QString& query, const std::vector<qint64>& tokens);

/// Names the subset to which a panel is restricted. A button ends the restriction. Hidden without a subset.
class SubsetChip : public QWidget {
    Q_OBJECT
public:
    explicit SubsetChip(Theme& theme, QWidget* parent = nullptr);
    void show(const TokenSubset& subset);
    [[nodiscard]] QString words() const; ///< empty while the chip is hidden

Q_SIGNALS:
    void released();

private:
    QLabel* label_;
};

} // namespace ponderscope
