// SPDX-License-Identifier: GPL-3.0-or-later
// Before Qt, whose keyword `signals` is a name there.
#include "core/trace/reader.h"

#include "views/common/trace_data.h"

#include "core/base/error.h"
#include "views/common/format.h"
#include "views/common/job_queue.h"
#include "views/common/trace_blocks.h"
#include "views/common/trace_contents.h"

#include <QFileInfo>
#include <QHash>
#include <QSet>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <tuple>

#undef signals

namespace ponderscope {

namespace {

std::filesystem::path to_path(const QString& name) {
    return std::filesystem::path(name.toStdU16String());
}

std::size_t bytes_of(const SequenceData& data) {
    return data.text.size() +
           data.tokens.size() * (4 + 8 + 8 + 4 + 4 + 4 + 4 + 4 + 8 + sizeof(float) * data.annotations.size());
}

/// One cached block: a sequence (empty name) or a signal of one.
struct BlockKey {
    RunKey run;
    qint64 sequence = 0;
    QString name;
    friend bool operator<(const BlockKey& a, const BlockKey& b) {
        return std::tie(a.run.trace, a.run.run, a.sequence, a.name) <
               std::tie(b.run.trace, b.run.run, b.sequence, b.name);
    }
};

struct Block {
    std::shared_ptr<const SequenceData> sequence;
    std::shared_ptr<const SignalChunk> chunk;
    std::size_t bytes = 0;
    std::int64_t tokens = 0; ///< that the file had when the block was read
    quint64 used = 0;        ///< a clock of uses
    bool pending = false;
    bool absent = false; ///< asked and not there
};

} // namespace

struct TraceData::Impl {
    explicit Impl(TraceData& self, std::size_t limit) : owner(self), cacheLimit(limit) {}

    /// Runs \p call on the GUI thread, unless the owner is gone by then.
    template <typename Call>
    void reply(Call call) {
        QMetaObject::invokeMethod(&owner, std::move(call), Qt::QueuedConnection);
    }

    /// Worker thread only. Opens on first use; throws InputError.
    TraceReader& reader(const QString& trace, bool again = false) {
        auto place = readers.find(trace);
        if (again && place != readers.end()) {
            readers.erase(place);
            place = readers.end();
        }
        if (place == readers.end()) {
            place = readers.emplace(trace, TraceReader::open(to_path(trace))).first;
        }
        return place->second;
    }

    void fail(const QString& trace, const std::exception& error, const std::function<void()>& also = {}) {
        const QString sentence = QString::fromUtf8(error.what());
        reply([this, trace, sentence, also] {
            if (also) {
                also();
            }
            emit owner.failed(trace, sentence);
        });
    }

    void forgetTrace(const QString& trace) {
        for (auto it = blocks.begin(); it != blocks.end();) {
            if (it->first.run.trace == trace) {
                cached -= it->second.bytes;
                it = blocks.erase(it);
            } else {
                ++it;
            }
        }
        std::erase_if(labels, [&](const auto& entry) { return entry.first.trace == trace; });
        std::erase_if(labelsPending, [&](const auto& entry) { return entry.first.trace == trace; });
    }

    /// Drops the longest unused blocks that no view holds, until the bound is met.
    void trim() {
        while (cached > cacheLimit) {
            auto oldest = blocks.end();
            for (auto it = blocks.begin(); it != blocks.end(); ++it) {
                const Block& block = it->second;
                const bool held = block.sequence.use_count() > 1 || block.chunk.use_count() > 1;
                if (block.bytes > 0 && !block.pending && !held && !live.contains(it->first.run.trace) &&
                    (oldest == blocks.end() || block.used < oldest->second.used)) {
                    oldest = it;
                }
            }
            if (oldest == blocks.end()) {
                return;
            }
            cached -= oldest->second.bytes;
            blocks.erase(oldest);
        }
    }

    void store(const BlockKey& key, std::shared_ptr<const SequenceData> data,
               std::shared_ptr<const SignalChunk> chunk, std::int64_t tokens) {
        Block& block = blocks[key];
        cached -= block.bytes;
        block.bytes = (data ? bytes_of(*data) : 0) + (chunk ? chunk->data.size() : 0);
        cached += block.bytes;
        block.absent = !data && !chunk;
        block.sequence = std::move(data);
        block.chunk = std::move(chunk);
        block.tokens = tokens;
        block.pending = false;
        block.used = ++clock;
        trim();
    }

    [[nodiscard]] const SequenceInfo* info(const RunKey& key, qint64 sequence) const {
        const auto trace = traces.find(key.trace);
        if (trace == traces.end()) {
            return nullptr;
        }
        const auto list = trace->second.sequences.find(key.run);
        if (list == trace->second.sequences.end()) {
            return nullptr;
        }
        const auto& all = list->second;
        if (sequence >= 0 && static_cast<std::size_t>(sequence) < all.size() &&
            all[static_cast<std::size_t>(sequence)].index == sequence) {
            return &all[static_cast<std::size_t>(sequence)];
        }
        const auto found =
            std::find_if(all.begin(), all.end(), [&](const SequenceInfo& s) { return s.index == sequence; });
        return found == all.end() ? nullptr : &*found;
    }

    void loadSequence(const BlockKey& key, std::shared_ptr<const SequenceData> old) {
        jobs.post({key.run.trace,
                   [this, key, old](const std::atomic<bool>& stopped) {
                       try {
                           const auto data =
                               read_sequence(reader(key.run.trace), key.run, key.sequence, old, stopped);
                           reply([this, key, data] {
                               if (!data) {
                                   abandon(key);
                               } else if (traces.contains(key.run.trace)) {
                                   store(key, data, nullptr, static_cast<std::int64_t>(data->tokens.size()));
                                   emit owner.sequenceReady(key.run, key.sequence);
                               }
                           });
                       } catch (const std::exception& error) {
                           fail(key.run.trace, error, [this, key] { store(key, nullptr, nullptr, 0); });
                       }
                   }},
                  true);
    }

    void loadSignal(const BlockKey& key, std::shared_ptr<const SignalChunk> old) {
        jobs.post({key.run.trace,
                   [this, key, old](const std::atomic<bool>& stopped) {
                       try {
                           const ReadSignal read = read_signal(reader(key.run.trace), key.run, key.sequence,
                                                               key.name.toStdString(), old, stopped);
                           reply([this, key, read] {
                               if (read.stopped) {
                                   abandon(key);
                               } else if (traces.contains(key.run.trace)) {
                                   store(key, nullptr, read.chunk, read.chunk ? read.chunk->shape[0] : 0);
                                   emit owner.signalReady(key.run, key.sequence, key.name);
                               }
                           });
                       } catch (const std::exception& error) {
                           fail(key.run.trace, error, [this, key] {
                               store(key, nullptr, nullptr, 0);
                               emit owner.signalReady(key.run, key.sequence, key.name);
                           });
                       }
                   }},
                  true);
    }

    /// A load that was given up: the next asking starts it anew.
    void abandon(const BlockKey& key) {
        const auto place = blocks.find(key);
        if (place != blocks.end()) {
            place->second.pending = false;
        }
    }

    void adopt(const QString& trace, TraceContents fresh) {
        TraceContents& known = traces[trace];
        if (same_contents(known, fresh)) {
            return;
        }
        const bool annotated = known.annotationsStamp != fresh.annotationsStamp;
        known = std::move(fresh);
        // Blocks of sequences that grew are completed; the old ones stay visible until then.
        for (auto& [key, block] : blocks) {
            if (key.run.trace != trace || block.pending) {
                continue;
            }
            const SequenceInfo* now = info(key.run, key.sequence);
            if (now == nullptr) {
                continue;
            }
            if (block.absent) {
                block.absent = false; // the next asking tries again
            } else if (annotated && key.name.isEmpty() && block.sequence) {
                block.pending = true;
                loadSequence(key, block.sequence); // what is read anew lies beside it
            } else if (now->tokens > block.tokens) {
                block.pending = true;
                if (key.name.isEmpty()) {
                    loadSequence(key, block.sequence);
                } else {
                    loadSignal(key, block.chunk);
                }
            }
        }
        emit owner.traceChanged(trace);
    }

    TraceData& owner;
    const std::size_t cacheLimit;

    // GUI thread
    QStringList order;
    std::map<QString, TraceContents> traces;
    std::map<BlockKey, Block> blocks;
    std::size_t cached = 0;
    quint64 clock = 0;
    std::map<RunKey, QHash<int, QString>> labels;
    std::map<RunKey, QSet<int>> labelsPending;
    QSet<QString> refreshing;
    QSet<QString> live;           ///< keys of `traces` that are no files
    QHash<QString, int> closings; ///< of each trace: one that is being opened must not come back
    QString scratch;
    std::set<RunKey> hidden;
    [[nodiscard]] std::vector<RunInfo> runsOf(const QString& trace, bool isHidden) const {
        std::vector<RunInfo> list;
        if (const auto place = traces.find(trace); place != traces.end()) {
            std::copy_if(place->second.runs.begin(), place->second.runs.end(), std::back_inserter(list),
                         [&](const RunInfo& run) {
                             return hidden.contains({trace, run.id}) == isHidden;
                         });
        }
        return list;
    }

    // Worker thread
    std::map<QString, TraceReader> readers;

    JobQueue jobs; // goes first: its thread uses what stands above
};

const TokenAnnotation* SequenceData::annotation(const QString& name) const {
    const auto found = std::find_if(annotations.begin(), annotations.end(),
                                    [&](const TokenAnnotation& one) { return one.name == name; });
    return found == annotations.end() ? nullptr : &*found;
}

TraceData::TraceData(QObject* parent, std::size_t cacheBytes)
    : QObject(parent), impl_(std::make_unique<Impl>(*this, cacheBytes)) {}

TraceData::~TraceData() = default;

void TraceData::open(const QString& path) {
    const QString trace = QFileInfo(path).absoluteFilePath();
    Impl* const impl = impl_.get();
    const int closings = impl->closings.value(trace);
    impl->jobs.post({trace,
                     [impl, trace, closings](const std::atomic<bool>&) {
                         try {
                             TraceContents fresh = read_contents(impl->reader(trace, true));
                             impl->reply([impl, trace, closings, fresh = std::move(fresh)]() mutable {
                                 if (impl->closings.value(trace) != closings) {
                                     return; // closed meanwhile
                                 }
                                 impl->forgetTrace(trace);
                                 impl->traces[trace] = std::move(fresh);
                                 if (!impl->order.contains(trace)) {
                                     impl->order.append(trace);
                                 }
                                 emit impl->owner.traceOpened(trace);
                             });
                         } catch (const std::exception& error) {
                             impl->fail(trace, error);
                         }
                     },
                     true},
                    false);
}

void TraceData::close(const QString& path) {
    const QString trace = QFileInfo(path).absoluteFilePath();
    Impl* const impl = impl_.get();
    impl->jobs.dropTrace(trace);
    impl->jobs.post({trace, [impl, trace](const std::atomic<bool>&) { impl->readers.erase(trace); }, true},
                    false);
    impl->refreshing.remove(trace);
    ++impl->closings[trace];
    std::erase_if(impl->hidden, [&](const RunKey& run) { return run.trace == trace; });
    if (!impl->order.contains(trace)) {
        return;
    }
    impl->order.removeAll(trace);
    impl->traces.erase(trace);
    impl->forgetTrace(trace);
    emit traceClosed(trace);
}

void TraceData::refresh() {
    Impl* const impl = impl_.get();
    for (const QString& trace : std::as_const(impl->order)) {
        if (impl->refreshing.contains(trace)) {
            continue; // a slow disk must not pile up work
        }
        impl->refreshing.insert(trace);
        impl->jobs.post({trace,
                         [impl, trace](const std::atomic<bool>&) {
                             try {
                                 TraceContents fresh = read_contents(impl->reader(trace));
                                 impl->reply([impl, trace, fresh = std::move(fresh)]() mutable {
                                     impl->refreshing.remove(trace);
                                     if (impl->traces.contains(trace)) {
                                         impl->adopt(trace, std::move(fresh));
                                     }
                                 });
                             } catch (const std::exception& error) {
                                 impl->fail(trace, error, [impl, trace] { impl->refreshing.remove(trace); });
                             }
                         },
                         true},
                        false);
    }
}

void TraceData::cancelPending() {
    Impl* const impl = impl_.get();
    impl->jobs.dropInessential();
    for (auto& [key, block] : impl->blocks) {
        block.pending = false;
    }
    impl->labelsPending.clear();
}

void TraceData::showLive(const QString& name, LiveRun run) {
    Impl* const impl = impl_.get();
    const RunKey key{name, run.info.id};
    const qint64 sequence = run.sequence.index;
    const bool fresh = !impl->live.contains(name);
    if (fresh) {
        impl->forgetTrace(name);
        impl->live.insert(name);
    }
    TraceContents contents;
    contents.sequences[key.run] = {run.sequence};
    contents.signalInfos[key.run] = run.signalInfos;
    contents.runs = {std::move(run.info)};
    impl->traces[name] = std::move(contents);
    impl->labels[key].insert(run.labels);
    impl->store({key, sequence, {}}, run.tokens, nullptr, run.sequence.tokens);
    for (const auto& [signalName, chunk] : run.chunks) {
        impl->store({key, sequence, signalName}, nullptr, chunk, run.sequence.tokens);
    }
    if (fresh) {
        emit traceOpened(name);
    } else {
        emit traceChanged(name);
    }
    emit sequenceReady(key, sequence);
    for (const auto& [signalName, chunk] : run.chunks) {
        emit signalReady(key, sequence, signalName);
    }
}

void TraceData::closeLive(const QString& name) {
    if (!impl_->live.remove(name)) {
        return;
    }
    impl_->traces.erase(name);
    impl_->forgetTrace(name);
    emit traceClosed(name);
}

bool TraceData::isLive(const QString& trace) const {
    return impl_->live.contains(trace);
}

bool TraceData::isOpen(const QString& trace) const {
    return impl_->traces.contains(trace);
}

bool TraceData::idle() const {
    return impl_->jobs.idle();
}

std::size_t TraceData::cachedBytes() const {
    return impl_->cached;
}

QStringList TraceData::traces() const {
    return impl_->order;
}

std::vector<RunInfo> TraceData::runs(const QString& trace) const {
    return impl_->runsOf(trace, false);
}

void TraceData::setScratch(const QString& trace) {
    impl_->scratch = trace;
}

bool TraceData::isScratch(const QString& trace) const {
    return !trace.isEmpty() && trace == impl_->scratch;
}

void TraceData::setHidden(const RunKey& run, bool hidden) {
    if (hidden ? impl_->hidden.insert(run).second : impl_->hidden.erase(run) > 0) {
        emit traceChanged(run.trace);
    }
}

std::vector<RunInfo> TraceData::hiddenRuns(const QString& trace) const {
    return impl_->runsOf(trace, true);
}

std::vector<TrainingInfo> TraceData::trainings(const QString& trace) const {
    const auto place = impl_->traces.find(trace);
    return place == impl_->traces.end() ? std::vector<TrainingInfo>{} : place->second.trainings;
}

const RunInfo* TraceData::run(const RunKey& key) const {
    const auto place = impl_->traces.find(key.trace);
    if (place == impl_->traces.end()) {
        return nullptr;
    }
    const auto& runs = place->second.runs;
    const auto found =
        std::find_if(runs.begin(), runs.end(), [&](const RunInfo& info) { return info.id == key.run; });
    return found == runs.end() ? nullptr : &*found;
}

template <class List>
List TraceData::known(const RunKey& key, std::map<qint64, List> TraceContents::*lists) const {
    const auto place = impl_->traces.find(key.trace);
    if (place == impl_->traces.end()) {
        return {};
    }
    const auto& of_runs = place->second.*lists;
    const auto list = of_runs.find(key.run);
    return list == of_runs.end() ? List{} : list->second;
}

std::vector<SequenceInfo> TraceData::sequences(const RunKey& key) const {
    return known(key, &TraceContents::sequences);
}

std::vector<SignalInfo> TraceData::signalsOf(const RunKey& key) const {
    return known(key, &TraceContents::signalInfos);
}

QStringList TraceData::faults(const RunKey& key) const {
    QStringList sentences;
    for (const FaultInfo& fault : known(key, &TraceContents::faults)) {
        sentences << QString::fromStdString(fault.message);
    }
    return sentences;
}

std::shared_ptr<const SequenceData> TraceData::sequence(const RunKey& key, qint64 sequence) {
    if (impl_->info(key, sequence) == nullptr) {
        return nullptr;
    }
    const BlockKey blockKey{key, sequence, {}};
    Block& block = impl_->blocks[blockKey];
    block.used = ++impl_->clock;
    if (!block.sequence && !block.pending && !block.absent && !isLive(key.trace)) {
        block.pending = true;
        impl_->loadSequence(blockKey, nullptr);
    }
    return block.sequence;
}

std::shared_ptr<const SignalChunk> TraceData::signal(const RunKey& key, qint64 sequence,
                                                     const QString& name) {
    if (impl_->info(key, sequence) == nullptr || name.isEmpty()) {
        return nullptr;
    }
    const BlockKey blockKey{key, sequence, name};
    Block& block = impl_->blocks[blockKey];
    block.used = ++impl_->clock;
    if (!block.chunk && !block.pending && !block.absent && !isLive(key.trace)) {
        block.pending = true;
        impl_->loadSignal(blockKey, nullptr);
    }
    return block.chunk;
}

QString TraceData::tokenLabel(const RunKey& key, int id) {
    if (run(key) == nullptr) {
        return {};
    }
    const QHash<int, QString>& known = impl_->labels[key];
    const auto place = known.constFind(id);
    if (place != known.constEnd()) {
        return *place;
    }
    if (isLive(key.trace)) {
        return QStringLiteral("‹id %1›").arg(id); // what is not told is not known
    }
    QSet<int>& pending = impl_->labelsPending[key];
    if (pending.contains(id)) {
        return {};
    }
    const bool first = pending.isEmpty();
    pending.insert(id);
    if (!first) {
        return {};
    }
    // One look-up for all that is asked until the event loop turns.
    Impl* const impl = impl_.get();
    impl->reply([impl, key] {
        const QSet<int> ids = impl->labelsPending[key];
        impl->jobs.post({key.trace,
                         [impl, key, ids](const std::atomic<bool>& stopped) {
                             QHash<int, QString> found;
                             try {
                                 const TraceReader& from = impl->reader(key.trace);
                                 for (const int wanted : ids) {
                                     if (stopped) {
                                         break;
                                     }
                                     const std::string bytes = from.token_bytes(key.run, wanted);
                                     // A token without bytes is named by its id, so that a list is never
                                     // blank.
                                     found.insert(wanted, bytes.empty()
                                                              ? QStringLiteral("‹id %1›").arg(wanted)
                                                              : visible_token(bytes));
                                 }
                             } catch (const std::exception& error) {
                                 for (const int wanted : ids) {
                                     found.insert(wanted, QStringLiteral("‹id %1›").arg(wanted));
                                 }
                                 impl->fail(key.trace, error);
                             }
                             impl->reply([impl, key, ids, found = std::move(found)] {
                                 if (!impl->traces.contains(key.trace)) {
                                     return;
                                 }
                                 impl->labels[key].insert(found);
                                 QSet<int>& rest = impl->labelsPending[key];
                                 rest.subtract(ids);
                                 if (!rest.isEmpty()) {
                                     const QSet<int> again = rest;
                                     rest.clear();
                                     for (const int wanted : again) {
                                         static_cast<void>(impl->owner.tokenLabel(key, wanted));
                                     }
                                 }
                                 emit impl->owner.tokenLabelsReady(key);
                             });
                         }},
                        true);
    });
    return {};
}

} // namespace ponderscope
