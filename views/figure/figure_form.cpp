// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/figure/figure_form.h"

#include "core/base/error.h"
#include "core/trace/records.h"
#include "views/common/controls.h"
#include "views/common/format.h"
#include "views/common/translated.h"

#include <QCheckBox>
#include <QComboBox>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QJsonArray>
#include <QJsonDocument>
#include <QLabel>
#include <QLineEdit>
#include <QRegularExpression>
#include <QSpinBox>

#include <cmath>

namespace ponderscope {

using namespace figure;

namespace {

using Choices = QList<std::pair<QString, QString>>;

QString key_of(const FieldForm& field) {
    return QString::fromLatin1(field.key.data(), static_cast<qsizetype>(field.key.size()));
}

/// A value of a key for people: "none", "predicted" are words already.
QString name_of_choice(const QString& value) {
    static const QHash<QString, QString> known{{"auto", tr("Where it fits")},
                                               {"nll", tr("NLL")},
                                               {"flops", tr("FLOPs")},
                                               {"compute", tr("FLOPs")},
                                               {"time", tr("Measured time")},
                                               {"seconds", tr("Time")},
                                               {"max_probability", tr("Highest probability")},
                                               {"nll_difference", tr("Difference of NLL, A − B")},
                                               {"default", tr("Ponderscope")},
                                               {"okabe_ito", tr("Okabe–Ito (colour-blind safe)")},
                                               {"light", tr("Light, for paper")},
                                               {"dark", tr("Dark, for slides")}};
    if (known.contains(value)) {
        return known.value(value);
    }
    QString text = value;
    text.replace(u'_', u' ');
    text[0] = text[0].toUpper();
    return text;
}

QString json_of(const QJsonValue& value) {
    const QByteArray list = QJsonDocument(QJsonArray{value}).toJson(QJsonDocument::Compact);
    return QString::fromUtf8(list.mid(1, list.size() - 2));
}

QJsonValue value_of_json(const std::string& json) {
    return QJsonDocument::fromJson("[" + QByteArray::fromStdString(json) + "]").array().at(0);
}

} // namespace

Choices training_curve_choices() {
    return {{QStringLiteral("loss"), tr("Loss and held-out NLL")},
            {QStringLiteral("mean_steps"), tr("Mean steps")},
            {QString::fromLatin1(training_quantity::held_out_gate), tr("Gates by step")},
            {QString::fromLatin1(training_quantity::held_out_steps_share), tr("Share of tokens by step")},
            {QString::fromLatin1(training_quantity::penalty), tr("Penalty")},
            {QString::fromLatin1(training_quantity::learning_rate), tr("Learning rate")},
            {QString::fromLatin1(training_quantity::gradient_norm), tr("Gradient norm")}};
}

QStringList listed_policies(const QString& line) {
    // A comma also parts the numbers of a policy: uniform:rate=1.2,seed=7.
    static const QRegularExpression between(QStringLiteral(R"re(,\s*(?=[a-z_]+\s*(?:[:,]|$)))re"));
    QStringList names;
    for (const QString& name : line.split(between, Qt::SkipEmptyParts)) {
        names << name.trimmed();
    }
    return names;
}

FigureForm::FigureForm(std::function<bool(const FieldForm&)> wanted, QWidget* parent)
    : QWidget(parent), wanted_(std::move(wanted)), rows_(new QFormLayout(this)) {
    rows_->setContentsMargins(0, 0, 0, 0);
    rows_->setRowWrapPolicy(QFormLayout::WrapLongRows);
}

void FigureForm::setChoices(const QString& key, const Choices& choices) {
    if (choices.isEmpty()) {
        choices_.remove(key);
    } else {
        choices_[key] = choices;
    }
}

void FigureForm::setSpec(const FigureSpec& spec) {
    spec_ = spec;
    while (rows_->rowCount() > 0) {
        rows_->removeRow(0);
    }
    editors_.clear();
    for (const FieldForm& field : field_forms(spec.kind)) {
        if (wanted_ && !wanted_(field)) {
            continue;
        }
        QWidget* editor = makeEditor(field);
        editor->setAccessibleName(tr(field.title));
        editors_.insert(key_of(field), editor);
        if (field.editor == FieldForm::flag) {
            rows_->addRow(editor);
        } else {
            rows_->addRow(tr(field.title), editor);
        }
    }
}

void FigureForm::set(const QString& key, const QString& json) {
    try {
        set_field(spec_, key.toStdString(), json.toStdString());
    } catch (const Error&) {
        return; // a half-typed value: the last possible one stays
    }
    Q_EMIT changed();
}

QWidget* FigureForm::makeEditor(const FieldForm& field) {
    const QString key = key_of(field);
    const QJsonValue value = value_of_json(field_json(spec_, field.key));
    if (choices_.contains(key)) {
        return makeChoice(key, choices_.value(key));
    }
    switch (field.editor) {
    case FieldForm::choice: {
        Choices choices;
        for (const std::string_view one : field.choices) {
            const QString name = QString::fromLatin1(one.data(), static_cast<qsizetype>(one.size()));
            choices.append({name, name_of_choice(name)});
        }
        return makeChoice(key, choices);
    }
    case FieldForm::flag: {
        auto* box = new QCheckBox(tr(field.title), this);
        box->setChecked(value.toBool());
        connect(box, &QCheckBox::toggled, this,
                [this, key](bool on) { set(key, on ? QStringLiteral("true") : QStringLiteral("false")); });
        return box;
    }
    case FieldForm::whole:
    case FieldForm::real:
        return makeNumber(field);
    case FieldForm::range:
        return makeRange(key, tr(field.title));
    default:
        break;
    }
    auto* line = new QLineEdit(this);
    if (field.editor == FieldForm::list) {
        QStringList names;
        const QJsonArray list = value.toArray();
        for (const QJsonValue& one : list) {
            names << one.toString();
        }
        line->setText(names.join(QStringLiteral(", ")));
        line->setPlaceholderText(tr("such as learned, entropy"));
        connect(line, &QLineEdit::editingFinished, this, [this, key, line] {
            set(key, json_of(QJsonArray::fromStringList(listed_policies(line->text()))));
        });
    } else {
        line->setText(value.toString());
        connect(line, &QLineEdit::editingFinished, this,
                [this, key, line] { set(key, json_of(line->text().trimmed())); });
    }
    return line;
}

QWidget* FigureForm::makeChoice(const QString& key, const Choices& choices) {
    auto* box = new QComboBox(this);
    box->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    box->setMinimumContentsLength(10);
    for (const auto& [value, text] : choices) {
        box->addItem(text, value);
    }
    const QString chosen = value_of_json(field_json(spec_, key.toStdString())).toString();
    int at = box->findData(chosen);
    if (at < 0) { // what the specification says is kept, though nothing here offers it
        box->insertItem(0, chosen, chosen);
        at = 0;
    }
    box->setCurrentIndex(at);
    connect(box, &QComboBox::currentIndexChanged, this,
            [this, key, box] { set(key, json_of(box->currentData().toString())); });
    return box;
}

QWidget* FigureForm::makeNumber(const FieldForm& field) {
    const QString key = key_of(field);
    const QJsonValue value = value_of_json(field_json(spec_, field.key));
    if (field.editor == FieldForm::whole) {
        auto* box = new QSpinBox(this);
        box->setRange(static_cast<int>(field.low), static_cast<int>(field.high));
        box->setKeyboardTracking(false);
        box->setValue(value.toInt());
        if (field.low == 0) {
            box->setSpecialValueText(tr("from the data"));
        }
        connect(box, &QSpinBox::valueChanged, this, [this, key](int now) { set(key, QString::number(now)); });
        return box;
    }
    auto* box = new NumberBox(this);
    const bool share = field.high < 1;
    const bool optional = value.isNull() || key == QLatin1String("height_mm");
    box->setDecimals(share ? 3 : 1);
    box->setSingleStep(share ? 0.05 : 1);
    box->setRange(field.low, field.high);
    box->setSuffix(QString::fromLatin1(field.unit));
    box->setKeyboardTracking(false);
    if (optional) {
        box->setSpecialValueText(tr("as it needs"));
    }
    box->setValue(value.toDouble(field.low));
    connect(box, &QDoubleSpinBox::valueChanged, this, [this, key, box, optional](double now) {
        set(key, optional && now <= box->minimum() ? QStringLiteral("null") : QString::number(now, 'g', 15));
    });
    return box;
}

QWidget* FigureForm::makeRange(const QString& key, const QString& title) {
    auto* both = new QWidget(this);
    auto* row = new QHBoxLayout(both);
    row->setContentsMargins(0, 0, 0, 0);
    const QJsonArray ends = value_of_json(field_json(spec_, key.toStdString())).toArray();
    QLineEdit* lines[2];
    for (int i = 0; i < 2; ++i) {
        lines[i] = new QLineEdit(both);
        lines[i]->setValidator(new NumberValidator(lines[i]));
        lines[i]->setPlaceholderText(tr("from the values"));
        lines[i]->setAccessibleName(i == 0 ? tr("%1, low end").arg(title) : tr("%1, high end").arg(title));
        if (ends.size() == 2) {
            lines[i]->setText(QString::number(ends.at(i).toDouble(), 'g', 10));
        }
        row->addWidget(lines[i]);
        if (i == 0) {
            row->addWidget(new QLabel(tr("to"), both));
        }
    }
    for (QLineEdit* line : lines) {
        connect(line, &QLineEdit::textChanged, this, [this, key, low = lines[0], high = lines[1]] {
            const std::optional<double> from = typed_number(low->text());
            const std::optional<double> to = typed_number(high->text());
            const bool ordered = from && to && *from < *to;
            set(key, ordered ? json_of(QJsonArray{*from, *to}) : QStringLiteral("null"));
        });
    }
    both->setFocusProxy(lines[0]);
    return both;
}

} // namespace ponderscope
