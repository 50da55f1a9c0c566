// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/policy/policy_table.h"

#include "core/policy/replay.h"
#include "views/chart/chart.h"
#include "views/common/paths.h"
#include "views/common/tables.h"
#include "views/policy/policy_data.h"
#include "views/policy/policy_table_model.h"

#include <QEvent>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QPushButton>
#include <QSortFilterProxyModel>
#include <QTableView>
#include <QToolButton>
#include <QVBoxLayout>

#include <algorithm>
#include <set>

namespace ponderscope {
namespace {

/// A threshold that still moves is not measured at each place.
constexpr int settle_ms = 250;

std::string kind_of(const std::string& spec) {
    return PolicySpec::parse(spec).kind->name;
}

} // namespace

PolicyTable::PolicyTable(const ViewContext& context, PolicyData& shared, QWidget* parent)
    : QWidget(parent),
      context_(context),
      shared_(shared),
      model_(new PolicyTableModel(this)),
      sorted_(new QSortFilterProxyModel(this)),
      table_(new QTableView(this)),
      rerun_(new QPushButton(tr("Rerun"), this)),
      measuring_(this) {
    sorted_->setSourceModel(model_);
    sorted_->setSortRole(Qt::UserRole);
    table_->setModel(sorted_);
    table_->setAccessibleName(tr("Policies of the run"));
    furnish_table(*table_, context.theme);
    table_->setSelectionMode(QAbstractItemView::ExtendedSelection);
    table_->setItemDelegateForColumn(PolicyTableModel::policy, dot_delegate(table_));
    // Three clicks: up, down, as they come again.
    table_->horizontalHeader()->setSortIndicatorClearable(true);
    table_->horizontalHeader()->setSortIndicator(-1, Qt::AscendingOrder);
    table_->setSortingEnabled(true);
    table_->horizontalHeader()->setSectionsClickable(true);
    table_->horizontalHeader()->setStretchLastSection(true);
    table_->setHorizontalScrollMode(QAbstractItemView::ScrollPerPixel);
    auto* back = new QPushButton(tr("One policy"), this);
    back->setToolTip(tr("The threshold of one policy, and how many steps it gives"));
    auto* copy = new QToolButton(this);
    copy->setText(tr("Copy"));
    copy->setToolTip(tr("The table as text, CSV or Markdown"));
    copy->setPopupMode(QToolButton::InstantPopup);
    copy->addActions(table_->actions());
    auto* figure = new QToolButton(this);
    figure->setText(tr("Figure…"));
    figure->setToolTip(tr("The table as a figure, as LaTeX and as CSV"));
    auto* buttons = new QHBoxLayout;
    buttons->setSpacing(6);
    buttons->addWidget(back);
    buttons->addStretch(1);
    for (QToolButton* button : {copy, figure}) {
        button->setAutoRaise(true);
        buttons->addWidget(button);
    }
    buttons->addWidget(rerun_);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(4);
    column->addLayout(buttons);
    column->addWidget(table_, 1);

    delay_.setSingleShot(true);
    delay_.setInterval(settle_ms);
    connect(&delay_, &QTimer::timeout, this, &PolicyTable::measure);
    connect(back, &QPushButton::clicked, this, &PolicyTable::backRequested);
    connect(figure, &QToolButton::clicked, this, &PolicyTable::figureRequested);
    connect(rerun_, &QPushButton::clicked, this, [this] { Q_EMIT rerunRequested(selected()); });
    connect(table_->selectionModel(), &QItemSelectionModel::selectionChanged, this, &PolicyTable::showState);
    connect(table_->selectionModel(), &QItemSelectionModel::currentRowChanged, this,
            [this](const QModelIndex& now) {
                const int row = sorted_->mapToSource(now).row();
                if (row >= 0 && !filling_) {
                    Q_EMIT policyChosen(
                        QString::fromStdString(model_->rows()[static_cast<std::size_t>(row)].spec));
                }
            });
    connect(&shared_, &PolicyData::tableChanged, this, &PolicyTable::forget);
    connect(&shared_, &PolicyData::rerunsChanged, this, [this] { delay_.start(); });
    const auto colour = [this] {
        model_->setColours([this](int row) {
            const std::size_t kind = model_->rows()[static_cast<std::size_t>(row)].number;
            const std::vector<QColor>& colours = rule_colours(context_.theme.dark());
            const bool bound = kind < policy_kinds().size() && !policy_kinds()[kind].causal;
            return bound ? context_.theme.colours().text : colours[kind % colours.size()];
        });
    };
    colour();
    connect(&context_.theme, &Theme::changed, this, colour);
    showState();
}

PolicyTable::~PolicyTable() = default;

void PolicyTable::changeEvent(QEvent* event) {
    QWidget::changeEvent(event);
    if (event->type() == QEvent::FontChange) {
        table_->resizeColumnsToContents();
    }
}

void PolicyTable::forget() {
    measuring_.cancel();
    delay_.stop();
    followed_.clear();
    measured_.clear();
    started_ = false;
    model_->setRows({});
    setOnScreen(onScreen_);
}

void PolicyTable::setOnScreen(bool on) {
    onScreen_ = on;
    if (on && shared_.table()) {
        delay_.start();
    }
}

void PolicyTable::follow(const QString& spec) {
    const std::string text = spec.toStdString();
    if (!text.empty() && std::exchange(followed_[kind_of(text)], text) != text && onScreen_) {
        delay_.start();
    }
}

QString PolicyTable::followed(const std::string& kind) const {
    const auto known = followed_.find(kind);
    return known == followed_.end() ? QString() : QString::fromStdString(known->second);
}

void PolicyTable::setCurrent(const QString& spec) {
    const int row = model_->rowOf(spec);
    const QModelIndex index = row < 0 ? QModelIndex() : sorted_->mapFromSource(model_->index(row, 0));
    if (!index.isValid() || table_->selectionModel()->isRowSelected(index.row())) {
        return;
    }
    filling_ = true; // nobody chose it here
    table_->selectionModel()->setCurrentIndex(index, QItemSelectionModel::ClearAndSelect |
                                                         QItemSelectionModel::Rows);
    filling_ = false;
}

QStringList PolicyTable::selected() const {
    QStringList specs;
    for (int row = 0; row < sorted_->rowCount(); ++row) {
        if (table_->selectionModel()->isRowSelected(row)) {
            const int at = sorted_->mapToSource(sorted_->index(row, 0)).row();
            specs << QString::fromStdString(model_->rows()[static_cast<std::size_t>(at)].spec);
        }
    }
    return specs;
}

void PolicyTable::setRunning(bool running) {
    running_ = running;
    showState();
}

void PolicyTable::showState() {
    int missing = 0;
    const QStringList chosen = selected();
    for (const QString& spec : chosen) {
        const PolicyRow& row = model_->rows()[static_cast<std::size_t>(model_->rowOf(spec))];
        missing += row.causal && !row.rerun ? 1 : 0;
    }
    rerun_->setText(missing > 1 ? tr("Rerun %1 policies").arg(missing) : tr("Rerun"));
    rerun_->setEnabled(!running_ && missing > 0);
    rerun_->setToolTip(
        running_           ? tr("A rerun is under way; the others wait for it")
        : chosen.isEmpty() ? tr("Choose rows first: Ctrl and Shift choose several")
        : missing == 0     ? tr("What is chosen has been rerun, or looks at the next token and cannot be")
                       : tr("Runs the checkpoint with these policies, one after the other; the runs go into "
                            "Scratch and stay in the table and on the front"));
}

std::vector<std::string> PolicyTable::wanted() const {
    std::set<std::string> specs;
    for (const auto& [kind, spec] : followed_) {
        specs.insert(spec);
    }
    const auto table = shared_.table();
    for (const PolicyRerun& rerun : shared_.storedReruns()) {
        if (const PolicyKind* kind = PolicySpec::kind_of(rerun.policy);
            kind != nullptr && table->can(*kind)) {
            specs.insert(rerun.policy);
        }
    }
    return {specs.begin(), specs.end()};
}

void PolicyTable::measure() {
    const auto table = shared_.table();
    const RunInfo* info = context_.data.run(shared_.run());
    if (!onScreen_ || !table || info == nullptr) {
        return;
    }
    const std::vector<std::string> all = wanted();
    const RunKey full = shared_.rerunOf(QStringLiteral("full"));
    std::map<std::string, RunKey> known;
    std::vector<std::string> stale;
    for (const std::string& spec : all) {
        const RunKey rerun = shared_.rerunOf(QString::fromStdString(spec));
        const auto before = measured_.find(spec);
        if (before == measured_.end() || !(before->second == rerun) || !(full == full_)) {
            stale.push_back(spec);
        }
        known[spec] = rerun;
    }
    const auto keep = [this](const std::set<std::string>& specs, std::vector<PolicyRow> fresh) {
        for (const PolicyRow& row : model_->rows()) {
            const bool again = std::any_of(fresh.begin(), fresh.end(),
                                           [&](const PolicyRow& one) { return one.spec == row.spec; });
            if (!again && specs.contains(row.spec)) {
                fresh.push_back(row);
            }
        }
        filling_ = true; // where a row goes, its neighbour becomes the current one
        model_->setRows(std::move(fresh));
        filling_ = false;
        setCurrent(shared_.chosen());
    };
    if (stale.empty() && started_) {
        keep({all.begin(), all.end()}, {});
        return;
    }
    const StoredRun of{path_of(shared_.run().trace), *info};
    measuring_.start(
        [table, of, stale, first = !started_, followed = followed_,
         reruns = shared_.storedReruns()](const std::stop_token& stop) {
            std::vector<std::string> specs = stale;
            for (const std::string& spec : first ? starting_policies(*table) : std::vector<std::string>()) {
                if (!followed.contains(kind_of(spec)) &&
                    std::find(specs.begin(), specs.end(), spec) == specs.end()) {
                    specs.push_back(spec);
                }
            }
            BootstrapOptions options;
            options.replicates = shown_replicates;
            options.stop = stop;
            return policy_rows(*table, of, specs, reruns, options);
        },
        [this, all, known, full, keep](std::vector<PolicyRow> rows) {
            started_ = true;
            table_->setToolTip({}); // of a failure before
            full_ = full;
            measured_ = known;
            std::set<std::string> specs(all.begin(), all.end());
            // From behind: where a slider starts stands behind what has been rerun.
            for (auto row = rows.rbegin(); row != rows.rend(); ++row) {
                followed_.try_emplace(kind_of(row->spec), row->spec);
                specs.insert(row->spec);
                measured_.try_emplace(row->spec, shared_.rerunOf(QString::fromStdString(row->spec)));
            }
            const bool sized = model_->rowCount() > 0;
            keep(specs, std::move(rows));
            if (!sized) {
                table_->resizeColumnsToContents();
            }
            showState();
        },
        [this](const QString& sentence) { table_->setToolTip(sentence); });
}

} // namespace ponderscope
