// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/view_context.h"

#include <QObject>
#include <QString>

#include <map>
#include <vector>

namespace ponderscope {

/// Something pinned to a token: a note, or a bookmark, which is a note without words. It belongs to the text
/// and so to every run over it.
struct Note {
    QString textDigest; ///< of the run's text
    qint64 sequence = 0;
    qint64 token = 0;
    QString text;    ///< empty: a bookmark
    QString word;    ///< what the token said when the note was made; for lists
    QString created; ///< ISO 8601, UTC
    friend bool operator==(const Note&, const Note&) = default;
};

/// Notes of all open traces, each in a small file beside its trace (TRACE.ponder.notes.json), because a trace
/// is never written to. Where that folder may not be written to they lie in \p fallback. A file that cannot
/// be read is left alone and said; nothing is written over it. GUI thread only.
class Notes : public QObject {
    Q_OBJECT
public:
    /// \p fallback: a folder, made when it is needed.
    Notes(const ViewContext& context, QString fallback, QObject* parent = nullptr);

    [[nodiscard]] std::vector<Note> of(const QString& trace) const; ///< by sequence and token
    [[nodiscard]] const Note* find(const RunKey& run, qint64 sequence, qint64 token) const;
    /// Ascending tokens of the sequence that carry one.
    [[nodiscard]] std::vector<qint64> tokens(const RunKey& run, qint64 sequence) const;
    /// Pins \p text to a token, in the place of what was there.
    void put(const RunKey& run, qint64 sequence, qint64 token, const QString& text);
    void remove(const QString& trace, const Note& note);
    /// Where the notes of an open trace are kept; perhaps not yet.
    [[nodiscard]] QString file(const QString& trace) const;
    [[nodiscard]] static QString sidecar(const QString& trace);

Q_SIGNALS:
    void changed();
    void failed(const QString& sentence);

private:
    struct File {
        QString path;
        bool broken = false;  ///< somebody else's, or damaged: not written over
        bool unsaved = false; ///< could not be written: these are all that there is
        std::vector<Note> notes;
    };
    void load(const QString& trace);
    /// Reads the file again before it is changed: another window may have written there meanwhile.
    void takeIn(const QString& trace);
    void save(const QString& trace);
    [[nodiscard]] QString fallbackFile(const QString& trace) const;
    [[nodiscard]] QString digest(const RunKey& run) const;

    ViewContext context_;
    QString fallback_;
    std::map<QString, File> files_;
};

} // namespace ponderscope
