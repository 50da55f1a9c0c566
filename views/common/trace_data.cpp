// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/trace_data.h"

#include "core/base/error.h"
#include "core/trace/reader.h"
#include "core/trace/tools/annotations.h"
#include "views/common/format.h"
#include "views/common/job_queue.h"
#include "views/common/paths.h"
#include "views/common/task.h"
#include "views/common/trace_contents.h"

#include <QHash>
#include <QSet>

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <set>
#include <tuple>

using namespace Qt::StringLiterals;

namespace ponderscope {

static std::size_t bytes_of(const SequenceData& data) {
    return data.text.size() +
           data.tokens.size() * (4 + 8 + 8 + 4 + 4 + 4 + 4 + 4 + 8 + sizeof(float) * data.annotations.size());
}

/// Cached blocks, pending requests, and the reader thread.
struct TraceData::Impl {
    static constexpr qint64 page_rows = 4096;

    /// The key of a cached block: a sequence (empty name), a signal of a sequence, or a page of a signal.
    struct BlockKey {
        RunKey run;
        qint64 sequence = 0;
        QString name;
        qint64 page = -1; ///< first row of the page; -1: all rows
        friend bool operator<(const BlockKey& a, const BlockKey& b) {
            return std::tie(a.run.trace, a.run.run, a.sequence, a.name, a.page) <
                   std::tie(b.run.trace, b.run.run, b.sequence, b.name, b.page);
        }
    };

    struct Block {
        std::shared_ptr<const SequenceData> sequence;
        std::shared_ptr<const SignalChunk> chunk;
        std::size_t bytes = 0;
        std::int64_t tokens = 0; ///< tokens of the sequence when the block was read; for a page, its end
        quint64 used = 0;        ///< time of last use, by a counter
        bool pending = false;
        bool absent = false; ///< requested, but it does not exist
        bool failed = false; ///< absent because reading failed (network, disk)
    };

    explicit Impl(TraceData& self, std::size_t limit) : owner(self), cacheLimit(limit) {}

    /// Runs \p call on the GUI thread, unless the owner is destroyed first.
    template <typename Call>
    void reply(Call call) {
        hand_over(&owner, std::move(call));
    }

    /// The worker's reader of a trace, opened on first use. Worker thread only. Throws InputError.
    TraceReader& reader(const QString& trace, bool again = false) {
        auto place = readers.find(trace);
        if (again && place != readers.end()) {
            readers.erase(place);
            place = readers.end();
        }
        if (place == readers.end()) {
            place = readers.emplace(trace, TraceReader::open(path_of(trace))).first;
        }
        return place->second;
    }

    void refresh(const QString& trace);
    void readLabels(const RunKey& key);
    void fail(const QString& trace, const std::exception& error, const std::function<void()>& also = {}) {
        const QString sentence = QString::fromUtf8(error.what());
        reply([this, trace, sentence, also] {
            if (also) {
                also();
            }
            Q_EMIT owner.failed(trace, sentence);
        });
    }

    void forgetTrace(const QString& trace) {
        std::erase_if(blocks, [&](const auto& entry) {
            const bool gone = entry.first.run.trace == trace;
            cached -= gone ? entry.second.bytes : 0;
            return gone;
        });
        std::erase_if(labels, [&](const auto& entry) { return entry.first.trace == trace; });
        std::erase_if(labelsAsked, [&](const auto& entry) { return entry.first.trace == trace; });
    }

    /// Drops the least recently used blocks that no view holds, until the cache fits its limit.
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
        block.failed = false;
        block.sequence = std::move(data);
        block.chunk = std::move(chunk);
        block.tokens = tokens;
        block.pending = false;
        block.used = ++clock;
        trim();
    }

    /// Forgets failed reads, so that the next request reads again.
    [[nodiscard]] bool forgetFailures(const QString& trace) {
        bool any = false;
        for (auto& [key, block] : blocks) {
            if (key.run.trace == trace && block.failed) {
                block.failed = block.absent = false;
                any = true;
            }
        }
        return any;
    }

    /// The block, or an empty one that is being read.
    const Block& wanted(const BlockKey& key) {
        Block& block = blocks[key];
        block.used = ++clock;
        if (!block.sequence && !block.chunk && !block.pending && !block.absent &&
            !live.contains(key.run.trace)) {
            load(key, block);
        }
        return block;
    }

    /// Reads a block, or the rest of one that has grown. The old block stays visible until then.
    void load(const BlockKey& key, Block& block) {
        block.pending = true;
        jobs.post({key.run.trace,
                   [this, key, old = block](const std::atomic<bool>& stopped) {
                       try {
                           const TraceReader& from = reader(key.run.trace);
                           const std::string name = key.name.toStdString();
                           std::shared_ptr<const SequenceData> data;
                           ReadSignal read;
                           if (name.empty()) {
                               data = read_sequence(from, open_annotations(from), key.run, key.sequence,
                                                    old.sequence, stopped);
                               read.stopped = !data;
                           } else if (key.page < 0) {
                               read = read_signal(from, key.run, key.sequence, name, old.chunk, stopped);
                           } else if (auto page = from.signal(key.run.run, key.sequence, name, key.page,
                                                              key.page + page_rows)) {
                               read.chunk = std::make_shared<const SignalChunk>(std::move(*page));
                           }
                           reply([this, key, data, read] { loaded(key, data, read); });
                       } catch (const std::exception& error) {
                           fail(key.run.trace, error, [this, key] {
                               store(key, nullptr, nullptr, 0);
                               blocks[key].failed = true;
                               if (!key.name.isEmpty()) {
                                   tell(key);
                               }
                           });
                       }
                   }},
                  true);
    }

    void loaded(const BlockKey& key, const std::shared_ptr<const SequenceData>& data,
                const ReadSignal& read) {
        if (read.stopped) { // the next request starts the read again
            if (const auto place = blocks.find(key); place != blocks.end()) {
                place->second.pending = false;
            }
        } else if (traces.contains(key.run.trace)) {
            store(key, data, read.chunk,
                  data ? static_cast<std::int64_t>(data->tokens.size())
                       : std::max<qint64>(key.page, 0) + (read.chunk ? read.chunk->shape[0] : 0));
            tell(key);
        }
    }

    void tell(const BlockKey& key) {
        if (key.name.isEmpty()) {
            Q_EMIT owner.sequenceReady(key.run, key.sequence);
        } else if (key.page < 0) {
            Q_EMIT owner.signalReady(key.run, key.sequence, key.name);
        } else {
            Q_EMIT owner.rowsReady(key.run, key.sequence, key.name);
        }
    }

    void adopt(const QString& trace, TraceContents fresh) {
        TraceContents& known = traces[trace];
        const bool annotated = known.annotationsStamp != fresh.annotationsStamp;
        const bool again = forgetFailures(trace) || annotated;
        std::set<RunKey> changed;
        for (const auto& run : fresh.runs) {
            if (again || known.run(run->info.id) != run) {
                changed.insert({trace, run->info.id});
            }
        }
        if (changed.empty() && fresh.runs.size() == known.runs.size() &&
            same_trainings(fresh.trainings, known.trainings)) {
            return;
        }
        known = std::move(fresh);
        // Blocks of sequences that grew are extended.
        for (auto& [key, block] : blocks) {
            if (block.pending || !changed.contains(key.run)) {
                continue;
            }
            const SequenceInfo* now = owner.sequenceInfo(key.run, key.sequence);
            if (now == nullptr) {
                continue;
            }
            const qint64 tokens =
                key.page < 0 ? now->tokens : std::min<qint64>(now->tokens, key.page + page_rows);
            if (block.absent) {
                block.absent = false; // the next request reads again
            } else if ((annotated && block.sequence) || tokens > block.tokens) {
                load(key, block);
            }
        }
        for (const RunKey& run : changed) {
            Q_EMIT owner.runChanged(run);
        }
        if (traces.contains(trace)) { // unless it was closed in the meantime
            Q_EMIT owner.traceChanged(trace);
        }
    }

    TraceData& owner;
    const std::size_t cacheLimit;

    // GUI thread
    QStringList order;
    std::map<QString, TraceContents> traces;
    std::map<BlockKey, Block> blocks;
    std::size_t cached = 0;
    quint64 clock = 0;
    std::map<RunKey, QHash<int, QString>> labels; ///< an empty label is being read
    std::map<RunKey, QSet<int>> labelsAsked;      ///< labels to read in the next job
    QHash<QString, bool> refreshing; ///< the value: another refresh was requested in the meantime
    QSet<QString> live;              ///< keys of `traces` that do not name a file
    QHash<QString, int> closings;    ///< how often a trace was closed; a change ends an opening in progress
    QSet<QString> scratch;

    // Worker thread
    std::map<QString, TraceReader> readers;

    JobQueue jobs; // destroyed first, because its thread uses the members above
};

const TokenAnnotation* SequenceData::annotation(const QString& name) const {
    const auto found = std::ranges::find(annotations, name, &TokenAnnotation::name);
    return found == annotations.end() ? nullptr : &*found;
}

TraceData::TraceData(QObject* parent, std::size_t cacheBytes)
    : QObject(parent), impl_(std::make_unique<Impl>(*this, cacheBytes)) {}

TraceData::~TraceData() = default;

void TraceData::open(const QString& path) {
    const QString trace = absolute_name(path);
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
                                 Q_EMIT impl->owner.traceOpened(trace);
                             });
                         } catch (const std::exception& error) {
                             impl->fail(trace, error);
                         }
                     }},
                    false);
}

void TraceData::close(const QString& path) {
    const QString trace = absolute_name(path);
    Impl* const impl = impl_.get();
    impl->jobs.dropTrace(trace);
    impl->jobs.post({trace, [impl, trace](const std::atomic<bool>&) { impl->readers.erase(trace); }}, false);
    impl->refreshing.remove(trace);
    ++impl->closings[trace];
    if (!impl->order.contains(trace)) {
        return;
    }
    impl->order.removeAll(trace);
    impl->traces.erase(trace);
    impl->forgetTrace(trace);
    Q_EMIT traceClosed(trace);
}

void TraceData::refresh() {
    for (const QString& trace : std::as_const(impl_->order)) {
        impl_->refresh(trace);
    }
}

void TraceData::refresh(const QString& trace) {
    if (impl_->order.contains(trace)) {
        impl_->refresh(trace);
    }
}

void TraceData::Impl::refresh(const QString& trace) {
    if (const auto under_way = refreshing.find(trace); under_way != refreshing.end()) {
        *under_way = true; // refresh once more later: queued refreshes would pile up on a slow disk
        return;
    }
    refreshing.insert(trace, false);
    const auto done = [this, trace] {
        if (refreshing.take(trace) && traces.contains(trace)) {
            refresh(trace);
        }
    };
    jobs.post({trace,
               [this, trace, done, before = traces[trace]](const std::atomic<bool>&) {
                   try {
                       TraceContents fresh = read_contents(reader(trace), before);
                       reply([this, trace, done, fresh = std::move(fresh)]() mutable {
                           if (traces.contains(trace)) {
                               adopt(trace, std::move(fresh));
                           }
                           done();
                       });
                   } catch (const std::exception& error) {
                       fail(trace, error, done);
                   }
               }},
              false);
}

void TraceData::showLive(const QString& name, LiveRun run) {
    Impl* const impl = impl_.get();
    const RunKey key{name, run.info.id};
    const qint64 sequence = run.sequence.number;
    const bool fresh = !impl->live.contains(name);
    if (fresh) {
        impl->forgetTrace(name);
        impl->live.insert(name);
    }
    TraceContents contents;
    contents.runs.push_back(std::make_shared<const RunContents>(
        RunContents{std::move(run.info), {run.sequence}, std::move(run.signalInfos), {}}));
    impl->traces[name] = std::move(contents);
    impl->labels[key].insert(run.labels);
    impl->store({key, sequence, {}}, run.tokens, nullptr, run.sequence.tokens);
    for (const auto& [signalName, chunk] : run.chunks) {
        impl->store({key, sequence, signalName}, nullptr, chunk, run.sequence.tokens);
    }
    if (fresh) {
        Q_EMIT traceOpened(name);
    } else {
        Q_EMIT runChanged(key);
    }
    Q_EMIT sequenceReady(key, sequence);
    for (const auto& [signalName, chunk] : run.chunks) {
        Q_EMIT signalReady(key, sequence, signalName);
    }
}

void TraceData::closeLive(const QString& name) {
    if (!impl_->live.remove(name)) {
        return;
    }
    impl_->traces.erase(name);
    impl_->forgetTrace(name);
    Q_EMIT traceClosed(name);
}

bool TraceData::isLive(const QString& trace) const {
    return impl_->live.contains(trace);
}

QStringList TraceData::liveNames() const {
    return {impl_->live.begin(), impl_->live.end()};
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

const QStringList& TraceData::traces() const {
    return impl_->order;
}

QStringList TraceData::files(const QString& trace) const {
    const auto place = impl_->traces.find(trace);
    return place == impl_->traces.end() ? QStringList() : place->second.files;
}

std::vector<RunInfo> TraceData::runs(const QString& trace) const {
    std::vector<RunInfo> list;
    if (const auto place = impl_->traces.find(trace); place != impl_->traces.end()) {
        for (const auto& run : place->second.runs) {
            list.push_back(run->info);
        }
    }
    return list;
}

void TraceData::setScratch(const QString& trace) {
    impl_->scratch.insert(trace);
}

bool TraceData::isScratch(const QString& trace) const {
    return impl_->scratch.contains(trace);
}

std::vector<TrainingInfo> TraceData::trainings(const QString& trace) const {
    const auto place = impl_->traces.find(trace);
    return place == impl_->traces.end() ? std::vector<TrainingInfo>{} : place->second.trainings;
}

std::shared_ptr<const RunContents> TraceData::contents(const RunKey& key) const {
    const auto place = impl_->traces.find(key.trace);
    return place == impl_->traces.end() ? nullptr : place->second.run(key.run);
}

const RunInfo* TraceData::run(const RunKey& key) const {
    const auto known = contents(key);
    return known ? &known->info : nullptr;
}

std::span<const SequenceInfo> TraceData::sequences(const RunKey& key) const {
    const auto known = contents(key);
    return known ? std::span(known->sequences) : std::span<const SequenceInfo>();
}

const SequenceInfo* TraceData::sequenceInfo(const RunKey& key, qint64 sequence) const {
    const auto all = sequences(key);
    if (sequence >= 0 && static_cast<std::size_t>(sequence) < all.size() &&
        all[static_cast<std::size_t>(sequence)].number == sequence) {
        return &all[static_cast<std::size_t>(sequence)];
    }
    const auto found = std::lower_bound(all.begin(), all.end(), sequence,
                                        [](const SequenceInfo& one, qint64 due) { return one.number < due; });
    return found == all.end() || found->number != sequence ? nullptr : &*found;
}

std::span<const SignalInfo> TraceData::signalsOf(const RunKey& key) const {
    const auto known = contents(key);
    return known ? std::span(known->signals) : std::span<const SignalInfo>();
}

bool TraceData::isBeginning(const RunKey& key) const {
    const auto known = contents(key);
    return known && !known->info.complete &&
           (isLive(key.trace) ? known->signals.empty() : known->sequences.empty());
}

QStringList TraceData::faults(const RunKey& key) const {
    QStringList sentences;
    if (const auto known = contents(key)) {
        for (const FaultInfo& fault : known->faults) {
            sentences << QString::fromStdString(fault.message);
        }
    }
    return sentences;
}

std::shared_ptr<const SequenceData> TraceData::sequence(const RunKey& key, qint64 sequence) {
    if (sequenceInfo(key, sequence) == nullptr) {
        return nullptr;
    }
    return impl_->wanted({key, sequence, {}}).sequence;
}

bool TraceData::isUnreadable(const RunKey& key, qint64 sequence) const {
    const auto block = impl_->blocks.find(Impl::BlockKey{key, sequence, {}});
    return block != impl_->blocks.end() && block->second.failed;
}

std::shared_ptr<const SignalChunk> TraceData::signal(const RunKey& key, qint64 sequence,
                                                     const QString& name) {
    if (sequenceInfo(key, sequence) == nullptr || name.isEmpty()) {
        return nullptr;
    }
    return impl_->wanted({key, sequence, name}).chunk;
}

std::shared_ptr<const SignalChunk> TraceData::signalAt(const RunKey& key, qint64 sequence,
                                                       const QString& name, qint64 row) {
    const SequenceInfo* info = sequenceInfo(key, sequence);
    if (info == nullptr || name.isEmpty() || row < 0 || row >= info->tokens) {
        return nullptr;
    }
    const auto whole = impl_->blocks.find({key, sequence, name});
    if (info->tokens <= Impl::page_rows || (whole != impl_->blocks.end() && whole->second.chunk)) {
        return signal(key, sequence, name);
    }
    return impl_->wanted({key, sequence, name, row - row % Impl::page_rows}).chunk;
}

QString TraceData::tokenLabel(const RunKey& key, int id) {
    if (run(key) == nullptr) {
        return {};
    }
    QHash<int, QString>& known = impl_->labels[key];
    if (const auto place = known.constFind(id); place != known.constEnd()) {
        return *place;
    }
    if (isLive(key.trace)) {
        return u"‹id %1›"_s.arg(id); // a live run has all its labels; others are unknown
    }
    known.insert(id, {});
    QSet<int>& asked = impl_->labelsAsked[key];
    asked.insert(id);
    if (asked.size() == 1) { // one look-up serves all requests until the event loop turns
        impl_->reply([impl = impl_.get(), key] { impl->readLabels(key); });
    }
    return {};
}

void TraceData::Impl::readLabels(const RunKey& key) {
    jobs.post({key.trace,
               [this, key, ids = std::exchange(labelsAsked[key], {})](const std::atomic<bool>& stopped) {
                   // A token without bytes is named by its id, so that a list is never blank.
                   QHash<int, QString> found;
                   for (const int id : ids) {
                       found.insert(id, u"‹id %1›"_s.arg(id));
                   }
                   try {
                       const TraceReader& from = reader(key.trace);
                       for (auto label = found.begin(); label != found.end() && !stopped; ++label) {
                           if (const std::string bytes = from.token_bytes(key.run, label.key());
                               !bytes.empty()) {
                               label.value() = visible_token(bytes);
                           }
                       }
                   } catch (const std::exception& error) {
                       fail(key.trace, error);
                   }
                   reply([this, key, found = std::move(found)] {
                       if (traces.contains(key.trace)) {
                           labels[key].insert(found);
                           Q_EMIT owner.tokenLabelsReady(key);
                       }
                   });
               }},
              true);
}

} // namespace ponderscope
