// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

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

    JobQueue();
    ~JobQueue();
    JobQueue(const JobQueue&) = delete;
    JobQueue& operator=(const JobQueue&) = delete;

    /// \p urgent: the user is waiting for this job. The newest urgent job runs first.
    void post(Job job, bool urgent);
    /// Drops the waiting jobs of the trace and asks its running job to stop.
    void dropTrace(const QString& trace);
    [[nodiscard]] bool idle() const;

private:
    void loop();

    mutable std::mutex mutex_;
    std::condition_variable wake_;
    std::deque<Job> jobs_;
    QString running_; ///< trace of the running job; empty: none
    bool ending_ = false;
    std::atomic<bool> stop_ = false;
    std::stop_source given_up_; ///< stops waits of the worker for another machine
    std::thread worker_;
};

} // namespace ponderscope
