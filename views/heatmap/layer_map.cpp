// SPDX-License-Identifier: GPL-3.0-or-later
// Before Qt, whose keyword `signals` is a name there.
#include "core/trace/reader.h"

#include "views/heatmap/layer_map.h"

#include "core/trace/column_labels.h"
#include "views/common/depth_grid.h"
#include "views/common/format.h"
#include "views/heatmap/scale_bar.h"

#include <QComboBox>
#include <QVBoxLayout>

#include <algorithm>
#include <cmath>

namespace ponderscope {
namespace {

bool by_layer(const SignalInfo& info) {
    return info.axes == std::vector<std::string>{"token", "step", "layer"};
}

} // namespace

LayerMap::LayerMap(const ViewContext& context, QWidget* parent)
    : QWidget(parent),
      data_(context.data),
      selection_(context.selection),
      theme_(context.theme),
      chooser_(new QComboBox(this)),
      grid_(new DepthGrid(context.theme, this)),
      scale_(new ScaleBar(context.theme, this)) {
    chooser_->setAccessibleName(tr("Signal by layer"));
    chooser_->setToolTip(tr("What is shown of every layer at every step of the chosen word"));
    grid_->setAccessibleName(tr("Read-outs by layer and step"));
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(6);
    layout->addWidget(chooser_);
    layout->addWidget(grid_, 1);
    layout->addWidget(scale_);
    const auto dress = [this] { chooser_->setFont(theme_.small()); };
    dress();
    connect(&theme_, &Theme::changed, this, dress);
    connect(chooser_, &QComboBox::activated, this, &LayerMap::refresh);
    connect(grid_, &DepthGrid::hovered, this, &LayerMap::say);
    connect(grid_, &DepthGrid::chosen, this, [this](int row, int step) {
        selection_.setStep(step);
        selection_.setLayer(QString::fromStdString(layers_[static_cast<std::size_t>(row)]).toInt());
        say(row, step);
    });
    for (const auto signal : {&Selection::tokenChanged, &Selection::hoverChanged}) {
        connect(&selection_, signal, this, &LayerMap::refresh);
    }
    connect(&selection_, &Selection::sequenceChanged, this, &LayerMap::refresh);
    connect(&selection_, &Selection::stepChanged, this, &LayerMap::refresh);
    connect(&selection_, &Selection::depthChanged, this, &LayerMap::refresh);
    connect(&selection_, &Selection::attributionChanged, this, &LayerMap::refresh);
    connect(&selection_, &Selection::runsChanged, this, &LayerMap::refreshSignals);
    connect(&data_, &TraceData::traceOpened, this, &LayerMap::refreshSignals);
    connect(&data_, &TraceData::traceChanged, this, &LayerMap::refreshSignals);
    connect(&data_, &TraceData::traceClosed, this, &LayerMap::refreshSignals);
    connect(&data_, &TraceData::signalReady, this, [this](const RunKey& run, qint64, const QString& name) {
        if (run == selection_.runA() && name == chooser_->currentData().toString()) {
            refresh();
        }
    });
    refreshSignals();
}

bool LayerMap::hasSignals() const {
    return !infos_.empty();
}

void LayerMap::refreshSignals() {
    const QString before = chooser_->currentData().toString();
    infos_ = data_.signalsOf(selection_.runA());
    std::erase_if(infos_, [](const SignalInfo& info) { return !by_layer(info); });
    {
        const QSignalBlocker quiet(chooser_);
        chooser_->clear();
        for (const SignalInfo& info : infos_) {
            chooser_->addItem(QString::fromStdString(info.title.empty() ? info.name : info.title),
                              QString::fromStdString(info.name));
        }
        chooser_->setCurrentIndex(std::max(0, chooser_->findData(before)));
    }
    setVisible(!infos_.empty());
    refresh();
}

/// Of all tokens, so that words can be compared.
std::pair<float, float> LayerMap::range(const std::shared_ptr<const SignalChunk>& chunk) {
    if (chunk != scaled_) {
        scaled_ = chunk;
        range_ = {0, 0};
        for (const float value : to_floats(*chunk)) {
            if (std::isfinite(value)) {
                range_ = {std::min(range_.first, value), std::max(range_.second, value)};
            }
        }
    }
    return range_;
}

void LayerMap::refresh() {
    if (infos_.empty()) {
        return;
    }
    const auto info = infos_.begin() + std::max(0, chooser_->currentIndex());
    const auto chunk =
        data_.signal(selection_.runA(), selection_.sequence(), QString::fromStdString(info->name));
    const qint64 row = selection_.shown() < 0 ? -1 : selection_.rowOf(selection_.shown());
    if (!chunk || chunk->shape.size() != 3 || row < 0 || row >= chunk->shape[0]) {
        scale_->clear();
        grid_->clear(!chunk ? tr("Reading…")
                            : tr("Choose a word to see what every layer says at each step."));
        return;
    }
    const auto steps = static_cast<std::size_t>(chunk->shape[1]);
    const auto layers = static_cast<std::size_t>(chunk->shape[2]);
    SignalChunk one = *chunk;
    const std::size_t bytes = chunk->data.size() / static_cast<std::size_t>(chunk->shape[0]);
    one.shape[0] = 1;
    one.data.assign(chunk->data.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(row) * bytes),
                    chunk->data.begin() +
                        static_cast<std::ptrdiff_t>(static_cast<std::size_t>(row + 1) * bytes));
    const std::vector<float> values = to_floats(one);
    const bool whole = chunk->dtype == DType::i32;
    std::vector<float> turned(values.size());
    for (std::size_t k = 0; k < steps; ++k) {
        for (std::size_t l = 0; l < layers; ++l) {
            const float value = values[k * layers + l];
            turned[l * steps + k] = whole && value == static_cast<float>(did_not_run) ? std::nanf("") : value;
        }
    }
    const auto [low, high] = range(chunk);
    const bool rank = info->name == signal::layer_rank;
    const ColourScale scale =
        info->unit == "probability" ? ColourScale{0, 1, false}
        : rank                      ? ColourScale{1, std::max(2.0, static_cast<double>(high)), true}
                                    : ColourScale{std::min(0.0, static_cast<double>(low)),
                             high > 0 ? nice_ceiling(static_cast<double>(high)) : 1, false};
    layers_ = column_labels(info->description, layers);
    QStringList labels;
    for (std::size_t k = 0; k < steps; ++k) {
        labels << QString::number(k);
    }
    // Ids of words have no order: their colours say no more than same and other.
    info->name == signal::layer_argmax ? scale_->clear()
                                       : scale_->setScale(scale, QString::fromStdString(info->unit), false);
    grid_->setNames(tr("layer"), tr("step"), labels);
    grid_->setValues(std::move(turned), static_cast<int>(layers), static_cast<int>(steps), scale);
    const auto chosen = std::find(layers_.begin(), layers_.end(), std::to_string(selection_.layer()));
    grid_->setChosen(chosen == layers_.end() ? -1 : static_cast<int>(chosen - layers_.begin()),
                     selection_.step());
}

QString LayerMap::valueOf(float value) const {
    const SignalInfo& info = infos_[static_cast<std::size_t>(std::max(0, chooser_->currentIndex()))];
    if (info.name == signal::layer_argmax) {
        const int id = static_cast<int>(value);
        const QString word = data_.tokenLabel(selection_.runA(), id);
        return word.isEmpty() ? tr("token id %1").arg(id) : QStringLiteral("“%1”").arg(word);
    }
    const QString unit = QString::fromStdString(info.unit);
    return QString::number(static_cast<double>(value), 'g', 4).replace(u'-', QChar(0x2212)) +
           (unit.isEmpty() || unit == u"probability" ? QString() : u' ' + unit);
}

void LayerMap::say(int row, int step) {
    const float value = grid_->value(row, step);
    emit readoutChanged(std::isnan(value)
                            ? QString()
                            : tr("layer %1 · step %2 · %3")
                                  .arg(QString::fromStdString(layers_[static_cast<std::size_t>(row)]))
                                  .arg(step)
                                  .arg(valueOf(value)));
}

} // namespace ponderscope
