// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/tables.h"

#include "views/common/format.h"
#include "views/common/theme.h"

#include <QAction>
#include <QApplication>
#include <QClipboard>
#include <QHeaderView>
#include <QPainter>
#include <QStyledItemDelegate>
#include <QTableView>

#include <cmath>

namespace ponderscope {
namespace {

QString csv_cell(QString text) {
    text.replace(u'\n', u' ');
    return text.contains(u',') || text.contains(u'"')
               ? u'"' + text.replace(u'"', QStringLiteral("\"\"")) + u'"'
               : text;
}

QString csv_value(const QVariant& value, const QString& otherwise) {
    const int type = value.typeId();
    if (type == QMetaType::Double || type == QMetaType::Float) {
        return std::isfinite(value.toDouble())
                   ? QString::number(value.toDouble(), 'g', QLocale::FloatingPointShortest)
                   : QString();
    }
    return value.isValid() && type != QMetaType::QString ? value.toString() : csv_cell(otherwise);
}

QString markdown_cell(QString text) {
    text.replace(u'\n', u' ');
    return text.replace(u'|', QStringLiteral("\\|"));
}

/// Of a column that some row has an interval in.
bool has_intervals(const QAbstractItemModel& model, int column) {
    for (int row = 0; row < model.rowCount(); ++row) {
        if (model.index(row, column).data(interval_role).toList().size() == 2) {
            return true;
        }
    }
    return false;
}

class DotDelegate : public QStyledItemDelegate {
public:
    DotDelegate(QObject* parent, int inset) : QStyledItemDelegate(parent), inset_(inset) {}
    void paint(QPainter* painter, const QStyleOptionViewItem& option,
               const QModelIndex& index) const override {
        const auto colour = index.data(Qt::DecorationRole).value<QColor>();
        if (!colour.isValid()) {
            QStyledItemDelegate::paint(painter, option, index);
            return;
        }
        QStyleOptionViewItem text = option;
        initStyleOption(&text, index);
        text.widget->style()->drawPrimitive(QStyle::PE_PanelItemViewItem, &text, painter, text.widget);
        painter->save();
        painter->setRenderHint(QPainter::Antialiasing);
        painter->setPen(Qt::NoPen);
        painter->setBrush(colour);
        painter->drawEllipse(QPointF(option.rect.left() + inset_ + 8, option.rect.center().y() + 0.5), 4.5,
                             4.5);
        painter->setFont(text.font);
        painter->setPen(text.palette.color(
            (option.state & QStyle::State_Selected) != 0 ? QPalette::HighlightedText : QPalette::Text));
        const QRect box = option.rect.adjusted(inset_ + 22, 0, -4, 0);
        painter->drawText(box, Qt::AlignLeft | Qt::AlignVCenter,
                          text.fontMetrics.elidedText(text.text, Qt::ElideMiddle, box.width()));
        painter->restore();
    }

private:
    int inset_;
};

} // namespace

QAbstractItemDelegate* dot_delegate(QObject* parent, int inset) {
    return new DotDelegate(parent, inset);
}

QString table_text(const QAbstractItemModel& model, TableForm form) {
    const int columns = model.columnCount();
    std::vector<bool> wide;
    for (int column = 0; column < columns; ++column) {
        wide.push_back(form == TableForm::csv && has_intervals(model, column));
    }
    const QString between = form == TableForm::text  ? QStringLiteral("\t")
                            : form == TableForm::csv ? QStringLiteral(",")
                                                     : QStringLiteral(" | ");
    const auto line = [&](const QStringList& cells) {
        return form == TableForm::markdown
                   ? QStringLiteral("| ") + cells.join(between) + QStringLiteral(" |\n")
                   : cells.join(between) + u'\n';
    };
    QStringList head, rule;
    for (int column = 0; column < columns; ++column) {
        const QString name =
            model.headerData(column, Qt::Horizontal, Qt::DisplayRole).toString().replace(u'\n', u' ');
        const auto side =
            model.headerData(column, Qt::Horizontal, Qt::TextAlignmentRole).value<Qt::Alignment>();
        head << (form == TableForm::markdown ? markdown_cell(name)
                 : form == TableForm::csv    ? csv_cell(name)
                                             : name);
        rule << (side.testFlag(Qt::AlignRight) ? QStringLiteral("---:") : QStringLiteral("---"));
        if (wide[static_cast<std::size_t>(column)]) {
            head << csv_cell(name + QStringLiteral(" low")) << csv_cell(name + QStringLiteral(" high"));
        }
    }
    QString text = line(head) + (form == TableForm::markdown ? line(rule) : QString());
    for (int row = 0; row < model.rowCount(); ++row) {
        QStringList cells;
        for (int column = 0; column < columns; ++column) {
            const QModelIndex index = model.index(row, column);
            const QString shown = index.data(Qt::DisplayRole).toString();
            cells << (form == TableForm::csv        ? csv_value(index.data(Qt::UserRole), shown)
                      : form == TableForm::markdown ? markdown_cell(shown)
                                                    : QString(shown).replace(u'\n', u' '));
            if (wide[static_cast<std::size_t>(column)]) {
                const QVariantList ends = index.data(interval_role).toList();
                cells << csv_value(ends.value(0), {}) << csv_value(ends.value(1), {});
            }
        }
        text += line(cells);
    }
    return text;
}

QString with_interval(const Estimate& estimate, bool difference) {
    const auto number = [&](double value) {
        return difference ? format_difference(value, 3) : format_nats(value, 3);
    };
    if (std::isnan(estimate.low) || std::isnan(estimate.high) || estimate.low == estimate.high) {
        return number(estimate.value);
    }
    const double below = estimate.value - estimate.low;
    const double above = estimate.high - estimate.value;
    const double half = (below + above) / 2;
    constexpr double least_shown = 0.0005;
    if (half < least_shown) {
        return number(estimate.value) + QStringLiteral(" ± <0.001");
    }
    return std::abs(above - below) <= 0.2 * half
               ? number(estimate.value) + QStringLiteral(" ± ") + format_nats(half, 3)
               : QStringLiteral("%1 [%2, %3]")
                     .arg(number(estimate.value), number(estimate.low), number(estimate.high));
}

void furnish_table(QTableView& table, Theme& theme) {
    table.setSelectionBehavior(QAbstractItemView::SelectRows);
    table.setEditTriggers(QAbstractItemView::NoEditTriggers);
    table.setShowGrid(false);
    table.setFrameShape(QFrame::NoFrame);
    table.setWordWrap(false);
    table.verticalHeader()->hide();
    table.setCornerWidget(new QWidget(&table)); // empty, between two scroll bars
    table.horizontalHeader()->setHighlightSections(false);
    const auto dress = [&table, &theme] {
        table.setFont(theme.body());
        table.verticalHeader()->setDefaultSectionSize(QFontMetrics(theme.body()).height() + 7);
        table.horizontalHeader()->setFont(theme.small());
    };
    dress();
    QObject::connect(&theme, &Theme::changed, &table, dress);
    const std::pair<const char*, TableForm> forms[] = {
        {QT_TRANSLATE_NOOP("Tables", "Copy the table"), TableForm::text},
        {QT_TRANSLATE_NOOP("Tables", "Copy as CSV"), TableForm::csv},
        {QT_TRANSLATE_NOOP("Tables", "Copy as Markdown"), TableForm::markdown}};
    for (const auto& [name, form] : forms) {
        auto* action = new QAction(QCoreApplication::translate("Tables", name), &table);
        QObject::connect(action, &QAction::triggered, &table, [&table, chosen = form] {
            QApplication::clipboard()->setText(table_text(*table.model(), chosen));
        });
        if (form == TableForm::text) {
            action->setShortcut(QKeySequence::Copy);
            action->setShortcutContext(Qt::WidgetShortcut);
        }
        table.addAction(action);
    }
    table.setContextMenuPolicy(Qt::ActionsContextMenu);
}

} // namespace ponderscope
