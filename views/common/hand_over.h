// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QMetaObject>
#include <QObject>

#include <utility>

#ifdef __SANITIZE_THREAD__
#include <memory>
#include <sanitizer/tsan_interface.h>
#endif

namespace ponderscope {

/// From any thread: runs \p call on the thread of \p to, from its event loop, and not if \p to is gone by
/// then. What the caller did before is done for \p call.
template <typename Call>
void hand_over(QObject* to, Call call) {
#ifdef __SANITIZE_THREAD__
    // The lock of the event queue, which orders the two threads, lies in a library that is not watched.
    auto order = std::make_shared<char>();
    __tsan_release(order.get());
    QMetaObject::invokeMethod(
        to,
        [order, call = std::move(call)]() mutable {
            __tsan_acquire(order.get());
            call();
        },
        Qt::QueuedConnection);
#else
    QMetaObject::invokeMethod(to, std::move(call), Qt::QueuedConnection);
#endif
}

} // namespace ponderscope
