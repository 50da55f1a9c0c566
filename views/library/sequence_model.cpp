// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/library/sequence_model.h"

#include "core/trace/summary.h"
#include "views/common/format.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ponderscope {

namespace {

/// Nats at which a bar has the map's first and last colour.
constexpr double weakest = 1;
constexpr double strongest = 10;

} // namespace

SequenceModel::SequenceModel(const ViewContext& context, QObject* parent)
    : QAbstractListModel(parent), context_(context) {
    connect(&context_.selection, &Selection::runsChanged, this, &SequenceModel::rebuild);
    const auto changed = [this](const QString& path) {
        if (path == run_.trace) {
            grow();
        } else if (!run_.isValid()) {
            rebuild();
        }
    };
    connect(&context_.data, &TraceData::traceOpened, this, [this](const QString& path) {
        if (path == context_.selection.runA().trace) {
            run_ = {}; // the file may be another one than before
            rebuild();
        }
    });
    connect(&context_.data, &TraceData::traceChanged, this, changed);
    connect(&context_.data, &TraceData::traceClosed, this, changed);
    connect(&context_.data, &TraceData::sequenceReady, this, [this](const RunKey& run, qint64 sequence) {
        const QModelIndex place = run == run_ ? indexOf(sequence) : QModelIndex();
        if (place.isValid()) {
            Q_EMIT dataChanged(place, place, {BarcodeRole});
        }
    });
    rebuild();
}

void SequenceModel::rebuild() {
    const RunKey run = context_.selection.runA();
    if (run == run_) {
        return;
    }
    beginResetModel();
    run_ = run;
    strips_.clear();
    sequences_ = context_.data.sequences(run);
    endResetModel();
}

void SequenceModel::grow() {
    std::vector<SequenceInfo> fresh = context_.data.sequences(run_);
    const std::size_t before = sequences_.size();
    if (fresh.size() < before) {
        beginResetModel();
        sequences_ = std::move(fresh);
        strips_.clear();
        endResetModel();
        return;
    }
    std::copy(fresh.begin(), fresh.begin() + static_cast<std::ptrdiff_t>(before), sequences_.begin());
    if (fresh.size() > before) {
        beginInsertRows({}, static_cast<int>(before), static_cast<int>(fresh.size()) - 1);
        sequences_ = std::move(fresh);
        endInsertRows();
    }
    if (before > 0) {
        Q_EMIT dataChanged(index(0), index(static_cast<int>(before) - 1));
    }
}

int SequenceModel::rowCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : static_cast<int>(sequences_.size());
}

QModelIndex SequenceModel::indexOf(qint64 sequence) const {
    const auto place = std::find_if(sequences_.begin(), sequences_.end(),
                                    [&](const SequenceInfo& info) { return info.index == sequence; });
    return place == sequences_.end() ? QModelIndex() : index(static_cast<int>(place - sequences_.begin()));
}

QVariant SequenceModel::data(const QModelIndex& index, int role) const {
    if (!checkIndex(index, CheckIndexOption::IndexIsValid)) {
        return {};
    }
    const SequenceInfo& info = sequences_.at(static_cast<std::size_t>(index.row()));
    switch (role) {
    case Qt::DisplayRole:
        return QString::number(info.index + 1);
    case Qt::ToolTipRole:
        return plain_tip(tr("%1\n%2 tokens, NLL %3%4")
                             .arg(QString::fromStdString(info.title), format_count(info.tokens),
                                  format_nats(mean_nll(info), 3),
                                  info.complete ? QString() : tr(", partial")));
    case Qt::AccessibleTextRole:
        return tr("sequence %1, %2, NLL %3")
            .arg(info.index + 1)
            .arg(QString::fromStdString(info.title), format_nats(mean_nll(info)));
    case SequenceRole:
        return QVariant::fromValue<qint64>(info.index);
    case NllRole:
        return mean_nll(info);
    case BarcodeRole:
        return QVariant::fromValue(barcode(info));
    default:
        return {};
    }
}

QList<float> SequenceModel::barcode(const SequenceInfo& info) const {
    Strip& strip = strips_[info.index];
    if (strip.tokens == info.tokens && !strip.bars.isEmpty()) {
        return strip.bars;
    }
    const auto sequence = context_.data.sequence(run_, info.index);
    if (!sequence) {
        return strip.bars;
    }
    const std::vector<float>& nll = sequence->tokens.nll;
    strip.tokens = static_cast<std::int64_t>(nll.size());
    strip.bars.fill(std::numeric_limits<float>::quiet_NaN(), bars);
    const double each = static_cast<double>(nll.size()) / bars;
    for (int bar = 0; bar < bars; ++bar) {
        const auto from = static_cast<std::size_t>(bar * each);
        const std::size_t to =
            std::min(std::max(static_cast<std::size_t>((bar + 1) * each), from + 1), nll.size());
        // Mean and one and a half deviations: hard places stay visible among easy ones, however many tokens
        // share a bar.
        double first = 0;
        double second = 0;
        int count = 0;
        for (std::size_t t = from; t < to; ++t) {
            if (std::isfinite(nll[t])) {
                first += static_cast<double>(nll[t]);
                second += static_cast<double>(nll[t]) * static_cast<double>(nll[t]);
                ++count;
            }
        }
        if (count > 0) {
            const double mean = first / count;
            const double deviation = std::sqrt(std::max(0.0, second / count - mean * mean));
            strip.bars[bar] = static_cast<float>(
                std::clamp((mean + 1.5 * deviation - weakest) / (strongest - weakest), 0.0, 1.0));
        }
    }
    return strip.bars;
}

} // namespace ponderscope
