// SPDX-License-Identifier: GPL-3.0-or-later
// The data of a page. The element `data` holds a zlib stream in Base64. The stream has four bytes with the
// length of a JSON text (little-endian), this text, and arrays. "arrays" in the JSON gives for each array its
// "offset" from the end of the text, its "count" and its "type": u8, u16, u32 or q16. A value of q16 is low +
// step * number; 65535 is NaN. Examples of arrays: "gap" and "length" (numbers of bytes before each token and
// in it), "0.nll" (a column of the first run), "1.nll_by_step" (NLL of each step, second run), "0.candidate"
// (indices of words; "word_length" splits "word_bytes" into words). "reached" of a run is the number of shown
// tokens that the run has in each sequence; its columns are padded after these.
#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/notice.h"
#include "core/base/words.h"
#include "core/page/page.h"
#include "core/stats/paired.h"
#include "core/trace/rows.h"
#include "core/trace/tools/summary.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <set>

namespace ponderscope {
namespace {

using nlohmann::json;

/// Bytes of all numbers by step, before compression.
constexpr std::int64_t step_budget = std::int64_t{8} << 20;
constexpr std::int64_t candidate_bytes = 6;
constexpr std::int64_t most_candidates = 5; // number of candidates on the page
json json_of(const Estimate& estimate) {
    return json::array(
        {number_or_null(estimate.value), number_or_null(estimate.low), number_or_null(estimate.high)});
}

class Packer {
public:
    Packer(const TraceReader& trace, const std::vector<RunInfo>& runs, const PageOptions& options)
        : trace_(trace), runs_(runs), options_(options) {
        for (const RunInfo& run : runs_) {
            signals_.push_back(trace_.signal_infos(run.id));
            sequences_.push_back(trace_.sequences(run.id));
        }
    }

    std::string pack() {
        plan();
        head_["program"] = PONDERSCOPE_VERSION;
        head_["trace"] = trace_.path().filename().string();
        head_["title"] = options_.title.empty() ? trace_.path().stem().string() : options_.title;
        head_["interval"] = {{"level", options_.bootstrap.level},
                             {"replicates", options_.bootstrap.replicates}};
        pack_sequences();
        for (std::size_t r = 0; r < runs_.size(); ++r) {
            pack_tokens(r);
        }
        pack_steps();
        pack_words();
        pack_numbers();
        write_notices(head_, notices_);
        head_["arrays"] = std::move(arrays_);
        const std::string text = head_.dump(-1, ' ', false, json::error_handler_t::replace);
        std::string packed;
        append_integer<std::uint32_t>(packed, text.size());
        return packed + text + data_;
    }

private:
    /// A sequence and the number of its shown tokens.
    struct Shown {
        std::int64_t number;
        std::int64_t tokens;
    };

    template <class Integer, class Value>
    static void append_integer(std::string& bytes, Value value) {
        const auto exact = static_cast<Integer>(value);
        char raw[sizeof exact];
        std::memcpy(raw, &exact, sizeof exact); // little-endian, like all supported machines
        bytes.append(raw, sizeof exact);
    }

    template <class Integer, class Values>
    void add(const std::string& name, const char* type, const Values& values, json more = json::object()) {
        more["type"] = type;
        more["offset"] = data_.size();
        more["count"] = values.size();
        arrays_[name] = std::move(more);
        for (const auto value : values) {
            append_integer<Integer>(data_, value);
        }
    }

    /// Adds q16: levels 0 to 65534 from the smallest to the largest value, and 65535 for NaN.
    template <class Value>
    void add_real(const std::string& name, const std::vector<Value>& values) {
        double low = std::numeric_limits<double>::infinity();
        double high = -low;
        for (const Value value : values) {
            if (std::isfinite(static_cast<double>(value))) {
                low = std::min(low, static_cast<double>(value));
                high = std::max(high, static_cast<double>(value));
            }
        }
        if (low > high) {
            low = high = 0;
        }
        const double step = (high - low) / 65534;
        std::vector<std::uint16_t> levels;
        levels.reserve(values.size());
        for (const Value value : values) {
            const auto number = static_cast<double>(value);
            levels.push_back(!std::isfinite(number) ? std::uint16_t{65535}
                             : step > 0 ? static_cast<std::uint16_t>(std::floor((number - low) / step + 0.5))
                                        : std::uint16_t{0});
        }
        add<std::uint16_t>(name, "q16", levels, {{"low", low}, {"step", step}});
    }

    void plan() {
        if (options_.max_tokens < 1) {
            throw InputError(ErrorId::usage_value, "--max-tokens: expected 1 or more, found " +
                                                       std::to_string(options_.max_tokens) + ".");
        }
        std::vector<std::int64_t> numbers = options_.sequences;
        if (numbers.empty()) {
            for (const SequenceInfo& sequence : sequences_[0]) {
                numbers.push_back(sequence.number);
            }
        }
        std::int64_t total = 0;
        std::int64_t left = options_.max_tokens;
        for (const std::int64_t number : numbers) {
            if (number < 0 || number >= static_cast<std::int64_t>(sequences_[0].size())) {
                throw InputError(ErrorId::trace_signal, trace_.path(),
                                 "a sequence of run " + runs_[0].name + ", numbered from 0 to " +
                                     std::to_string(static_cast<std::int64_t>(sequences_[0].size()) - 1),
                                 std::to_string(number), "choose a sequence that ponderscope inspect lists");
            }
            const std::int64_t tokens = sequences_[0][static_cast<std::size_t>(number)].tokens;
            total += tokens;
            const std::int64_t count = std::min(tokens, left);
            if (count > 0) {
                shown_.push_back({number, count});
                left -= count;
            }
        }
        if (shown_.empty()) {
            throw InputError(ErrorId::run_unscored, trace_.path(), "tokens in the run " + runs_[0].name,
                             "none", "wait until the recording has more tokens");
        }
        if (total > options_.max_tokens) {
            notices_.push_back({NoticeId::page_cut,
                                "The page shows the first " + std::to_string(options_.max_tokens) + " of " +
                                    std::to_string(total) + " tokens; the numbers above cover all tokens."});
        }
    }

    void pack_sequences() {
        std::string texts;
        std::vector<std::uint64_t> gaps;
        std::vector<std::uint64_t> lengths;
        json entries = json::array();
        for (const Shown& shown : shown_) {
            const TokenColumns tokens = trace_.tokens(runs_[0].id, shown.number, 0, shown.tokens);
            std::uint64_t end = 0;
            std::uint64_t before = 0;
            for (std::size_t i = 0; i < tokens.size(); ++i) {
                gaps.push_back(tokens.begin[i] > before ? tokens.begin[i] - before : 0);
                lengths.push_back(tokens.end[i] - tokens.begin[i]);
                before = tokens.end[i];
                end = std::max(end, tokens.end[i]);
            }
            ids_.insert(ids_.end(), tokens.id.begin(), tokens.id.end());
            const std::string text = trace_.text(runs_[0].id, shown.number).substr(0, end);
            without_text_ = without_text_ || text.empty();
            entries.push_back({{"title", sequences_[0][static_cast<std::size_t>(shown.number)].title},
                               {"tokens", shown.tokens},
                               {"bytes", text.size()}});
            texts += text;
        }
        head_["sequences"] = std::move(entries);
        add<std::uint8_t>("text", "u8", texts);
        add<std::uint32_t>("gap", "u32", gaps);
        add<std::uint32_t>("length", "u32", lengths);
        add<std::uint32_t>("id", "u32", ids_);
    }

    [[nodiscard]] std::int64_t tokens_there(std::size_t r, std::int64_t number) const {
        return number < static_cast<std::int64_t>(sequences_[r].size())
                   ? sequences_[r][static_cast<std::size_t>(number)].tokens
                   : 0;
    }

    void pack_tokens(std::size_t r) {
        throw_if_stopped(options_.bootstrap.stop);
        const RunInfo& run = runs_[r];
        TokenColumns all;
        json reached = json::array();
        for (const Shown& shown : shown_) {
            const std::size_t first = all.id.size();
            const std::int64_t there = std::min(shown.tokens, tokens_there(r, shown.number));
            if (there > 0) {
                const TokenColumns part = trace_.tokens(run.id, shown.number, 0, there);
                if (!std::equal(part.id.begin(), part.id.end(),
                                ids_.begin() + static_cast<std::ptrdiff_t>(first))) {
                    throw InputError(ErrorId::compare_tokens, trace_.path(), "the same tokens in both runs",
                                     "different tokens in sequence " + std::to_string(shown.number) + " of " +
                                         run.name,
                                     "make a page of each run");
                }
                schema::each_token_field([&](const auto& field) {
                    auto& to = all.*field.values;
                    to.insert(to.end(), (part.*field.values).begin(), (part.*field.values).end());
                });
            }
            reached.push_back(there);
            // Pad the columns of a partial run.
            const std::size_t size = first + static_cast<std::size_t>(shown.tokens);
            schema::each_token_field([&](const auto& field) {
                using Value = typename std::decay_t<decltype(all.*field.values)>::value_type;
                (all.*field.values)
                    .resize(size, std::is_floating_point_v<Value> ? std::numeric_limits<Value>::quiet_NaN()
                                                                  : Value{});
            });
        }
        const std::string prefix = std::to_string(r) + ".";
        add_real(prefix + "nll", all.nll);
        add_real(prefix + "entropy", all.entropy);
        add_real(prefix + "max_probability", all.max_probability);
        add<std::uint32_t>(prefix + "rank", "u32", all.rank);
        std::vector<std::int32_t> steps = all.steps;
        std::transform(steps.begin(), steps.end(), steps.begin(),
                       [](std::int32_t k) { return std::min(k, 65535); });
        add<std::uint16_t>(prefix + "steps", "u16", steps);
        if (std::any_of(all.flops.begin(), all.flops.end(), [](std::int64_t flops) { return flops != 0; })) {
            add_real(prefix + "flops", all.flops);
        }
        head_["runs"].push_back({{"name", run.name},
                                 {"method", run.method},
                                 {"policy", run.policy},
                                 {"scoring", run.scoring},
                                 {"architecture", run.architecture},
                                 {"depth_mixing", run.depth_mixing},
                                 {"dtype", run.dtype},
                                 {"step_unit", run.step_unit},
                                 {"max_steps", run.max_steps},
                                 {"layers", run.layers},
                                 {"tokens", run.tokens},
                                 {"scored_tokens", run.scored_tokens},
                                 {"complete", run.complete},
                                 {"reached", std::move(reached)},
                                 {"scalars", json::array()},
                                 {"candidates", nullptr},
                                 {"flops_per_token", number_or_null(mean_flops(run))}});
    }

    /// The first token's values, for the type and shape of a signal. No value if a shown sequence lacks a
    /// part of the signal.
    [[nodiscard]] std::optional<SignalChunk> probe(std::size_t r, const std::string& name,
                                                   const std::vector<std::string>& axes) const {
        if (std::none_of(signals_[r].begin(), signals_[r].end(),
                         [&](const SignalInfo& info) { return info.name == name && info.axes == axes; })) {
            return std::nullopt;
        }
        std::optional<SignalChunk> first;
        for (const Shown& shown : shown_) {
            if (tokens_there(r, shown.number) < shown.tokens) {
                return std::nullopt;
            }
            std::optional<SignalChunk> chunk = trace_.signal(runs_[r].id, shown.number, name, 0, 1);
            if (!chunk || (first && (chunk->dtype != first->dtype || chunk->shape != first->shape))) {
                return std::nullopt;
            }
            first = std::move(chunk);
        }
        return first;
    }

    /// Calls \p take with the values of each shown sequence.
    template <class Take>
    void each_chunk(std::size_t r, const std::string& name, const Take& take) const {
        for (const Shown& shown : shown_) {
            throw_if_stopped(options_.bootstrap.stop);
            const std::optional<SignalChunk> chunk =
                trace_.signal(runs_[r].id, shown.number, name, 0, shown.tokens);
            if (chunk) {
                take(*chunk);
            }
        }
    }
    [[nodiscard]] std::vector<double> values_of(std::size_t r, const std::string& name) const {
        std::vector<double> values;
        each_chunk(r, name, [&](const SignalChunk& chunk) {
            const std::vector<double> part = to_doubles(chunk);
            values.insert(values.end(), part.begin(), part.end());
        });
        return values;
    }

    void pack_steps() {
        pack_nll();
        pack_candidates();
        for (std::size_t r = 0; r < runs_.size(); ++r) {
            for (const SignalInfo& info : signals_[r]) {
                if (probe(r, info.name, {"token"})) {
                    head_["runs"][r]["scalars"].push_back(
                        {{"name", info.name}, {"title", info.shown_name()}, {"unit", info.unit}});
                    add_real(std::to_string(r) + ".scalar." + info.name, values_of(r, info.name));
                }
            }
        }
        if (!left_out_.empty()) {
            notices_.push_back({NoticeId::page_left_out, "To stay small, the page leaves out " +
                                                             joined(left_out_) +
                                                             " by step; the trace contains them."});
        }
    }

    /// Whether \p cost bytes fit into the budget. If not, the page leaves out \p what.
    bool afford(std::int64_t cost, const char* what) {
        if (cost > left_) {
            left_out_.emplace_back(what);
            return false;
        }
        left_ -= cost;
        return true;
    }

    void pack_nll() {
        std::vector<std::size_t> having;
        std::int64_t cost = 0;
        for (std::size_t r = 0; r < runs_.size(); ++r) {
            const std::optional<SignalChunk> first = probe(r, signal::nll, {"token", "step"});
            if (runs_[r].max_steps > 0 && first && is_real(first->dtype)) {
                having.push_back(r);
                cost += 2 * static_cast<std::int64_t>(ids_.size()) * (runs_[r].max_steps + 1);
            }
        }
        for (const std::size_t r : afford(cost, "NLL") ? having : std::vector<std::size_t>()) {
            add_real(std::to_string(r) + ".nll_by_step", values_of(r, signal::nll));
        }
    }

    void pack_candidates() {
        const std::vector<std::string> axes{"token", "step", "candidate"};
        std::map<std::size_t, std::int64_t> recorded;
        for (std::size_t r = 0; r < runs_.size(); ++r) {
            const std::optional<SignalChunk> ids = probe(r, signal::candidate_ids, axes);
            const std::optional<SignalChunk> shares = probe(r, signal::candidate_probabilities, axes);
            if (ids && shares && !is_real(ids->dtype) && ids->shape == shares->shape) {
                recorded[r] = ids->shape[2];
            }
        }
        std::int64_t cost = 0;
        for (auto& [r, count] : recorded) {
            count = std::min(count, most_candidates);
            cost +=
                candidate_bytes * static_cast<std::int64_t>(ids_.size()) * (runs_[r].max_steps + 1) * count;
        }
        if (afford(cost, "candidates")) {
            for (const auto& [r, count] : recorded) {
                keep_candidates(r, count);
            }
        }
    }

    void keep_candidates(std::size_t r, std::int64_t kept) {
        std::vector<double> shares;
        std::vector<std::int64_t>& ids = candidates_[r];
        std::int64_t steps = 0;
        const auto first_of_each = [&](const SignalChunk& chunk, const auto& values, auto& to) {
            const auto width = static_cast<std::size_t>(chunk.shape[2]);
            steps = chunk.shape[1];
            for (std::size_t at = 0; at < values.size(); at += width) {
                for (std::size_t j = 0; j < static_cast<std::size_t>(kept); ++j) {
                    to.push_back(values[at + j]);
                }
            }
        };
        each_chunk(r, signal::candidate_ids,
                   [&](const SignalChunk& chunk) { first_of_each(chunk, to_integers(chunk), ids); });
        each_chunk(r, signal::candidate_probabilities,
                   [&](const SignalChunk& chunk) { first_of_each(chunk, to_doubles(chunk), shares); });
        for (std::int64_t& id : ids) {
            id = std::max<std::int64_t>(id, 0);
        }
        add_real(std::to_string(r) + ".candidate_p", shares);
        head_["runs"][r]["candidates"] = {{"count", kept}, {"steps", steps}};
    }

    void pack_words() {
        std::set<std::int64_t> used;
        for (const auto& [r, ids] : candidates_) {
            used.insert(ids.begin(), ids.end());
        }
        if (without_text_) {
            used.insert(ids_.begin(), ids_.end());
        }
        std::map<std::int64_t, std::string> words;
        for (const RunInfo& run : runs_) {
            for (auto& [id, bytes] : trace_.vocabulary(run.id)) {
                words.try_emplace(id, std::move(bytes)); // A's text if both runs have the id
            }
        }
        std::string bytes;
        std::vector<std::size_t> lengths;
        std::map<std::int64_t, std::size_t> places;
        for (const std::int64_t id : used) {
            std::string& word = words[id];
            if (word.empty()) { // a padded vocabulary, or no tokenizer
                word = '[' + std::to_string(id) + ']';
            }
            places[id] = lengths.size();
            lengths.push_back(word.size());
            bytes += word;
        }
        const auto placed = [&](const auto& ids) {
            std::vector<std::size_t> result;
            result.reserve(ids.size());
            for (const auto id : ids) {
                result.push_back(places.at(id));
            }
            return result;
        };
        add<std::uint8_t>("word_bytes", "u8", bytes);
        add<std::uint32_t>("word_length", "u32", lengths);
        if (without_text_) {
            add<std::uint32_t>("word", "u32", placed(ids_));
        }
        for (const auto& [r, ids] : candidates_) {
            const std::string name = std::to_string(r) + ".candidate";
            lengths.size() > 65535 ? add<std::uint32_t>(name, "u32", placed(ids))
                                   : add<std::uint16_t>(name, "u16", placed(ids));
        }
    }

    /// Means with intervals over all scored tokens, including tokens that are not shown.
    void pack_numbers() {
        for (std::size_t r = 0; r < runs_.size(); ++r) {
            const RunEstimate estimate = estimate_run(trace_, runs_[r], options_.bootstrap);
            add_new(notices_, estimate.notices);
            head_["interval"]["drawn"] = estimate.resampling.words();
            json& run = head_["runs"][r];
            run["nll"] = json_of(estimate.mean_nll);
            run["perplexity"] = json_of(estimate.perplexity);
            run["bits_per_byte"] = json_of(estimate.bits_per_byte);
            run["mean_steps"] = json_of(estimate.mean_steps);
        }
        head_["comparison"] = nullptr;
        if (runs_.size() == 2) {
            const PairedComparison pair =
                compare_paired(pair_runs(trace_, runs_[0], trace_, runs_[1],
                                         {options_.bootstrap.progress, options_.bootstrap.stop}),
                               options_.bootstrap);
            add_new(notices_, pair.notices);
            head_["interval"]["drawn"] = pair.resampling.words();
            head_["comparison"] = {{"tokens", pair.tokens},
                                   {"difference", json_of(pair.difference)},
                                   {"perplexity_ratio", json_of(pair.perplexity_ratio)},
                                   {"bits_per_byte_difference", json_of(pair.bits_per_byte_difference)},
                                   {"pearson", json_of(pair.pearson)},
                                   {"share_b_better", pair.share_b_better}};
        }
    }

    const TraceReader& trace_;
    const std::vector<RunInfo>& runs_;
    const PageOptions& options_;
    std::vector<std::vector<SignalInfo>> signals_;
    std::vector<std::vector<SequenceInfo>> sequences_;
    std::vector<Shown> shown_;
    json head_ = {{"runs", json::array()}};
    json arrays_ = json::object();
    std::string data_;
    Notices notices_;
    std::vector<std::int32_t> ids_;
    bool without_text_ = false;
    std::int64_t left_ = step_budget;                             ///< remaining bytes for numbers by step
    std::vector<std::string> left_out_;                           ///< numbers by step that did not fit
    std::map<std::size_t, std::vector<std::int64_t>> candidates_; ///< kept ids by run
};

} // namespace

std::string packed_page(const TraceReader& trace, const std::vector<RunInfo>& runs,
                        const PageOptions& options) {
    if (runs.empty() || runs.size() > 2) {
        throw InputError(ErrorId::usage_missing, "A page shows one or two runs; name them with --run.");
    }
    return Packer(trace, runs, options).pack();
}

} // namespace ponderscope
