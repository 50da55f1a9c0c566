// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/notes/notes.h"

#include "views/common/format.h"
#include "views/common/whole_characters.h"

#include <QCryptographicHash>
#include <QDateTime>
#include <QDir>
#include <QFileInfo>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QSaveFile>

#include <algorithm>
#include <tuple>

namespace ponderscope {

namespace {

constexpr qint64 largest_file = 16 << 20;
constexpr int version = 1;

bool before(const Note& a, const Note& b) {
    return std::tie(a.textDigest, a.sequence, a.token) < std::tie(b.textDigest, b.sequence, b.token);
}

bool same_place(const Note& a, const Note& b) {
    return a.textDigest == b.textDigest && a.sequence == b.sequence && a.token == b.token;
}

} // namespace

Notes::Notes(const ViewContext& context, QString fallback, QObject* parent)
    : QObject(parent), context_(context), fallback_(std::move(fallback)) {
    connect(&context_.data, &TraceData::traceOpened, this, [this](const QString& trace) {
        if (!context_.data.isLive(trace)) {
            load(trace);
        }
    });
    connect(&context_.data, &TraceData::traceClosed, this, [this](const QString& trace) {
        if (files_.erase(trace) > 0) {
            Q_EMIT changed();
        }
    });
}

QString Notes::sidecar(const QString& trace) {
    return trace + QStringLiteral(".notes.json");
}

QString Notes::fallbackFile(const QString& trace) const {
    const QByteArray name =
        QCryptographicHash::hash(trace.toUtf8(), QCryptographicHash::Sha1).toHex().left(16);
    return QDir(fallback_).filePath(QFileInfo(trace).fileName() + u'-' + QString::fromLatin1(name) +
                                    QStringLiteral(".notes.json"));
}

QString Notes::digest(const RunKey& run) const {
    const RunInfo* info = context_.data.run(run);
    return info == nullptr ? QString() : QString::fromStdString(info->text_digest);
}

void Notes::load(const QString& trace) {
    File& file = files_[trace];
    file = {};
    file.path = QFileInfo::exists(sidecar(trace))        ? sidecar(trace)
                : QFileInfo::exists(fallbackFile(trace)) ? fallbackFile(trace)
                                                         : sidecar(trace);
    QFile in(file.path);
    if (!in.exists()) {
        Q_EMIT changed();
        return;
    }
    const auto refuse = [&](const QString& found) {
        file.broken = true;
        Q_EMIT failed(tr("%1: expected notes of this program, found %2; it is left alone, and notes on this "
                         "trace are not "
                         "kept until it is moved away.")
                          .arg(file.path, found));
        Q_EMIT changed();
    };
    if (in.size() > largest_file || !in.open(QIODevice::ReadOnly)) {
        refuse(in.size() > largest_file ? tr("%1").arg(format_bytes(in.size())) : in.errorString());
        return;
    }
    const QJsonObject object = QJsonDocument::fromJson(in.readAll()).object();
    if (object.value(QLatin1String("ponderscope_notes")).toInt() != version) {
        refuse(object.isEmpty() ? tr("something else") : tr("another version"));
        return;
    }
    const QJsonArray list = object.value(QLatin1String("notes")).toArray();
    for (const QJsonValue value : list) {
        const QJsonObject one = value.toObject();
        Note note;
        note.textDigest = one.value(QLatin1String("text_digest")).toString();
        note.sequence = one.value(QLatin1String("sequence")).toInteger(-1);
        note.token = one.value(QLatin1String("token")).toInteger(-1);
        note.text = one.value(QLatin1String("text")).toString();
        note.word = one.value(QLatin1String("word")).toString();
        note.created = one.value(QLatin1String("created")).toString();
        const auto known = std::find_if(file.notes.begin(), file.notes.end(),
                                        [&](const Note& other) { return same_place(other, note); });
        if (note.sequence >= 0 && note.token >= 0 && known == file.notes.end()) {
            file.notes.push_back(std::move(note));
        }
    }
    std::sort(file.notes.begin(), file.notes.end(), before);
    Q_EMIT changed();
}

void Notes::takeIn(const QString& trace) {
    const auto place = files_.find(trace);
    if (place != files_.end() && !place->second.broken && !place->second.unsaved &&
        QFileInfo::exists(place->second.path)) {
        load(trace);
    }
}

void Notes::save(const QString& trace) {
    File& file = files_[trace];
    if (file.broken) {
        Q_EMIT failed(
            tr("%1 is not a file of notes and is not written over; move it away to keep notes on this trace.")
                .arg(file.path));
        return;
    }
    QJsonArray list;
    for (const Note& note : file.notes) {
        list.append(QJsonObject{{QStringLiteral("text_digest"), note.textDigest},
                                {QStringLiteral("sequence"), note.sequence},
                                {QStringLiteral("token"), note.token},
                                {QStringLiteral("text"), note.text},
                                {QStringLiteral("word"), note.word},
                                {QStringLiteral("created"), note.created}});
    }
    const QByteArray bytes = QJsonDocument(QJsonObject{{QStringLiteral("ponderscope_notes"), version},
                                                       {QStringLiteral("notes"), list}})
                                 .toJson();
    QString error;
    const auto write = [&](const QString& path) {
        QSaveFile out(path);
        const bool ok = out.open(QIODevice::WriteOnly) && out.write(bytes) == bytes.size() && out.commit();
        error = out.errorString();
        return ok;
    };
    file.unsaved = false;
    if (write(file.path)) {
        return;
    }
    const QString instead = fallbackFile(trace);
    if (instead != file.path && QDir().mkpath(fallback_) && write(instead)) {
        file.path = instead;
        return;
    }
    file.unsaved = true;
    Q_EMIT failed(
        tr("%1 could not be written (%2); the notes stay until the window is closed.").arg(file.path, error));
}

std::vector<Note> Notes::of(const QString& trace) const {
    const auto place = files_.find(trace);
    return place == files_.end() ? std::vector<Note>{} : place->second.notes;
}

const Note* Notes::find(const RunKey& run, qint64 sequence, qint64 token) const {
    const auto place = files_.find(run.trace);
    if (place == files_.end()) {
        return nullptr;
    }
    const Note wanted{digest(run), sequence, token, {}, {}, {}};
    const auto& notes = place->second.notes;
    const auto found =
        std::find_if(notes.begin(), notes.end(), [&](const Note& note) { return same_place(note, wanted); });
    return found == notes.end() ? nullptr : &*found;
}

std::vector<qint64> Notes::tokens(const RunKey& run, qint64 sequence) const {
    std::vector<qint64> tokens;
    const QString text = digest(run);
    for (const Note& note : of(run.trace)) {
        if (note.textDigest == text && note.sequence == sequence) {
            tokens.push_back(note.token);
        }
    }
    return tokens; // the notes are in order
}

void Notes::put(const RunKey& run, qint64 sequence, qint64 token, const QString& text) {
    if (context_.data.run(run) == nullptr || context_.data.isLive(run.trace)) {
        return;
    }
    Note note{digest(run), sequence, token, text, {}, QDateTime::currentDateTimeUtc().toString(Qt::ISODate)};
    const auto block = context_.data.sequence(run, sequence);
    if (block && token >= 0 && token < static_cast<qint64>(block->tokens.size())) {
        note.word = visible_token_of(block->tokens, block->text, static_cast<std::size_t>(token));
    }
    takeIn(run.trace);
    std::vector<Note>& notes = files_[run.trace].notes;
    if (files_[run.trace].path.isEmpty()) {
        files_[run.trace].path = sidecar(run.trace);
    }
    std::erase_if(notes, [&](const Note& other) { return same_place(other, note); });
    notes.insert(std::upper_bound(notes.begin(), notes.end(), note, before), note);
    save(run.trace);
    Q_EMIT changed();
}

void Notes::remove(const QString& trace, const Note& note) {
    const auto place = files_.find(trace);
    if (place == files_.end()) {
        return;
    }
    const Note gone = note; // it may lie in the list itself
    takeIn(trace);
    if (std::erase_if(place->second.notes, [&](const Note& other) { return same_place(other, gone); }) > 0) {
        save(trace);
        Q_EMIT changed();
    }
}

QString Notes::file(const QString& trace) const {
    const auto place = files_.find(trace);
    return place == files_.end() ? sidecar(trace) : place->second.path;
}

} // namespace ponderscope
