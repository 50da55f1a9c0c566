// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/policy/policy_data.h"

#include "core/policy/policy_rows.h"
#include "core/policy/rerun_difference.h"
#include "core/trace/tools/summary.h"
#include "views/common/paths.h"
#include "views/common/same_runs.h"

#include <cmath>

using namespace Qt::StringLiterals;

namespace ponderscope {

PolicyData& PolicyData::of(const ViewContext& context) {
    if (auto* known = context.data.findChild<PolicyData*>(QString(), Qt::FindDirectChildrenOnly)) {
        return *known;
    }
    return *new PolicyData(context, &context.data);
}

PolicyData::PolicyData(const ViewContext& context, QObject* parent)
    : QObject(parent), data_(context.data), selection_(context.selection), loading_(this) {
    connect(&selection_, &Selection::runsChanged, this, &PolicyData::check);
    connect(&data_, &TraceData::traceOpened, this, &PolicyData::check);
    connect(&data_, &TraceData::traceChanged, this, &PolicyData::check);
    connect(&data_, &TraceData::traceClosed, this, &PolicyData::check);
    check();
}

void PolicyData::check() {
    const RunKey run = selection_.runA();
    const RunInfo* info = data_.run(run);
    const QString stamp = info == nullptr ? QString() : run_stamp(*info);
    findReruns();
    if (run == run_ && stamp == stamp_) {
        return;
    }
    run_ = run;
    stamp_ = stamp;
    loading_.cancel();
    table_.reset();
    failed_ = false;
    if (info == nullptr) {
        sentence_ = u"To try halting policies, open a trace of a model that ponders."_s;
    } else if (data_.isLive(run.trace)) {
        failed_ = true; // there is no file to read
        sentence_ = u"The model is generating. Policies can be replayed after the run is recorded."_s;
    } else {
        sentence_ = u"Reading the signals…"_s;
    }
    Q_EMIT tableChanged();
}

void PolicyData::findReruns() {
    std::map<QString, RunKey> found;
    const RunKey key = selection_.runA();
    if (const RunInfo* known = data_.run(key)) {
        const RunInfo run = *known;
        for (const QString& trace : data_.traces()) {
            for (const RunInfo& other : data_.runs(trace)) {
                if (RunKey{trace, other.id} != key && is_rerun_of(other, run, other.policy)) {
                    found[QString::fromStdString(other.policy)] = {trace, other.id}; // the newest
                }
            }
        }
    }
    if (found != reruns_) {
        reruns_ = std::move(found);
        Q_EMIT rerunsChanged();
    }
}

RunKey PolicyData::rerunOf(const QString& policy) const {
    const auto found = reruns_.find(policy);
    return found == reruns_.end() ? RunKey() : found->second;
}

std::vector<PolicyRerun> PolicyData::storedReruns() const {
    std::vector<PolicyRerun> stored;
    for (const auto& [policy, key] : reruns_) {
        if (const RunInfo* info = data_.run(key)) {
            stored.push_back({policy.toStdString(), {path_of(key.trace), *info}});
        }
    }
    return stored;
}

std::vector<RunPoint> PolicyData::rerunPoints() const {
    std::vector<RunPoint> points;
    for (const auto& [policy, key] : reruns_) {
        const RunInfo* info = data_.run(key);
        if (info != nullptr && info->scored_tokens > 0) {
            points.push_back({u"rerun of %1"_s.arg(policy), Chart::b, mean_steps(*info), mean_nll(*info),
                              mean_flops(*info), std::nan(""), policy.toStdString()});
        }
    }
    return points;
}

void PolicyData::chooseLink(const QString& link) {
    if (link.startsWith(QLatin1String("policy:"))) {
        Q_EMIT policyChosen(link.mid(7));
    }
}

void PolicyData::want() {
    const RunInfo* known = data_.run(run_);
    if (table_ || loading_.isBusy() || failed_ || known == nullptr) {
        return;
    }
    loading_.start(
        [key = run_, info = *known](const std::stop_token& stop) {
            const TraceReader reader = TraceReader::open(path_of(key.trace));
            return std::make_shared<const ReplayTable>(ReplayTable::load(reader, info, {}, stop));
        },
        [this](std::shared_ptr<const ReplayTable> table) {
            table_ = std::move(table);
            sentence_.clear();
            Q_EMIT tableChanged();
        },
        [this](const QString& sentence) {
            sentence_ = sentence;
            failed_ = true;
            Q_EMIT tableChanged();
        });
}

std::pair<qint64, qint64> PolicyData::rowsOf(qint64 sequence) const {
    if (!table_) {
        return {-1, 0};
    }
    qint64 first = 0;
    std::size_t place = 0;
    for (const SequenceInfo& info : data_.sequences(run_)) {
        if (place >= table_->sequences.size()) {
            break;
        }
        if (info.number == sequence) {
            return {first, table_->sequences[place]};
        }
        first += table_->sequences[place++];
    }
    return {-1, 0};
}

} // namespace ponderscope
