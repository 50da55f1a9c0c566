// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/library/library_model.h"

#include "core/trace/recorded_choices.h"
#include "core/trace/tools/summary.h"
#include "views/common/format.h"
#include "views/common/paths.h"

#include <QFileInfo>

#include <algorithm>
#include <cmath>
#include <utility>

using namespace Qt::StringLiterals;

namespace ponderscope {

namespace {

/// The title of a trace. Traces of trainings all have the same file name, so their folder is added.
QString title_of(const QString& trace) {
    const QFileInfo file(trace);
    return file.fileName() == u"training.ponder" ? QFileInfo(file.path()).fileName() + u'/' + file.fileName()
                                                 : file.fileName();
}

} // namespace

LibraryModel::LibraryModel(const ViewContext& context, QObject* parent)
    : QAbstractItemModel(parent), context_(context) {
    connect(&context_.data, &TraceData::traceOpened, this, [this](const QString& path) {
        synchronise(path);
        for (const RunInfo& run : context_.data.runs(path)) {
            renewRun({path, run.id}); // under the same name and numbers may lie another file
        }
    });
    connect(&context_.data, &TraceData::traceChanged, this, &LibraryModel::synchronise);
    connect(&context_.data, &TraceData::runChanged, this, &LibraryModel::renewRun);
    connect(&context_.data, &TraceData::traceClosed, this, &LibraryModel::remove);
    connect(&context_.selection, &Selection::runsChanged, this, &LibraryModel::touchAll);
    connect(&context_.theme, &Theme::changed, this, &LibraryModel::touchAll);
    const QStringList open = context_.data.traces();
    for (const QString& path : open) {
        synchronise(path);
    }
}

void LibraryModel::synchronise(const QString& path) {
    if (context_.data.isLive(path)) {
        return; // what is being thought is in no library yet
    }
    std::vector<RunInfo> fresh = context_.data.runs(path);
    const auto place =
        std::find_if(traces_.begin(), traces_.end(), [&](const Trace& trace) { return trace.path == path; });
    if (place == traces_.end()) {
        const int row = static_cast<int>(traces_.size());
        beginInsertRows({}, row, row);
        traces_.push_back({path, std::move(fresh), ++last_id_});
        endInsertRows();
        return;
    }
    const int row = static_cast<int>(place - traces_.begin());
    const QModelIndex parent = index(row, 0);
    std::vector<RunInfo>& known = place->runs;
    const auto among = [](const std::vector<RunInfo>& runs, qint64 id) {
        return std::any_of(runs.begin(), runs.end(), [id](const RunInfo& run) { return run.id == id; });
    };
    // Row by row, so that what is chosen and where one has scrolled to stay. Both are in the order of ids.
    for (int at = static_cast<int>(known.size()); at-- > 0;) {
        if (!among(fresh, known[static_cast<std::size_t>(at)].id)) {
            beginRemoveRows(parent, at, at);
            known.erase(known.begin() + at);
            endRemoveRows();
        }
    }
    for (std::size_t at = 0; at < fresh.size(); ++at) {
        if (at < known.size() && known[at].id == fresh[at].id) {
            continue; // renewRun has what it holds now
        }
        beginInsertRows(parent, static_cast<int>(at), static_cast<int>(at));
        known.insert(known.begin() + static_cast<std::ptrdiff_t>(at), std::move(fresh[at]));
        endInsertRows();
    }
}

void LibraryModel::renewRun(const RunKey& key) {
    const QModelIndex place = indexOf(key);
    const RunInfo* info = context_.data.run(key);
    if (place.isValid() && key.isValid() && info != nullptr) {
        traces_[static_cast<std::size_t>(place.parent().row())].runs[static_cast<std::size_t>(place.row())] =
            *info;
        Q_EMIT dataChanged(place, place);
    }
}

void LibraryModel::remove(const QString& path) {
    const auto place =
        std::find_if(traces_.begin(), traces_.end(), [&](const Trace& trace) { return trace.path == path; });
    if (place != traces_.end()) {
        const int row = static_cast<int>(place - traces_.begin());
        beginRemoveRows({}, row, row);
        traces_.erase(place);
        endRemoveRows();
    }
}

void LibraryModel::touchAll() {
    for (int row = 0; row < static_cast<int>(traces_.size()); ++row) {
        const QModelIndex parent = index(row, 0);
        Q_EMIT dataChanged(parent, parent);
        const int runs = rowCount(parent);
        if (runs > 0) {
            Q_EMIT dataChanged(index(0, 0, parent), index(runs - 1, 0, parent));
        }
    }
}

QModelIndex LibraryModel::index(int row, int column, const QModelIndex& parent) const {
    if (!hasIndex(row, column, parent)) {
        return {};
    }
    // Internal id: 0 for traces, the trace's for runs.
    return createIndex(row, column,
                       parent.isValid() ? traces_[static_cast<std::size_t>(parent.row())].id : quintptr{0});
}

int LibraryModel::row_of(quintptr id) const {
    const auto place =
        std::find_if(traces_.begin(), traces_.end(), [id](const Trace& trace) { return trace.id == id; });
    return place == traces_.end() ? -1 : static_cast<int>(place - traces_.begin());
}

QModelIndex LibraryModel::parent(const QModelIndex& index) const {
    if (!index.isValid() || index.internalId() == 0) {
        return {};
    }
    const int row = row_of(index.internalId());
    return row < 0 ? QModelIndex() : createIndex(row, 0, quintptr{0});
}

int LibraryModel::rowCount(const QModelIndex& parent) const {
    if (!parent.isValid()) {
        return static_cast<int>(traces_.size());
    }
    if (parent.internalId() != 0 || parent.column() != 0) {
        return 0;
    }
    return static_cast<int>(traces_.at(static_cast<std::size_t>(parent.row())).runs.size());
}

int LibraryModel::columnCount(const QModelIndex&) const {
    return 1;
}

QVariant LibraryModel::data(const QModelIndex& index, int role) const {
    if (!checkIndex(index, CheckIndexOption::IndexIsValid)) {
        return {};
    }
    if (index.internalId() == 0) {
        return traceData(traces_.at(static_cast<std::size_t>(index.row())), role);
    }
    const int row = row_of(index.internalId());
    if (row < 0) {
        return {};
    }
    const Trace& trace = traces_[static_cast<std::size_t>(row)];
    return runData(trace, trace.runs.at(static_cast<std::size_t>(index.row())), role);
}

QVariant LibraryModel::traceData(const Trace& trace, int role) const {
    switch (role) {
    case Qt::DisplayRole:
        return context_.data.isScratch(trace.path) ? u"Temporary"_s : title_of(trace.path);
    case DetailRole:
        return context_.data.isScratch(trace.path) ? u"not saved"_s : QString();
    case Qt::ToolTipRole:
        return plain_tip(context_.data.isScratch(trace.path)
                             ? u"What-if runs, reruns and generated runs are temporary until you save them "
                               "to a trace (menu of the run).\n%1"_s.arg(trace.path)
                             : trace.path);
    case KeyRole:
        return QVariant::fromValue(RunKey{trace.path, 0});
    default:
        return {};
    }
}

QVariant LibraryModel::runData(const Trace& trace, const RunInfo& run, int role) const {
    const RunKey key{trace.path, run.id};
    switch (role) {
    case Qt::DisplayRole:
    case Qt::EditRole:
        return QString::fromStdString(run.name);
    case KeyRole:
        return QVariant::fromValue(key);
    case ColourRole:
        return context_.theme.runColour(key, context_.selection);
    case DetailRole: {
        // No interval: Compare shows one, of the tokens that the compared runs have in common.
        QString detail = u"NLL %1"_s.arg(format_nats(mean_nll(run), 3));
        if (run.max_steps > 0) {
            detail += u"   "_s + u"%1 %2"_s.arg(steps_word(run.step_unit), format_nats(mean_steps(run)));
        }
        return detail;
    }
    case PolicyRole:
        // The checkpoint's own rule is what one expects.
        return run.policy == "learned" ? QString() : QString::fromStdString(run.policy);
    case SideRole:
        return QString((key == context_.selection.runA() ? u"A"_s : QString()) +
                       (key == context_.selection.runB() ? u"B"_s : QString()));
    case StateRole:
        return run.complete ? QString() : u"partial"_s;
    case Qt::ToolTipRole: {
        const QStringList faults = context_.data.faults(key);
        const RecordedChoices chosen = recorded_choices(run);
        QString choices;
        for (const auto& [what, value] : {std::pair{u"what later tokens see: %1"_s, &chosen.kv},
                                          std::pair{u"start: %1"_s, &chosen.initial_state}}) {
            if (!value->empty()) {
                choices += u'\n' + what.arg(QString::fromStdString(*value));
            }
        }
        return plain_tip(
            (faults.isEmpty() ? QString() : faults.join(u'\n') + u"\n\n"_s) +
            u"%1\n%2, %3, policy %4\n%5 tokens in %6 sequences\n%7, %8\ncheckpoint %9"_s.arg(
                QString::fromStdString(run.name), QString::fromStdString(run.method),
                QString::fromStdString(run.architecture),
                run.policy.empty() || run.max_steps == 0 ? u"none"_s : QString::fromStdString(run.policy),
                format_count(run.tokens), format_count(run.sequences), QString::fromStdString(run.device),
                QString::fromStdString(run.dtype), QString::fromStdString(run.checkpoint)) +
            choices);
    }
    case Qt::AccessibleTextRole:
        return QString::fromStdString(run.name) + u", "_s + runData(trace, run, DetailRole).toString();
    default:
        return {};
    }
}

Qt::ItemFlags LibraryModel::flags(const QModelIndex& index) const {
    const Qt::ItemFlags usual = QAbstractItemModel::flags(index);
    // Traces on another machine are read-only.
    return index.isValid() && index.internalId() != 0 &&
                   !is_elsewhere(index.data(KeyRole).value<RunKey>().trace)
               ? usual | Qt::ItemIsEditable
               : usual;
}

bool LibraryModel::setData(const QModelIndex& index, const QVariant& value, int role) {
    const QString name = value.toString().trimmed();
    if (role != Qt::EditRole || name.isEmpty() || name == index.data(Qt::EditRole).toString()) {
        return false;
    }
    Q_EMIT renameRequested(index.data(KeyRole).value<RunKey>(), name);
    return true; // shown when the file says it
}

QModelIndex LibraryModel::indexOf(const RunKey& key) const {
    for (std::size_t t = 0; t < traces_.size(); ++t) {
        if (traces_[t].path != key.trace) {
            continue;
        }
        const QModelIndex parent = index(static_cast<int>(t), 0);
        for (std::size_t r = 0; r < traces_[t].runs.size(); ++r) {
            if (traces_[t].runs[r].id == key.run) {
                return index(static_cast<int>(r), 0, parent);
            }
        }
        return key.run == 0 ? parent : QModelIndex();
    }
    return {};
}

} // namespace ponderscope
