// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QDoubleSpinBox>
#include <QValidator>

namespace ponderscope {

/// A spin box that takes the point and the decimal sign of the user's locale alike.
class NumberBox : public QDoubleSpinBox {
    Q_OBJECT
public:
    using QDoubleSpinBox::QDoubleSpinBox;

protected:
    QValidator::State validate(QString& text, int& position) const override;
    [[nodiscard]] double valueFromText(const QString& text) const override;
};

/// For line edits that hold a number: lets through what typed_number() reads.
class NumberValidator : public QValidator {
    Q_OBJECT
public:
    using QValidator::QValidator;
    State validate(QString& text, int& position) const override;
};

} // namespace ponderscope
