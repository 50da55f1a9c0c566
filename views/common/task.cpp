// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/task.h"

#include "core/base/error.h"
#include "core/base/progress.h"
#include "core/base/scoped_stop.h"

#include <QCoreApplication>
#include <QPointer>
#include <QThreadPool>

#include <mutex>
#include <new>

using namespace Qt::StringLiterals;

namespace ponderscope {

namespace {

/// A child of the application object, so it waits for its threads before static objects are destroyed.
QThreadPool& task_pool() {
    static QPointer<QThreadPool> pool;
    if (pool.isNull()) {
        constexpr int most = 64; // many, because work that waits for a disk must not delay other work
        pool = new QThreadPool(QCoreApplication::instance());
        pool->setMaxThreadCount(most);
    }
    return *pool;
}

} // namespace

struct Task::Shared {
    explicit Shared(QObject* to) : owner(to) {}

    void post(std::function<void()> call) {
        const std::lock_guard lock(mutex);
        if (owner != nullptr) {
            hand_over(owner, std::move(call));
        }
    }
    void loop() {
        for (;;) {
            std::function<void(const std::stop_token&)> work;
            std::stop_token token;
            {
                const std::lock_guard lock(mutex);
                if (!next) {
                    running = false;
                    return;
                }
                work = std::exchange(next, nullptr);
                token = stop.get_token();
            }
            const ScopedStop scope(token);
            work(token);
        }
    }

    std::mutex mutex; ///< guards the members below
    QObject* owner;
    std::function<void(const std::stop_token&)> next;
    std::stop_source stop; ///< stops the running or next work
    bool running = false;

    // Owner's thread
    int request = 0;
    bool busy = false;
};

Task::Task(QObject* owner) : shared_(std::make_shared<Shared>(owner)) {}

Task::~Task() {
    cancel();
    const std::lock_guard lock(shared_->mutex);
    shared_->owner = nullptr;
}

bool Task::isBusy() const {
    return shared_->busy;
}

void Task::cancel() {
    ++shared_->request;
    shared_->busy = false;
    std::function<void(const std::stop_token&)> dropped; // destroyed after the lock is released
    const std::lock_guard lock(shared_->mutex);
    shared_->stop.request_stop();
    dropped = std::exchange(shared_->next, nullptr);
}

void Task::begin(Job job, std::function<void(const QString&)> failed) {
    cancel();
    const int request = shared_->request;
    shared_->busy = true;
    const std::shared_ptr<Shared> shared = shared_;
    const auto deliver = [shared, request](bool last, std::function<void()> call) {
        // Without the lock, because `call` may start this task again.
        shared->post([shared, request, last, call = std::move(call)] {
            if (request == shared->request) {
                shared->busy = shared->busy && !last;
                call();
            }
        });
    };
    const auto run = [deliver, job = std::move(job),
                      failed = std::move(failed)](const std::stop_token& stop) {
        const auto fail = [&](const QString& sentence) {
            deliver(true, [failed, sentence] { failed(sentence); });
        };
        try {
            deliver(true,
                    job(stop, [deliver](std::function<void()> call) { deliver(false, std::move(call)); }));
        } catch (const Cancelled&) {
            return;
        } catch (const std::bad_alloc&) {
            fail(u"There is not enough memory. Close other traces or programs."_s);
        } catch (const std::exception& error) {
            fail(QString::fromUtf8(error.what()));
        }
    };
    const std::lock_guard lock(shared->mutex);
    shared->stop = std::stop_source();
    shared->next = run;
    if (!std::exchange(shared->running, true)) {
        task_pool().start([shared] { shared->loop(); });
    }
}

} // namespace ponderscope
