// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/labels.h"

#include "views/common/format.h"
#include "views/common/theme.h"

using namespace Qt::StringLiterals;

namespace ponderscope {

Readout::Readout(Theme& theme, QWidget* parent) : QLabel(parent) {
    setTextFormat(Qt::PlainText);
    setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
    setAlignment(Qt::AlignRight | Qt::AlignVCenter);
    setAccessibleName(u"Numbers"_s);
    setForegroundRole(QPalette::PlaceholderText);
    theme.dress(this, [this, &theme] {
        setFont(theme.small());
        say(said_);
    });
}

void Readout::say(const QString& text) {
    said_ = text;
    setText(fontMetrics().elidedText(text, Qt::ElideRight, width()));
    setToolTip(plain_tip(text));
}

void Readout::resizeEvent(QResizeEvent* event) {
    QLabel::resizeEvent(event);
    say(said_);
}

} // namespace ponderscope
