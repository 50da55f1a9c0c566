// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/stats/worker_pool.h"

#include "core/base/given_up.h"

#include <atomic>
#include <exception>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace ponderscope {

void for_each_part(std::size_t parts, std::size_t workers,
                   const std::function<void(std::size_t, std::size_t)>& work) {
    std::atomic<std::size_t> next{0};
    std::atomic<bool> failed{false};
    std::mutex mutex; // of `failures`
    std::map<std::size_t, std::exception_ptr> failures;
    const auto run = [&](std::size_t worker) {
        for (std::size_t part; !failed && (part = next++) < parts;) {
            try {
                work(part, worker);
            } catch (...) {
                failed = true;
                const std::scoped_lock lock(mutex);
                failures.emplace(part, std::current_exception());
            }
        }
    };
    {
        std::vector<std::jthread> helpers;
        try {
            for (std::size_t worker = 1; worker < workers; ++worker) {
                helpers.emplace_back([&run, worker, stop = GivenUpBy::current()] {
                    const GivenUpBy scope(stop);
                    run(worker);
                });
            }
        } catch (const std::system_error&) {
            // The system has no more threads: those that began, and this one, do all parts.
        }
        run(0);
    }
    if (!failures.empty()) {
        std::rethrow_exception(failures.begin()->second);
    }
}

} // namespace ponderscope
