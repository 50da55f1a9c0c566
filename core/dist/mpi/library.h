// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/dist/collectives.h"

namespace ponderscope {

inline constexpr const char* open_mpi_name = "ponderscope_open_mpi";

/// The one door of libponderscope_mpi.so, a library of its own so that the programs run where no libmpi is
/// installed. The caller's to delete; null, with \p why: MPI found another world than the environment says.
extern "C" Collectives* ponderscope_open_mpi(const World& world, std::chrono::seconds timeout,
                                             std::string& why);

} // namespace ponderscope
