// SPDX-License-Identifier: GPL-3.0-or-later
// Loaded before a program (LD_PRELOAD), it answers in the CUDA runtime's place what GPUs there are.
// FEIGNED_GPU:
//   old driver      a GPU whose driver knows CUDA 11.4
//   7.5             one GPU of that compute capability
// Nothing runs on it.
#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

std::string feigned() {
    const char* const set = std::getenv("FEIGNED_GPU");
    return set != nullptr ? set : "";
}

} // namespace

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
    *count = feigned() == "old driver" ? 0 : 1;
    return *count == 1 ? cudaSuccess : cudaErrorInsufficientDriver;
}

cudaError_t cudaDriverGetVersion(int* version) {
    *version = feigned() == "old driver" ? 11040 : 13000;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
    *properties = {};
    std::snprintf(properties->name, sizeof properties->name, "Feigned GPU");
    return std::sscanf(feigned().c_str(), "%d.%d", &properties->major, &properties->minor) == 2
               ? cudaSuccess
               : cudaErrorInvalidDevice;
}

cudaError_t cudaGetLastError() {
    return cudaSuccess;
}

} // extern "C"
