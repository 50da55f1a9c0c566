// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/heatmap/layer_map.h"

#include "core/trace/column_labels.h"
#include "core/trace/reader.h"
#include "views/chart/chart_plot.h"
#include "views/common/controls.h"
#include "views/common/format.h"
#include "views/common/paths.h"
#include "views/common/value_look.h"

#include <QComboBox>
#include <QVBoxLayout>

#include <algorithm>
#include <cmath>

using namespace Qt::StringLiterals;

namespace ponderscope {
namespace {

bool by_layer(const SignalInfo& info) {
    return info.axes == std::vector<std::string>{"token", "step", "layer"};
}

/// Values; NaN where a step did not run.
std::vector<float> values_of(const SignalChunk& chunk) {
    std::vector<float> values = to_floats(chunk);
    if (chunk.dtype == DType::i32) {
        std::replace(values.begin(), values.end(), static_cast<float>(did_not_run), std::nanf(""));
    }
    return values;
}

/// The row of a token, if the chunk in memory holds it.
std::optional<SignalChunk> row_of(const SignalChunk& chunk, qint64 row) {
    if (chunk.shape.size() != 3 || row < chunk.first || row - chunk.first >= chunk.shape[0]) {
        return std::nullopt;
    }
    const std::size_t bytes = chunk.data.size() / static_cast<std::size_t>(chunk.shape[0]);
    const auto begin = chunk.data.begin() + (row - chunk.first) * static_cast<std::ptrdiff_t>(bytes);
    SignalChunk one;
    one.dtype = chunk.dtype;
    one.first = row;
    one.shape = {1, chunk.shape[1], chunk.shape[2]};
    one.data.assign(begin, begin + static_cast<std::ptrdiff_t>(bytes));
    return one;
}

} // namespace

LayerMap::LayerMap(const ViewContext& context, QWidget* parent)
    : QWidget(parent),
      data_(context.data),
      selection_(context.selection),
      theme_(context.theme),
      chooser_(new QComboBox(this)),
      chart_(new ChartPlot(context.theme, this)),
      reading_(this) {
    chooser_->setAccessibleName(u"Signal by layer"_s);
    chooser_->setToolTip(u"Read-out of every layer at every step of the chosen word"_s);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(6);
    layout->addWidget(chooser_);
    layout->addWidget(chart_, 1);
    const auto dress = [this] { chooser_->setFont(theme_.small()); };
    dress();
    connect(&theme_, &Theme::changed, this, dress);
    connect(chooser_, &QComboBox::activated, this, &LayerMap::refresh);
    connect(chart_, &ChartPlot::markClicked, this, [this](int series, int index) {
        const Chart::Series& cells = chart_->chart().series[static_cast<std::size_t>(series)];
        const auto i = static_cast<std::size_t>(index);
        const int step = static_cast<int>(cells.x[i]);
        const int layer = chart_->chart().y.names[static_cast<std::size_t>(cells.y[i])].toInt();
        selection_.setStep(step);
        selection_.setLayer(layer);
    });
    follow(*this, context, Follows::a);
    const auto refreshed = seen(&LayerMap::refresh);
    connect(&selection_, &Selection::tokenChanged, this, refreshed);
    connect(&selection_, &Selection::hoverChanged, this, refreshed);
    connect(&selection_, &Selection::sequenceChanged, this, refreshed);
    connect(&selection_, &Selection::stepChanged, this, refreshed);
    connect(&selection_, &Selection::depthChanged, this, refreshed);
    connect(&selection_, &Selection::attributionChanged, this, refreshed);
    connect(&data_, &TraceData::signalReady, this,
            [this, refreshed](const RunKey& run, qint64, const QString& name) {
                if (run == selection_.runA() && data_.isLive(run.trace) &&
                    name == chooser_->currentData().toString()) {
                    refreshed();
                }
            });
    renew();
}

void LayerMap::renew() {
    const QVariant before = chooser_->currentData();
    infos_.clear();
    std::vector<ChooserEntry> entries;
    bool kept = false;
    for (const SignalInfo& info : data_.signalsOf(selection_.runA())) {
        if (by_layer(info)) {
            infos_.push_back(info);
            entries.push_back({QString::fromStdString(info.title.empty() ? info.name : info.title),
                               QString::fromStdString(info.name)});
            kept = kept || entries.back().data == before;
        }
    }
    fill_chooser(*chooser_, entries, kept || entries.empty() ? before : entries.front().data);
    setVisible(!infos_.empty());
    reading_.cancel(); // it may be of another file or run
    row_.reset();
    shown_ = wanted_ = {};
    refresh();
}

const SignalInfo& LayerMap::info() const {
    return infos_[static_cast<std::size_t>(std::max(0, chooser_->currentIndex()))];
}

void LayerMap::nothing(const QString& hint) {
    chart_->setHint(hint);
    shown_ = wanted_ = {};
    row_.reset();
}

void LayerMap::refresh() {
    if (infos_.empty()) {
        return;
    }
    const qint64 row = selection_.shown() < 0 ? -1 : selection_.rowOf(selection_.shown());
    const Place wanted{selection_.runA(), selection_.sequence(), QString::fromStdString(info().name), row};
    const SequenceInfo* sequence = data_.sequenceInfo(wanted.run, wanted.sequence);
    if (row < 0 || sequence == nullptr || row >= sequence->tokens) {
        nothing(u"Choose a word to see the read-out of every layer at each step."_s);
        return;
    }
    if (data_.isLive(wanted.run.trace)) { // in no file yet, and short
        const auto chunk = data_.signal(wanted.run, wanted.sequence, wanted.signal);
        row_ = chunk ? row_of(*chunk, row) : std::nullopt;
        if (!row_) {
            nothing(u"Reading…"_s);
            return;
        }
        wanted_ = shown_ = wanted;
        draw();
        return;
    }
    if (row_ && wanted == shown_) {
        wanted_ = wanted;
        draw();
    } else if (!(wanted == wanted_) || !reading_.isBusy()) {
        read(wanted);
    }
}

void LayerMap::read(const Place& place) {
    wanted_ = place;
    reading_.start(
        [place](const std::stop_token&) {
            return TraceReader::open(path_of(place.run.trace))
                .signal(place.run.run, place.sequence, place.signal.toStdString(), place.row, place.row + 1);
        },
        [this, place](const std::optional<SignalChunk>& chunk) {
            row_ = chunk ? row_of(*chunk, place.row) : std::nullopt;
            if (!row_) {
                nothing(u"The read-outs of layers were not recorded for this word."_s);
                return;
            }
            shown_ = place;
            draw();
        },
        [this](const QString& sentence) { nothing(sentence); });
}

void LayerMap::draw() {
    if (!row_ || !(shown_ == wanted_)) { // another one is on its way
        return;
    }
    const SignalInfo& info = this->info();
    const auto steps = static_cast<std::size_t>(row_->shape[1]);
    const auto layers = static_cast<std::size_t>(row_->shape[2]);
    const std::vector<float> values = values_of(*row_);
    // Most words share the scale of the signal's kind, so that words can be compared.
    const ValueLook look = look_of(kind_of_signal(info), spread_of(std::span<const float>(values)));
    // Ids of words have no order: their colours say no more than same and other.
    const bool words = info.name == signal::layer_argmax;
    Chart chart;
    chart.x.label = u"step"_s;
    chart.x.whole = true;
    chart.y.label = u"layer"_s;
    chart.y.reversed = true;
    for (const std::string& layer : column_labels(info.description, layers)) {
        chart.y.names.push_back(QString::fromStdString(layer));
    }
    Chart::Series cells;
    cells.mark = Chart::Mark::cell;
    ChartMark chosen;
    for (std::size_t l = 0; l < layers; ++l) {
        for (std::size_t k = 0; k < steps; ++k) {
            const float value = values[k * layers + l];
            if (std::isnan(value)) {
                continue;
            }
            if (static_cast<int>(k) == selection_.step() &&
                chart.y.names[l] == QString::number(selection_.layer())) {
                chosen = {0, static_cast<int>(cells.x.size())};
            }
            cells.x.push_back(static_cast<double>(k));
            cells.y.push_back(static_cast<double>(l));
            cells.value.push_back(words ? look.scale.position(static_cast<double>(value))
                                        : static_cast<double>(value));
            cells.labels.push_back(
                u"layer %1 · step %2 · %3"_s.arg(chart.y.names[l], QString::number(k), valueOf(value)));
        }
    }
    if (!words) {
        const QString unit = QString::fromStdString(info.unit);
        chart.scale = Chart::Scale{unit == u"probability" ? QString() : unit, look.scale.low, look.scale.high,
                                   look.diverging, look.scale.logarithmic};
    }
    chart.series = {std::move(cells)};
    chart_->setChart(std::move(chart));
    chart_->setAccessibleName(u"Read-outs by layer and step"_s);
    chart_->setSelected(chosen);
}

QString LayerMap::valueOf(float value) const {
    const SignalInfo& info = this->info();
    if (info.name == signal::layer_argmax) {
        const int id = static_cast<int>(value);
        const QString word = data_.tokenLabel(selection_.runA(), id);
        return word.isEmpty() ? u"token id %1"_s.arg(id) : u"“%1”"_s.arg(word);
    }
    const QString unit = QString::fromStdString(info.unit);
    return format_number(static_cast<double>(value)) +
           (unit.isEmpty() || unit == u"probability" ? QString() : u' ' + unit);
}

} // namespace ponderscope
