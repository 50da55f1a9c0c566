// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/library/sequence_model.h"

#include "core/trace/tools/summary.h"
#include "views/common/format.h"
#include "views/common/trace_contents.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace Qt::StringLiterals;

namespace ponderscope {

namespace {

/// NLL in nats at which a bar has the map's first or last colour.
constexpr double weakest = 1;
constexpr double strongest = 10;

} // namespace

SequenceModel::SequenceModel(const ViewContext& context, QObject* parent)
    : QAbstractListModel(parent), context_(context) {
    connect(&context_.selection, &Selection::runsChanged, this, &SequenceModel::rebuild);
    connect(&context_.data, &TraceData::traceOpened, this, [this](const QString& path) {
        if (path == context_.selection.runA().trace) {
            run_ = {}; // the file may have been replaced
            rebuild();
        }
    });
    connect(&context_.data, &TraceData::runChanged, this, [this](const RunKey& run) {
        if (run == run_) {
            grow();
        }
    });
    connect(&context_.data, &TraceData::traceClosed, this, [this](const QString& path) {
        if (path == run_.trace) {
            grow();
        }
    });
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
    contents_ = context_.data.contents(run);
    endResetModel();
}

const std::vector<SequenceInfo>& SequenceModel::sequences() const {
    static const std::vector<SequenceInfo> none;
    return contents_ ? contents_->sequences : none;
}

void SequenceModel::grow() {
    const auto fresh = context_.data.contents(run_);
    const std::size_t rows = sequences().size();
    const std::size_t now = fresh ? fresh->sequences.size() : 0;
    if (now < rows) {
        beginResetModel();
        contents_ = fresh;
        strips_.clear();
        endResetModel();
        return;
    }
    if (now > rows) {
        beginInsertRows({}, static_cast<int>(rows), static_cast<int>(now) - 1);
        contents_ = fresh;
        endInsertRows();
    } else {
        contents_ = fresh;
    }
    if (rows > 0) {
        Q_EMIT dataChanged(index(0), index(static_cast<int>(rows) - 1));
    }
}

int SequenceModel::rowCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : static_cast<int>(sequences().size());
}

QModelIndex SequenceModel::indexOf(qint64 sequence) const {
    const auto& all = sequences();
    const auto place = std::lower_bound(all.begin(), all.end(), sequence,
                                        [](const SequenceInfo& one, qint64 due) { return one.number < due; });
    return place == all.end() || place->number != sequence ? QModelIndex()
                                                           : index(static_cast<int>(place - all.begin()));
}

QVariant SequenceModel::data(const QModelIndex& index, int role) const {
    if (!checkIndex(index, CheckIndexOption::IndexIsValid)) {
        return {};
    }
    const SequenceInfo& info = sequences().at(static_cast<std::size_t>(index.row()));
    switch (role) {
    case Qt::DisplayRole:
        return format_count(info.number + 1);
    case Qt::ToolTipRole:
        return plain_tip(u"%1\n%2 tokens, NLL %3%4"_s.arg(
            QString::fromStdString(info.title), format_count(info.tokens), format_nats(mean_nll(info), 3),
            info.complete ? QString() : u", partial"_s));
    case Qt::AccessibleTextRole:
        return u"sequence %1, %2, NLL %3"_s.arg(info.number + 1)
            .arg(QString::fromStdString(info.title), format_nats(mean_nll(info)));
    case SequenceRole:
        return QVariant::fromValue<qint64>(info.number);
    case NllRole:
        return mean_nll(info);
    case BarcodeRole:
        return QVariant::fromValue(barcode(info));
    default:
        return {};
    }
}

QList<float> SequenceModel::barcode(const SequenceInfo& info) const {
    Strip& strip = strips_[info.number];
    if (strip.tokens == info.tokens && !strip.bars.isEmpty()) {
        return strip.bars;
    }
    const auto sequence = context_.data.sequence(run_, info.number);
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
        // Mean plus 1.5 standard deviations, so that a few hard tokens stay visible in a bar of easy tokens.
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
