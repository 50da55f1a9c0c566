// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <ATen/autocast_mode.h>

namespace ponderscope {

/// Switches a device's autocast on or off while the object lives. Cast weights stay cached until the
/// outermost object ends.
class Autocast {
public:
    Autocast(at::DeviceType device, bool on, at::ScalarType type = at::kBFloat16)
        : device_(device),
          was_on_(at::autocast::is_autocast_enabled(device)),
          was_type_(at::autocast::get_autocast_dtype(device)) {
        at::autocast::set_autocast_enabled(device_, on);
        at::autocast::set_autocast_dtype(device_, type);
        at::autocast::increment_nesting();
    }
    ~Autocast() {
        if (at::autocast::decrement_nesting() == 0) {
            at::autocast::clear_cache();
        }
        at::autocast::set_autocast_enabled(device_, was_on_);
        at::autocast::set_autocast_dtype(device_, was_type_);
    }
    Autocast(const Autocast&) = delete;
    Autocast& operator=(const Autocast&) = delete;

private:
    at::DeviceType device_;
    bool was_on_;
    at::ScalarType was_type_;
};

} // namespace ponderscope
