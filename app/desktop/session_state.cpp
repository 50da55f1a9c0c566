// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/session_state.h"

#include "app/desktop/dock_layout.h"
#include "app/desktop/main_menu.h"
#include "app/desktop/open_traces.h"
#include "core/trace/tools/annotations.h"
#include "views/common/paths.h"
#include "views/text/find_bar.h"

#include <QDir>
#include <QDockWidget>
#include <QFileDialog>
#include <QFileInfo>
#include <QJsonArray>
#include <QJsonDocument>
#include <QLabel>
#include <QMenu>
#include <QSaveFile>
#include <QShortcut>
#include <QSignalBlocker>
#include <QStatusBar>
#include <QToolTip>

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

using namespace Qt::StringLiterals;

namespace ponderscope {

namespace {

/// Changes within this time are one undo step: moves with the arrow keys, a word typed into the find bar.
constexpr int settle_ms = 400;
constexpr int slide_letters = 32; ///< smallest text size in a presentation, in pixels
constexpr int low_status = 30;    ///< height of the status bar in a presentation, in pixels

} // namespace

SessionState::SessionState(const Shell& shell, DockLayout& docks, OpenTraces& traces)
    : ShellPart(shell), docks_(docks), traces_(traces), caption_(new QLabel(&shell.window)) {
    caption_->setTextFormat(Qt::PlainText);
    caption_->setObjectName(u"caption"_s);
    caption_->setContentsMargins(24, 0, 0, 0);
    caption_->hide();
    window_->statusBar()->addWidget(caption_, 1);
    connect(&theme_, &Theme::changed, this, [this] {
        if (!presenting_) { // a presentation's text size is not the user's setting
            settings_.setTextSize(theme_.textSize());
        }
    });
    settling_.setSingleShot(true);
    settling_.setInterval(settle_ms);
    connect(&settling_, &QTimer::timeout, this, [this] {
        if (selection_.runA().isValid() && !data_.isLive(selection_.runA().trace)) {
            remember();
            Q_EMIT historyChanged();
        }
    });
    const auto moved = [this] {
        if (!travelling_) {
            settling_.start();
        }
    };
    connect(&selection_, &Selection::runsChanged, this, moved);
    connect(&selection_, &Selection::sequenceChanged, this, moved);
    connect(&selection_, &Selection::tokenChanged, this, moved);
    connect(&selection_, &Selection::stepChanged, this, moved);
    connect(&selection_, &Selection::depthChanged, this, moved);
    connect(&selection_, &Selection::attributionChanged, this, moved);
    connect(text_, &TextPanel::viewChanged, this, moved);
    connect(&theme_, &Theme::changed, this, moved);
    connect(&text_->view().ranges(), &ColourRanges::changed, this, moved);

    Q_EMIT historyChanged();
}

ViewState SessionState::viewState() const {
    ViewState state;
    state.a = selection_.runA();
    state.b = selection_.runB();
    state.sequence = selection_.sequence();
    state.token = selection_.token();
    state.step = selection_.step();
    state.layer = selection_.layer();
    state.head = selection_.head();
    state.attribution = selection_.attribution();
    state.look = selection_.look();
    state.ranges = text_->view().ranges().all();
    state.zoom = text_->zoom();
    state.textSize = theme_.textSize();
    state.find = text_->findBar().query();
    return state;
}

void SessionState::showState(const ViewState& state, bool keepReplay) {
    travelling_ = true;
    settling_.stop();
    if (data_.run(state.a) != nullptr) {
        selection_.setRunA(state.a);
        selection_.setRunB(data_.run(state.b) != nullptr ? state.b : RunKey{});
        selection_.setSequence(state.sequence);
    }
    theme_.setTextSize(state.textSize);
    if (!keepReplay || state.look != selection_.look()) {
        text_->setLook(state.look);
    }
    text_->view().ranges().setAll(state.ranges);
    text_->setZoom(state.zoom);
    selection_.setAttribution(state.attribution);
    if (state.find.isEmpty()) {
        if (!text_->findBar().query().isEmpty()) {
            text_->findBar().close();
        }
    } else if (state.find != text_->findBar().query()) {
        text_->findText(state.find);
    }
    selection_.setToken(state.token); // after the search, which jumps
    selection_.setStep(state.step);
    selection_.setLayer(state.layer);
    selection_.setHead(state.head);
    travelling_ = false;
    Q_EMIT historyChanged();
}

void SessionState::remember() {
    constexpr std::size_t most_states = 200;
    const ViewState state = viewState();
    if (!states_.empty() && states_[at_] == state) {
        return;
    }
    states_.resize(std::min(states_.size(), at_ + 1));
    states_.push_back(state);
    if (states_.size() > most_states) {
        states_.erase(states_.begin());
    }
    at_ = states_.size() - 1;
}

void SessionState::undo() {
    if (settling_.isActive()) {
        settling_.stop(); // undoes the change that is not in the history yet
        remember();
    }
    if (at_ > 0) {
        showState(states_[--at_], true);
    }
}

void SessionState::redo() {
    if (canRedo()) {
        showState(states_[++at_], true);
    }
}

void SessionState::saveSession() {
    if (data_.traces().isEmpty()) {
        messages_->show("session.no-trace", u"Open a trace first. A session stores the open traces."_s,
                        MessageBar::Kind::notice);
        return;
    }
    const QFileInfo trace(data_.traces().constFirst());
    QString file = QFileDialog::getSaveFileName(window_, u"Save Session As"_s,
                                                trace.absolutePath() + u'/' + trace.completeBaseName() +
                                                    u".ponder-session"_s,
                                                u"Sessions (*.ponder-session)"_s);
    if (file.isEmpty()) {
        return;
    }
    if (!is_session_file(file)) {
        file += u".ponder-session"_s;
    }
    saveSessionTo(file);
}

bool SessionState::saveSessionTo(const QString& file) {
    const QString problem = save_session({data_.traces(), viewState(), docks_.layoutState(), views_}, file);
    if (!problem.isEmpty()) {
        Q_EMIT failed(problem);
        return false;
    }
    settings_.addRecent(QFileInfo(file).absoluteFilePath());
    return true;
}

void SessionState::openSession(const QString& file) {
    QString problem;
    const std::optional<Session> session = load_session(file, problem);
    if (!session) {
        Q_EMIT failed(problem);
        return;
    }
    settings_.addRecent(QFileInfo(file).absoluteFilePath());
    views_ = session->views;
    docks_.leaveMaximised();
    if (!session->layout.isEmpty() && !docks_.restoreLayout(session->layout)) {
        messages_->show("session.old-layout",
                        u"The session has a panel layout of another version of Ponderscope. The panels "
                        "were not changed."_s,
                        MessageBar::Kind::notice);
    }
    for (const QString& trace : session->traces) {
        traces_.open(trace);
    }
    if (traces_.opener().isBusy()) {
        traces_.opener().then([this, view = session->view] { showState(view); });
    } else {
        showState(session->view); // no trace is being opened
    }
}

void SessionState::keepView() {
    if (!selection_.runA().isValid() || data_.isLive(selection_.runA().trace)) {
        messages_->show("view.no-trace", u"Open a trace first. A saved view refers to a run."_s,
                        MessageBar::Kind::notice);
        return;
    }
    const RunInfo* run = data_.run(selection_.runA());
    const ViewState state = viewState();
    QStringList parts;
    if (docks_.maximised() != nullptr) {
        parts << docks_.maximised()->windowTitle();
    } else {
        parts << text_->view().values().name();
    }
    const QString name = QString::fromStdString(run->name);
    const RunInfo* other = data_.run(state.b);
    parts << (text_->view().values().difference && other != nullptr
                  ? u"%1 minus %2"_s.arg(name, QString::fromStdString(other->name))
                  : name);
    if (!state.find.isEmpty()) {
        parts << state.find;
    }
    if (state.token >= 0) {
        parts << u"token %1"_s.arg(state.token);
    }
    views_.push_back({parts.join(u" · "_s),
                      docks_.maximised() == nullptr ? QString() : docks_.maximised()->objectName(), state});
    messages_->show(
        "view.saved",
        u"Saved as view %1. Press F5 to present the saved views. Save a session to keep the views."_s.arg(
            views_.size()),
        MessageBar::Kind::success);
}

void SessionState::fillViews(QMenu* menu) {
    empty_menu(*menu);
    for (std::size_t i = 0; i < views_.size(); ++i) {
        QMenu* one =
            menu->addMenu(u"%1  %2"_s.arg(i + 1).arg(QString(views_[i].name).replace(u'&', u"&&"_s)));
        one->addAction(u"Show"_s, this, [this, state = views_[i].view] { showState(state); });
        // The views may have changed when the user chooses an entry.
        one->addAction(u"Move Up"_s, this,
                       [this, i] {
                           if (i < views_.size()) {
                               std::swap(views_[i], views_[i - 1]);
                           }
                       })
            ->setEnabled(i > 0);
        one->addAction(u"Remove"_s, this, [this, i] {
            if (i < views_.size()) {
                views_.erase(views_.begin() + static_cast<std::ptrdiff_t>(i));
            }
        });
    }
    if (views_.empty()) {
        menu->addAction(u"No Saved Views"_s)->setEnabled(false);
    }
}

void SessionState::present() {
    if (presenting_) {
        const Presenting before = *std::exchange(presenting_, std::nullopt);
        qDeleteAll(before.keys);
        docks_.leaveMaximised();
        docks_.restoreLayout(before.layout);
        if (before.filled != nullptr) {
            docks_.maximise(before.filled);
        }
        window_->menuWidget()->show();
        caption_->hide();
        window_->statusBar()->setMinimumHeight(low_status);
        Q_EMIT statusShown(true);
        text_->setPlain(false);
        showState(before.view, true);
        window_->setWindowState(before.window);
        return;
    }
    if (!selection_.runA().isValid()) {
        messages_->show("present.no-trace", u"Open a trace first. A presentation shows the text of a run."_s,
                        MessageBar::Kind::notice);
        return;
    }
    Q_EMIT presentationStarted();
    QDockWidget* filled = docks_.maximised();
    docks_.leaveMaximised();
    presenting_ = Presenting{viewState(), window_->windowState(), filled, window_->saveState()};
    const auto key = [this](const QKeySequence& keys, auto&& does) {
        auto* made = new QShortcut(keys, window_);
        connect(made, &QShortcut::activated, this, does);
        presenting_->keys << made;
    };
    key(Qt::Key_Escape, [this] { present(); });
    key(Qt::Key_F5, [this] { present(); }); // the hidden menu's shortcut does not work
    key(Qt::Key_PageDown, [this] { presentView(1); });
    key(Qt::Key_PageUp, [this] { presentView(-1); });
    window_->menuWidget()->hide();
    Q_EMIT statusShown(false);
    caption_->show();
    text_->setPlain(true);
    window_->setWindowState(window_->windowState() | Qt::WindowFullScreen);
    QToolTip::hideText();
    // Blocked signals: a panel that colours the text continues, and no panel behind it starts to compute.
    std::vector<QSignalBlocker> quiet(docks_.docks().begin(), docks_.docks().end());
    for (QDockWidget* dock : docks_.docks()) {
        dock->hide();
    }
    quiet.clear();
    if (filled != nullptr) {
        docks_.maximise(filled);
    }
    theme_.setTextSize(std::max(theme_.textSize(), slide_letters));
    showCaption();
}

void SessionState::presentView(int by) {
    const int wanted = presenting_ ? presenting_->at + by : -1;
    if (wanted < 0 || wanted >= static_cast<int>(views_.size())) {
        return;
    }
    presenting_->at = wanted;
    const SavedView& saved = views_[static_cast<std::size_t>(wanted)];
    docks_.leaveMaximised();
    if (QDockWidget* panel = docks_.dock(saved.panel)) {
        docks_.maximise(panel);
    }
    ViewState state = saved.view;
    state.textSize = std::max(state.textSize, slide_letters);
    showState(state);
    showCaption();
}

void SessionState::showCaption() {
    QFont large = theme_.reading();
    large.setPointSizeF(large.pointSizeF() * slide_letters * 5 / 8 / theme_.textSize());
    caption_->setFont(large);
    caption_->setMinimumHeight(QFontMetrics(large).height() + 12);
    window_->statusBar()->setMinimumHeight(caption_->minimumHeight() + 6);
    const int at = presenting_->at;
    const RunInfo* a = data_.run(selection_.runA());
    const RunInfo* b = data_.run(selection_.runB());
    QStringList shown{u"A: %1"_s.arg(a == nullptr ? QString() : QString::fromStdString(a->name))};
    if (b != nullptr) {
        shown << u"B: %1"_s.arg(QString::fromStdString(b->name));
    }
    shown << text_->view().values().name() + (text_->view().values().difference ? u", A − B"_s : QString());
    const QString what = shown.join(u"   "_s);
    caption_->setText(
        at >= 0
            ? u"%1 of %2   %3"_s.arg(at + 1).arg(views_.size()).arg(views_[static_cast<std::size_t>(at)].name)
        : views_.empty() ? u"%1   (press Escape to leave)"_s.arg(what)
                         : u"%1   (press Page Down for view 1 of %2)"_s.arg(what).arg(views_.size()));
}

namespace {

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
    return {{u"trace"_s, key.trace.isEmpty() ? QString() : relative(key.trace, folder)}, {u"run"_s, key.run}};
}

/// The colour ranges of \p object. Entries that are not two finite numbers in ascending order are skipped.
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

QJsonObject to_json(const ViewState& view, const QDir& folder) {
    QJsonObject ranges;
    for (const auto& [of, ends] : view.ranges) {
        ranges.insert(of, QJsonArray{ends[0], ends[1]});
    }
    return {{u"a"_s, to_json(view.a, folder)},
            {u"b"_s, to_json(view.b, folder)},
            {u"sequence"_s, view.sequence},
            {u"token"_s, view.token},
            {u"step"_s, view.step},
            {u"layer"_s, view.layer},
            {u"head"_s, view.head},
            {u"attribution"_s, static_cast<int>(view.attribution)},
            {u"zoom"_s, static_cast<int>(view.zoom)},
            {u"text_size"_s, view.textSize},
            {u"annotation"_s, view.look.annotation},
            {u"quantity"_s, quantity_key(view.look.quantity)},
            {u"bars"_s, view.look.bars ? QJsonValue(quantity_key(*view.look.bars)) : QJsonValue()},
            {u"difference"_s, view.look.difference},
            {u"ranges"_s, ranges},
            {u"find"_s, view.find}};
}

/// A missing or invalid value leaves the default.
ViewState view_state(const QJsonObject& object, const QDir& folder) {
    ViewState view;
    const auto number = [&](const QString& key, auto& at, qint64 least, qint64 most = 1 << 20) {
        const qint64 found = object.value(key).toInteger(least - 1);
        if (found >= least && found <= most) {
            at = static_cast<std::decay_t<decltype(at)>>(found);
        }
    };
    view.a = run_key(object.value(u"a"), folder);
    view.b = run_key(object.value(u"b"), folder);
    number(u"sequence"_s, view.sequence, 0, std::numeric_limits<qint64>::max());
    number(u"token"_s, view.token, -1, std::numeric_limits<qint64>::max());
    number(u"step"_s, view.step, -1);
    number(u"layer"_s, view.layer, -1);
    number(u"head"_s, view.head, -1);
    number(u"attribution"_s, view.attribution, 0, 1);
    number(u"zoom"_s, view.zoom, 0, 2);
    number(u"text_size"_s, view.textSize, 9, 48);
    const QString annotation = object.value(u"annotation").toString();
    view.look.annotation =
        fault_of_annotation_name(annotation.toStdString()).empty() ? annotation : QString();
    view.look.quantity = quantity_called(object.value(u"quantity").toString()).value_or(view.look.quantity);
    if (const auto bars = quantity_called(object.value(u"bars").toString());
        bars || object.value(u"bars").isNull()) {
        view.look.bars = bars;
    }
    view.look.difference = object.value(u"difference").toBool();
    view.ranges = ranges_of(object.value(u"ranges").toObject());
    view.find = object.value(u"find").toString();
    return view;
}

} // namespace

QString save_session(const Session& session, const QString& file) {
    const QDir folder = QFileInfo(file).absoluteDir();
    QJsonArray traces;
    for (const QString& trace : session.traces) {
        traces.append(relative(trace, folder));
    }
    QJsonObject object = to_json(session.view, folder);
    object[u"ponderscope_session"_s] = version;
    object[u"traces"_s] = traces;
    object[u"layout"_s] = QString::fromLatin1(session.layout.toBase64());
    QJsonArray views;
    for (const SavedView& saved : session.views) {
        QJsonObject one = to_json(saved.view, folder);
        one[u"name"_s] = saved.name;
        one[u"panel"_s] = saved.panel;
        views.append(one);
    }
    object[u"views"_s] = views;
    if (const QFileInfo there(file); there.exists() && !there.isFile()) {
        return u"%1 is not a file. Choose another name for the session."_s.arg(file);
    }
    QSaveFile out(file);
    const QByteArray bytes = QJsonDocument(object).toJson();
    if (!out.open(QIODevice::WriteOnly) || out.write(bytes) != bytes.size() || !out.commit()) {
        return u"%1 could not be written: %2"_s.arg(file, out.errorString());
    }
    return {};
}

std::optional<Session> load_session(const QString& file, QString& problem) {
    const auto refuse = [&](const QString& found) {
        problem =
            u"%1: expected a session file of Ponderscope, found %2. Choose another file."_s.arg(file, found);
        return std::nullopt;
    };
    QFile in(file);
    if (!in.open(QIODevice::ReadOnly)) {
        problem = u"%1 could not be read: %2"_s.arg(file, in.errorString());
        return std::nullopt;
    }
    if (in.size() > largest_session) {
        return refuse(u"a file of %1 bytes, which is too large"_s.arg(in.size()));
    }
    QJsonParseError error;
    const QJsonObject object = QJsonDocument::fromJson(in.readAll(), &error).object();
    const int found = object.value(QLatin1String("ponderscope_session")).toInt();
    if (found > 0 && found < version) {
        problem =
            u"An older Ponderscope saved %1. Open the session's traces and save a new session."_s.arg(file);
        return std::nullopt;
    }
    if (found != version) {
        return refuse(error.error != QJsonParseError::NoError ? u"a file without JSON"_s
                      : found > version                       ? u"version %1"_s.arg(found)
                                                              : u"other JSON"_s);
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
