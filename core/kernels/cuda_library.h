// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/kernels/attend.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>

namespace ponderscope {

/// A captured sequence of device operations. One call repeats it on the same memory with the current content.
/// Owns the memory of all tensors that the capture made.
class DeviceGraph {
public:
    virtual ~DeviceGraph() = default;
    virtual void replay() = 0;
};

/// Results of one pass over rows of logits. Results that were not requested are undefined.
struct HeadStatistics {
    at::Tensor maximum, sum; ///< [n, 1]: log p(v) = (logit(v) - maximum) - log(sum); NaN: no distribution
    at::Tensor nll, rank, entropy; ///< [n], as in HeadResult
    at::Tensor values, ids;        ///< [n, list_length], largest logits, descending; ties by ascending id
};

/// The functions of core/kernels/cuda, in a separate library, libponderscope_cuda.so. Loading LibTorch's CUDA
/// libraries takes half a gigabyte of memory and a second, which a run on the CPU saves. attend_fits,
/// rotate_fits and head_fits return whether attend, rotate and head_* accept these arguments. Without a CUDA
/// compiler they return false, and plain LibTorch operations run.
struct CudaKernels {
    std::string (*name_of)(at::Device) = nullptr; ///< "NVIDIA H200"
    int (*capability_of)(at::Device) = nullptr;   ///< 90: compute capability 9.0
    std::string (*why_none)() = nullptr;          ///< if no GPU is found: the message of the CUDA runtime

    bool (*attend_fits)(const at::Tensor& q) = [](const at::Tensor&) { return false; };
    /// Whether attend uses LibTorch's flash attention, the fastest choice for causal sequences.
    bool (*flash_fits)(const at::Tensor& q, const Visibility&, const at::Tensor& row_bias) = nullptr;
    at::Tensor (*attend)(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                         const Visibility& visibility, double scale, const at::Tensor& row_bias) = nullptr;
    bool (*rotate_fits)(const at::Tensor& x) = [](const at::Tensor&) { return false; };
    /// cos, sin: fp32 [angles, pairs], contiguous; rows: int64 [n], contiguous. See core/model/rope.h.
    at::Tensor (*rotate)(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin,
                         const at::Tensor& rows, bool neighbours) = nullptr;
    bool (*head_fits)(const at::Tensor& logits,
                      std::int64_t list_length) = [](const at::Tensor&, std::int64_t) { return false; };
    /// \p targets: int64 [n], negative: no target; undefined tensor: no NLL and no rank.
    HeadStatistics (*head_statistics)(const at::Tensor& logits, const at::Tensor& targets, bool entropy,
                                      std::int64_t list_length) = nullptr;
    /// e^(logit - maximum) · factor in \p type. If \p type is fp32, overwrites the logits.
    at::Tensor (*head_exponentials)(const at::Tensor& logits, const at::Tensor& maximum, double factor,
                                    at::ScalarType type) = nullptr;
    /// KL(P || Q) and KL(Q || P), fp32 [n].
    std::pair<at::Tensor, at::Tensor> (*head_divergences)(const at::Tensor& p, const HeadStatistics& of_p,
                                                          const at::Tensor& q,
                                                          const HeadStatistics& of_q) = nullptr;
    /// Captures the operations of \p work on the device without running them. Run \p work once before the
    /// capture. \p work must not copy to or from the host during the capture. c10::Error if the device cannot
    /// capture.
    std::unique_ptr<DeviceGraph> (*capture)(at::Device device, const std::function<void()>& work) = nullptr;
};

/// Loads the library and LibTorch's CUDA libraries, once per process. Any thread may call it. InputError: the
/// library is missing or cannot be loaded. std::logic_error: LibTorch searched for a GPU before the call.
/// It searches only once, for example at the first gradient.
void load_cuda();
/// Replaces the kernels, for a backend of LibTorch that has its own kernels.
void use_kernels(const CudaKernels& kernels);

/// The kernels for a tensor on a GPU. Null for a tensor on the CPU, or if no kernels are loaded.
const CudaKernels* cuda_kernels(const at::Tensor& tensor);
const CudaKernels* cuda_kernels(at::Device device);

} // namespace ponderscope
