// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/error.h"
#include "core/trace/reader.h"
#include "core/trace/tools/annotations.h"
#include "views/common/format.h"
#include "views/common/job_queue.h"
#include "views/common/paths.h"
#include "views/common/task.h"
#include "views/common/trace_contents.h"
#include "views/common/trace_data.h"

#include <QHash>
#include <QSet>

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <set>
#include <tuple>

namespace ponderscope {

// The implementation of TraceData: cached blocks, pending requests, and the reader thread.

inline std::size_t bytes_of(const SequenceData& data) {
    return data.text.size() +
           data.tokens.size() * (4 + 8 + 8 + 4 + 4 + 4 + 4 + 4 + 8 + sizeof(float) * data.annotations.size());
}

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

} // namespace ponderscope
