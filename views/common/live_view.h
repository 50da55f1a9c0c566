// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/view_command.h"
#include "views/common/view_context.h"

#include <functional>

namespace ponderscope {

/// A panel that shows selection and data, and does no work while hidden. This class subscribes to the changes
/// that affect the panel. It calls renew() at once if the panel is on the screen, otherwise once when the
/// panel appears. A poll of the trace files does not call renew() if the panel's runs have not changed.
///
/// The window reports which panels are on the screen, because Qt does not count tabs behind others as hidden.
/// A view outside a dock always counts as on the screen.
class LiveView : public ShowsCommand {
public:
    /// Whether the panel is computing. Screenshots wait until no panel is computing.
    [[nodiscard]] virtual bool isBusy() const = 0;
    void setOnScreen(bool on);
    [[nodiscard]] bool onScreen() const { return onScreen_; }

protected:
    /// The runs whose changes the panel follows.
    enum class Follows { a, both, all };
    /// Call this once, in the constructor. \p self: this object.
    void follow(QObject& self, const ViewContext& context, Follows whom);
    /// Calls \p read, which seen() made: when the selection shows another sequence or attribution, when the
    /// shown sequence was read, when one of its signals was read and \p uses returns true for the signal, and
    /// when a read failed.
    static void followSequence(QObject& self, const ViewContext& context, const std::function<void()>& read,
                               const std::function<bool(const QString& signal)>& uses);
    /// Reads selection and data again.
    virtual void renew() = 0;
    /// Called before renew() after onScreen() changed.
    virtual void screenChanged() {}
    /// A slot that calls \p part (a member function without arguments) if the panel is on the screen.
    /// Otherwise renew() does the work later.
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
    /// Calls renew(), now or when the panel appears on the screen.
    void changed();

private:
    bool onScreen_ = true;
    bool due_ = false;
};

} // namespace ponderscope
