// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/error.h"
#include "core/model/device.h"
#include "core/ponder/engine/engine_impl.h"
#include "core/trace/reader.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <limits>
#include <set>
#include <type_traits>
#include <utility>

namespace ponderscope {

namespace {

NamedArray to_array(const at::Tensor& tensor, std::vector<std::int64_t> shape) {
    NamedArray array;
    array.shape = std::move(shape);
    if (tensor.scalar_type() == at::kLong) {
        const at::Tensor whole = tensor.to(at::kCPU).contiguous();
        array.dtype = DType::i64;
        array.integers.assign(whole.const_data_ptr<std::int64_t>(),
                              whole.const_data_ptr<std::int64_t>() + whole.numel());
        return array;
    }
    const at::Tensor host = tensor.to(at::kCPU, at::kFloat).contiguous();
    array.floats.assign(host.const_data_ptr<float>(), host.const_data_ptr<float>() + host.numel());
    return array;
}

/// Collects all tensors of a forward pass and passes them to the recorder. Steps that did not run: NaN.
class Inspector final : public RunListener {
public:
    Inspector(std::int64_t batch, std::int64_t tokens) : batch_(batch), tokens_(tokens) {}

    void listen(StepsOptions& options) {
        recorder_ = options.listener;
        options.listener = this;
    }

    [[nodiscard]] bool wants(std::string_view) const override { return true; }
    void attends(const Attending& attending) override { recorder_->attends(attending); }

    void on_tensor(std::string_view name, std::int64_t step, std::int64_t layer,
                   const at::Tensor& tensor) override {
        if (recorder_->wants(name)) {
            recorder_->on_tensor(name, step, layer, tensor);
        }
        std::string full = std::string(name) + ".step" + std::to_string(step);
        if (layer >= 0) {
            full += ".layer" + std::to_string(layer);
        }
        // Copy the tensor, whose memory may be reused before step_ran() tells its tokens.
        waiting_.emplace_back(std::move(full), tensor.clone());
        if (name == "initial_state" || name == "prelude") {
            waiting_.back().first = name; // one value a token, without a step
        }
        if (name == "expected_embedding") {
            place(mixed_tokens_);
        }
    }

    void step_begins(const Slots& slots) override { recorder_->step_begins(slots); }

    void step_ran(const Slots& slots, const Decision& decision, const at::Tensor& readout) override {
        place(slots.tokens);
        recorder_->step_ran(slots, decision, readout);
    }

    at::Tensor expected_embedding(const Slots& slots, const HeadWeights& head,
                                  const MixtureWish& wish) override {
        mixed_tokens_ = slots.tokens;
        return recorder_->expected_embedding(slots, head, wish);
    }

    [[nodiscard]] ArrayMap arrays() const {
        ArrayMap arrays;
        for (const auto& [name, all] : whole_) {
            std::vector<std::int64_t> shape{batch_, tokens_};
            shape.insert(shape.end(), all.sizes().begin() + 1, all.sizes().end());
            arrays.emplace(name, to_array(all, std::move(shape)));
        }
        return arrays;
    }

private:
    void place(const at::Tensor& tokens) {
        for (auto& [name, tensor] : waiting_) {
            at::Tensor& all = whole_[name];
            if (!tokens.defined()) {
                all = tensor;
                continue;
            }
            if (!all.defined()) {
                std::vector<std::int64_t> whole = tensor.sizes().vec();
                whole.front() = batch_ * tokens_;
                const double empty = tensor.scalar_type() == at::kLong
                                         ? did_not_run
                                         : std::numeric_limits<double>::quiet_NaN();
                all = at::full(whole, empty, tensor.options());
            }
            all.index_copy_(0, tokens, tensor); // a step's tokens may arrive in several calls
        }
        waiting_.clear();
    }

    std::int64_t batch_;
    std::int64_t tokens_;
    RunListener* recorder_ = nullptr;
    at::Tensor mixed_tokens_;
    std::map<std::string, at::Tensor> whole_; ///< by name, with rows for all tokens
    std::vector<std::pair<std::string, at::Tensor>> waiting_;
};

void append_values(NamedArray& array, const SignalChunk& chunk, std::int64_t tokens) {
    const std::int64_t all = chunk.shape.front();
    const std::int64_t each =
        all == 0 ? 0 : static_cast<std::int64_t>(chunk.data.size() / size_of(chunk.dtype)) / all;
    const auto count = static_cast<std::ptrdiff_t>(tokens * each);
    if (array.dtype == DType::i64) {
        const std::vector<std::int64_t> values = to_integers(chunk);
        array.integers.insert(array.integers.end(), values.begin(), values.begin() + count);
    } else {
        const std::vector<float> values = to_floats(chunk);
        array.floats.insert(array.floats.end(), values.begin(), values.begin() + count);
    }
}

} // namespace

ArrayMap Engine::inspect_batch(const std::vector<std::vector<std::int32_t>>& ids,
                               const std::vector<std::int64_t>& numbers) const try {
    if (ids.empty()) {
        throw InputError(ErrorId::usage_missing, "There are no sequences to compute; give at least one.");
    }
    const auto batch = static_cast<std::int64_t>(ids.size());
    const auto length = static_cast<std::int64_t>(ids.front().size());
    std::vector<Window> windows;
    for (const std::vector<std::int32_t>& row : ids) {
        if (static_cast<std::int64_t>(row.size()) != length) {
            throw InputError(ErrorId::text_ids, "The rows of ids must have the same length, but " +
                                                    std::to_string(length) + " and " +
                                                    std::to_string(row.size()) +
                                                    " tokens were given; compute the rows separately.");
        }
        windows.push_back({row, 0, length, numbers.empty() ? -1 : numbers[windows.size()]});
    }
    const c10::InferenceMode no_gradients;
    const GpuProducts products(impl_->precision);
    Inspector inspector(batch, length);
    StepsResult run;
    PendingPtr pending = impl_->submit(
        windows, RecordLevel::steps, [&](StepsOptions& options) { inspector.listen(options); }, &run);
    ArrayMap arrays = inspector.arrays();
    arrays.emplace("logits", to_array(full_logits(run.readout, impl_->backbone().head()),
                                      {batch, length, config().vocab_size}));
    const std::vector<WindowResult> results = collect(std::move(pending));
    std::set<std::string> of_target;
    for (const SignalInfo& info : signals(RecordLevel::steps)) {
        if (info.of_target) {
            of_target.insert(info.name);
        }
    }

    const auto put = [&](const char* name, const auto& column, std::int64_t rows) {
        NamedArray& array = arrays[name];
        array.shape = {batch, rows};
        if constexpr (std::is_same_v<decltype(column), const std::vector<float>&>) {
            array.floats.insert(array.floats.end(), column.begin(), column.begin() + rows);
        } else {
            array.dtype = DType::i64;
            array.integers.insert(array.integers.end(), column.begin(), column.begin() + rows);
        }
    };
    for (const WindowResult& result : results) {
        const TokenColumns& columns = result.tokens;
        put("nll", columns.nll, length - 1);
        put("rank", columns.rank, length - 1);
        put("entropy", columns.entropy, length);
        put("steps", columns.steps, length);
        put("flops", columns.flops, length);
        for (const auto& [name, chunk] : result.signals) {
            // As in the reference files, signals that need a target have no row for the last token.
            const std::int64_t rows = of_target.contains(name) ? length - 1 : length;
            NamedArray& array = arrays["signal." + name];
            if (array.shape.empty()) {
                array.dtype = is_real(chunk.dtype) ? DType::f32 : DType::i64;
                array.shape = chunk.shape;
                array.shape.front() = rows;
                array.shape.insert(array.shape.begin(), batch);
            }
            append_values(array, chunk, rows);
        }
    }
    return arrays;
} catch (const c10::OutOfMemoryError&) {
    throw memory_exhausted(impl_->device);
}

} // namespace ponderscope
