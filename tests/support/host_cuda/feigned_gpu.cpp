// SPDX-License-Identifier: GPL-3.0-or-later
// Loaded before a program (LD_PRELOAD), it answers in the CUDA runtime's place what GPUs there are, and what
// LibTorch asks of their memory and streams.
// FEIGNED_GPU:
//   old driver      a GPU whose driver knows CUDA 11.4
//   7.5             GPUs of that compute capability
// FEIGNED_FREE:
//   2,full,40       so many GPUs, with so many GiB free of 80; "full" has no room for a context. Without it:
//                   80, one GPU
// Nothing runs on them: what is queued is taken for done, and every capture is called off. It is also found
// as the driver's library, by its name within (CMakeLists.txt).
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

namespace {

std::string setting(const char* name, const char* otherwise) {
    const char* const set = std::getenv(name);
    return set != nullptr ? set : otherwise;
}

std::string feigned() {
    return setting("FEIGNED_GPU", "");
}

const std::vector<std::string>& free_of_each() {
    static const std::vector<std::string> all = [] {
        std::vector<std::string> made;
        std::istringstream list(setting("FEIGNED_FREE", "80"));
        for (std::string one; std::getline(list, one, ',');) {
            made.push_back(one);
        }
        return made;
    }();
    return all;
}

bool is_full(int device) {
    return free_of_each().at(static_cast<std::size_t>(device)) == "full";
}

thread_local int current = 0;
thread_local cudaStream_t captured = nullptr;
std::atomic<unsigned long long> captures = 0;

/// Streams and events are numbers.
template <typename Handle>
cudaError_t give(Handle* handle) {
    static std::atomic<std::uintptr_t> given = 0x1000;
    *handle = reinterpret_cast<Handle>(++given);
    return cudaSuccess;
}

} // namespace

extern "C" {

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
    *flags = 0;
    *active = is_full(device) ? 0 : 1;
    return CUDA_SUCCESS;
}

cudaError_t cudaGetDeviceCount(int* count) {
    *count = feigned() == "old driver" ? 0 : static_cast<int>(free_of_each().size());
    return *count > 0 ? cudaSuccess : cudaErrorInsufficientDriver;
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

cudaError_t cudaGetDevice(int* device) {
    *device = current;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
    if (is_full(device)) {
        return cudaErrorMemoryAllocation;
    }
    current = device;
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
    if (is_full(current)) {
        return cudaErrorMemoryAllocation;
    }
    constexpr std::size_t gib = std::size_t{1} << 30;
    *free = std::stoul(free_of_each().at(static_cast<std::size_t>(current))) * gib;
    *total = 80 * gib;
    return cudaSuccess;
}

cudaError_t cudaMalloc(void** memory, std::size_t size) {
    *memory = std::aligned_alloc(512, (size + 511) / 512 * 512);
    return *memory != nullptr ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaFree(void* memory) {
    std::free(memory);
    return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
    *least = *greatest = 0;
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) {
    return give(stream);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
    return give(event);
}

cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) {
    return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t) {
    return cudaSuccess;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode*) {
    return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
    captured = stream;
    ++captures;
    return cudaSuccess;
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                     unsigned long long* id, cudaGraph_t*, const cudaGraphNode_t**,
                                     const cudaGraphEdgeData**, std::size_t*) {
    const bool here = captured != nullptr && stream == captured;
    *status = here ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    if (here && id != nullptr) {
        *id = captures;
    }
    return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
    return cudaStreamGetCaptureInfo(stream, status, nullptr, nullptr, nullptr, nullptr, nullptr);
}

cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t* graph) {
    *graph = nullptr;
    captured = nullptr;
    return cudaErrorStreamCaptureInvalidated;
}

} // extern "C"
