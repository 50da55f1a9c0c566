// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/heatmap/heatmap_view.h"

#include "core/trace/reader.h"
#include "views/common/colour_ranges.h"
#include "views/common/controls.h"
#include "views/common/format.h"
#include "views/figure/figure_command.h"
#include "views/figure/figure_panel.h"
#include "views/heatmap/map_header.h"
#include "views/heatmap/step_map_canvas.h"

#include <algorithm>
#include <cmath>

using namespace Qt::StringLiterals;

namespace ponderscope {
HeatmapView::HeatmapView(ViewContext context, QWidget* parent)
    : QWidget(parent),
      data_(context.data),
      selection_(context.selection),
      canvas_(new StepMapCanvas(context, this)),
      header_(new MapHeader(context.theme, *canvas_, u"Signal"_s, u"Signal of the heatmap"_s, this)),
      layers_(new FigurePanel(context, figure_of(figure::FigureKind::layers_by_step), this)),
      chooser_(header_->chooser()),
      loader_(*canvas_, this) {
    header_->setRanges(ColourRanges::of(context.data));
    make_row(this, {14, 8, 14, 6}, 14,
             {{make_column(nullptr, {}, 8, {header_, {canvas_, 1}}), 3}, {layers_, 1}});
    layers_->embed();
    layers_->followToken();
    layers_->setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Ignored); // a low panel shrinks it
    connect(chooser_, &QComboBox::activated, this,
            [this](int index) { setSignalName(chooser_->itemData(index).toString()); });
    connect(canvas_, &StepMapCanvas::cellHovered, this, &HeatmapView::showCell);
    connect(canvas_, &StepMapCanvas::viewChanged, this, [this] {
        if (const double extent = canvas_->viewLast() - canvas_->viewFirst(); extent != scaledFor_) {
            scaledFor_ = extent; // the scale depends on the number of visible tokens; panning keeps it
            showScale();
        }
    });
    connect(&loader_, &MapLoader::shown, this, &HeatmapView::showScale);

    follow(*this, context, Follows::a);
    followSequence(*this, context, seen(&HeatmapView::refreshMap), [this](const QString& name) {
        if (name == signal_) {
            unreadable_ = data_.signal(selection_.runA(), selection_.sequence(), name) ? QString() : name;
        }
        return name == signal_;
    });
    renew();
}

void HeatmapView::setSignalName(const QString& name) {
    if (name == signal_) {
        return;
    }
    signal_ = name;
    changed();
}

bool HeatmapView::isBusy() const {
    return loader_.isBusy() || layers_->isBusy();
}

void HeatmapView::screenChanged() {
    layers_->setOnScreen(onScreen() && !layers_->isHidden());
}

const SignalInfo* HeatmapView::info() const {
    const auto known = data_.signalsOf(selection_.runA());
    const auto found = std::ranges::find(known, signal_.toStdString(), &SignalInfo::name);
    return found == known.end() ? nullptr : &*found;
}

void HeatmapView::renew() {
    std::vector<ChooserEntry> entries;
    for (const SignalInfo& info : data_.signalsOf(selection_.runA())) {
        if (info.is_by_step()) {
            entries.push_back({QString::fromStdString(info.shown_name()), QString::fromStdString(info.name),
                               QString::fromStdString(info.description)});
        }
    }
    const auto has = [&](const QString& name) {
        return std::ranges::any_of(entries, [&](const ChooserEntry& entry) { return entry.data == name; });
    };
    if (!entries.empty() && !has(signal_)) {
        // Prefer the signal that the method decides by (gate), then its outcome.
        signal_ = entries.front().data.toString();
        for (const char* preferred : {signal::nll, signal::halting_mass, signal::gate}) {
            if (has(QLatin1String(preferred))) {
                signal_ = QLatin1String(preferred);
            }
        }
    }
    fill_chooser(*chooser_, entries, signal_);
    chooser_->setVisible(!entries.empty());
    const auto known = data_.signalsOf(selection_.runA());
    layers_->setVisible(std::ranges::any_of(known, [](const SignalInfo& info) {
        return info.axes == std::vector<std::string>{"token", "step", "layer"};
    }));
    screenChanged();
    refreshMap();
}

void HeatmapView::refreshMap() {
    const RunKey run = selection_.runA();
    const auto nothing = [this](const QString& hint) {
        loader_.cancel();
        sequence_.reset();
        chunk_.reset();
        canvas_->setHint(hint);
        canvas_->setMap(nullptr);
        header_->clear();
    };
    if (!run.isValid()) {
        nothing(u"Open a trace, or choose a run in the library, to see the steps of the run."_s);
        return;
    }
    if (chooser_->count() == 0) {
        nothing(data_.isBeginning(run) ? u"Waiting for the first token…"_s
                                       : u"This run has no signals by step. Record the run again with "
                                         "“steps” (--record steps)."_s);
        return;
    }
    const auto sequence = data_.sequence(run, selection_.sequence());
    const SignalInfo* const info = this->info();
    const RunInfo* const known = data_.run(run);
    if (sequence && known != nullptr && info != nullptr &&
        static_cast<qint64>(sequence->tokens.size()) * (known->max_steps + 1) > wholeCells_) {
        refreshLong(sequence, *info);
        return;
    }
    loader_.cancel();
    const auto chunk = data_.signal(run, selection_.sequence(), signal_);
    if (!sequence || !chunk || info == nullptr) {
        // Keep the map only if it shows this sequence, until more of the sequence is read.
        const bool stale = !sequence_ || !(sequence_->run == run) ||
                           sequence_->sequence != selection_.sequence() || !canvas_->map() ||
                           canvas_->map()->info().name != signal_.toStdString();
        if (stale) {
            nothing(unreadable_ == signal_ ? u"This signal could not be read from the trace."_s
                                           : why_no_sequence(data_, selection_));
        }
        return;
    }
    if (sequence == sequence_ && chunk == chunk_ && attribution_ == selection_.attribution() &&
        canvas_->map() && canvas_->map()->info().name == signal_.toStdString()) {
        return;
    }
    sequence_ = sequence;
    chunk_ = chunk;
    attribution_ = selection_.attribution();
    canvas_->setHint(u"This sequence has no tokens yet."_s);
    canvas_->setMap(std::make_shared<const StepMap>(sequence, *chunk, *info, attribution_));
    showScale();
}

void HeatmapView::refreshLong(const std::shared_ptr<const SequenceData>& sequence, const SignalInfo& info) {
    chunk_.reset();
    sequence_ = sequence;
    attribution_ = selection_.attribution();
    MapRequest request{sequence->run, sequence, info, attribution_, StepMap::Rows::steps, {}, {}};
    request.pick = [](const SignalChunk& chunk, const std::vector<std::int32_t>&) {
        return to_floats(chunk);
    };
    if (!loader_.show(std::move(request))) {
        header_->clear();
    }
}

void HeatmapView::showScale() {
    const StepMap* map = canvas_->map();
    if (map == nullptr) {
        return;
    }
    header_->showScale(QString::fromStdString(map->info().unit), map->hasHalted());
}

void HeatmapView::showCell(qint64 token, int step) {
    if (token < 0 || step < 0 || !canvas_->map() || !sequence_) {
        header_->setReadout({});
        return;
    }
    const StepMap& map = *canvas_->map();
    const StepMap::Cell cell = map.at(token, step);
    const QString name =
        visible_token_of(sequence_->tokens, sequence_->text, static_cast<std::size_t>(token), 24);
    QString value = u"no value"_s;
    if (cell.kind == StepMap::Kind::halted) {
        value = u"halted"_s;
    } else if (cell.kind == StepMap::Kind::value) {
        const QString unit = QString::fromStdString(map.info().unit);
        value = canvas_->look().end(static_cast<double>(cell.value)) +
                (unit.isEmpty() || unit == u"probability" ? QString() : u' ' + unit);
    }
    const RunInfo* run = data_.run(sequence_->run);
    header_->setReadout(u"token %1%2 · %3 %4 · %5"_s.arg(
        QString::number(token), name.isEmpty() ? QString() : u" “%1”"_s.arg(name),
        step_word(run != nullptr ? run->step_unit : "step"), QString::number(step), value));
}

ViewCommand HeatmapView::viewCommand() const {
    if (signal_.isEmpty() || !why_no_run(data_, selection_).isEmpty()) {
        return no_command(data_, selection_,
                          u"This run has no signals by step. Record the run again with --record steps."_s);
    }
    figure::FigureSpec spec = figure::window_figure(data_, selection_, figure::FigureKind::step_heatmap);
    spec.signal = signal_.toStdString();
    const auto first = static_cast<std::int64_t>(std::floor(canvas_->viewFirst()));
    const auto last = static_cast<std::int64_t>(std::ceil(canvas_->viewLast()));
    if (canvas_->map() && last > first) {
        spec.tokens = {std::max<std::int64_t>(first, 0), last};
    }
    return figure::figure_view(data_, selection_, spec);
}

} // namespace ponderscope
