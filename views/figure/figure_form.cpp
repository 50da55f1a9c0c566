// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/figure/figure_form.h"

#include "core/base/error.h"
#include "core/trace/records.h"
#include "views/common/controls.h"
#include "views/common/format.h"

#include <QCheckBox>
#include <QComboBox>
#include <QFormLayout>
#include <QJsonArray>
#include <QJsonDocument>
#include <QLabel>
#include <QLineEdit>
#include <QRegularExpression>
#include <QScrollArea>
#include <QScrollBar>
#include <QSpinBox>

#include <algorithm>

using namespace Qt::StringLiterals;

namespace ponderscope {

using namespace figure;

namespace {

using Choices = QList<std::pair<QString, QString>>;

/// A key's value in words. Values such as "none" and "predicted" are words already.
QString name_of_choice(const QString& value) {
    static const QHash<QString, QString> known{
        {"auto", u"Automatic"_s},
        {"loss", u"Loss and held-out NLL"_s},
        {training_quantity::held_out_gate, u"Gates by step"_s},
        {training_quantity::held_out_steps_share, u"Share of tokens by step"_s},
        {"nll", u"NLL"_s},
        {"flops", u"FLOPs"_s},
        {"compute", u"FLOPs"_s},
        {"time", u"Measured time"_s},
        {"seconds", u"Time"_s},
        {"max_probability", u"Highest probability"_s},
        {"argmax", u"Most likely word"_s},
        {"nll_difference", u"Difference of NLL, A − B"_s},
        {"default", u"Ponderscope"_s},
        {"okabe_ito", u"Okabe–Ito (colour-blind safe)"_s},
        {"light", u"Light, for paper"_s},
        {"dark", u"Dark, for slides"_s}};
    if (known.contains(value)) {
        return known.value(value);
    }
    QString text = value;
    text.replace(u'_', u' ');
    text[0] = text[0].toUpper();
    return text;
}

/// The values that a kind offers for \p field; empty: any text.
QStringList values_of(FigureKind kind, const FieldForm& field) {
    namespace curve = training_quantity;
    if (field.key == "curve") {
        return {"loss",         curve::mean_steps,    curve::held_out_gate, curve::held_out_steps_share,
                curve::penalty, curve::learning_rate, curve::gradient_norm};
    }
    if (field.key == "signal" && kind == FigureKind::layers_by_step) {
        return {"nll", "entropy", "max_probability", "rank", "argmax"};
    }
    if (field.key == "quantity" &&
        (kind == FigureKind::parameter_sweep || kind == FigureKind::matched_rules)) {
        return {"nll", "steps", "flops"};
    }
    QStringList values;
    for (const std::string_view one : field.choices) {
        values << QString::fromUtf8(one);
    }
    return values;
}

QString json_of(const QJsonValue& value) {
    const QByteArray list = QJsonDocument(QJsonArray{value}).toJson(QJsonDocument::Compact);
    return QString::fromUtf8(list.mid(1, list.size() - 2));
}

QJsonValue value_of_json(const std::string& json) {
    return QJsonDocument::fromJson("[" + QByteArray::fromStdString(json) + "]").array().at(0);
}

} // namespace

QScrollArea* form_area(QWidget* form, QWidget* parent) {
    auto* area = new QScrollArea(parent);
    area->setFrameShape(QFrame::NoFrame);
    area->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    area->setWidgetResizable(true);
    area->setWidget(form);
    area->setFocusPolicy(Qt::NoFocus);
    return area;
}

void fit_form_area(QScrollArea& area, int least) {
    area.setFixedWidth(std::max(least, area.widget()->minimumSizeHint().width() +
                                           area.verticalScrollBar()->sizeHint().width()));
}

QStringList listed_policies(const QString& line) {
    // Commas also separate the parameters of a policy: uniform:rate=1.2,seed=7.
    static const QRegularExpression between(uR"re(,\s*(?=[a-z_]+\s*(?:[:,]|$)))re"_s);
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
        editor->setAccessibleName(QString::fromUtf8(field.title));
        editors_.insert(QString::fromUtf8(field.key), editor);
        if (field.editor == FieldForm::flag) {
            rows_->addRow(editor);
        } else {
            rows_->addRow(QString::fromUtf8(field.title), editor);
        }
    }
}

QStringList FigureForm::unusedRanges() const {
    QStringList titles;
    for (const FieldForm& field : field_forms(spec_.kind)) {
        QWidget* both = editor(QString::fromUtf8(field.key));
        if (field.editor != FieldForm::range || both == nullptr ||
            value_of_json(field_json(spec_, field.key)).isArray()) {
            continue;
        }
        const QList<QLineEdit*> ends = both->findChildren<QLineEdit*>();
        if (std::ranges::any_of(ends, [](QLineEdit* end) { return !end->text().isEmpty(); })) {
            titles << QString::fromUtf8(field.title);
        }
    }
    return titles;
}

void FigureForm::set(const QString& key, const QString& json) {
    try {
        set_field(spec_, key.toStdString(), json.toStdString());
    } catch (const Error&) {
        return; // an incomplete value: keeps the last valid one
    }
    Q_EMIT changed();
}

QWidget* FigureForm::makeEditor(const FieldForm& field) {
    const QString key = QString::fromUtf8(field.key);
    const QJsonValue value = value_of_json(field_json(spec_, field.key));
    Choices choices;
    for (const QString& one : values_of(spec_.kind, field)) {
        choices.append({one, name_of_choice(one)});
    }
    if (choices.isEmpty()) {
        choices = choices_.value(key);
    }
    if (!choices.isEmpty()) {
        return makeChoice(key, choices);
    }
    switch (field.editor) {
    case FieldForm::flag: {
        auto* box = new QCheckBox(QString::fromUtf8(field.title), this);
        box->setChecked(value.toBool());
        connect(box, &QCheckBox::toggled, this,
                [this, key](bool on) { set(key, on ? u"true"_s : u"false"_s); });
        return box;
    }
    case FieldForm::whole:
    case FieldForm::real:
        return makeNumber(field);
    case FieldForm::range:
        return makeRange(key, QString::fromUtf8(field.title));
    default:
        break;
    }
    auto* line = new QLineEdit(this);
    const bool list = field.editor == FieldForm::list;
    line->setText(list ? value.toVariant().toStringList().join(u", "_s) : value.toString());
    line->setPlaceholderText(list ? u"learned, entropy, …"_s : QString());
    connect(line, &QLineEdit::editingFinished, this, [this, key, line, list] {
        set(key, json_of(list ? QJsonValue(QJsonArray::fromStringList(listed_policies(line->text())))
                              : QJsonValue(line->text().trimmed())));
    });
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
    if (at < 0) { // keeps a specified value that the list does not offer
        box->insertItem(0, chosen, chosen);
        at = 0;
    }
    box->setCurrentIndex(at);
    connect(box, &QComboBox::currentIndexChanged, this,
            [this, key, box] { set(key, json_of(box->currentData().toString())); });
    return box;
}

QWidget* FigureForm::makeNumber(const FieldForm& field) {
    const QString key = QString::fromUtf8(field.key);
    const QJsonValue value = value_of_json(field_json(spec_, field.key));
    if (field.editor == FieldForm::whole) {
        auto* box = new QSpinBox(this);
        box->setRange(static_cast<int>(field.low), static_cast<int>(field.high));
        box->setKeyboardTracking(false);
        box->setValue(value.toInt());
        if (field.low == 0) {
            box->setSpecialValueText(u"from the data"_s);
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
        box->setSpecialValueText(u"automatic"_s);
    }
    box->setValue(value.toDouble(field.low));
    connect(box, &QDoubleSpinBox::valueChanged, this, [this, key, box, optional](double now) {
        set(key, optional && now <= box->minimum() ? u"null"_s : QString::number(now, 'g', 15));
    });
    return box;
}

QWidget* FigureForm::makeRange(const QString& key, const QString& title) {
    auto* both = new QWidget(this);
    const QJsonArray ends = value_of_json(field_json(spec_, key.toStdString())).toArray();
    QLineEdit* lines[2];
    for (int i = 0; i < 2; ++i) {
        lines[i] = new QLineEdit(both);
        lines[i]->setValidator(new NumberValidator(lines[i]));
        lines[i]->setPlaceholderText(u"auto"_s);
        lines[i]->setAccessibleName(i == 0 ? u"%1, low end"_s.arg(title) : u"%1, high end"_s.arg(title));
        if (ends.size() == 2) {
            lines[i]->setText(QString::number(ends.at(i).toDouble(), 'g', 10));
        }
    }
    make_row(both, {}, -1, {lines[0], new QLabel(u"to"_s, both), lines[1]});
    for (QLineEdit* line : lines) {
        connect(line, &QLineEdit::textChanged, this, [this, key, low = lines[0], high = lines[1]] {
            const std::optional<double> from = typed_number(low->text());
            const std::optional<double> to = typed_number(high->text());
            const bool ordered = from && to && *from < *to;
            set(key, ordered ? json_of(QJsonArray{*from, *to}) : u"null"_s);
        });
    }
    both->setFocusProxy(lines[0]);
    return both;
}

} // namespace ponderscope
