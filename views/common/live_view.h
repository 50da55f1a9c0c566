// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/view_context.h"

#include <functional>

namespace ponderscope {

/// A panel that shows selection and data, and does no work while it is hidden. This class subscribes to the
/// changes that concern the panel and calls renew(): at once where the panel is on the screen, else once when
/// it comes there. A poll without news for the panel's runs makes no call.
///
/// The window says what is on the screen: Qt does not count tabs behind others as hidden, so show events are
/// not enough. A view outside a dock is on the screen.
class LiveView {
public:
    virtual ~LiveView() = default;
    /// Whether it computes; screenshots wait for that.
    [[nodiscard]] virtual bool isBusy() const = 0;
    void setOnScreen(bool on);
    [[nodiscard]] bool onScreen() const { return onScreen_; }

protected:
    /// The runs whose changes concern the panel.
    enum class Follows { a, both, all };
    /// Once, from the constructor of \p self, which is this.
    void follow(QObject& self, const ViewContext& context, Follows whom);
    /// Calls \p read, a slot of seen(), when the selection shows another sequence or attribution, and when
    /// the shown sequence, or a signal of it that \p uses, was read or could not be.
    static void followSequence(QObject& self, const ViewContext& context, const std::function<void()>& read,
                               const std::function<bool(const QString& signal)>& uses);
    /// Reads the selection and the data anew.
    virtual void renew() = 0;
    /// After onScreen() changed, before renew().
    virtual void screenChanged() {}
    /// A slot that calls \p part (a member function without arguments) on the screen, and leaves it to
    /// renew() otherwise.
    template <class View>
    [[nodiscard]] auto seen(void (View::*part)()) {
        return [this, view = static_cast<View*>(this), part] {
            if (onScreen_) {
                (view->*part)();
            } else {
                due_ = true;
            }
        };
    }
    /// renew(), now or when it comes onto the screen.
    void changed();

private:
    bool onScreen_ = true;
    bool due_ = false;
};

} // namespace ponderscope
