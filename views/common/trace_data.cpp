// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/trace_data_impl.h"

using namespace Qt::StringLiterals;

namespace ponderscope {

const TokenAnnotation* SequenceData::annotation(const QString& name) const {
    const auto found = std::find_if(annotations.begin(), annotations.end(),
                                    [&](const TokenAnnotation& one) { return one.name == name; });
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
        *under_way = true; // a slow disk must not pile up work, and what it read may be older
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

QStringList TraceData::traces() const {
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
        return u"‹id %1›"_s.arg(id); // what is not told is not known
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
