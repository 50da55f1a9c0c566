// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QMetaObject>
#include <QObject>

#include <utility>

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

namespace ponderscope {

#ifdef __SANITIZE_THREAD__
/// Tells the sanitizer what orders the threads: the lock of Qt's event queue, and the count of who holds a
/// call that waits in it, lie in a library that is not watched.
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

/// From any thread: runs \p call on the thread of \p to, from its event loop, and not if \p to is gone by
/// then. What the caller did before is done for \p call. Which of the two destroys it is left to chance.
template <typename Call>
void hand_over(QObject* to, Call call) {
#ifdef __SANITIZE_THREAD__
    QMetaObject::invokeMethod(to, OrderedCall(std::move(call)), Qt::QueuedConnection);
#else
    QMetaObject::invokeMethod(to, std::move(call), Qt::QueuedConnection);
#endif
}

} // namespace ponderscope
