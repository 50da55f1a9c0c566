// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/policy/pareto_view.h"

#include "core/policy/replay.h"
#include "views/common/format.h"
#include "views/figure/chart_view.h"
#include "views/figure/figure_command.h"
#include "views/policy/front_chart.h"
#include "views/policy/policy_data.h"

#include <QComboBox>
#include <QDialog>
#include <QDialogButtonBox>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QPushButton>
#include <QToolButton>
#include <QVBoxLayout>

namespace ponderscope {

ParetoView::ParetoView(ViewContext context, QWidget* parent)
    : QWidget(parent),
      context_(context),
      shared_(PolicyData::of(context)),
      cost_(new QComboBox(this)),
      chart_(new ChartView(context.theme, this)) {
    cost_->setAccessibleName(tr("Cost"));
    cost_->setToolTip(tr("What the perplexity is set against; steps where no FLOPs are known"));
    cost_->addItem(tr("FLOPs"), static_cast<int>(FrontCost::compute));
    cost_->addItem(tr("Steps"), static_cast<int>(FrontCost::steps));
    cost_->addItem(tr("Measured time"), static_cast<int>(FrontCost::time));
    auto* axes = new QToolButton(this);
    axes->setText(tr("Axes and bands"));
    axes->setToolTip(tr("Intervals, logarithmic axes and their ends, here and in the Policy lab"));
    axes->setPopupMode(QToolButton::InstantPopup);
    axes->setAutoRaise(true);
    auto* menu = new QMenu(axes);
    const auto choice = [menu](const QString& text, bool on) {
        QAction* made = menu->addAction(text);
        made->setCheckable(true);
        made->setChecked(on);
        return made;
    };
    bands_ = choice(tr("Bands"), shared_.look().bands);
    bands_->setToolTip(tr("95 % of the loss against full, paired over the same tokens"));
    menu->setToolTipsVisible(true);
    logCost_ = choice(tr("Logarithmic cost"), false);
    logPerplexity_ = choice(tr("Logarithmic perplexity"), false);
    menu->addSeparator();
    menu->addAction(tr("Ends of the axes…"), this, &ParetoView::askForLimits);
    axes->setMenu(menu);
    const auto look = [this] {
        FrontLook wanted = shared_.look();
        wanted.bands = bands_->isChecked();
        wanted.log_cost = logCost_->isChecked();
        wanted.log_perplexity = logPerplexity_->isChecked();
        shared_.setLook(wanted);
    };
    for (QAction* action : {bands_, logCost_, logPerplexity_}) {
        connect(action, &QAction::toggled, this, look);
    }
    auto* column = new QVBoxLayout;
    column->addWidget(cost_);
    column->addWidget(axes);
    column->addStretch(1);
    auto* row = new QHBoxLayout(this);
    row->setContentsMargins(14, 10, 14, 8);
    row->setSpacing(14);
    row->addWidget(chart_, 1);
    row->addLayout(column);
    const auto renewed = [this] { changed(); };
    connect(cost_, &QComboBox::currentIndexChanged, this, renewed);
    connect(chart_, &ChartView::markClicked, this, [this](int series, int index) {
        if (const auto fronts = shared_.fronts()) {
            const std::string policy =
                policy_at_mark(*fronts, shared_.runs(), chart_->chart(), series, index);
            if (!policy.empty()) {
                shared_.choose(QString::fromStdString(policy));
            }
        }
    });
    connect(&shared_, &PolicyData::tableChanged, this, renewed);
    connect(&shared_, &PolicyData::frontsChanged, this, renewed);
    connect(&shared_, &PolicyData::rerunsChanged, this, renewed);
    connect(&context.selection, &Selection::runsChanged, this, renewed);
    renew();
}

void ParetoView::askForLimits() {
    QDialog dialog(this);
    dialog.setWindowTitle(tr("Ends of the axes"));
    FrontLook look = shared_.look();
    auto* form = new QFormLayout(&dialog);
    QLineEdit* fields[4];
    const QString names[] = {tr("Cost from"), tr("to"), tr("Perplexity from"), tr("to")};
    const std::optional<std::array<double, 2>>* held[] = {&look.costs, &look.perplexities};
    for (std::size_t i = 0; i < 4; ++i) {
        fields[i] = new QLineEdit(*held[i / 2] ? QString::number((**held[i / 2])[i % 2], 'g', 8) : QString(),
                                  &dialog);
        fields[i]->setPlaceholderText(tr("from the values"));
        fields[i]->setAccessibleName(names[i]);
        form->addRow(names[i], fields[i]);
    }
    auto* words = new QLabel(&dialog);
    words->setWordWrap(true);
    words->setMinimumWidth(300);
    words->setText(tr("FLOPs in full: 2.5e6. Empty: from the values."));
    form->addRow(words);
    auto* buttons = new QDialogButtonBox(QDialogButtonBox::Ok | QDialogButtonBox::Cancel, &dialog);
    form->addRow(buttons);
    // Both ends of an axis or none; in order; above 0 where it is logarithmic.
    const auto ends = [&](std::size_t axis, bool log, std::optional<std::array<double, 2>>& into) {
        const QString low = fields[2 * axis]->text().trimmed();
        const QString high = fields[2 * axis + 1]->text().trimmed();
        const std::optional<double> from = typed_number(low);
        const std::optional<double> to = typed_number(high);
        into.reset();
        if (low.isEmpty() && high.isEmpty()) {
            return true;
        }
        const bool fits = from && to && *from < *to && !(log && *from <= 0);
        if (fits) {
            into = std::array{*from, *to};
        }
        return fits;
    };
    const auto check = [&] {
        const bool costs = ends(0, look.log_cost, look.costs);
        const bool losses = ends(1, look.log_perplexity, look.perplexities);
        buttons->button(QDialogButtonBox::Ok)->setEnabled(costs && losses);
        words->setText(costs && losses
                           ? tr("FLOPs in full: 2.5e6. Empty: from the values.")
                           : tr("Two numbers in order, above 0 on a logarithmic axis; or neither."));
    };
    for (QLineEdit* field : fields) {
        connect(field, &QLineEdit::textChanged, &dialog, check);
    }
    connect(buttons, &QDialogButtonBox::accepted, &dialog, &QDialog::accept);
    connect(buttons, &QDialogButtonBox::rejected, &dialog, &QDialog::reject);
    if (dialog.exec() == QDialog::Accepted) {
        check();
        shared_.setLook(look);
    }
}

bool ParetoView::isBusy() const {
    return onScreen() && shared_.isBusy();
}

void ParetoView::renew() {
    if (!shared_.table()) {
        shared_.want();
    }
    if (!shared_.table()) {
        chart_->setHint(shared_.sentence());
    } else if (!shared_.fronts()) {
        chart_->setHint(tr("Replaying every policy at many thresholds…"));
    } else {
        FrontLook look = shared_.look();
        look.cost = static_cast<FrontCost>(cost_->currentData().toInt());
        figure::Chart chart = front_chart(*shared_.fronts(), shared_.runs(), nullptr, look);
        chart.title.clear(); // the panel's heading
        chart_->setChart(std::move(chart));
    }
}

void fill_front(figure::FigureSpec& spec, const FrontLook& look) {
    spec.cost = look.cost == FrontCost::steps ? "steps" : look.cost == FrontCost::time ? "time" : "compute";
    spec.bands = look.bands;
    spec.log = look.log_cost ? (look.log_perplexity ? "both" : "x") : look.log_perplexity ? "y" : "none";
    // As front_chart: a logarithmic axis begins above 0.
    const auto ends = [](const std::optional<std::array<double, 2>>& range, bool log) {
        return range && log && (*range)[0] <= 0 ? std::nullopt : range;
    };
    spec.x_range = ends(look.costs, look.log_cost);
    spec.y_range = ends(look.perplexities, look.log_perplexity);
}

ViewCommand ParetoView::viewCommand() const {
    figure::FigureSpec spec =
        figure::window_figure(context_.data, context_.selection, figure::FigureKind::policy_front);
    FrontLook look = shared_.look();
    look.cost = static_cast<FrontCost>(cost_->currentData().toInt());
    fill_front(spec, look);
    return figure::figure_view(context_.data, context_.selection, spec);
}

} // namespace ponderscope
