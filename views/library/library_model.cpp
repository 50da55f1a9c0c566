// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/library/library_model.h"

#include "core/trace/recorded_choices.h"
#include "core/trace/tools/summary.h"
#include "views/common/format.h"
#include "views/common/paths.h"

#include <QFileInfo>

#include <algorithm>
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
    : QStandardItemModel(parent), context_(context) {
    const auto touch_all = [this] {
        for (int row = 0; row < rowCount(); ++row) {
            touch(index(row, 0));
        }
    };
    connect(&context_.data, &TraceData::traceOpened, this, [this](const QString& path) {
        synchronise(path);
        touch(indexOf({path, 0})); // the file may be new, with the same name and run numbers
    });
    connect(&context_.data, &TraceData::traceChanged, this, &LibraryModel::synchronise);
    connect(&context_.data, &TraceData::runChanged, this, [this](const RunKey& run) { touch(indexOf(run)); });
    connect(&context_.data, &TraceData::traceClosed, this, [this](const QString& path) {
        if (const QModelIndex place = indexOf({path, 0}); place.isValid()) {
            removeRow(place.row());
        }
    });
    connect(&context_.selection, &Selection::runsChanged, this, touch_all);
    connect(&context_.theme, &Theme::changed, this, touch_all);
    for (const QString& path : context_.data.traces()) {
        synchronise(path);
    }
}

void LibraryModel::synchronise(const QString& path) {
    if (context_.data.isLive(path)) {
        return; // a running generation is not listed
    }
    const auto made = [](const RunKey& key) {
        QList<QStandardItem*> row{new QStandardItem, new QStandardItem};
        row[0]->setData(QVariant::fromValue(key), KeyRole);
        // Traces on another machine are read-only.
        row[0]->setEditable(key.isValid() && !is_elsewhere(key.trace));
        row[1]->setEditable(false);
        return row;
    };
    const std::vector<RunInfo> fresh = context_.data.runs(path);
    const QModelIndex place = indexOf({path, 0});
    const QList<QStandardItem*> fresh_row = place.isValid() ? QList<QStandardItem*>() : made({path, 0});
    QStandardItem* trace = place.isValid() ? itemFromIndex(place) : fresh_row[0];
    const auto id = [&](int row) { return trace->child(row)->data(KeyRole).value<RunKey>().run; };
    // Update row by row, so that the current row and the scroll position stay. Both lists ascend by id.
    for (int row = trace->rowCount(); row-- > 0;) {
        if (std::ranges::none_of(fresh, [&](const RunInfo& run) { return run.id == id(row); })) {
            trace->removeRow(row);
        }
    }
    for (int row = 0; row < static_cast<int>(fresh.size()); ++row) {
        if (const qint64 run = fresh[static_cast<std::size_t>(row)].id;
            row >= trace->rowCount() || id(row) != run) {
            trace->insertRow(row, made({path, run}));
        }
    }
    if (!place.isValid()) {
        appendRow(fresh_row);
    }
}

void LibraryModel::touch(const QModelIndex& index) {
    if (index.isValid()) {
        Q_EMIT dataChanged(index, index.siblingAtColumn(1));
        if (const int runs = rowCount(index); runs > 0) {
            Q_EMIT dataChanged(this->index(0, 0, index), this->index(runs - 1, 1, index));
        }
    }
}

QVariant LibraryModel::data(const QModelIndex& index, int role) const {
    const QVariant stored = QStandardItemModel::data(index.siblingAtColumn(0), KeyRole);
    const auto key = stored.value<RunKey>();
    return role == KeyRole       ? stored
           : index.column() == 1 ? sideData(key, role)
           : key.isValid()       ? runData(key, role)
           : index.isValid()     ? traceData(key.trace, role)
                                 : QVariant();
}

QVariant LibraryModel::traceData(const QString& path, int role) const {
    switch (role) {
    case Qt::DisplayRole:
        return context_.data.isScratch(path) ? u"Temporary"_s : title_of(path);
    case DetailRole:
        return context_.data.isScratch(path) ? u"not saved"_s : QString();
    case Qt::FontRole:
        return context_.theme.strong();
    case Qt::ToolTipRole:
        return plain_tip(context_.data.isScratch(path)
                             ? u"What-if runs, reruns and generated runs are temporary until you save them "
                               "to a trace (menu of the run).\n%1"_s.arg(path)
                             : path);
    default:
        return {};
    }
}

QVariant LibraryModel::runData(const RunKey& key, int role) const {
    const RunInfo* info = context_.data.run(key);
    if (info == nullptr) {
        return {};
    }
    const RunInfo& run = *info;
    switch (role) {
    case Qt::DisplayRole:
    case Qt::EditRole:
        return QString::fromStdString(run.name);
    case Qt::DecorationRole:
        return context_.theme.runColour(key, context_.selection);
    case DetailRole: {
        // No interval here: Compare shows it, over the tokens that all compared runs have.
        QString detail = u"NLL %1"_s.arg(format_nats(mean_nll(run), 3));
        if (run.max_steps > 0) {
            detail += u"  %1 %2"_s.arg(steps_word(run.step_unit), format_nats(mean_steps(run)));
        }
        return run.complete ? detail : detail + u"  partial"_s;
    }
    case PolicyRole:
        // The checkpoint's own rule is the usual case, so it is not shown.
        return run.policy == "learned" ? QString() : QString::fromStdString(run.policy);
    case SideRole:
        return QString((key == context_.selection.runA() ? u"A"_s : QString()) +
                       (key == context_.selection.runB() ? u"B"_s : QString()));
    case Qt::ToolTipRole: {
        const QStringList faults = context_.data.faults(key);
        const RecordedChoices chosen = recorded_choices(run);
        QString choices;
        for (const auto& [what, value] : {std::pair{u"keys and values of stopped tokens: %1"_s, &chosen.kv},
                                          std::pair{u"initial state: %1"_s, &chosen.initial_state}}) {
            if (!value->empty()) {
                choices += u'\n' + what.arg(QString::fromStdString(*value));
            }
        }
        for (const std::string& notice : notices_of(run)) {
            choices += u'\n' + QString::fromStdString(notice);
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
        return QString::fromStdString(run.name) + u", "_s + runData(key, DetailRole).toString();
    default:
        return {};
    }
}

/// The letter of the run's side. Other runs have a grey B: a click on it selects B.
QVariant LibraryModel::sideData(const RunKey& key, int role) const {
    const QString side = key.isValid() ? runData(key, SideRole).toString() : QString();
    const Palette& colours = context_.theme.colours();
    switch (role) {
    case Qt::DisplayRole:
        return key.isValid() && side.isEmpty() ? u"B"_s : side;
    case Qt::AccessibleTextRole:
        return side;
    case Qt::ForegroundRole:
        return side.isEmpty() ? colours.soft : side.startsWith(u'A') ? colours.a : colours.b;
    case Qt::FontRole:
        return side.isEmpty() ? context_.theme.body() : context_.theme.strong();
    case Qt::TextAlignmentRole:
        return static_cast<int>(Qt::AlignHCenter | Qt::AlignTop);
    case Qt::ToolTipRole:
        return key.isValid() ? u"Compare as B"_s : QString();
    default:
        return {};
    }
}

bool LibraryModel::setData(const QModelIndex& index, const QVariant& value, int role) {
    const QString name = value.toString().trimmed();
    if (role != Qt::EditRole || name.isEmpty() || name == index.data(Qt::EditRole).toString()) {
        return false;
    }
    Q_EMIT renameRequested(index.data(KeyRole).value<RunKey>(), name);
    return true; // the new name appears when the file has it
}

QModelIndex LibraryModel::indexOf(const RunKey& key) const {
    const QModelIndexList found =
        match(index(0, 0), KeyRole, QVariant::fromValue(key), 1, Qt::MatchExactly | Qt::MatchRecursive);
    return found.isEmpty() ? QModelIndex() : found.front();
}

} // namespace ponderscope
