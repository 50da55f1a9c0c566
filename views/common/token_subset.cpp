// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/token_subset.h"

#include "views/common/controls.h"
#include "views/common/format.h"

#include <QLabel>
#include <QToolButton>

using namespace Qt::StringLiterals;

namespace ponderscope {

TokenSubset subset_of(const Selection& selection, const QString& query, const std::vector<qint64>& tokens) {
    TokenSubset subset{selection.runA(), query, u"in sequence %1"_s.arg(selection.sequence() + 1), {}};
    for (const qint64 token : tokens) {
        if (const qint64 row = selection.rowOf(token); row >= 0) {
            subset.rows[selection.sequence()].push_back(row);
        }
    }
    return subset;
}

SubsetChip::SubsetChip(Theme& theme, QWidget* parent) : QWidget(parent), label_(new QLabel(this)) {
    constexpr int most_wide = 420;
    label_->setTextFormat(Qt::PlainText);
    label_->setWordWrap(true);
    label_->setMaximumWidth(most_wide);
    label_->setAccessibleName(u"Tokens that this panel shows"_s);
    auto* shut = flat_button(u"×"_s, u"Show All Tokens"_s, this);
    make_row(this, {}, 4, {{label_, 1}, shut});
    connect(shut, &QToolButton::clicked, this, &SubsetChip::released);
    theme.dress(this, [this, &theme] { label_->setFont(theme.strong()); });
    setVisible(false);
}

void SubsetChip::show(const TokenSubset& subset) {
    constexpr int most_letters = 60;
    QString query = visible_text(subset.query.toStdString());
    if (query.size() > most_letters) {
        query = query.left(most_letters) + u'…';
    }
    label_->setText(
        u"Restricted to %1 tokens %2: %3"_s.arg(format_count(subset.size()), subset.where, query));
    setVisible(!subset.isEmpty());
}

QString SubsetChip::words() const {
    return isHidden() ? QString() : label_->text();
}

} // namespace ponderscope
