// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>
#include <QStringList>

#include <map>

namespace ponderscope {

/// What happens to open files from outside: they grow while another process records, vanish, are replaced, or
/// become shorter. Asked now and then; says each thing once. Looks at names and sizes, never inside.
class TraceWatch {
public:
    enum class Event {
        moved,    ///< its time stamp, or its WAL's: look for new runs
        gone,     ///< no file of that name; what was read stays
        replaced, ///< another file has its name: also when one comes back
        shrunk,   ///< cut off: pages that it promises are missing
    };
    struct Change {
        QString trace;
        Event event;
    };
    QList<Change> check(const QStringList& traces);

private:
    struct Seen {
        quint64 device = 0;
        quint64 inode = 0;
        qint64 size = 0;
        qint64 stamp = 0; ///< nanoseconds, of file and WAL
        bool gone = false;
    };
    std::map<QString, Seen> seen_;
};

} // namespace ponderscope
