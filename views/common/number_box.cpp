// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/number_box.h"

#include "views/common/format.h"

#include <QRegularExpression>

namespace ponderscope {

namespace {

/// A point stands for the decimal sign of the box's locale, which may use it between thousands.
QString in_locale(QString text, const QLocale& locale) {
    return text.replace(u'.', locale.decimalPoint());
}

} // namespace

QValidator::State NumberBox::validate(QString& text, int& position) const {
    text = in_locale(std::move(text), locale());
    return QDoubleSpinBox::validate(text, position);
}

double NumberBox::valueFromText(const QString& text) const {
    return QDoubleSpinBox::valueFromText(in_locale(text, locale()));
}

QValidator::State NumberValidator::validate(QString& text, int&) const {
    if (typed_number(text)) {
        return Acceptable;
    }
    static const QRegularExpression begun(
        QStringLiteral(R"re(^\s*[-+−]?\d*[.,]?\d*(?:[eE][-+−]?\d*)?\s*$)re"));
    return begun.match(text).hasMatch() ? Intermediate : Invalid;
}

} // namespace ponderscope
