// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/selection.h"
#include "views/common/task.h"
#include "views/common/trace_data.h"

#include <QObject>
#include <QSet>
#include <QStringList>

#include <functional>
#include <utility>
#include <vector>

namespace ponderscope {

/// Finds out what a name is, here and on other machines, and opens it: a trace, TRACE#RUN, the folder of
/// shards or of a training, a session, a checkpoint. Keeps what shall be shown of a trace until it is there.
class Opener : public QObject {
    Q_OBJECT
public:
    /// Both outlive it.
    Opener(TraceData& data, Selection& selection, QObject* parent = nullptr);
    /// From here on it answers what \p data reports: after all views, which then know what it selects.
    void listen();

    void open(const QString& path);
    /// A trace by its absolute name; a trace that is open is read again.
    void openTrace(const QString& trace, const QString& run = {});
    [[nodiscard]] bool isBusy() const { return !opening_.isEmpty(); }
    [[nodiscard]] bool isOpening(const QString& trace) const { return opening_.contains(trace); }
    /// Calls \p call once, when nothing is being opened after the next trace was opened or refused.
    void then(std::function<void()> call) { then_.push_back(std::move(call)); }

Q_SIGNALS:
    void started(const QString& path);
    void opened(const QString& trace); ///< and what was named in it is selected
    void failed(const QString& sentence);
    void checkpointFound(const QString& folder);
    void sessionFound(const QString& file);
    void trainingFound();
    void folderFound(const QString& url); ///< on another machine, of nothing that can be opened
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

} // namespace ponderscope
