// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/halting/halting_view.h"

#include "views/common/data_table_model.h"
#include "views/chart/chart_plot.h"
#include "views/common/format.h"
#include "views/common/paths.h"
#include "views/common/run_stamp.h"
#include "views/common/same_text.h"
#include "views/common/subset_chip.h"
#include "views/common/tables.h"
#include "views/figure/figure_command.h"

#include <QComboBox>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QSortFilterProxyModel>
#include <QTableView>
#include <QVBoxLayout>

namespace ponderscope {
namespace {

constexpr int room_for_all = 1180;

} // namespace

HaltingView::HaltingView(ViewContext context, QWidget* parent)
    : QWidget(parent),
      context_(context),
      work_(this),
      hint_(new QLabel(this)),
      body_(new QWidget(this)),
      chooser_(new QComboBox(this)),
      filter_(new QLineEdit(this)),
      chip_(new SubsetChip(context.theme, this)),
      model_(new DataTableModel(this)),
      sorted_(new QSortFilterProxyModel(this)),
      table_(new QTableView(this)) {
    hint_->setAlignment(Qt::AlignCenter);
    hint_->setWordWrap(true);
    hint_->setTextFormat(Qt::PlainText);
    for (ChartPlot*& chart : charts_) {
        chart = new ChartPlot(context_.theme, body_);
    }
    for (const HaltingChart kind :
         {HaltingChart::nll, HaltingChart::gates, HaltingChart::entropy, HaltingChart::probability}) {
        chooser_->addItem(halting_title(kind), static_cast<int>(kind));
    }
    chooser_->setAccessibleName(tr("Second chart"));
    filter_->setPlaceholderText(tr("Filter token types"));
    filter_->setAccessibleName(tr("Filter token types"));
    filter_->setClearButtonEnabled(true);
    model_->setTable(types_table({})); // its columns
    sorted_->setSourceModel(model_);
    sorted_->setSortRole(Qt::UserRole);
    sorted_->setFilterCaseSensitivity(Qt::CaseInsensitive);
    sorted_->setFilterKeyColumn(0);
    table_->setModel(sorted_);
    table_->setAccessibleName(tr("Token types"));
    table_->setToolTip(tr("Click a row to find the token in the text"));
    furnish_table(*table_, context_.theme);
    table_->setSelectionMode(QAbstractItemView::SingleSelection);
    table_->setSortingEnabled(true);
    table_->sortByColumn(1, Qt::DescendingOrder); // by count
    table_->horizontalHeader()->setMinimumSectionSize(30);
    table_->horizontalHeader()->setSectionResizeMode(QHeaderView::Fixed);
    table_->horizontalHeader()->setSectionResizeMode(0, QHeaderView::Stretch);
    table_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    table_->setMinimumWidth(300);

    auto* second = new QVBoxLayout;
    second->setSpacing(4);
    second->addWidget(chooser_, 0, Qt::AlignLeft);
    auto* others = new QHBoxLayout;
    others->setSpacing(14);
    for (const HaltingChart kind :
         {HaltingChart::nll, HaltingChart::gates, HaltingChart::entropy, HaltingChart::probability}) {
        others->addWidget(chart(kind), 1);
    }
    second->addLayout(others, 1);
    auto* right = new QVBoxLayout;
    right->setSpacing(4);
    right->addWidget(chip_);
    right->addWidget(filter_);
    right->addWidget(table_, 1);
    auto* row = new QHBoxLayout(body_);
    row->setContentsMargins(0, 0, 0, 0);
    row->setSpacing(16);
    row->addWidget(chart(HaltingChart::steps), 2);
    row->addLayout(second, 3);
    row->addLayout(right, 3);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(14, 10, 14, 8);
    column->addWidget(body_, 1);
    column->addWidget(hint_, 1);

    model_->setTips([this](int of, int) {
        return tr("token id %1").arg(stats_->types[static_cast<std::size_t>(of)].id);
    });
    const auto dress = [this] {
        const Palette& colours = context_.theme.colours();
        QPalette palette = hint_->palette();
        palette.setColor(QPalette::WindowText, colours.soft);
        hint_->setPalette(palette);
        const int widths[] = {0, 58, 50, 46, 82};
        for (int i = 1; i < model_->columnCount(); ++i) {
            table_->setColumnWidth(i, widths[i]);
        }
    };
    dress();
    connect(&context_.theme, &Theme::changed, this, dress);
    connect(chooser_, &QComboBox::currentIndexChanged, this, &HaltingView::arrange);
    connect(chip_, &SubsetChip::released, this, [this] { setSubset({}); });
    connect(filter_, &QLineEdit::textChanged, sorted_, &QSortFilterProxyModel::setFilterFixedString);
    connect(table_, &QTableView::clicked, this, [this](const QModelIndex& index) {
        const auto type = static_cast<std::size_t>(sorted_->mapToSource(index).row());
        if (stats_ && type < stats_->types.size()) {
            Q_EMIT tokenTypeChosen(stats_->types[type].id);
        }
    });
    connect(table_, &QTableView::activated, table_, &QTableView::clicked);
    follow(*this, context_, Follows::a);
    connect(&context_.selection, &Selection::attributionChanged, this, [this] { changed(); });
    renew();
    showStats();
    arrange();
}

QString HaltingView::hint() const {
    return hint_->isHidden() ? QString() : hint_->text();
}

void HaltingView::resizeEvent(QResizeEvent*) {
    arrange();
}

void HaltingView::arrange() {
    const bool all = width() >= room_for_all;
    chooser_->setVisible(!all);
    const auto chosen = static_cast<HaltingChart>(chooser_->currentData().toInt());
    for (const HaltingChart kind :
         {HaltingChart::nll, HaltingChart::gates, HaltingChart::entropy, HaltingChart::probability}) {
        chart(kind)->setVisible(all || kind == chosen);
    }
}

void HaltingView::renew() {
    const RunKey key = context_.selection.runA();
    const RunInfo* info = context_.data.run(key);
    if (info == nullptr) {
        asked_.clear();
        work_.cancel();
        stats_.reset();
        hint_->setText(tr("Open a trace of a model that ponders to see when its tokens stop."));
        showStats();
        return;
    }
    if (context_.data.isLive(key.trace)) {
        asked_.clear();
        work_.cancel();
        stats_.reset();
        hint_->setText(tr("The model is still thinking; this counts the run once it is recorded."));
        showStats();
        return;
    }
    const Attribution attribution = context_.selection.attribution();
    if (const RunInfo* of = context_.data.run(subset_.run);
        !subset_.isEmpty() && (of == nullptr || !same_text(*of, *info))) {
        subset_ = {}; // of other tokens
        chip_->show(subset_);
    }
    const QString wanted = QStringLiteral("%1#%2 %3 %4 %5 %6")
                               .arg(key.trace)
                               .arg(key.run)
                               .arg(run_stamp(*info))
                               .arg(static_cast<int>(attribution))
                               .arg(subset_.size())
                               .arg(subset_.query);
    if (wanted == asked_) {
        return;
    }
    asked_ = wanted;
    if (!stats_) {
        hint_->setText(tr("Reading the run…"));
    }
    const std::filesystem::path trace = path_of(key.trace);
    const std::string name = info->name;
    work_.start(
        [trace, name, attribution, only = subset_.rows](const std::stop_token& stop) {
            return halting_stats(trace, name, place_of(attribution), stop, only);
        },
        [this](HaltingStats stats) {
            stats_ = std::make_shared<const HaltingStats>(std::move(stats));
            hint_->setText(stats_->scored == 0 ? tr("No token of this run has been scored yet.") : QString());
            showStats();
        },
        [this](const QString& sentence) {
            stats_.reset();
            hint_->setText(sentence);
            showStats();
        });
}

void HaltingView::setSubset(const TokenSubset& subset) {
    subset_ = subset;
    chip_->show(subset_);
    asked_.clear();
    changed();
}

void HaltingView::showStats() {
    const bool there = stats_ && stats_->scored > 0;
    body_->setVisible(there);
    hint_->setVisible(!there);
    model_->setTable(types_table(there ? *stats_ : HaltingStats{}));
    for (int i = 0; there && i < chooser_->count(); ++i) { // "by halt layer" where layers are the steps
        chooser_->setItemText(
            i, halting_title(static_cast<HaltingChart>(chooser_->itemData(i).toInt()), stats_->unit));
    }
    for (const HaltingChart kind : all_halting_charts) {
        if (!there) {
            chart(kind)->setHint({});
        } else if (kind == HaltingChart::gates && stats_->gate_by_step.empty()) {
            chart(kind)->setHint(tr("This run records no gates: its method does not ask whether to go on."));
        } else {
            Chart made = halting_chart(kind, *stats_);
            if (kind != HaltingChart::steps && !chooser_->isHidden()) {
                made.title.clear(); // the chooser names it
            }
            chart(kind)->setChart(std::move(made));
        }
    }
}

ViewCommand HaltingView::viewCommand() const {
    if (const QString why = why_no_run(context_.data, context_.selection); !why.isEmpty()) {
        return no_command(why);
    }
    // The table, then the charts that are there.
    QStringList stats{QStringLiteral("stats"), run_a_reference(context_.data, context_.selection)};
    if (context_.selection.attribution() == Attribution::predicting) {
        stats << QStringLiteral("--types-of") << QStringLiteral("token");
    }
    ViewCommand command = shell_view({stats});
    using figure::FigureKind;
    constexpr std::array kinds{FigureKind::steps_histogram, FigureKind::nll_by_halt_step,
                               FigureKind::gate_curves, FigureKind::steps_entropy,
                               FigureKind::steps_probability};
    static_assert(kinds.size() == all_halting_charts.size());
    figure::FigureSpec page = figure::window_figure(context_.data, context_.selection, FigureKind::panels);
    for (std::size_t i = 0; i < kinds.size(); ++i) {
        if (stats_ && !charts_[i]->chart().empty()) {
            page.panels.push_back(figure::window_figure(context_.data, context_.selection, kinds[i]));
        }
    }
    if (!page.panels.empty()) {
        command.text += figure::figure_command(page, QStringLiteral("halting.pdf"));
    }
    return command;
}

} // namespace ponderscope
