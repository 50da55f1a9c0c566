// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/dist/collectives.h"

namespace ponderscope {

/// By LibTorch's c10d, over a TCPStore at MASTER_ADDR and MASTER_PORT, which rank 0 holds, or the torchrun
/// that started it; see open_collectives(). Over Gloo, SIGPIPE is ignored in the whole process from then on.
std::unique_ptr<Collectives> open_c10d(const World& world, const CollectivesRequest& request,
                                       std::string& why);

} // namespace ponderscope
