// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QMetaObject>
#include <QObject>
#include <QString>

#include <functional>
#include <memory>
#include <stop_token>
#include <type_traits>
#include <utility>

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

namespace ponderscope {

#ifdef __SANITIZE_THREAD__
/// Tells the thread sanitizer about synchronisation inside Qt, which has no instrumentation: the lock of the
/// event queue, and the reference count of a queued call.
template <typename Call>
class OrderedCall {
public:
    explicit OrderedCall(Call call) : call_(std::move(call)) {}
    OrderedCall(OrderedCall&& other) noexcept : call_(std::move(other.call_)) { __tsan_release(&order); }
    OrderedCall(const OrderedCall& other) : call_(other.call_) { __tsan_release(&order); }
    ~OrderedCall() { __tsan_acquire(&order); }
    void operator()() {
        __tsan_acquire(&order);
        call_();
        __tsan_release(&order);
    }

private:
    static inline char order = 0;
    Call call_;
};
#endif

/// Runs \p call in the event loop of the thread of \p to, unless \p to is destroyed first. Thread-safe.
/// Earlier writes of the caller are visible to \p call. Either thread may destroy the callable.
template <typename Call>
void hand_over(QObject* to, Call call) {
#ifdef __SANITIZE_THREAD__
    QMetaObject::invokeMethod(to, OrderedCall(std::move(call)), Qt::QueuedConnection);
#else
    QMetaObject::invokeMethod(to, std::move(call), Qt::QueuedConnection);
#endif
}

/// Runs one piece of work at a time on another thread. Delivers the result on the thread of \p owner, which
/// must outlive this object.
///
/// start(), cancel() and the destructor ask running work to stop and never wait for it. Replaced work
/// delivers no result. New work starts after the old work has ended. Work may outlive its caller, so its data
/// must be captured by value. At the end of the program, the application object waits for all work.
class Task {
public:
    /// Runs each \p call on the owner's thread, in order, before the result. A cancel drops waiting calls.
    using Tell = std::function<void(std::function<void()> call)>;

    explicit Task(QObject* owner);
    ~Task();
    Task(const Task&) = delete;
    Task& operator=(const Task&) = delete;

    /// \p work(stop_token), or work(stop_token, Tell), returns a value. Then Task calls done(value), or
    /// failed(sentence) if \p work threw. Cancelled work calls neither.
    template <class Work, class Done, class Failed>
    void start(Work work, Done done, Failed failed) {
        begin(
            [work = std::move(work), done = std::move(done)](const std::stop_token& stop, const Tell& tell) {
                const auto call = [&] {
                    if constexpr (std::is_invocable_v<const Work&, const std::stop_token&, const Tell&>) {
                        return work(stop, tell);
                    } else {
                        return work(stop);
                    }
                };
                auto result = std::make_shared<decltype(call())>(call());
                return std::function<void()>([done, result] { done(std::move(*result)); });
            },
            std::move(failed));
    }
    void cancel();
    [[nodiscard]] bool isBusy() const;

private:
    using Job = std::function<std::function<void()>(const std::stop_token&, const Tell&)>;
    void begin(Job job, std::function<void(const QString&)> failed);
    struct Shared;
    std::shared_ptr<Shared> shared_;
};

} // namespace ponderscope
