// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/tables.h"

#include "views/common/format.h"
#include "views/common/theme.h"

#include <QAbstractProxyModel>
#include <QAction>
#include <QApplication>
#include <QClipboard>
#include <QHeaderView>
#include <QPainter>
#include <QStyledItemDelegate>
#include <QTableView>

#include <cmath>

using namespace Qt::StringLiterals;

namespace ponderscope {

namespace {

/// The rows in the order of \p model, which may sort and filter a DataTableModel.
DataTable rows_in_order(const QAbstractItemModel& model) {
    const QAbstractItemModel* source = &model;
    while (const auto* proxy = qobject_cast<const QAbstractProxyModel*>(source)) {
        source = proxy->sourceModel();
    }
    DataTable table = qobject_cast<const DataTableModel*>(source)->table();
    std::vector<std::vector<Cell>> rows;
    for (int row = 0; row < model.rowCount(); ++row) {
        QModelIndex index = model.index(row, 0);
        while (const auto* proxy = qobject_cast<const QAbstractProxyModel*>(index.model())) {
            index = proxy->mapToSource(index);
        }
        rows.push_back(table.rows[static_cast<std::size_t>(index.row())]);
    }
    table.rows = std::move(rows);
    return table;
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
    if (form == TableForm::csv) {
        return QString::fromStdString(csv_of(rows_in_order(model)));
    }
    const bool markdown = form == TableForm::markdown;
    const auto line = [&](const auto& cell) {
        QStringList cells;
        for (int column = 0; column < model.columnCount(); ++column) {
            QString text = cell(column);
            text.replace(u'\n', u' ');
            cells << (markdown ? text.replace(u'|', u"\\|"_s) : text);
        }
        return markdown ? u"| "_s + cells.join(u" | "_s) + u" |\n"_s : cells.join(u'\t') + u'\n';
    };
    const auto head = [&](int column, int role) { return model.headerData(column, Qt::Horizontal, role); };
    QString text = line([&](int column) { return head(column, Qt::DisplayRole).toString(); });
    if (markdown) {
        text += line([&](int column) {
            const auto side = head(column, Qt::TextAlignmentRole).value<Qt::Alignment>();
            return side.testFlag(Qt::AlignRight) ? u"---:"_s : u"---"_s;
        });
    }
    for (int row = 0; row < model.rowCount(); ++row) {
        text += line([&](int column) { return model.index(row, column).data().toString(); });
    }
    return text;
}

QString with_interval(const Estimate& estimate, bool difference, int decimals) {
    const auto number = [&](double value) {
        return difference ? format_difference(value, decimals) : format_nats(value, decimals);
    };
    if (std::isnan(estimate.low) || std::isnan(estimate.high) || estimate.low == estimate.high) {
        return number(estimate.value);
    }
    const double below = estimate.value - estimate.low;
    const double above = estimate.high - estimate.value;
    const double half = (below + above) / 2;
    constexpr double least_shown = 0.0005;
    if (half < least_shown) {
        return number(estimate.value) + u" ± <0.001"_s;
    }
    return std::abs(above - below) <= 0.2 * half
               ? number(estimate.value) + u" ± "_s + format_nats(half, 3)
               : u"%1 [%2, %3]"_s.arg(number(estimate.value), number(estimate.low), number(estimate.high));
}

void furnish_table(QTableView& table, Theme& theme) {
    table.setSelectionBehavior(QAbstractItemView::SelectRows);
    table.setEditTriggers(QAbstractItemView::NoEditTriggers);
    table.setShowGrid(false);
    table.setFrameShape(QFrame::NoFrame);
    table.setWordWrap(false);
    table.verticalHeader()->hide();
    table.setCornerWidget(new QWidget(&table)); // an empty corner between the scroll bars
    table.horizontalHeader()->setHighlightSections(false);
    theme.dress(&table, [&table, &theme] {
        table.setFont(theme.body());
        table.verticalHeader()->setDefaultSectionSize(QFontMetrics(theme.body()).height() + 7);
        table.horizontalHeader()->setFont(theme.small());
    });
    const std::pair<const char*, TableForm> forms[] = {{"Copy the table", TableForm::text},
                                                       {"Copy as CSV", TableForm::csv},
                                                       {"Copy as Markdown", TableForm::markdown}};
    for (const auto& [name, form] : forms) {
        auto* action = new QAction(QString::fromUtf8(name), &table);
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

namespace {

QVariant value_of_cell(const Cell& cell, const TableColumn& column) {
    if (const auto* text = std::get_if<std::string>(&cell)) {
        return QString::fromStdString(*text);
    }
    if (const auto* count = std::get_if<std::int64_t>(&cell)) {
        return QVariant::fromValue(static_cast<qint64>(*count));
    }
    if (const auto* yes = std::get_if<bool>(&cell)) {
        return *yes;
    }
    return column.format == CellFormat::text ? QVariant(QString()) : QVariant(cell_value(cell));
}

} // namespace

QString window_text(const Cell& cell, const TableColumn& column) {
    if (const auto* text = std::get_if<std::string>(&cell)) {
        return QString::fromStdString(*text);
    }
    if (const auto* count = std::get_if<std::int64_t>(&cell)) {
        return format_count(*count);
    }
    if (const auto* yes = std::get_if<bool>(&cell)) {
        return *yes ? u"yes"_s : QString();
    }
    const double value = cell_value(cell);
    if (std::isnan(value)) {
        return QString::fromUtf16(no_value);
    }
    const auto* estimate = std::get_if<Estimate>(&cell);
    switch (column.format) {
    case CellFormat::difference:
        return estimate != nullptr ? with_interval(*estimate, true, column.decimals)
                                   : format_difference(value, column.decimals);
    case CellFormat::share:
        return u"%1 %"_s.arg(format_nats(100 * value, column.decimals));
    case CellFormat::p:
        return format_probability(value);
    case CellFormat::si:
        return format_si(value);
    case CellFormat::significant:
        return format_number(value, column.decimals);
    default:
        return estimate != nullptr && !column.brief ? with_interval(*estimate, false, column.decimals)
                                                    : format_nats(value, column.decimals);
    }
}

void DataTableModel::setTable(DataTable table) {
    beginResetModel();
    table_ = std::move(table);
    shown_.clear();
    for (std::size_t c = 0; c < table_.columns.size(); ++c) {
        if (!table_.columns[c].title.empty()) {
            shown_.push_back(c);
        }
    }
    endResetModel();
}

void DataTableModel::setColours(std::function<QColor(int)> colours) {
    colours_ = std::move(colours);
    coloursChanged();
}

void DataTableModel::coloursChanged() {
    if (rowCount() > 0) {
        Q_EMIT dataChanged(index(0, 0), index(rowCount() - 1, 0), {Qt::DecorationRole});
    }
}

int DataTableModel::columnOf(const char* key) const {
    for (std::size_t c = 0; c < shown_.size(); ++c) {
        if (table_.columns[shown_[c]].key == key) {
            return static_cast<int>(c);
        }
    }
    return -1;
}

int DataTableModel::rowCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : static_cast<int>(table_.rows.size());
}

int DataTableModel::columnCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : static_cast<int>(shown_.size());
}

QVariant DataTableModel::data(const QModelIndex& index, int role) const {
    if (!index.isValid() || index.row() >= rowCount() || index.column() >= columnCount()) {
        return {};
    }
    const std::size_t c = column(index.column());
    const TableColumn& of = table_.columns[c];
    const Cell& cell = table_.rows[static_cast<std::size_t>(index.row())][c];
    switch (role) {
    case Qt::DisplayRole:
        return window_text(cell, of);
    case Qt::UserRole:
        return value_of_cell(cell, of);
    case Qt::TextAlignmentRole:
        return headerData(index.column(), Qt::Horizontal, role);
    case Qt::DecorationRole:
        return index.column() == 0 && colours_ ? QVariant(colours_(index.row())) : QVariant();
    case Qt::ToolTipRole:
        return tips_ ? QVariant(tips_(index.row(), index.column())) : QVariant();
    default:
        return {};
    }
}

QVariant DataTableModel::headerData(int section, Qt::Orientation orientation, int role) const {
    if (orientation != Qt::Horizontal || section < 0 || section >= columnCount()) {
        return {};
    }
    const TableColumn& of = table_.columns[column(section)];
    switch (role) {
    case Qt::DisplayRole:
        return QString::fromStdString(of.title);
    case Qt::TextAlignmentRole:
        return QVariant::fromValue(Qt::Alignment(
            (of.format == CellFormat::text ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter));
    case Qt::ToolTipRole:
        return of.tip.empty() ? QVariant() : QVariant(QString::fromStdString(of.tip));
    default:
        return {};
    }
}

} // namespace ponderscope
