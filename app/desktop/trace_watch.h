// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>
#include <QStringList>

#include <array>
#include <map>

namespace ponderscope {

/// What happens to open files from outside: they grow while another process records, vanish, are replaced, or
/// become shorter. Asked now and then; says each thing once. Looks at names and sizes, never inside.
class TraceWatch {
public:
    enum class Event {
        moved,    ///< its time stamp, or that of its WAL or annotations: look for what is new
        gone,     ///< no file of that name; what was read stays
        replaced, ///< another file has its name: also when one comes back
        shrunk,   ///< cut off: pages that it promises are missing
    };
    struct Change {
        QString trace;
        Event event;
    };
    QList<Change> check(const QStringList& traces);
    /// What happened to it until now is known.
    void forget(const QString& trace) { seen_.erase(trace); }

private:
    struct Seen {
        quint64 device = 0;
        quint64 inode = 0;
        qint64 size = 0;
        std::array<qint64, 3> stamps{}; ///< nanoseconds, of file, WAL and annotations; 0: none
        bool gone = false;
    };
    std::map<QString, Seen> seen_;
};

} // namespace ponderscope
