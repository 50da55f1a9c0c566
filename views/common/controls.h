// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QBoxLayout>
#include <QComboBox>
#include <QDoubleSpinBox>
#include <QString>
#include <QValidator>
#include <QVariant>
#include <QWheelEvent>
#include <QWidget>

#include <cstdlib>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

class QLabel;
class QLineEdit;
class QToolButton;

namespace ponderscope {

class Theme;

/// A spin box that accepts both a point and the locale's decimal sign.
class NumberBox : public QDoubleSpinBox {
    Q_OBJECT
public:
    using QDoubleSpinBox::QDoubleSpinBox;

protected:
    QValidator::State validate(QString& text, int& position) const override;
    [[nodiscard]] double valueFromText(const QString& text) const override;
};

/// For line edits with a number: accepts what typed_number() reads.
class NumberValidator : public QValidator {
    Q_OBJECT
public:
    using QValidator::QValidator;
    State validate(QString& text, int& position) const override;
};

struct ChooserEntry {
    QString text;
    QVariant data;                                   ///< identifies the entry
    QString tip = {};                                ///< plain text
    std::vector<std::pair<int, QVariant>> more = {}; ///< values of further item roles
};

/// Fills \p box with \p entries and selects the entry with \p chosen (or none). Changes only entries that
/// differ and emits no signal, so an open list keeps its position and marked entry.
void fill_chooser(QComboBox& box, const std::vector<ChooserEntry>& entries, const QVariant& chosen);

/// A label for sentences: wrapped plain text in the soft colour.
QLabel* soft_label(QWidget* parent, const QString& text = {});

/// The name of a field, in the soft colour.
QLabel* field_label(const QString& text, QWidget* field, QWidget* parent);

/// A combo box as wide as its entries. \p name: for screen readers.
QComboBox* make_chooser(const QString& name, const QString& tip, QWidget* parent);

/// A button without a frame. If \p text is a single character, screen readers read \p tip.
QToolButton* flat_button(const QString& text, const QString& tip, QWidget* parent);

/// A widget or a layout in a row or column.
struct BoxItem {
    BoxItem(QWidget* one, int share = 0, Qt::Alignment side = {})
        : widget(one), stretch(share), alignment(side) {}
    BoxItem(QLayout* one, int share = 0) : layout(one), stretch(share) {}
    QWidget* widget = nullptr;
    QLayout* layout = nullptr;
    int stretch = 0;
    Qt::Alignment alignment;
};

/// Lays out \p items from left to right, or downwards. \p parent: the widget that gets the layout; null: the
/// caller nests the layout in another one. \p spacing -1: the style's spacing.
QBoxLayout* make_row(QWidget* parent, const QMargins& margins, int spacing,
                     std::initializer_list<BoxItem> items);
QBoxLayout* make_column(QWidget* parent, const QMargins& margins, int spacing,
                        std::initializer_list<BoxItem> items);

/// Shows the command line of a dialog, with a button that copies it.
class CommandLine : public QWidget {
    Q_OBJECT
public:
    explicit CommandLine(const Theme& theme, QWidget* parent = nullptr);
    /// \p copied: the text that the button copies; empty: the shown text.
    void setCommand(const QString& shown, const QString& copied = {});
    [[nodiscard]] QString shown() const;
    [[nodiscard]] QString copied() const { return copied_; }
    void copy() const;

private:
    QLineEdit* edit_;
    QString copied_;
};

/// Lays out controls in their preferred sizes, in rows that wrap. Expanding controls fill the rest of a row.
class FlowLayout : public QLayout {
    Q_OBJECT
public:
    using QLayout::QLayout;

    void addItem(QLayoutItem* item) override { items_.emplace_back(item); }
    void insertWidget(int place, QWidget* widget);
    [[nodiscard]] int count() const override { return static_cast<int>(items_.size()); }
    [[nodiscard]] QLayoutItem* itemAt(int index) const override;
    QLayoutItem* takeAt(int index) override;
    [[nodiscard]] Qt::Orientations expandingDirections() const override { return Qt::Horizontal; }
    [[nodiscard]] bool hasHeightForWidth() const override { return true; }
    [[nodiscard]] int heightForWidth(int width) const override { return flow({0, 0, width, 0}, false); }
    [[nodiscard]] QSize sizeHint() const override;
    [[nodiscard]] QSize minimumSize() const override;
    void setGeometry(const QRect& rect) override;

private:
    int flow(const QRect& rect, bool place) const; ///< returns the height including margins

    std::vector<std::unique_ptr<QLayoutItem>> items_;
};

/// Counts the notches of a wheel that zooms. Adds up the many small events of a touchpad. Ignores horizontal
/// events and events without a distance.
class WheelNotches {
public:
    /// Notches since the last call; positive: away from the user.
    int turn(const QWheelEvent& event) {
        const QPoint delta = event.angleDelta();
        if (event.phase() == Qt::ScrollBegin || event.phase() == Qt::ScrollEnd ||
            (rest_ > 0) != (delta.y() > 0)) {
            rest_ = 0;
        }
        if (std::abs(delta.y()) <= std::abs(delta.x())) {
            return 0;
        }
        rest_ += delta.y();
        const int notches = rest_ / QWheelEvent::DefaultDeltasPerStep;
        rest_ -= notches * QWheelEvent::DefaultDeltasPerStep;
        return notches;
    }

private:
    int rest_ = 0; ///< remainder in eighths of a degree
};

} // namespace ponderscope
