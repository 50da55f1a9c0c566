// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/error.h"
#include "core/base/given_up.h"
#include "core/base/progress.h"
#include "views/common/hand_over.h"

#include <QObject>
#include <QString>

#include <memory>
#include <stop_token>
#include <thread>
#include <utility>

namespace ponderscope {

/// One piece of work at a time on a thread of its own, its result on the thread of \p owner. A new start, a
/// cancel and the destructor ask the work to stop and wait for it; a result that was overtaken is dropped.
class Background {
public:
    explicit Background(QObject* owner) : owner_(owner) {}

    /// \p work(stop_token) gives a value; \p done(value) or \p failed(sentence) follows, neither when it was
    /// cancelled.
    template <class Work, class Done, class Failed>
    void start(Work work, Done done, Failed failed) {
        cancel();
        const int request = ++request_;
        busy_ = true;
        thread_ = std::jthread([this, request, work = std::move(work), done = std::move(done),
                                failed = std::move(failed)](const std::stop_token& stop) {
            const GivenUpBy scope(stop);
            const auto reply = [this, request](auto call) {
                hand_over(owner_, [this, request, call] {
                    if (request == request_) {
                        busy_ = false;
                        call();
                    }
                });
            };
            try {
                auto result = std::make_shared<decltype(work(stop))>(work(stop));
                reply([done, result] { done(std::move(*result)); });
            } catch (const Cancelled&) {
                return;
            } catch (const std::bad_alloc&) {
                reply([failed] { failed(QObject::tr("There is not enough memory for this.")); });
            } catch (const std::exception& error) {
                const QString sentence = QString::fromUtf8(error.what());
                reply([failed, sentence] { failed(sentence); });
            }
        });
    }
    void cancel() {
        ++request_;
        busy_ = false;
        thread_ = {};
    }
    [[nodiscard]] bool isBusy() const { return busy_; }

private:
    QObject* owner_;
    int request_ = 0; ///< the owner's thread only
    bool busy_ = false;
    std::jthread thread_; ///< last: it ends before what it uses
};

/// What the window asks of a view that computes: not to begin before somebody can see it, and whether it is
/// done (screenshots wait for that). Tabs that lie behind others are not hidden for Qt, so that show events
/// do not tell.
class LiveView {
public:
    virtual ~LiveView() = default;
    [[nodiscard]] virtual bool isBusy() const = 0;
    virtual void setOnScreen(bool on) { onScreen_ = on; }
    [[nodiscard]] bool onScreen() const { return onScreen_; }

private:
    bool onScreen_ = false;
};

} // namespace ponderscope
