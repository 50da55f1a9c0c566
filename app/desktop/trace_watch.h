// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>
#include <QStringList>

#include <array>
#include <map>
#include <memory>
#include <optional>

namespace ponderscope {

namespace remote {
class Watch;
}

/// What happens to open files from outside: they grow while another process records, vanish, are replaced, or
/// become shorter. Asked now and then; says each thing once. Looks at names and sizes, never inside, and
/// never waits for another machine.
class TraceWatch {
public:
    enum class Event {
        moved,    ///< its time stamp, or that of its WAL or annotations, or seen first: look for what is new
        gone,     ///< no file of that name; what was read stays
        replaced, ///< another file has its name: also when one comes back
        shrunk,   ///< cut off: pages that it promises are missing
        cut,      ///< it lies on another machine, and there is no connection; machineFault() says why
        back,     ///< there is one again, even where nobody looked while there was none
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
    /// Of files here, what the file system says now. From any thread: a disk may keep it waiting.
    using Looks = std::map<QString, Seen>;
    [[nodiscard]] static Looks look(const QStringList& traces);
    QList<Change> check(const QStringList& traces, const Looks& looks);
    /// What happened to it until now is known.
    void forget(const QString& trace) { seen_.erase(trace); }
    /// Whether a file that may come is there and has something in it. On another machine the answer takes a
    /// while.
    [[nodiscard]] bool hasCome(const QString& trace, const Looks& looks);
    /// Why there is no connection to where a trace lies, a sentence.
    [[nodiscard]] QString machineFault(const QString& trace) const;

private:
    [[nodiscard]] std::optional<Seen> seen(const QString& trace, const Looks& looks);
    std::map<QString, Seen> seen_;
    std::map<QString, std::shared_ptr<remote::Watch>> far_;
    struct Line {
        bool cut = false;
        int times = 0; ///< that a connection stood
    };
    std::map<QString, Line> lines_; ///< of those there, as it was at the last check
};

} // namespace ponderscope
