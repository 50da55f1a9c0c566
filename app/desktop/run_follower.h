// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/selection.h"
#include "views/common/trace_data.h"

#include <QObject>
#include <QString>

#include <vector>

namespace ponderscope {

class Opener;

/// The first open run over the same text as \p run, other than \p run. Invalid: none.
RunKey run_over_same_text(const TraceData& data, const RunKey& run);

/// Shows the runs that this window makes. Shows a recording from its beginning, a what-if beside its original
/// run, a rerun as B, and a generation from its first token on. Selects a finished run only if the user has
/// not selected another run since the request.
class RunFollower : public QObject {
    Q_OBJECT
public:
    enum class As { a, b };
    /// All arguments must outlive the follower.
    RunFollower(TraceData& data, Selection& selection, Opener& opener, QObject* parent = nullptr);
    void listen(); ///< connects to the data; see Opener::listen

    /// The next recording is a what-if about this run. An invalid key: the next recording is not a what-if.
    void ask(const RunKey& question) { next_ = question; }
    /// A recording into \p trace begins.
    void begin(const QString& trace, As as);
    /// The recording ended without a complete run.
    void cancel() { question_ = {}; }
    /// The recording ended with run \p run of \p trace; empty: unknown run.
    void finish(const QString& trace, const QString& run);
    /// The trace of the recording, unless the user closed it; empty: none.
    [[nodiscard]] QString trace() const { return trace_; }
    void forgetTrace() { trace_.clear(); }

    /// A generation begins. Its live run is shown from the first token on.
    void beginLive() { liveFrom_ = selection_.runA(); }
    void showLive(const RunKey& live);
    /// \p parent: the run that the generation continues, shown as B. Invalid: none.
    void finishLive(const RunKey& live, const QString& trace, const QString& run, const RunKey& parent);

    /// Shows a run as A. B becomes \p before. If \p before is invalid, B becomes the first run with the same
    /// text in this order: the previous A, the previous B, other open runs.
    void showAsA(const RunKey& key, const RunKey& before);
    /// Updates the remembered selection after the program, not the user, chose run A, B or both.
    void rebase(const RunKey& a, const RunKey& b);

Q_SIGNALS:
    void compared();     ///< a what-if is A, and its original run is B
    void liveRecorded(); ///< the generation's run is in its trace, whether shown or not

private:
    struct Wanted {
        QString trace;
        QString name;
        As as = As::a;
        RunKey before;
        RunKey from; ///< run A at the time of the request
        bool live = false;
        bool shown = true; ///< false: wait for the run without showing it
    };
    void want(Wanted wanted);
    void traceChanged(const QString& trace);
    void showWanted(const QString& trace);
    [[nodiscard]] bool follows() const; ///< whether the recording may change the selection

    TraceData& data_;
    Selection& selection_;
    Opener& opener_;
    QString trace_;
    As as_ = As::a;
    RunKey next_;               ///< original run, if the next recording is a what-if
    RunKey question_;           ///< original run, if this recording is a what-if
    RunKey fromA_, fromB_;      ///< the selection when the recording began
    RunKey fresh_;              ///< the recording's run, once it is known
    std::vector<qint64> known_; ///< runs of the trace before the recording
    RunKey liveFrom_;
    std::vector<Wanted> wanted_;
};

} // namespace ponderscope
