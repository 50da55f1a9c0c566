// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/scoped_stop.h"

#include <QString>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>

namespace ponderscope {

/// Runs jobs on traces, one after the other, on its own thread. All functions are thread-safe. The destructor
/// asks the running job to stop and waits for it.
class JobQueue {
public:
    struct Job {
        QString trace;
        /// Returns soon after \p stop is set.
        std::function<void(const std::atomic<bool>& stop)> work;
    };

    JobQueue() = default;
    ~JobQueue() {
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
    JobQueue(const JobQueue&) = delete;
    JobQueue& operator=(const JobQueue&) = delete;

    /// \p urgent: the user is waiting for this job. The newest urgent job runs first.
    void post(Job job, bool urgent) {
        {
            const std::lock_guard lock(mutex_);
            jobs_.insert(urgent ? jobs_.begin() : jobs_.end(), std::move(job));
        }
        wake_.notify_one();
    }
    /// Drops the waiting jobs of the trace and asks its running job to stop.
    void dropTrace(const QString& trace) {
        const std::lock_guard lock(mutex_);
        std::erase_if(jobs_, [&](const Job& job) { return job.trace == trace; });
        if (running_ == trace) {
            stop_ = true;
        }
    }
    [[nodiscard]] bool idle() const {
        const std::lock_guard lock(mutex_);
        return jobs_.empty() && running_.isEmpty();
    }

private:
    void loop() {
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

    mutable std::mutex mutex_;
    std::condition_variable wake_;
    std::deque<Job> jobs_;
    QString running_; ///< trace of the running job; empty: none
    bool ending_ = false;
    std::atomic<bool> stop_ = false;
    std::stop_source given_up_; ///< ends the worker's waits for another machine
    std::thread worker_{[this] { loop(); }};
};

} // namespace ponderscope
