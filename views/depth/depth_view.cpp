// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/depth/depth_view.h"

#include "views/chart/chart_plot.h"
#include "views/chart/scale_bar.h"
#include "views/common/controls.h"
#include "views/common/format.h"
#include "views/common/labels.h"
#include "views/common/paths.h"
#include "views/heatmap/step_map_canvas.h"

#include <QSignalBlocker>

#include <algorithm>
#include <cmath>

using namespace Qt::StringLiterals;

namespace ponderscope {
DepthView::DepthView(ViewContext context, QWidget* parent)
    : QWidget(parent),
      data_(context.data),
      selection_(context.selection),
      theme_(context.theme),
      chooser_(make_chooser(u"Signal by layer and source"_s, {}, this)),
      head_(make_chooser(u"KV head"_s, u"KV head to show"_s, this)),
      what_(make_chooser(
          u"Token or average"_s,
          u"Weights of the selected token, or the mean or standard deviation over all tokens"_s, this)),
      chart_(new ChartPlot(context.theme, this)),
      mapTitle_(new Readout(context.theme, this)),
      mapScale_(new ScaleBar(context.theme, this)),
      map_(new StepMapCanvas(context, this)),
      right_(new QWidget(this)),
      sampling_(this),
      reading_(this),
      loader_(*map_, this) {
    what_->addItems({u"this token"_s, u"mean over tokens"_s, u"SD over tokens"_s}); // the order of DepthShown
    map_->setAccessibleName(u"Weight of the chosen source by layer and token"_s);
    auto* header = make_row(nullptr, {}, 10, {chooser_, what_, head_});
    header->addStretch(1);
    mapTitle_->setAlignment(Qt::AlignLeft | Qt::AlignVCenter);
    mapTitle_->setAccessibleName({}); // screen readers read its text
    make_column(right_, {}, 5, {make_row(nullptr, {}, 10, {{mapTitle_, 1}, mapScale_}), {map_, 1}});
    make_column(this, {14, 8, 14, 6}, 8,
                {header, {make_row(nullptr, {}, 16, {{chart_, 4}, {right_, 5}}), 1}});
    theme_.dress(this, [this] { chooser_->setFont(theme_.strong()); });

    connect(chooser_, &QComboBox::activated, this, [this](int index) {
        signal_ = chooser_->itemData(index).toString();
        refreshData();
    });
    connect(head_, &QComboBox::activated, this, [this](int index) { selection_.setHead(index - 1); });
    connect(what_, &QComboBox::activated, this, [this](int index) { setShown(static_cast<Shown>(index)); });
    connect(chart_, &ChartPlot::markClicked, this, [this](int series, int index) {
        const Chart::Series& cells = chart_->chart().series[static_cast<std::size_t>(series)];
        const auto i = static_cast<std::size_t>(index);
        const int layer = static_cast<int>(cells.y[i]);
        setSource(static_cast<int>(cells.x[i]));
        selection_.setLayer(layer);
    });
    connect(&loader_, &MapLoader::shown, this, &DepthView::showMapScale);
    follow(*this, context, Follows::a);
    followSequence(*this, context, seen(&DepthView::refreshData),
                   [this](const QString& signal) { return signal == signal_; });
    connect(&selection_, &Selection::tokenChanged, this, seen(&DepthView::refreshChart));
    connect(&selection_, &Selection::hoverChanged, this, seen(&DepthView::refreshChart));
    connect(&selection_, &Selection::depthChanged, this, seen(&DepthView::redraw));
    connect(&selection_, &Selection::stepChanged, this, seen(&DepthView::redraw));
    renew();
}

void DepthView::setShown(Shown shown) {
    shown_ = shown;
    what_->setCurrentIndex(static_cast<int>(shown));
    refreshChart();
}

void DepthView::setSource(int source) {
    source_ = source;
    redraw();
}

void DepthView::redraw() {
    refreshChart();
    refreshMap();
}

void DepthView::renew() {
    std::vector<ChooserEntry> entries;
    for (const SignalInfo& info : data_.signalsOf(selection_.runA())) {
        if (DepthMap::fits(info)) {
            entries.push_back({QString::fromStdString(info.shown_name()), QString::fromStdString(info.name),
                               QString::fromStdString(info.description)});
        }
    }
    if (std::ranges::none_of(entries, [this](const ChooserEntry& entry) { return entry.data == signal_; })) {
        signal_ = entries.empty() ? QString() : entries.front().data.toString();
    }
    fill_chooser(*chooser_, entries, signal_);
    refreshData();
}

void DepthView::refreshData() {
    const auto infos = data_.signalsOf(selection_.runA());
    const auto info = std::ranges::find_if(infos, [this](const SignalInfo& one) {
        return !signal_.isEmpty() && one.name == signal_.toStdString();
    });
    const RunKey run = selection_.runA();
    QString hint;
    QString wanted; // key of the sample
    sequence_.reset();
    if (!run.isValid()) {
        hint = u"Open a trace of a model that mixes values across layers to see which layers the values "
               "come from."_s;
    } else if (info == infos.end()) {
        hint = data_.isBeginning(run) ? u"Waiting for the first token…"_s
                                      : u"This run has no weights by layer and source. Models with depth "
                                        "attention or a cross-layer baseline have such weights."_s;
    } else if (data_.isLive(run.trace)) {
        hint = u"The model is generating. The weights appear after the run is recorded."_s;
    } else {
        info_ = *info;
        sequence_ = data_.sequence(run, selection_.sequence());
        hint = why_no_sequence(data_, selection_);
    }
    if (sequence_) {
        wanted = u"%1#%2 %3 %4 %5"_s.arg(run.trace)
                     .arg(run.run)
                     .arg(selection_.sequence())
                     .arg(sequence_->tokens.size())
                     .arg(signal_);
    }
    if (wanted != sampleOf_) {
        sample(wanted);
    } else if (!problem_.isEmpty()) {
        hint = problem_;
    }
    for (QWidget* part : std::initializer_list<QWidget*>{chooser_, what_, head_, right_}) {
        part->setVisible(depth_.has_value());
    }
    if (!depth_) {
        chart_->setHint(hint);
        map_->setMap(nullptr);
        return;
    }
    source_ = std::clamp(source_, 0, static_cast<int>(depth_->sources()) - 1);
    std::vector<ChooserEntry> heads{{u"mean of KV heads"_s, -1}};
    for (int head = 0; head < static_cast<int>(depth_->heads()); ++head) {
        heads.push_back({u"KV head %1"_s.arg(head), head});
    }
    fill_chooser(*head_, heads, std::min(selection_.head(), static_cast<int>(depth_->heads()) - 1));
    head_->setVisible(depth_->heads() > 1);
    refreshChart();
    refreshMap();
}

/// Starts to read rows of the sequence for averages. \p wanted: their key, see sampleOf_.
void DepthView::sample(const QString& wanted) {
    sampleOf_ = wanted;
    problem_.clear();
    sampling_.cancel();
    reading_.cancel(); // it reads a row of the previous data
    loader_.cancel();
    rowOf_ = -1;
    row_.reset();
    averages_.reset();
    depth_.reset();
    const RunInfo* run = data_.run(selection_.runA());
    if (wanted.isEmpty() || run == nullptr) {
        return;
    }
    sampling_.start(
        [key = selection_.runA(), run = *run, info = info_,
         sequence = selection_.sequence()](const std::stop_token& stop) {
            const TraceReader reader = TraceReader::open(path_of(key.trace));
            return sampled_depth(reader, run, info, stop, sequence);
        },
        [this](DepthMap map) {
            depth_.emplace(std::move(map));
            refreshData();
        },
        [this](const QString& sentence) {
            problem_ = sentence;
            refreshData();
        });
}

void DepthView::readRow(qint64 row) {
    reading_.start(
        [key = selection_.runA(), info = info_, sequence = sequence_, row](const std::stop_token&) {
            const TraceReader reader = TraceReader::open(path_of(key.trace));
            std::optional<DepthMap> map;
            const auto chunk = reader.signal(key.run, sequence->sequence, info.name, row, row + 1);
            if (chunk && static_cast<std::size_t>(row) < sequence->tokens.size()) {
                map.emplace(*chunk, info,
                            std::vector<std::int32_t>{sequence->tokens.steps[static_cast<std::size_t>(row)]});
            }
            return map;
        },
        [this, row](std::optional<DepthMap> map) {
            row_ = std::move(map);
            rowOf_ = row;
            refreshChart();
        },
        [this](const QString& sentence) { chart_->setHint(sentence); });
}

void DepthView::refreshChart() {
    if (!depth_) {
        return;
    }
    const int head = selection_.head() < depth_->heads() ? selection_.head() : -1;
    {
        const QSignalBlocker quiet(head_);
        head_->setCurrentIndex(head + 1);
    }
    const std::int64_t step = depth_->steps() > 1 ? selection_.step() : -1;
    if (!averages_ || averagesOf_ != std::pair<std::int64_t, std::int64_t>{step, head}) {
        averages_ = depth_->averages(step, head);
        averagesOf_ = {step, head};
    }
    std::vector<float> values;
    QString title;
    if (shown_ == Shown::token) {
        const qint64 token = selection_.shown();
        const qint64 row = token < 0 ? -1 : selection_.rowOf(token);
        if (row >= 0 && row != rowOf_) {
            readRow(row);
            return; // the chart stays until the row is read
        }
        values = row >= 0 && row_ ? row_->grid(0, step, head) : depth_->grid(-1, step, head);
        title = u"token %1"_s.arg(format_count(token));
        if (std::ranges::all_of(values, [](float value) { return std::isnan(value); })) {
            chart_->setHint(token < 0
                                ? u"Select a token to see its weights, or choose the mean over tokens."_s
                                : u"Token %1 has no weights at this step."_s.arg(format_count(token)));
            return;
        }
    } else {
        const auto all = static_cast<std::int64_t>(sequence_->tokens.size());
        title = averages_->used_rows < all
                    ? u"over %1 of %2 tokens"_s.arg(format_count(averages_->used_rows), format_count(all))
                    : u"over %1 tokens"_s.arg(format_count(all));
    }
    Chart chart = depth_weights_chart(*depth_, *averages_, shown_, values);
    chart.title = title + (depth_->steps() == 1 ? QString()
                           : step < 0           ? u" · last step"_s
                                                : u" · step %1"_s.arg(step));
    chart.note += u" The figure “Weights against ablation” shows the effect of each source."_s;
    ChartMark chosen;
    const Chart::Series& cells = chart.series.front();
    for (std::size_t i = 0; i < cells.x.size(); ++i) {
        if (static_cast<int>(cells.x[i]) == source_ && static_cast<int>(cells.y[i]) == selection_.layer()) {
            chosen = {0, static_cast<int>(i)};
        }
    }
    chart_->setChart(std::move(chart));
    chart_->setSelected(chosen);
}

void DepthView::refreshMap() {
    if (!depth_ || !sequence_) {
        return;
    }
    const int head = selection_.head() < depth_->heads() ? selection_.head() : -1;
    mapTitle_->say(u"Weight of %1 %2 by %3 and token"_s.arg(
        QString::fromStdString(depth_->source_name()),
        QString::fromStdString(depth_->source_labels()[static_cast<std::size_t>(source_)]),
        QString::fromStdString(depth_->layer_name())));
    const std::int64_t step = depth_->steps() > 1 ? selection_.step() : -1;
    MapRequest request{selection_.runA(),
                       sequence_,
                       info_,
                       selection_.attribution(),
                       StepMap::Rows::layers,
                       "source " + std::to_string(source_) + " step " + std::to_string(step) + " head " +
                           std::to_string(head),
                       [info = info_, source = source_, step, head](const SignalChunk& chunk,
                                                                    std::vector<std::int32_t> executed) {
                           return DepthMap(chunk, info, std::move(executed)).over_tokens(source, step, head);
                       }};
    request.info.unit = "probability"; // a scale from 0 to 1, as in the chart beside the map
    loader_.show(std::move(request));
}

void DepthView::showMapScale() {
    if (map_->map() == nullptr) {
        mapScale_->clear();
        return;
    }
    map_->fitScale();
    mapScale_->setLook(map_->look(), {}, false);
}

ViewCommand DepthView::viewCommand() const {
    if (signal_.isEmpty()) {
        return no_command(data_, selection_, u"This run has no depth mixing."_s);
    }
    const auto has = [this](const char* name) {
        return std::ranges::find(info_.axes, name) != info_.axes.end();
    };
    const qint64 token = selection_.shown();
    const qint64 row = token < 0 ? -1 : selection_.rowOf(token);
    if (shown_ == Shown::token && row < 0) {
        return no_command(u"Choose a word first. The command prints the weights of one token."_s);
    }
    const QString range = shown_ == Shown::token ? u", %1, %2"_s.arg(row).arg(row + 1) : QString();
    QStringList lines;
    lines << u"weights = a.signal(%1, %2%3)  # %4"_s.arg(
        python_quoted(signal_), QString::number(selection_.sequence()), range, [this] {
            QStringList axes;
            for (const std::string& name : info_.axes) {
                axes << QString::fromStdString(name);
            }
            return axes.join(u", "_s);
        }());
    lines << u"weights = weights.astype(np.float32)"_s;
    if (has("step")) {
        lines << (selection_.step() >= 0
                      ? u"weights = weights[:, min(%1, weights.shape[1] - 1)]"_s.arg(selection_.step())
                      : u"steps = a.columns(%1%2)[\"steps\"]\n"
                        "weights = weights[np.arange(len(weights)), np.minimum(steps, "
                        "weights.shape[1] - 1)]"_s.arg(selection_.sequence())
                            .arg(range));
    }
    const bool mean_of_heads =
        has("head") && (selection_.head() < 0 || !depth_ || selection_.head() >= depth_->heads());
    if (has("head") && !mean_of_heads) {
        lines << u"weights = weights[..., %1]"_s.arg(selection_.head());
    }
    const QString heads = mean_of_heads ? u"(0, -1)"_s : u"0"_s;
    lines << u"print(np.%1(weights, axis=%2))  # layer, source"_s.arg(
        shown_ == Shown::spread ? u"nanstd"_s : u"nanmean"_s, heads);
    return python_view(data_, selection_, lines);
}

} // namespace ponderscope
