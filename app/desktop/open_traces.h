// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/desktop/run_follower.h"
#include "app/desktop/shell.h"
#include "core/remote/file.h"
#include "views/common/task.h"

#include <QObject>
#include <QSet>
#include <QString>
#include <QStringList>
#include <QTimer>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace ponderscope {

/// Watches open files for changes by other processes. Detects growth, removal, replacement and truncation.
/// Reports each change once. Checks names and sizes, never contents, and never waits for another machine.
class TraceWatch {
public:
    enum class Event {
        moved,    ///< first check, or the file, its WAL or its annotations changed; to be read again
        gone,     ///< no file with this name; loaded data stays
        replaced, ///< another file has this name
        shrunk,   ///< truncated: the file is smaller than at the last check
        cut,      ///< no connection to the trace's machine; see machineFault()
        back,     ///< the connection was restored
    };
    struct Change {
        QString trace; ///< the trace, or one of its shards
        Event event;
    };
    /// States of files by name. look() reads local files, on any thread, because a disk may be slow.
    using Looks = std::map<QString, remote::Looked>;
    [[nodiscard]] static Looks look(const QStringList& traces);
    QList<Change> check(const QStringList& traces, const Looks& looks);
    /// Drops the known state of \p trace, so that earlier changes are not reported.
    void forget(const QString& trace) { seen_.erase(trace); }
    /// Whether an expected file exists and is not empty. False while another machine has not answered.
    [[nodiscard]] bool hasCome(const QString& trace, const Looks& looks);
    /// The reason for a missing connection to the trace's machine, one sentence.
    [[nodiscard]] QString machineFault(const QString& trace) const;

private:
    [[nodiscard]] std::optional<remote::Looked> seen(const QString& trace, const Looks& looks);
    Looks seen_;
    std::map<QString, std::shared_ptr<remote::Watch>> far_;
    struct Line {
        bool cut = false;
        int times = 0; ///< number of connections so far
    };
    std::map<QString, Line> lines_; ///< connections to other machines at the last check
};

/// Opens a path on this or another machine: a trace, TRACE#RUN, a folder of shards or of a training, a
/// session, a checkpoint. Keeps the requested run until the trace is open.
class Opener : public QObject {
    Q_OBJECT
public:
    /// \p data and \p selection must outlive the object.
    Opener(TraceData& data, Selection& selection, QObject* parent = nullptr);
    /// Connects to the data. Call it after all views connect: views must know a run before it is selected.
    void listen();

    void open(const QString& path);
    /// Opens a trace by its absolute path. If the trace is open, reads it again.
    void openTrace(const QString& trace, const QString& run = {});
    [[nodiscard]] bool isBusy() const { return !opening_.isEmpty(); }
    [[nodiscard]] bool isOpening(const QString& trace) const { return opening_.contains(trace); }
    /// Calls \p call once, when the next trace has opened or failed and no other is being opened.
    void then(std::function<void()> call) { then_.push_back(std::move(call)); }

Q_SIGNALS:
    void started(const QString& path);
    void opened(const QString& trace); ///< the trace is open, and its requested run is selected
    void failed(const QString& sentence);
    void checkpointFound(const QString& folder);
    void sessionFound(const QString& file);
    void trainingFound();
    /// A request to another machine has begun (\p on) or ended.
    void waiting(const QString& sentence, bool on);

private:
    struct Found {
        remote::Looked looked;
        bool shards = false; ///< a folder, a pattern, or the name of a trace that consists of shards
    };
    static Found look(const QString& place); ///< thread-safe
    void follow(const QString& path, const Found& found);
    void askElsewhere();
    void refuse(const QString& sentence);
    void ended(const QString& path);
    void settle();

    TraceData& data_;
    Selection& selection_;
    QSet<QString> opening_;
    /// Requested runs of TRACE#RUN. If traces are opened together, the first run becomes A, the second B.
    struct Wanted {
        QString trace, run;
        int side;
    };
    std::vector<Wanted> wanted_;
    int sides_ = 0; ///< number of requested runs; 0 again when no trace is being opened
    std::vector<std::function<void()>> then_;
    QStringList asked_; ///< paths on other machines, still to be checked in order
    Task asking_{this};
};

/// The traces of a window: opens them, shows the runs that this window makes, and handles changes of open
/// files. Chooses runs A and B if the user has not: when the first trace opens, and when a run disappears.
class OpenTraces : public ShellPart {
    Q_OBJECT
public:
    /// Construct this object after all views, so that views receive signals of a trace first.
    explicit OpenTraces(const Shell& shell);
    [[nodiscard]] Opener& opener() { return opener_; }
    [[nodiscard]] RunFollower& follower() { return follower_; }
    void setRecording(std::function<bool()> isRecording) { isRecording_ = std::move(isRecording); }
    /// Stops watching the trace until reopen(). Call it before this program replaces the file.
    void pauseWatch(const QString& trace);
    /// Reads the path again after this program replaced its file.
    void reopen(const QString& trace);

public Q_SLOTS:
    /// Opens a trace, TRACE#RUN, a session, or a checkpoint (in the Run dialog). The sample opens as a copy.
    void open(const QString& path);
    void openFiles();
    void openLocation(); ///< asks for a path, also on another machine
    void poll();

Q_SIGNALS:
    void looked(); ///< a poll of the files has ended, and its changes were handled

private:
    void follow(const TraceWatch::Change& change);
    void chooseRuns(); ///< replaces A or B if its run has disappeared
    /// Sets B to an open run with A's text, unless the user has removed B.
    void compareOverTheSameText();
    void fitSequence(); ///< selects a sequence that run A has

    Opener opener_{data_, selection_};
    RunFollower follower_{data_, selection_, opener_};
    RunKey lastB_;
    bool withoutB_ = false; ///< the user removed B, so no B is chosen automatically
    std::function<bool()> isRecording_ = [] { return false; };
    QTimer poll_;
    QString unwatched_; ///< a trace whose file this program replaces
    TraceWatch watch_;
    Task watching_{this}; ///< checks the open files
};

} // namespace ponderscope
