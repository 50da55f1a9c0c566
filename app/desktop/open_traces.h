// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/desktop/run_follower.h"
#include "app/desktop/shell.h"
#include "views/common/selection.h"
#include "views/common/task.h"
#include "views/common/trace_data.h"

#include <QObject>
#include <QSet>
#include <QString>
#include <QStringList>
#include <QTimer>

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace ponderscope {

namespace remote {
class Watch;
}

/// Watches open files for changes by other processes: files grow while another process records, vanish, are
/// replaced, or become shorter. Polled at intervals; reports each change once. Looks at names and sizes,
/// never inside, and never waits for another machine.
class TraceWatch {
public:
    enum class Event {
        moved,    ///< its time stamp, or that of its WAL or annotations, or seen first: look for what is new
        gone,     ///< no file of that name; what was read stays
        replaced, ///< another file has its name: also when one comes back
        shrunk,   ///< cut off: pages that it promises are missing
        cut,      ///< it is on another machine without a connection; machineFault() says why
        back,     ///< a connection exists again
    };
    struct Change {
        QString trace; ///< or one of its shards
        Event event;
    };
    struct Seen {
        quint64 device = 0;
        quint64 inode = 0;
        qint64 size = 0;
        std::array<qint64, 3> stamps{}; ///< nanoseconds, of file, WAL and annotations; 0: none
        bool gone = false;
    };
    /// The file system's answer for each local file. look() may run on any thread: a disk may keep it
    /// waiting.
    using Looks = std::map<QString, Seen>;
    [[nodiscard]] static Looks look(const QStringList& traces);
    QList<Change> check(const QStringList& traces, const Looks& looks);
    /// Drops the known state of \p trace: changes until now are not reported.
    void forget(const QString& trace) { seen_.erase(trace); }
    /// Whether a file that may come is there and has something in it. On another machine the answer takes a
    /// while.
    [[nodiscard]] bool hasCome(const QString& trace, const Looks& looks);
    /// Why there is no connection to the machine of a trace, a sentence.
    [[nodiscard]] QString machineFault(const QString& trace) const;

private:
    [[nodiscard]] std::optional<Seen> seen(const QString& trace, const Looks& looks);
    std::map<QString, Seen> seen_;
    std::map<QString, std::shared_ptr<remote::Watch>> far_;
    struct Line {
        bool cut = false;
        int times = 0; ///< connections made so far
    };
    std::map<QString, Line> lines_; ///< of those there, as it was at the last check
};

/// Finds out what a name is, here and on other machines, and opens it: a trace, TRACE#RUN, the folder of
/// shards or of a training, a session, a checkpoint. Keeps what shall be shown of a trace until it is there.
class Opener : public QObject {
    Q_OBJECT
public:
    /// \p data and \p selection must outlive the opener.
    Opener(TraceData& data, Selection& selection, QObject* parent = nullptr);
    /// Connects to \p data, after all views, so that these know a run before it is selected.
    void listen();

    void open(const QString& path);
    /// A trace by its absolute name; a trace that is open is read again.
    void openTrace(const QString& trace, const QString& run = {});
    [[nodiscard]] bool isBusy() const { return !opening_.isEmpty(); }
    [[nodiscard]] bool isOpening(const QString& trace) const { return opening_.contains(trace); }
    /// Calls \p call once, after the next trace was opened or refused and no other is being opened.
    void then(std::function<void()> call) { then_.push_back(std::move(call)); }

Q_SIGNALS:
    void started(const QString& path);
    void opened(const QString& trace); ///< and what was named in it is selected
    void failed(const QString& sentence);
    void checkpointFound(const QString& folder);
    void sessionFound(const QString& file);
    void trainingFound();
    /// Another machine is being asked (\p on), or has answered.
    void waiting(const QString& sentence, bool on);

private:
    void openElsewhere(const QString& path);
    void askElsewhere();
    void refuse(const QString& sentence);
    void ended(const QString& path);
    void settle();

    TraceData& data_;
    Selection& selection_;
    QSet<QString> opening_;
    /// Runs of TRACE#RUN: of those that are opened together the first is A, the second B.
    struct Wanted {
        QString trace, run;
        int side;
    };
    std::vector<Wanted> wanted_;
    int sides_ = 0; ///< runs that were named since nothing was being opened
    std::vector<std::function<void()>> then_;
    QStringList asked_; ///< names on other machines, asked about in turn
    Task asking_{this};
};

/// The traces of a window: opening, showing the runs that this window makes, and handling files that change
/// while open. Chooses runs A and B where the user has not: when the first trace opens, and when a run is
/// gone.
class OpenTraces : public ShellPart {
    Q_OBJECT
public:
    /// After all views, which then know what is selected when a trace has opened.
    explicit OpenTraces(const Shell& shell);
    [[nodiscard]] Opener& opener() { return opener_; }
    [[nodiscard]] RunFollower& follower() { return follower_; }
    void setRecording(std::function<bool()> isRecording) { isRecording_ = std::move(isRecording); }
    /// Another file lies under the same name now, by our own doing.
    void reopen(const QString& trace);

public Q_SLOTS:
    void poll();

private:
    void follow(const TraceWatch::Change& change);
    void chooseRuns();             ///< replaces A or B if its run is gone
    void compareOverTheSameText(); ///< B reads what A reads, where another run does
    void fitSequence();            ///< to one that run A has

    Opener opener_{data_, selection_};
    RunFollower follower_{data_, selection_, opener_};
    RunKey lastB_;
    bool withoutB_ = false; ///< B was given up by choice: none is chosen for the user
    std::function<bool()> isRecording_ = [] { return false; };
    QTimer poll_;
    TraceWatch watch_;
    Task watching_{this}; ///< asks the file system about the open files
};

} // namespace ponderscope
