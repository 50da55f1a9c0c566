// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/experts/experts_view.h"

#include "core/base/error.h"
#include "core/trace/column_labels.h"
#include "views/common/controls.h"
#include "views/common/format.h"
#include "views/experts/expert_charts.h"
#include "views/figure/figure_panel.h"
#include "views/heatmap/map_header.h"
#include "views/heatmap/step_map_canvas.h"

#include <algorithm>

using namespace Qt::StringLiterals;

namespace ponderscope {

ExpertsView::ExpertsView(ViewContext context, QWidget* parent)
    : QWidget(parent),
      data_(context.data),
      selection_(context.selection),
      map_(new StepMapCanvas(context, this)),
      header_(new MapHeader(context.theme, *map_, u"Layer with experts"_s, u"Layer to show"_s, this)),
      layer_(header_->chooser()),
      charts_(new FigurePanel(
          context, page_of({figure::FigureKind::experts, figure::FigureKind::expert_agreement}), this)) {
    map_->setAccessibleName(u"Weights of the chosen experts by token"_s);
    charts_->embed();
    make_row(this, {14, 8, 14, 6}, 16,
             {{make_column(nullptr, {}, 8, {header_, {map_, 1}}), 4}, {charts_, 5}});

    connect(layer_, &QComboBox::activated, this, [this] {
        selection_.setLayer(layerName().toInt());
        refreshMap();
    });
    connect(map_, &StepMapCanvas::cellHovered, this, &ExpertsView::showCell);
    follow(*this, context, Follows::a);
    const auto refreshed = seen(&ExpertsView::refreshMap);
    followSequence(*this, context, refreshed,
                   [](const QString& signal) { return signal.startsWith(u"router_"); });
    connect(&selection_, &Selection::stepChanged, this, refreshed);
    connect(&selection_, &Selection::depthChanged, this, seen(&ExpertsView::showLayer));
    connect(&selection_, &Selection::tokenChanged, this, seen(&ExpertsView::sayToken));
    connect(&selection_, &Selection::hoverChanged, this, seen(&ExpertsView::sayToken));
    renew();
}

bool ExpertsView::isBusy() const {
    return charts_->isBusy();
}

void ExpertsView::screenChanged() {
    charts_->setOnScreen(onScreen() && info_);
}

std::size_t ExpertsView::layer() const {
    return static_cast<std::size_t>(std::max(0, layer_->currentIndex()));
}

QString ExpertsView::layerName() const {
    return layer() < layers_.size() ? QString::fromStdString(layers_[layer()]) : QString();
}

void ExpertsView::nothing(const QString& hint) {
    rows_.reset();
    weights_.clear();
    sequence_.reset();
    map_->setHint(hint);
    map_->setMap(nullptr);
    header_->clear();
    header_->setVisible(info_.has_value());
}

void ExpertsView::renew() {
    const auto infos = data_.signalsOf(selection_.runA());
    info_ = experts_signal({infos.begin(), infos.end()});
    charts_->setVisible(info_.has_value());
    screenChanged();
    refreshMap();
}

void ExpertsView::refreshMap() {
    const RunKey run = selection_.runA();
    if (!run.isValid()) {
        nothing(u"Open a trace of a mixture of experts to see which experts each token chose."_s);
        return;
    }
    if (!info_) {
        nothing(data_.isBeginning(run) ? u"Waiting for the first token…"_s
                                       : u"This run has no experts. Record a mixture of experts with "
                                         "ponderscope record … --record steps,experts."_s);
        return;
    }
    const auto sequence = data_.sequence(run, selection_.sequence());
    const auto chosen = data_.signal(run, selection_.sequence(), QString::fromStdString(info_->name));
    const auto weights =
        data_.signal(run, selection_.sequence(), QString::fromLatin1(signal::router_weights));
    if (!sequence || !chosen || !weights) {
        nothing(why_no_sequence(data_, selection_));
        return;
    }
    constexpr std::int64_t most_cells = std::int64_t{1} << 24; // cells of the largest map in memory
    try {
        sequence_ = sequence;
        rows_ = ExpertRows::from(*chosen, *info_);
        weights_ = to_floats(*weights);
        const std::int64_t experts = std::max<std::int64_t>(number_of_experts(*info_), 1);
        rows_->tokens = std::min(rows_->tokens, most_cells / experts);
        rows_->tokens = std::min(rows_->tokens, static_cast<std::int64_t>(sequence->tokens.size()));
        layers_ = column_labels(info_->description, static_cast<std::size_t>(rows_->layers));
        std::vector<ChooserEntry> entries;
        for (const std::string& layer : layers_) {
            entries.push_back(
                {u"Experts of layer %1"_s.arg(QString::fromStdString(layer)), QString::fromStdString(layer)});
        }
        const QVariant before = layer_->count() > 0 ? layer_->currentData() : entries.front().data;
        const bool known =
            std::ranges::any_of(entries, [&](const ChooserEntry& entry) { return entry.data == before; });
        fill_chooser(*layer_, entries, known ? before : entries.front().data);
        std::vector<std::int32_t> steps = sequence->tokens.steps;
        if (selection_.step() >= 0) {
            steps.assign(steps.size(), selection_.step());
        }
        SignalInfo shown = *info_;
        shown.unit.clear(); // a scale from 0 to the largest weight
        map_->setMap(std::make_shared<const StepMap>(
            sequence_, expert_map(*rows_, weights_, experts, static_cast<std::int64_t>(layer()), steps),
            experts, std::move(shown), selection_.attribution(), StepMap::Rows::experts));
    } catch (const InputError& error) {
        nothing(QString::fromUtf8(error.what()));
        return;
    }
    header_->show();
    header_->showScale(u"weight"_s, false);
    sayToken();
}

void ExpertsView::showLayer() {
    const int index = layer_->findData(QString::number(selection_.layer()));
    if (index >= 0 && index != layer_->currentIndex()) {
        layer_->setCurrentIndex(index);
        refreshMap();
    }
}

void ExpertsView::sayToken() {
    const qint64 token = selection_.shown();
    const qint64 row = token < 0 ? -1 : selection_.rowOf(token);
    if (!rows_ || row < 0 || row >= rows_->tokens) {
        header_->setReadout(
            rows_ ? u"%1 of %2 experts per token"_s.arg(rows_->chosen).arg(number_of_experts(*info_))
                  : QString());
        return;
    }
    const std::int64_t ran = sequence_->tokens.steps[static_cast<std::size_t>(row)];
    const std::int64_t step = rows_->steps == 1 ? 0 : selection_.step() < 0 ? ran : selection_.step();
    QStringList named;
    const std::int64_t first = ((row * rows_->steps + std::min(step, rows_->steps - 1)) * rows_->layers +
                                static_cast<std::int64_t>(layer())) *
                               rows_->chosen;
    for (std::int64_t c = 0; c < rows_->chosen; ++c) {
        const auto place = static_cast<std::size_t>(first + c);
        if (rows_->ids[place] >= 0 && place < weights_.size()) {
            named << u"%1 (%2)"_s.arg(rows_->ids[place])
                         .arg(format_probability(static_cast<double>(weights_[place])));
        }
    }
    const QString word =
        visible_token(token_bytes(sequence_->tokens, sequence_->text, static_cast<std::size_t>(row)), 16);
    const QString name = word.isEmpty() ? u"token %1"_s.arg(row) : u"“%1”"_s.arg(word);
    const QString text = named.isEmpty() ? u"%1 did not run this layer"_s.arg(name)
                                         : u"%1 chose %2"_s.arg(name, named.join(u", "_s));
    header_->setReadout(text);
    map_->setAccessibleDescription(text);
}

void ExpertsView::showCell(qint64 token, int expert) {
    if (token < 0 || expert < 0 || map_->map() == nullptr) {
        sayToken();
        return;
    }
    const StepMap::Cell cell = map_->map()->at(token, expert);
    header_->setReadout(u"expert %1 of layer %2 · %3"_s.arg(
        QString::number(expert), layerName(),
        cell.kind == StepMap::Kind::value
            ? u"weight %1"_s.arg(format_probability(static_cast<double>(cell.value)))
            : u"not chosen"_s));
}

ViewCommand ExpertsView::viewCommand() const {
    if (!info_ || !rows_) {
        return no_command(data_, selection_, u"First choose a run recorded with --record steps,experts."_s);
    }
    return python_view(data_, selection_,
                       {u"experts = a.experts(%1)"_s.arg(sequence_->sequence),
                        u"print(experts[experts.layer == %1])"_s.arg(layerName()),
                        u"print(experts.groupby(\"layer\").expert_0.value_counts(normalize=True))"_s});
}

} // namespace ponderscope
