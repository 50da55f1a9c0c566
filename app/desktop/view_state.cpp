// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/view_state.h"

#include "core/trace/tools/annotations.h"
#include "views/common/paths.h"
#include "views/common/translated.h"

#include <QDir>
#include <QFileInfo>
#include <QJsonArray>
#include <QJsonDocument>
#include <QSaveFile>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace ponderscope {

namespace {

constexpr std::size_t most_states = 200;
constexpr qint64 largest_session = 4 << 20;
constexpr qsizetype most_traces = 100;
constexpr std::size_t most_views = 500;
constexpr int version = 2;

QString relative(const QString& path, const QDir& folder) {
    if (is_elsewhere(path)) {
        return path;
    }
    const QString shorter = folder.relativeFilePath(path);
    return shorter.startsWith(QLatin1String("../../../")) ? path : shorter;
}

QString absolute(const QString& path, const QDir& folder) {
    return is_elsewhere(path) ? path : QDir::cleanPath(folder.absoluteFilePath(path));
}

QJsonObject to_json(const RunKey& key, const QDir& folder) {
    return {{QStringLiteral("trace"), key.trace.isEmpty() ? QString() : relative(key.trace, folder)},
            {QStringLiteral("run"), key.run}};
}

QJsonObject to_json(const ColourRanges::All& ranges) {
    QJsonObject object;
    for (const auto& [of, ends] : ranges) {
        object.insert(of, QJsonArray{ends[0], ends[1]});
    }
    return object;
}

/// Those that are two finite numbers in order.
ColourRanges::All ranges_of(const QJsonObject& object) {
    constexpr std::size_t most = 1000;
    ColourRanges::All ranges;
    for (auto entry = object.begin(); entry != object.end() && ranges.size() < most; ++entry) {
        const QJsonArray ends = entry.value().toArray();
        const double low = ends.at(0).toDouble(std::nan(""));
        const double high = ends.at(1).toDouble(std::nan(""));
        if (std::isfinite(low) && std::isfinite(high) && low < high) {
            ranges[entry.key()] = {low, high};
        }
    }
    return ranges;
}

RunKey run_key(const QJsonValue& value, const QDir& folder) {
    const QJsonObject object = value.toObject();
    const QString trace = object.value(QLatin1String("trace")).toString();
    return {trace.isEmpty() ? QString() : absolute(trace, folder),
            trace.isEmpty() ? 0 : object.value(QLatin1String("run")).toInteger()};
}

/// The value if it is one of an enumeration with \p count values.
template <typename Enum>
Enum checked(const QJsonValue& value, int count, Enum otherwise) {
    const int number = value.toInt(-1);
    return number >= 0 && number < count ? static_cast<Enum>(number) : otherwise;
}

QJsonObject to_json(const ViewState& view, const QDir& folder) {
    return {
        {QStringLiteral("a"), to_json(view.a, folder)},
        {QStringLiteral("b"), to_json(view.b, folder)},
        {QStringLiteral("sequence"), view.sequence},
        {QStringLiteral("token"), view.token},
        {QStringLiteral("step"), view.step},
        {QStringLiteral("layer"), view.layer},
        {QStringLiteral("head"), view.head},
        {QStringLiteral("attribution"), static_cast<int>(view.attribution)},
        {QStringLiteral("quantity"), quantity_key(view.look.quantity)},
        {QStringLiteral("annotation"), view.look.annotation},
        {QStringLiteral("bars"), view.look.bars ? QJsonValue(quantity_key(*view.look.bars)) : QJsonValue()},
        {QStringLiteral("bar_annotation"), view.look.barAnnotation},
        {QStringLiteral("ranges"), to_json(view.ranges)},
        {QStringLiteral("difference"), view.look.difference},
        {QStringLiteral("zoom"), static_cast<int>(view.zoom)},
        {QStringLiteral("text_size"), view.textSize},
        {QStringLiteral("find"), view.find}};
}

/// What is missing or wrong is as it is at the beginning.
ViewState view_state(const QJsonObject& object, const QDir& folder) {
    const auto number = [&](const char* key, qint64 least) {
        return std::max(object.value(QLatin1String(key)).toInteger(least), least);
    };
    ViewState view;
    view.a = run_key(object.value(QLatin1String("a")), folder);
    view.b = run_key(object.value(QLatin1String("b")), folder);
    view.sequence = number("sequence", 0);
    view.token = number("token", -1);
    view.step = static_cast<int>(std::min<qint64>(number("step", -1), 1 << 20));
    view.layer = static_cast<int>(std::min<qint64>(number("layer", -1), 1 << 20));
    view.head = static_cast<int>(std::min<qint64>(number("head", -1), 1 << 20));
    view.attribution = checked(object.value(QLatin1String("attribution")), 2, Attribution::predicted);
    const auto annotation = [&](const char* key) {
        const QString name = object.value(QLatin1String(key)).toString();
        return fault_of_annotation_name(name.toStdString()).empty() ? name : QString();
    };
    const QJsonValue bars = object.value(QLatin1String("bars"));
    view.look = {quantity_called(object.value(QLatin1String("quantity")).toString()).value_or(Quantity::nll),
                 annotation("annotation"),
                 bars.isNull() ? std::nullopt
                               : std::optional(quantity_called(bars.toString()).value_or(Quantity::steps)),
                 annotation("bar_annotation"), object.value(QLatin1String("difference")).toBool()};
    view.ranges = ranges_of(object.value(QLatin1String("ranges")).toObject());
    view.zoom = checked(object.value(QLatin1String("zoom")), 3, TextZoom::text);
    view.textSize = std::clamp(object.value(QLatin1String("text_size")).toInt(19), 9, 48);
    view.find = object.value(QLatin1String("find")).toString();
    return view;
}

} // namespace

void ViewHistory::record(const ViewState& state) {
    if (!states_.empty() && states_[at_] == state) {
        return;
    }
    if (!states_.empty()) {
        states_.resize(at_ + 1);
    }
    states_.push_back(state);
    if (states_.size() > most_states) {
        states_.erase(states_.begin());
    }
    at_ = states_.size() - 1;
}

std::optional<ViewState> ViewHistory::undo() {
    return canUndo() ? std::optional(states_[--at_]) : std::nullopt;
}

std::optional<ViewState> ViewHistory::redo() {
    return canRedo() ? std::optional(states_[++at_]) : std::nullopt;
}

QString save_session(const Session& session, const QString& file) {
    const QDir folder = QFileInfo(file).absoluteDir();
    QJsonArray traces;
    for (const QString& trace : session.traces) {
        traces.append(relative(trace, folder));
    }
    QJsonObject object = to_json(session.view, folder);
    object[QStringLiteral("ponderscope_session")] = version;
    object[QStringLiteral("traces")] = traces;
    object[QStringLiteral("layout")] = QString::fromLatin1(session.layout.toBase64());
    QJsonArray views;
    for (const SavedView& saved : session.views) {
        QJsonObject one = to_json(saved.view, folder);
        one[QStringLiteral("name")] = saved.name;
        one[QStringLiteral("panel")] = saved.panel;
        views.append(one);
    }
    object[QStringLiteral("views")] = views;
    if (const QFileInfo there(file); there.exists() && !there.isFile()) {
        return tr("%1 is not a file. Choose another name for the session.").arg(file);
    }
    QSaveFile out(file);
    const QByteArray bytes = QJsonDocument(object).toJson();
    if (!out.open(QIODevice::WriteOnly) || out.write(bytes) != bytes.size() || !out.commit()) {
        return tr("%1 could not be written: %2").arg(file, out.errorString());
    }
    return {};
}

std::optional<Session> load_session(const QString& file, QString& problem) {
    const auto refuse = [&](const QString& found) {
        problem =
            tr("%1: expected a session of this program, found %2. Save the session again.").arg(file, found);
        return std::nullopt;
    };
    QFile in(file);
    if (!in.open(QIODevice::ReadOnly)) {
        problem = tr("%1 could not be read: %2").arg(file, in.errorString());
        return std::nullopt;
    }
    if (in.size() > largest_session) {
        return refuse(tr("a file of %1 bytes").arg(in.size()));
    }
    QJsonParseError error;
    const QJsonObject object = QJsonDocument::fromJson(in.readAll(), &error).object();
    const int found = object.value(QLatin1String("ponderscope_session")).toInt();
    if (found > 0 && found < version) {
        problem =
            tr("%1 was saved by an older version. Open its traces and save the session again.").arg(file);
        return std::nullopt;
    }
    if (found != version) {
        return refuse(error.error != QJsonParseError::NoError ? tr("no JSON")
                      : found > version                       ? tr("version %1").arg(found)
                                                              : tr("something else"));
    }
    const QDir folder = QFileInfo(file).absoluteDir();
    Session session;
    const QJsonArray traces = object.value(QLatin1String("traces")).toArray();
    for (const QJsonValue trace : traces) {
        if (session.traces.size() < most_traces && !trace.toString().isEmpty()) {
            session.traces << absolute(trace.toString(), folder);
        }
    }
    session.view = view_state(object, folder);
    const QJsonArray views = object.value(QLatin1String("views")).toArray();
    for (const QJsonValue one : views) {
        if (session.views.size() < most_views) {
            const QJsonObject saved = one.toObject();
            session.views.push_back({saved.value(QLatin1String("name")).toString(),
                                     saved.value(QLatin1String("panel")).toString(),
                                     view_state(saved, folder)});
        }
    }
    session.layout = QByteArray::fromBase64(object.value(QLatin1String("layout")).toString().toLatin1());
    return session;
}

bool is_session_file(const QString& path) {
    return path.endsWith(QLatin1String(".ponder-session"), Qt::CaseInsensitive);
}

} // namespace ponderscope
