// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <ATen/Context.h>

namespace ponderscope::testing {

/// While it lives, LibTorch fills fresh memory of every device with NaN, and with the largest of whole
/// numbers: what a kernel leaves unwritten shows.
class Poison {
public:
    Poison() { at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/true); }
    ~Poison() { at::globalContext().setDeterministicAlgorithms(false, /*warn_only=*/false); }
    Poison(const Poison&) = delete;
    Poison& operator=(const Poison&) = delete;
};

} // namespace ponderscope::testing
