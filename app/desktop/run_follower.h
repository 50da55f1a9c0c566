// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/selection.h"
#include "views/common/trace_data.h"

#include <QObject>
#include <QString>

#include <vector>

namespace ponderscope {

class Opener;

/// Shows the runs that this window makes: a recording as soon as it has begun, a what-if beside its original
/// run, a rerun as B, a generation while it runs and once it is recorded.
///
/// A finished run is selected only if the user has not selected another run since it was requested.
class RunFollower : public QObject {
    Q_OBJECT
public:
    enum class As { a, b };
    /// All arguments must outlive the follower.
    RunFollower(TraceData& data, Selection& selection, Opener& opener, QObject* parent = nullptr);
    void listen(); ///< as Opener::listen

    /// The next recording is a what-if about this run; invalid: about none.
    void ask(const RunKey& question) { next_ = question; }
    /// A recording into \p trace begins.
    void begin(const QString& trace, As as);
    /// The recording ended without a complete run.
    void cancel() { question_ = {}; }
    /// The recording ended with run \p run of \p trace; empty: the run is not known.
    void finish(const QString& trace, const QString& run);
    /// The trace that is recorded into, unless the user closed it; empty: none.
    [[nodiscard]] QString trace() const { return trace_; }
    void forgetTrace() { trace_.clear(); }

    /// A generation begins; its live run is shown when it has its first token.
    void beginLive() { liveFrom_ = selection_.runA(); }
    void showLive(const RunKey& live);
    void finishLive(const RunKey& live, const QString& trace, const QString& run);

    /// A with the run that it is best compared with as B: \p before, what A or B was, any over the same text.
    void showAsA(const RunKey& key, const RunKey& before);
    /// Run A, B or both were chosen by the program: the user has not gone anywhere.
    void rebase(const RunKey& a, const RunKey& b);

Q_SIGNALS:
    void compared();     ///< a what-if is A, and the run that it is about is B
    void liveRecorded(); ///< the run of a generation is in its trace, shown or not

private:
    struct Wanted {
        QString trace;
        QString name;
        As as = As::a;
        RunKey before;
        RunKey from; ///< run A at the time of the request
        bool live = false;
        bool shown = true; ///< false: only waited for
    };
    void want(Wanted wanted);
    void traceChanged(const QString& trace);
    void showWanted(const QString& trace);
    [[nodiscard]] bool follows() const; ///< the recording

    TraceData& data_;
    Selection& selection_;
    Opener& opener_;
    QString trace_;
    As as_ = As::a;
    RunKey next_;               ///< the question of the next recording
    RunKey question_;           ///< of this one
    RunKey fromA_, fromB_;      ///< the selection when the recording began
    RunKey fresh_;              ///< its run, once it is known
    std::vector<qint64> known_; ///< runs of the trace before it
    RunKey liveFrom_;
    std::vector<Wanted> wanted_;
};

} // namespace ponderscope
