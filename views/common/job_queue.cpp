// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/job_queue.h"

#include "core/base/scoped_stop.h"

namespace ponderscope {

JobQueue::JobQueue() : worker_([this] { loop(); }) {}

JobQueue::~JobQueue() {
    {
        const std::lock_guard lock(mutex_);
        ending_ = true;
        stop_ = true;
        jobs_.clear();
    }
    given_up_.request_stop();
    wake_.notify_all();
    worker_.join();
}

void JobQueue::loop() {
    const ScopedStop scope(given_up_.get_token());
    for (;;) {
        Job job;
        {
            std::unique_lock lock(mutex_);
            wake_.wait(lock, [this] { return ending_ || !jobs_.empty(); });
            if (ending_) {
                return;
            }
            job = std::move(jobs_.front());
            jobs_.pop_front();
            running_ = job.trace;
            stop_ = false;
        }
        job.work(stop_);
        const std::lock_guard lock(mutex_);
        running_.clear();
    }
}

void JobQueue::post(Job job, bool urgent) {
    {
        const std::lock_guard lock(mutex_);
        jobs_.insert(urgent ? jobs_.begin() : jobs_.end(), std::move(job));
    }
    wake_.notify_one();
}

void JobQueue::dropTrace(const QString& trace) {
    const std::lock_guard lock(mutex_);
    std::erase_if(jobs_, [&](const Job& job) { return job.trace == trace; });
    if (running_ == trace) {
        stop_ = true;
    }
}

bool JobQueue::idle() const {
    const std::lock_guard lock(mutex_);
    return jobs_.empty() && running_.isEmpty();
}

} // namespace ponderscope
