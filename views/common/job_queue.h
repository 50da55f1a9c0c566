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

/// Work on traces, one job after the other on a thread of its own. All calls from any thread; the destructor
/// asks the running job to stop and waits for it.
class JobQueue {
public:
    struct Job {
        QString trace;
        /// Gives up soon once \p stop is set.
        std::function<void(const std::atomic<bool>& stop)> work;
    };

    JobQueue();
    ~JobQueue();
    JobQueue(const JobQueue&) = delete;
    JobQueue& operator=(const JobQueue&) = delete;

    /// \p urgent jobs are what the user waits for now: the newest first.
    void post(Job job, bool urgent);
    /// Drops the waiting jobs of the trace and asks a running one to stop.
    void dropTrace(const QString& trace);
    [[nodiscard]] bool idle() const;

private:
    void loop();

    mutable std::mutex mutex_;
    std::condition_variable wake_;
    std::deque<Job> jobs_;
    QString running_; ///< its trace; empty: nothing runs
    bool ending_ = false;
    std::atomic<bool> stop_ = false;
    std::stop_source given_up_; ///< stops the worker's waits for another machine
    std::thread worker_;
};

} // namespace ponderscope
