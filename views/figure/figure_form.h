// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/figure/spec.h"

#include <QHash>
#include <QStringList>
#include <QWidget>

#include <functional>

class QFormLayout;
class QScrollArea;

namespace ponderscope {

/// A form for a figure's specification, made from the table of keys: a row for each key of the kind.
class FigureForm : public QWidget {
    Q_OBJECT
public:
    /// \p wanted: selects the keys; empty: all keys.
    explicit FigureForm(std::function<bool(const figure::FieldForm&)> wanted, QWidget* parent = nullptr);

    void setSpec(const figure::FigureSpec& spec);
    [[nodiscard]] const figure::FigureSpec& spec() const { return spec_; }
    /// Offers values, as (value, text), for a key with free text. Call it before setSpec.
    void setChoices(const QString& key, const QList<std::pair<QString, QString>>& choices) {
        choices_[key] = choices;
    }
    /// The widget that edits a key; null: the kind does not have this key.
    [[nodiscard]] QWidget* editor(const QString& key) const { return editors_.value(key); }
    [[nodiscard]] bool isEmpty() const { return editors_.isEmpty(); }
    /// Titles of ranges that the specification omits, because an end is missing or the ends are not in order.
    [[nodiscard]] QStringList unusedRanges() const;

Q_SIGNALS:
    void changed();

private:
    QWidget* makeEditor(const figure::FieldForm& field);
    QWidget* makeChoice(const QString& key, const QList<std::pair<QString, QString>>& choices);
    QWidget* makeNumber(const figure::FieldForm& field);
    QWidget* makeRange(const QString& key, const QString& title);
    void set(const QString& key, const QString& json);

    std::function<bool(const figure::FieldForm&)> wanted_;
    figure::FigureSpec spec_;
    QHash<QString, QList<std::pair<QString, QString>>> choices_;
    QHash<QString, QWidget*> editors_;
    QFormLayout* rows_;
};

/// A frameless area of at least \p least pixels' width, in which \p form scrolls up and down.
QScrollArea* form_area(QWidget* form, QWidget* parent);
void fit_form_area(QScrollArea& area, int least);

/// Splits a line at the commas between halting rules or policies.
QStringList listed_policies(const QString& line);

} // namespace ponderscope
