// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/view_context.h"

#include <QDialog>

#include <stop_token>

class QCheckBox;
class QComboBox;
class QLineEdit;

namespace ponderscope {

/// Asks for a number a token out of what run A recorded by step: a signal at a step, what the steps between
/// gained, A minus B (core/trace/tools/step_columns.h). It becomes an annotation, which the text, the table, find,
/// figures and `stats --by` have.
class StepColumnDialog : public QDialog {
    Q_OBJECT
public:
    explicit StepColumnDialog(const ViewContext& context, QWidget* parent = nullptr);
    [[nodiscard]] QString column() const; ///< "nll@0-nll@last"
    [[nodiscard]] QString name() const;   ///< of the annotation
    [[nodiscard]] bool againstB() const;

private:
    void suggestName();

    ViewContext context_;
    QComboBox* signal_;
    QComboBox* step_;
    QComboBox* minus_;
    QCheckBox* against_;
    QLineEdit* name_;
};

/// Works it out and puts it beside the trace of A. An invalid \p b: of A alone. Slow; InputError,
/// EnvironmentError, Cancelled.
void derive_column(const RunKey& a, const RunKey& b, const QString& name, const QString& column,
                   const std::stop_token& stop);

} // namespace ponderscope
