// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/kernels/cuda_library.h"
#include "core/ponder/engine/engine_impl.h"
#include "core/ponder/recording/recorder.h"

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <span>

namespace ponderscope {

/// Results on the device of a run over the newest tokens of S generated sequences.
struct NewestTokens {
    std::unique_ptr<Recorder> recorder; ///< if there is a listener
    at::Tensor steps;                   ///< StepsResult::steps
    at::Tensor states;                  ///< [S, d]: what their last tokens are read out from
    at::Tensor likeliest;               ///< int64 [S], where the most likely tokens are requested
};

/// Computes the newest tokens of a generation.
///
/// If every step runs the same device operations (one token of the same sequences on the same memory), the
/// operations are captured once and repeated by one call: launching hundreds of operations one by one takes
/// the host longer than the GPU needs to run them. Conditions: no token can stop, a cache, one GPU. If the
/// capture fails, operations are launched one by one.
class Decoder {
public:
    struct Wish {
        std::optional<RecordLevel> level; ///< of a recording; absent: no listener
        bool likeliest = false;
        bool repeats = true; ///< false: every step is launched anew (the reference of the captured steps)
        GraphUse* graphs = nullptr; ///< GenerateOptions::graphs
    };
    /// \p cache: nullptr if all tokens are computed every time. Lives as long as this.
    Decoder(const EngineParts& parts, StepCache* cache, Wish wish);

    /// The result is overwritten by the next run. \p windows: of the batch, as the recorder reports them.
    const NewestTokens& run(TokenBatch batch, std::span<const Window> windows);

private:
    [[nodiscard]] bool repeats(const TokenBatch& batch) const;
    bool capture();
    void replay();
    void compute();
    [[nodiscard]] at::Tensor last_rows(const at::Tensor& readout) const;

    const EngineParts& parts_;
    StepsOptions options_;
    Wish wish_;
    const CudaKernels* device_; ///< that can capture; nullptr: none, or nothing is to be captured
    TokenBatch batch_;          ///< of the last step that was not a replay; replays read its memory
    ReportedTokens reported_;
    NewestTokens newest_;
    std::unique_ptr<DeviceGraph> graph_;
};

} // namespace ponderscope
