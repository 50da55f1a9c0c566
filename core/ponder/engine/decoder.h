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

/// Results of a run over the newest tokens of S generated sequences, on the device.
struct NewestTokens {
    std::unique_ptr<Recorder> recorder; ///< the recorded signals; null: Wish::level is absent
    at::Tensor steps;                   ///< StepsResult::steps
    at::Tensor states;                  ///< [S, d]: the head's input for the last token of each sequence
    at::Tensor likeliest;               ///< int64 [S]: most likely next tokens, if requested
};

/// Computes the newest tokens of a generation.
///
/// Captures the device operations of one decoding step as a CUDA graph and replays the graph for later steps,
/// because the host launches hundreds of operations more slowly than the GPU runs them. A graph requires:
/// a GPU and a cache; no token can stop; every run has one token of each sequence; the sequences and their
/// memory stay the same. If the capture fails, the host launches the operations of each step.
class Decoder {
public:
    struct Wish {
        std::optional<RecordLevel> level; ///< record level; absent: records nothing
        bool likeliest = false;
        bool repeats = true;        ///< false: the host launches the operations of each step
        GraphUse* graphs = nullptr; ///< GenerateOptions::graphs
    };
    /// \p cache must outlive the object. nullptr: every run computes all tokens.
    Decoder(const EngineParts& parts, StepCache* cache, Wish wish);

    /// The next run overwrites the result. \p windows: the windows of the batch, for the recorder.
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
    const CudaKernels* device_; ///< kernels for the capture; nullptr: no capture
    TokenBatch batch_;          ///< the batch of the last step that was launched; replays read its memory
    ReportedTokens reported_;
    NewestTokens newest_;
    std::unique_ptr<DeviceGraph> graph_;
};

} // namespace ponderscope
