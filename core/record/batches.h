// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/error.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <stop_token>
#include <type_traits>
#include <utility>

namespace ponderscope {

/// Runs tasks in order from 0, `batch` at a time, with two batches in flight. A GPU computes the next batch
/// while the results of the previous batch are copied and packed.
///
/// \p reach(begin, size) loads the tasks of the batch that begins at task `begin` and returns the batch's
/// end: at most begin + size, or `begin` if no tasks remain. reach() is not called again for collected tasks.
///
/// \p submit(begin, end) starts a batch and returns its handle. \p collect(pending, begin, end) waits for the
/// batch and keeps its results. If submit or collect throws MemoryExhausted, the batch runs again in halves,
/// finally task by task with no other batch in flight. Later batches keep the smaller size. If a single
/// task does not fit, run_in_batches collects all earlier tasks and throws MemoryExhausted.
/// After \p stop no batch starts, and a running submit may throw Cancelled. Earlier batches are still
/// collected.
template <typename Reach, typename Submit, typename Collect>
requires std::is_invocable_r_v<std::size_t, const Reach&, std::size_t, std::size_t>
void run_in_batches(const Reach& reach, std::size_t batch, const std::stop_token& stop, const Submit& submit,
                    const Collect& collect) {
    struct UnderWay {
        std::invoke_result_t<const Submit&, std::size_t, std::size_t> pending;
        std::size_t begin;
        std::size_t end;
    };
    bool overlap = true;
    const auto take_less = [&](std::size_t size) {
        if (size > 1) {
            batch = size / 2;
        } else if (overlap) {
            overlap = false;
        } else {
            throw;
        }
    };
    std::optional<UnderWay> before;
    std::size_t next = 0;
    for (;;) {
        std::optional<UnderWay> now;
        const bool more = !stop.stop_requested() && reach(next, 1) > next;
        if (!more && !before) {
            return;
        }
        if (more && (overlap || !before)) {
            const std::size_t end = reach(next, batch);
            try {
                now.emplace(UnderWay{submit(next, end), next, end});
                next = end;
            } catch (const MemoryExhausted&) {
                take_less(end - next);
            } catch (const Cancelled&) {
                if (!stop.stop_requested()) {
                    throw;
                }
            }
        }
        if (before) {
            UnderWay work = std::move(*before);
            before.reset();
            try {
                collect(std::move(work.pending), work.begin, work.end);
            } catch (const MemoryExhausted&) {
                now.reset();
                next = work.begin;
                take_less(work.end - work.begin);
            }
        }
        before = std::move(now);
    }
}

/// run_in_batches for \p count tasks that are known in advance.
template <typename Submit, typename Collect>
void run_in_batches(std::size_t count, std::size_t batch, const std::stop_token& stop, const Submit& submit,
                    const Collect& collect) {
    run_in_batches([count](std::size_t begin, std::size_t size) { return std::min(count, begin + size); },
                   batch, stop, submit, collect);
}

} // namespace ponderscope
