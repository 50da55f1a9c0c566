// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ponder/schedule/steps.h"

#include "core/model/device.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <optional>

namespace ponderscope {

namespace {

/// The tokens at one place, counted from the beginning of this run, of all sequences that are long enough.
struct Part {
    at::Tensor tokens; ///< int64 [m], indices in the run
    TokenBatch batch;
};

Part part_at(const TokenBatch& batch, std::int64_t place, std::int64_t segment_rows) {
    Part part;
    std::vector<std::int64_t> numbers;
    std::int64_t first = 0;
    for (std::size_t i = 0; i < batch.lengths.size(); ++i) {
        if (place < batch.lengths[i]) {
            numbers.push_back(first + place);
            part.batch.lengths.push_back(1);
            part.batch.past.push_back(batch.past[i] + place);
            part.batch.first_rows.push_back(batch.first_rows[i]);
        }
        first += batch.lengths[i];
    }
    part.tokens = send(numbers, batch.ids.device());
    const auto pick = [&](const at::Tensor& all) { return select_rows(all, part.tokens); };
    part.batch.ids = pick(batch.ids);
    part.batch.positions = pick(batch.positions);
    part.batch.rotation_rows = pick(batch.rotation_rows);
    part.batch.cos = batch.cos;
    part.batch.sin = batch.sin;
    // Keep the sequences' numbers even after shorter sequences ended, because StepCache::counts uses them.
    part.batch.space = {segment_rows, pick(batch.space.sequence_row), pick(batch.space.sequence),
                        pick(batch.space.position)};
    part.batch.places = {pick(batch.places.sequence), pick(batch.places.position), pick(batch.places.length)};
    part.batch.start = pick(batch.start);
    return part;
}

} // namespace

StepsResult run_token_by_token(const Backbone& backbone, const Method& method, const TokenBatch& batch,
                               const StepsOptions& options) {
    StepsOptions here = options;
    std::optional<StepCache> own;
    if (here.cache == nullptr) {
        own.emplace(make_step_cache(backbone, method, options, batch.size(),
                                    static_cast<std::int64_t>(batch.lengths.size())));
        here.cache = &*own;
    }
    StepsResult result;
    const std::int64_t longest = *std::max_element(batch.lengths.begin(), batch.lengths.end());
    for (std::int64_t place = 0; place < longest; ++place) {
        const Part part = part_at(batch, place, here.cache->segment_rows);
        here.numbers = part.tokens;
        const StepsResult one = run_by_step(backbone, method, part.batch, here);
        if (!result.readout.defined()) {
            result.readout = at::zeros({batch.size(), one.readout.size(1)}, one.readout.options());
        }
        result.readout.index_copy_(0, part.tokens, one.readout);
        if (one.steps.defined()) {
            if (!result.steps.defined()) {
                result.steps = at::zeros_like(batch.ids);
            }
            result.steps.index_copy_(0, part.tokens, one.steps);
        }
    }
    return result;
}

} // namespace ponderscope
