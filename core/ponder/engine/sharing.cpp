// SPDX-License-Identifier: GPL-3.0-or-later
// Scores windows with common first tokens, which run once. Each window continues with a copy of their K/V.
#include "core/model/device.h"
#include "core/ponder/engine/engine.h"
#include "core/ponder/engine/engine_impl.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <utility>

namespace ponderscope {
namespace {

/// Windows [begin, end) of a batch. Their first `shared` tokens are equal and run once.
struct Stem {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::int64_t shared = 0;
    [[nodiscard]] bool branches() const { return end - begin > 1; }
};

/// Number of first tokens that two windows can share.
std::int64_t common_tokens(const Window& a, const Window& b) {
    const std::size_t most = std::min(a.ids.size(), b.ids.size());
    const auto differ =
        std::mismatch(a.ids.begin(), a.ids.begin() + static_cast<std::ptrdiff_t>(most), b.ids.begin());
    const auto same = static_cast<std::size_t>(differ.first - a.ids.begin());
    // The last shared token's target, the next token, must be equal, too.
    return static_cast<std::int64_t>(std::min(same, most)) - 1;
}

/// Joins neighbouring windows to stems as long as this saves tokens.
std::vector<Stem> stems_of(std::span<const Window> windows) {
    std::vector<Stem> stems;
    for (std::size_t i = 0; i < windows.size(); ++i) {
        if (!stems.empty() && windows[i].first == 0) {
            Stem& last = stems.back();
            const auto members = static_cast<std::int64_t>(last.end - last.begin);
            const std::int64_t common = common_tokens(windows[last.begin], windows[i]);
            const std::int64_t shared = members == 1 ? common : std::min(last.shared, common);
            if (shared > 0 && members * shared > (members - 1) * last.shared &&
                windows[last.begin].first == 0) {
                last.end = i + 1;
                last.shared = shared;
                continue;
            }
        }
        stems.push_back({i, i + 1, 0});
    }
    return stems;
}

/// Scores a batch whose windows share beginnings, in two runs on one cache.
class SharedScoring {
public:
    SharedScoring(const EngineParts& parts, std::span<const Window> windows, std::vector<Stem> stems,
                  RecordLevel level)
        : parts_(parts), windows_(windows), stems_(std::move(stems)), level_(level) {
        const bool interleaved = parts.method().visibility() == VisibilityRule::interleaved;
        rows_a_token_ = interleaved ? parts.method().max_steps() + 1 : 1;
        std::int64_t total = 0;
        for (const Window& window : windows) {
            first_rows_.push_back(total * rows_a_token_);
            total += static_cast<std::int64_t>(window.ids.size());
        }
        StepsOptions options = parts.steps_options();
        options.read_out_every_step = level == RecordLevel::steps;
        cache_.emplace(make_step_cache(parts.backbone(), parts.method(), options, total,
                                       static_cast<std::int64_t>(windows.size())));
    }

    std::vector<WindowResult> run() {
        const std::vector<WindowResult> beginnings = run_beginnings();
        std::vector<Window> rests;
        std::vector<std::int64_t> past;
        std::vector<std::vector<std::int32_t>> past_steps;
        std::size_t stem = 0;
        for (std::size_t i = 0; i < windows_.size(); ++i) {
            stem += i == stems_[stem].end ? 1 : 0;
            const std::int64_t shared = stems_[stem].shared;
            Window rest = windows_[i];
            rest.ids = rest.ids.subspan(static_cast<std::size_t>(shared));
            rest.first += shared;
            rest.report_begin = std::max<std::int64_t>(0, rest.report_begin - shared);
            rest.report_end = std::max<std::int64_t>(0, rest.report_end - shared);
            rests.push_back(rest);
            past.push_back(shared);
            past_steps.push_back(shared > 0 ? stem_steps_[stem] : std::vector<std::int32_t>());
        }
        std::vector<WindowResult> results =
            run_part(rests, std::move(past), first_rows_, std::move(past_steps), nullptr);
        stem = 0;
        for (std::size_t i = 0; i < windows_.size(); ++i) {
            stem += i == stems_[stem].end ? 1 : 0;
            const std::int64_t from = windows_[i].report_begin;
            const std::int64_t to = std::min(windows_[i].report_end, stems_[stem].shared);
            if (from < to) {
                WindowResult whole;
                whole.append(beginnings[stem], static_cast<std::size_t>(from - beginnings[stem].tokens.first),
                             static_cast<std::size_t>(to - from));
                whole.append(results[i], 0, results[i].tokens.size());
                results[i] = std::move(whole);
            }
        }
        return results;
    }

private:
    /// Runs the shared tokens of every stem in the cache rows of its first window, and copies the rows to the
    /// other windows. Returns a result for each stem; empty if it shares no tokens.
    std::vector<WindowResult> run_beginnings() {
        std::vector<Window> beginnings;
        std::vector<std::int64_t> rows;
        std::vector<std::size_t> which;
        std::vector<std::int64_t> columns(windows_.size(), 0); // columns of `counts`; 0: no token yet
        for (std::size_t s = 0; s < stems_.size(); ++s) {
            if (!stems_[s].branches()) {
                continue;
            }
            Window beginning = windows_[stems_[s].begin];
            beginning.next = beginning.ids[static_cast<std::size_t>(stems_[s].shared)];
            beginning.ids = beginning.ids.first(static_cast<std::size_t>(stems_[s].shared));
            beginning.report_end = 0;
            for (std::size_t i = stems_[s].begin; i < stems_[s].end; ++i) {
                columns[i] = static_cast<std::int64_t>(which.size()) + 1;
                beginning.report_begin = std::min(beginning.report_begin, windows_[i].report_begin);
                beginning.report_end =
                    std::max(beginning.report_end, std::min(windows_[i].report_end, stems_[s].shared));
            }
            beginning.report_begin = std::min(beginning.report_begin, beginning.report_end);
            beginnings.push_back(beginning);
            rows.push_back(first_rows_[stems_[s].begin]);
            which.push_back(s);
        }
        const at::Tensor all_counts = cache_->counts;
        if (all_counts.defined()) {
            cache_->counts = all_counts.narrow(1, 0, static_cast<std::int64_t>(which.size())).clone();
        }
        StepsResult run;
        std::vector<WindowResult> results =
            run_part(beginnings, std::vector<std::int64_t>(which.size(), 0), std::move(rows), {}, &run);
        if (all_counts.defined()) {
            const at::Tensor none = all_counts.narrow(1, 0, 1);
            cache_->counts = at::cat({none, cache_->counts}, 1).index_select(1, send(columns, parts_.device));
        }
        at::Tensor steps;
        if (run.steps.defined()) {
            steps = run.steps.to(at::kCPU);
        }
        stem_steps_.resize(stems_.size());
        std::vector<WindowResult> of_stems(stems_.size());
        std::int64_t first = 0;
        for (std::size_t i = 0; i < which.size(); ++i) {
            const Stem& stem = stems_[which[i]];
            for (std::int64_t t = 0; steps.defined() && t < stem.shared; ++t) {
                const std::int64_t last = steps.const_data_ptr<std::int64_t>()[first + t];
                stem_steps_[which[i]].push_back(static_cast<std::int32_t>(last));
            }
            first += stem.shared;
            of_stems[which[i]] = std::move(results[i]);
            for (std::size_t branch = stem.begin + 1; branch < stem.end; ++branch) {
                copy_rows(first_rows_[stem.begin], first_rows_[branch], stem.shared * rows_a_token_);
            }
        }
        return of_stems;
    }

    /// Copies \p count rows in every segment of every layer.
    void copy_rows(std::int64_t from, std::int64_t to, std::int64_t count) {
        for (std::int64_t l = 0; l < parts_.backbone().config().layers; ++l) {
            const std::int64_t segments = cache_->rows.k(l).size(0) / cache_->segment_rows;
            for (std::int64_t s = 0; s < segments; ++s) {
                const std::int64_t segment = s * cache_->segment_rows;
                cache_->rows.copy(l, l + 1, segment + from, segment + to, count);
            }
        }
        if (cache_->bias.defined()) {
            cache_->bias.narrow(0, to, count).copy_(cache_->bias.narrow(0, from, count));
        }
    }

    std::vector<WindowResult> run_part(const std::vector<Window>& windows, std::vector<std::int64_t> past,
                                       std::vector<std::int64_t> rows,
                                       std::vector<std::vector<std::int32_t>> steps, StepsResult* result) {
        return parts_
            .submit(windows, level_, {}, result,
                    {&*cache_, std::move(past), std::move(rows), std::move(steps)})
            ->collect();
    }

    const EngineParts& parts_;
    std::span<const Window> windows_;
    std::vector<Stem> stems_;
    RecordLevel level_;
    std::optional<StepCache> cache_;
    std::int64_t rows_a_token_ = 1;
    std::vector<std::int64_t> first_rows_;              ///< first row of each window in a segment
    std::vector<std::vector<std::int32_t>> stem_steps_; ///< K_t of each stem's shared tokens
};

/// Whether equal first tokens have equal results in all windows.
bool may_share(const EngineParts& parts, std::span<const Window> windows) {
    const RunPlan& plan = parts.plan;
    const ModelConfig& config = parts.model.config();
    const bool by_place = plan.rule && plan.rule->may_halt() && plan.rule->reads_places();
    const bool by_start = config.recurs() && !parts.start.is_zero(config);
    const bool recorded_on_request = !plan.attention.none() || plan.states.has_value() || plan.lens ||
                                     plan.experts != RecordedExperts::none || !parts.patches.empty();
    const std::int64_t alike = std::min(config.rope.longest_shared(config.max_positions),
                                        config.local_rope.longest_shared(config.max_positions));
    const bool rescaled = std::any_of(windows.begin(), windows.end(), [&](const Window& window) {
        return static_cast<std::int64_t>(window.ids.size()) > alike;
    });
    // With skipped tokens and sliding windows, StepCache::seen would have to be copied, too.
    const bool skips = plan.stops(parts.method()) && plan.kv_policy(parts.method()) == KvPolicy::skip;
    return plan.prefix.value_or(0) == 0 && !skips && !by_place && !by_start && !recorded_on_request &&
           !rescaled && !plan.iterates(parts.method());
}

} // namespace

std::vector<WindowResult> Engine::score_sharing(std::span<const Window> windows, RecordLevel level) const
    try {
    std::vector<Stem> stems = may_share(*impl_, windows) ? stems_of(windows) : std::vector<Stem>();
    if (std::none_of(stems.begin(), stems.end(), [](const Stem& stem) { return stem.branches(); })) {
        return score(windows, level);
    }
    for (const Window& window : windows) {
        impl_->check_ids(window.ids);
    }
    const c10::InferenceMode no_gradients;
    const GpuProducts products(impl_->precision);
    return SharedScoring(*impl_, windows, std::move(stems), level).run();
} catch (const c10::OutOfMemoryError&) {
    throw memory_exhausted(impl_->device);
}

} // namespace ponderscope
