// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/attention/attention_view.h"

#include "core/trace/reader.h"
#include "views/common/controls.h"
#include "views/common/format.h"
#include "views/common/paths.h"
#include "views/heatmap/map_header.h"
#include "views/heatmap/step_map_canvas.h"

#include <algorithm>
#include <limits>
#include <numeric>

using namespace Qt::StringLiterals;

namespace ponderscope {

constexpr int all_layers = -1; ///< chooser data for all layers; other data: a recorded layer

AttentionView::AttentionView(ViewContext context, QWidget* parent)
    : QWidget(parent),
      data_(context.data),
      selection_(context.selection),
      map_(new StepMapCanvas(context, this)),
      header_(new MapHeader(context.theme, *map_, u"Rows of the attention map"_s,
                            u"Rows: all layers (mean of the heads), or the heads of one layer"_s, this)),
      rows_(header_->chooser()),
      reading_(this) {
    map_->setAccessibleName(u"Attention weight of each earlier token, by layer or head"_s);
    make_column(this, {14, 8, 14, 6}, 8, {header_, {map_, 1}});
    connect(rows_, &QComboBox::activated, this, &AttentionView::showRow);
    connect(map_, &StepMapCanvas::cellHovered, this, &AttentionView::showCell);
    follow(*this, context, Follows::a);
    const auto refreshed = seen(&AttentionView::refreshToken);
    followSequence(*this, context, refreshed, [](const QString&) { return false; });
    connect(&selection_, &Selection::tokenChanged, this, refreshed);
    connect(&selection_, &Selection::stepChanged, this, seen(&AttentionView::showRow));
    renew();
}

void AttentionView::nothing(const QString& hint) {
    reading_.cancel();
    row_.reset();
    rowOf_.clear();
    sequence_.reset();
    map_->setHint(hint);
    map_->setMap(nullptr);
    summary_.clear();
    header_->clear();
    header_->hide();
}

void AttentionView::renew() {
    info_.reset();
    for (const SignalInfo& info : data_.signalsOf(selection_.runA())) {
        if (AttentionRow::fits(info)) {
            info_ = info;
        }
    }
    refreshToken();
}

void AttentionView::refreshToken() {
    const RunKey run = selection_.runA();
    if (!run.isValid()) {
        nothing(u"Open a trace recorded with --attention to see what a token attends to."_s);
        return;
    }
    if (!info_) {
        nothing(data_.isBeginning(run)
                    ? u"Waiting for the first token…"_s
                    : u"This run has no attention weights. Their number grows with the square of the "
                      "text length, so attention is recorded only on request: ponderscope record … "
                      "--attention all, or --attention LAYERS:HEADS."_s);
        return;
    }
    const auto sequence = data_.sequence(run, selection_.sequence());
    if (!sequence) {
        nothing(why_no_sequence(data_, selection_));
        return;
    }
    const qint64 token = selection_.token();
    const qint64 row = token < 0 ? -1 : selection_.rowOf(token);
    if (row < 0 || row >= static_cast<qint64>(sequence->tokens.size())) {
        nothing(token < 0 ? u"Click a word of the text to see its attention."_s
                          : u"The first token is not predicted."_s);
        return;
    }
    const QString wanted = u"%1#%2 %3 %4"_s.arg(run.trace).arg(run.run).arg(selection_.sequence()).arg(row);
    if (wanted == rowOf_) {
        return;
    }
    rowOf_ = wanted;
    sequence_ = sequence;
    reading_.start(
        [run, info = *info_, number = sequence->sequence, row](const std::stop_token&) {
            const TraceReader reader = TraceReader::open(path_of(run.trace));
            const auto chunk = reader.signal(run.run, number, info.name, row, row + 1);
            std::optional<AttentionRow> read;
            if (chunk && chunk->shape.front() == 1) {
                read.emplace(*chunk, info, row);
            }
            return read;
        },
        [this](std::optional<AttentionRow> read) {
            if (!read) {
                nothing(u"The attention of this token was not recorded."_s);
                return;
            }
            row_ = std::move(read);
            numbers_ = chosen_numbers(*info_, row_->layers(), row_->heads());
            std::vector<ChooserEntry> entries{{u"Layers, mean of heads"_s, all_layers}};
            for (int layer = 0; layer < static_cast<int>(row_->layers()); ++layer) {
                entries.push_back(
                    {u"Heads of layer %1"_s.arg(numbers_.layers[static_cast<std::size_t>(layer)]), layer});
            }
            const int chosen = rows_->count() > 0 ? rows_->currentData().toInt() : all_layers;
            fill_chooser(*rows_, entries, chosen < static_cast<int>(row_->layers()) ? chosen : all_layers);
            header_->show();
            showRow();
            showReach();
        },
        [this](const QString& sentence) { nothing(sentence); });
}

QString AttentionView::tokenName(qint64 row) const {
    const QString name =
        visible_token(token_bytes(sequence_->tokens, sequence_->text, static_cast<std::size_t>(row)), 16);
    return name.isEmpty() ? u"token %1"_s.arg(row) : u"“%1”"_s.arg(name);
}

std::int64_t AttentionView::step() const {
    const std::int64_t ran = sequence_->tokens.steps[static_cast<std::size_t>(row_->row())];
    return selection_.step() < 0 ? ran
                                 : std::min<std::int64_t>(selection_.step(), ran); // later steps did not run
}

void AttentionView::showRow() {
    if (!row_ || !sequence_) {
        return;
    }
    const std::int64_t step = this->step();
    const int layer = rows_->currentData().toInt();
    const std::int64_t count = layer == all_layers ? row_->layers() : row_->heads();
    const auto tokens = static_cast<std::int64_t>(sequence_->tokens.size());
    std::vector<float> values(static_cast<std::size_t>(tokens * count),
                              std::numeric_limits<float>::quiet_NaN());
    for (std::int64_t i = 0; i < count; ++i) {
        const std::vector<float> weights =
            layer == all_layers ? row_->weights(step, i, -1) : row_->weights(step, layer, i);
        for (std::size_t key = 0; key < weights.size(); ++key) {
            values[key * static_cast<std::size_t>(count) + static_cast<std::size_t>(i)] = weights[key];
        }
    }
    SignalInfo info = *info_;
    info.unit.clear(); // a scale from 0 to the largest weight, not to 1
    // The map shows each weight at the key token itself, under both attributions.
    map_->setMap(std::make_shared<const StepMap>(sequence_, std::move(values), count, std::move(info),
                                                 Attribution::predicting, StepMap::Rows::layers));
    header_->showScale({}, false);

    constexpr int named_tokens = 3;
    const std::vector<float> all = row_->weights(step, -1, -1);
    std::vector<std::size_t> order(all.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto end = order.begin() + std::min<std::ptrdiff_t>(named_tokens, std::ssize(order));
    std::partial_sort(order.begin(), end, order.end(), [&](std::size_t a, std::size_t b) {
        return all[a] != all[b] ? all[a] > all[b] : a > b;
    });
    QStringList named;
    for (auto key = order.begin(); key != end; ++key) {
        named << u"%1 %2"_s.arg(tokenName(static_cast<qint64>(*key)),
                                format_probability(static_cast<double>(all[*key])));
    }
    const RunInfo* run = data_.run(selection_.runA());
    const QString at = row_->steps() > 1
                           ? u", %1 %2,"_s.arg(step_word(run != nullptr ? run->step_unit : "step")).arg(step)
                           : QString();
    summary_ = u"%1%2 reads %3"_s.arg(tokenName(row_->row()), at, named.join(u", "_s));
    header_->setReadout(summary_);
    map_->setAccessibleDescription(summary_);
}

void AttentionView::showReach() {
    if (map_->map() == nullptr) {
        return;
    }
    // The token sees neither later tokens nor tokens before its window.
    const std::vector<float> all = row_->weights(step(), -1, -1);
    const auto first = std::ranges::find_if(all, [](float weight) { return weight > 0; }) - all.begin();
    const auto seen = static_cast<double>(row_->row() + 1 - std::min<std::int64_t>(first, row_->row()));
    const double end = static_cast<double>(row_->row()) + 2 + seen / 32;
    map_->setView(end - std::max(seen * 33 / 32 + 1, 16.0), end);
}

void AttentionView::showCell(qint64 token, int row) {
    if (token < 0 || row < 0 || map_->map() == nullptr || !sequence_) {
        header_->setReadout(summary_);
        return;
    }
    const StepMap::Cell cell = map_->map()->at(token, row);
    const int layer = rows_->currentData().toInt();
    const auto& numbers = layer == all_layers ? numbers_.layers : numbers_.heads;
    const int number =
        static_cast<std::size_t>(row) < numbers.size() ? numbers[static_cast<std::size_t>(row)] : row;
    header_->setReadout(u"%1 %2 · %3 · %4"_s.arg(layer == all_layers ? u"layer"_s : u"head"_s)
                            .arg(number)
                            .arg(tokenName(token), cell.kind == StepMap::Kind::value
                                                       ? format_probability(static_cast<double>(cell.value))
                                                       : u"not visible: this token comes later"_s));
}

ViewCommand AttentionView::viewCommand() const {
    if (!row_ || !info_ || !sequence_) {
        return no_command(data_, selection_,
                          u"First open a run recorded with --attention and choose a word."_s);
    }
    const int layer = rows_->currentData().toInt();
    const bool by_key_step = std::ranges::find(info_->axes, "key_step") != info_->axes.end();
    QStringList lines;
    lines << u"weights = a.signal(%1, %2, %3, %4)[0, %5].astype(np.float32)  # layer, head, %6back"_s.arg(
        python_quoted(QString::fromStdString(info_->name)), QString::number(sequence_->sequence),
        QString::number(row_->row()), QString::number(row_->row() + 1), QString::number(step()),
        by_key_step ? u"step of the key, "_s : QString());
    if (by_key_step) {
        lines << u"weights = np.nansum(weights, axis=2)"_s;
    }
    lines << (layer == all_layers ? u"print(np.nanmean(weights, axis=1))  # layer, tokens back"_s
                                  : u"print(weights[%1])  # head, tokens back"_s.arg(layer));
    return python_view(data_, selection_, lines);
}

} // namespace ponderscope
