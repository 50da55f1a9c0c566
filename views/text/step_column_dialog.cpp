// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/text/step_column_dialog.h"

#include "core/base/error.h"
#include "core/trace/tools/step_columns.h"
#include "views/common/paths.h"

#include <QCheckBox>
#include <QComboBox>
#include <QDialogButtonBox>
#include <QFormLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>

#include <algorithm>
#include <functional>

namespace ponderscope {

StepColumnDialog::StepColumnDialog(const ViewContext& context, QWidget* parent)
    : QDialog(parent),
      context_(context),
      signal_(new QComboBox(this)),
      step_(new QComboBox(this)),
      minus_(new QComboBox(this)),
      against_(new QCheckBox(tr("Of A minus B"), this)),
      name_(new QLineEdit(this)) {
    setWindowTitle(tr("Colour by a step"));
    const RunKey run = context.selection.runA();
    for (const SignalInfo& one : context.data.signalsOf(run)) {
        const bool by_step = one.axes == std::vector<std::string>{"token", "step"};
        if (by_step || one.axes == std::vector<std::string>{"token"}) {
            signal_->addItem(QString::fromStdString(one.shown_name()), QString::fromStdString(one.name));
            signal_->setItemData(signal_->count() - 1, by_step, Qt::UserRole + 1);
            signal_->setItemData(signal_->count() - 1, QString::fromStdString(one.description),
                                 Qt::ToolTipRole);
        }
    }
    const RunInfo* info = context.data.run(run);
    minus_->addItem(tr("nothing"), QString());
    constexpr std::int64_t most_steps = 4096; // a damaged trace may claim any number
    for (std::int64_t step = 0; info != nullptr && step <= std::min(info->max_steps, most_steps); ++step) {
        const QString number = QString::number(step);
        step_->addItem(tr("step %1").arg(number), number);
        minus_->addItem(tr("step %1").arg(number), number);
    }
    for (QComboBox* box : {step_, minus_}) {
        box->addItem(tr("the last that ran"), QStringLiteral("last"));
    }
    // What pondering gained is what one asks first.
    signal_->setCurrentIndex(std::max(0, signal_->findData(QLatin1String(signal::nll))));
    minus_->setCurrentIndex(minus_->count() - 1);
    against_->setEnabled(context.selection.runB().isValid());
    against_->setToolTip(against_->isEnabled() ? tr("The same of both runs, on the same tokens")
                                               : tr("Choose a run B first"));
    auto* words =
        new QLabel(tr("Kept as an annotation beside the trace, at the token that was predicted: for "
                      "the text, the table, find, figures and ponderscope stats --by."),
                   this);
    words->setForegroundRole(QPalette::PlaceholderText);
    words->setWordWrap(true);
    auto* buttons = new QDialogButtonBox(QDialogButtonBox::Ok | QDialogButtonBox::Cancel, this);
    auto* form = new QFormLayout(this);
    form->addRow(tr("Signal"), signal_);
    form->addRow(tr("At"), step_);
    form->addRow(tr("Minus the value at"), minus_);
    form->addRow(QString(), against_);
    form->addRow(tr("Name"), name_);
    form->addRow(words);
    form->addRow(buttons);
    setMinimumWidth(420);
    if (signal_->count() == 0) {
        words->setText(tr("This run has no signals by step. Record it again with Record: steps."));
    }
    const auto check = [this, buttons] {
        const bool by_step = signal_->currentData(Qt::UserRole + 1).toBool();
        step_->setEnabled(by_step);
        minus_->setEnabled(by_step);
        buttons->button(QDialogButtonBox::Ok)
            ->setEnabled(signal_->count() > 0 &&
                         fault_of_annotation_name(name_->text().toStdString()).empty());
        name_->setToolTip(QString::fromStdString(fault_of_annotation_name(name_->text().toStdString())));
    };
    for (QComboBox* box : {signal_, step_, minus_}) {
        connect(box, &QComboBox::currentIndexChanged, this, [this, check] {
            suggestName();
            check();
        });
    }
    connect(against_, &QCheckBox::toggled, this, &StepColumnDialog::suggestName);
    connect(name_, &QLineEdit::textChanged, this, check);
    connect(buttons, &QDialogButtonBox::accepted, this, &QDialog::accept);
    connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
    suggestName();
    check();
}

QString StepColumnDialog::column() const {
    QString of = signal_->currentData().toString();
    if (!signal_->currentData(Qt::UserRole + 1).toBool()) {
        return of;
    }
    const QString minus = minus_->currentData().toString();
    return of + u'@' + step_->currentData().toString() +
           (minus.isEmpty() ? QString() : u'-' + of + u'@' + minus);
}

QString StepColumnDialog::name() const {
    return name_->text();
}

bool StepColumnDialog::againstB() const {
    return against_->isChecked();
}

void StepColumnDialog::suggestName() {
    QString name = signal_->currentData().toString();
    if (signal_->currentData(Qt::UserRole + 1).toBool()) {
        name += u'_' + step_->currentData().toString();
        if (const QString minus = minus_->currentData().toString(); !minus.isEmpty()) {
            name += QStringLiteral("_minus_") + minus;
        }
    }
    name_->setText(name + (against_->isChecked() ? QStringLiteral("_a_minus_b") : QString()));
}

void derive_column(const RunKey& a, const RunKey& b, const QString& name, const QString& column,
                   const std::stop_token& stop) {
    const auto open = [](const RunKey& key) { return TraceReader::open(path_of(key.trace)); };
    const auto run_of = [](const TraceReader& trace, const RunKey& key) {
        const std::vector<RunInfo> runs = trace.runs();
        const auto run =
            std::find_if(runs.begin(), runs.end(), [&](const RunInfo& one) { return one.id == key.run; });
        if (run == runs.end()) {
            throw InputError(trace.path(), "the run that was open", "no such run", "open the trace again");
        }
        return *run;
    };
    const StepColumn wanted = StepColumn::parse(column.toStdString());
    check_can_annotate(path_of(a.trace));
    const TraceReader trace = open(a);
    const RunInfo run = run_of(trace, a);
    Annotation made;
    if (b.isValid()) {
        const TraceReader other = open(b);
        made = difference_by_step(trace, run, other, run_of(other, b), name.toStdString(), wanted, stop);
        for (std::vector<double>& values : made.values) { // the window's sign is A − B
            std::transform(values.begin(), values.end(), values.begin(), std::negate<>());
        }
    } else {
        made = annotation_by_step(trace, run, name.toStdString(), wanted, stop);
    }
    put_annotations(trace.path(), run, trace.sequences(run.id), {made});
}

} // namespace ponderscope
