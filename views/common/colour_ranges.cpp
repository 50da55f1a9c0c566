// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/colour_ranges.h"

#include "views/common/controls.h"

#include <QDialog>
#include <QDialogButtonBox>
#include <QFormLayout>
#include <QLabel>
#include <QPushButton>

using namespace Qt::StringLiterals;

namespace ponderscope {

ColourRanges& ColourRanges::of(TraceData& data) {
    auto* known = data.findChild<ColourRanges*>(QString(), Qt::FindDirectChildrenOnly);
    return known != nullptr ? *known : *new ColourRanges(&data);
}

HeldRange ColourRanges::held(const QString& of) const {
    const auto found = ranges_.find(of);
    return found == ranges_.end() ? HeldRange() : HeldRange(found->second);
}

void ColourRanges::hold(const QString& of, const HeldRange& range) {
    if (held(of) == range) {
        return;
    }
    if (range) {
        ranges_[of] = *range;
    } else {
        ranges_.erase(of);
    }
    Q_EMIT changed();
}

void ColourRanges::setAll(const All& ranges) {
    if (ranges != ranges_) {
        ranges_ = ranges;
        Q_EMIT changed();
    }
}

bool ask_for_range(QWidget* parent, const ColourScale& now, HeldRange& range) {
    QDialog dialog(parent);
    dialog.setWindowTitle(u"Ends of the colour scale"_s);
    const auto field = [&](double value) {
        auto* made = new NumberBox(&dialog);
        made->setRange(-1e15, 1e15);
        made->setDecimals(3);
        made->setStepType(QAbstractSpinBox::AdaptiveDecimalStepType);
        made->setValue(value);
        made->setMinimumWidth(160);
        return made;
    };
    QDoubleSpinBox* low = field(now.low);
    QDoubleSpinBox* high = field(now.high);
    auto* buttons = new QDialogButtonBox(QDialogButtonBox::Ok | QDialogButtonBox::Cancel, &dialog);
    buttons->button(QDialogButtonBox::Ok)->setText(u"Fix"_s);
    QPushButton* automatic = buttons->addButton(u"Use Data Range"_s, QDialogButtonBox::ResetRole);
    automatic->setEnabled(range.has_value());
    auto* words = new QLabel(
        u"Low and High apply to all runs and sequences, in text, table, maps and figures. A session "
        "saves Low and High."_s,
        &dialog);
    words->setForegroundRole(QPalette::PlaceholderText);
    words->setWordWrap(true);
    auto* form = new QFormLayout(&dialog);
    form->addRow(u"Low"_s, low);
    form->addRow(u"High"_s, high);
    form->addRow(words);
    form->addRow(buttons);
    for (QDoubleSpinBox* box : {low, high}) {
        QObject::connect(box, &QDoubleSpinBox::valueChanged, &dialog, [&] {
            buttons->button(QDialogButtonBox::Ok)->setEnabled(low->value() < high->value());
        });
    }
    QObject::connect(buttons, &QDialogButtonBox::accepted, &dialog, &QDialog::accept);
    QObject::connect(buttons, &QDialogButtonBox::rejected, &dialog, &QDialog::reject);
    constexpr int released = QDialog::Accepted + 1;
    QObject::connect(automatic, &QPushButton::clicked, &dialog, [&] { dialog.done(released); });
    const int answer = dialog.exec();
    if (answer != QDialog::Rejected) {
        range = answer == released ? HeldRange() : HeldRange({low->value(), high->value()});
    }
    return answer != QDialog::Rejected;
}

} // namespace ponderscope
