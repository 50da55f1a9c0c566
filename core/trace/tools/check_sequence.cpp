// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trace/tools/check_sequence.h"

#include "core/base/utf8.h"
#include "core/trace/digests.h"
#include "core/trace/recorded_choices.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace ponderscope {
namespace {

/// Rounding of what was computed in fp16 or fp32, as probabilities and logarithms of them.
constexpr double slack = 2e-2;
constexpr std::int64_t page_tokens = 1 << 14;
constexpr std::size_t page_bytes = std::size_t{4} << 20; // of a signal

/// What a tokenizer may leave out between two tokens.
bool is_left_out(char32_t c) {
    return c <= 0x20 || c == 0x7F || (c >= 0x80 && c <= 0xA0) || c == 0xAD || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200F) || (c >= 0x2028 && c <= 0x202F) || (c >= 0x205F && c <= 0x2060) ||
           c == 0x3000 || c == 0xFEFF;
}

bool is_left_out(const std::string& text, std::uint64_t begin, std::uint64_t end) {
    for (std::uint64_t at = begin; at < end;) {
        const Utf8Character character = utf8_at(text, at);
        if (!is_left_out(character.code)) {
            return false;
        }
        at += character.bytes;
    }
    return true;
}

std::string shown_number(double value) {
    return std::isfinite(value) ? nlohmann::json(value).dump()
           : value > 0          ? "infinity"
           : value < 0          ? "-infinity"
                                : "NaN";
}

bool agree(double a, double b) {
    return std::abs(a - b) <= 1e-6 + 1e-6 * std::max(std::abs(a), std::abs(b));
}

} // namespace

void FaultList::add(const std::string& place, const std::string& message) {
    if (result_.faults.size() >= most_) {
        throw Enough();
    }
    result_.faults.push_back({place, message});
}

std::string FaultList::without_path(std::string message) const {
    for (const std::filesystem::path& path :
         {path_, std::filesystem::path(path_.string() + ".annotations")}) {
        if (const std::string prefix = path.string() + ": "; message.starts_with(prefix)) {
            message.erase(0, prefix.size());
        }
    }
    return message.substr(0, message.find("; "));
}

RunCheck::RunCheck(FaultList& faults, const TraceReader& reader, const RunInfo& run, const std::string& place,
                   const std::vector<SignalInfo>& signals, const std::stop_token& stop)
    : faults_(faults),
      reader_(reader),
      run_(run),
      signals_(signals),
      stop_(stop),
      all_ran_(recorded_choices(run.choices).kv == "full") {
    faults_.guard(place, [&] {
        for (auto& [id, bytes] : reader.vocabulary(run.id)) {
            words_.emplace(id, std::move(bytes));
        }
    });
}

void RunCheck::compare(const std::string& place, const TokenTotals& told, const TokenTotals& found) {
    const auto each = [&](const char* name, auto TokenTotals::*member) {
        const auto a = static_cast<double>(told.*member);
        const auto b = static_cast<double>(found.*member);
        if (!agree(a, b)) {
            faults_.add(place, std::string(name) + " is " + shown_number(a) + " and its tokens give " +
                                   shown_number(b));
        }
    };
    each("tokens", &TokenTotals::tokens);
    each("scored_tokens", &TokenTotals::scored_tokens);
    each("scored_bytes", &TokenTotals::scored_bytes);
    each("nll_sum", &TokenTotals::nll_sum);
    each("steps_sum", &TokenTotals::steps_sum);
    each("flops_sum", &TokenTotals::flops_sum);
}

TokenTotals RunCheck::check(const SequenceInfo& sequence) {
    const std::string place = "run " + std::to_string(run_.id) + " (" + printable(run_.name, 60) +
                              "), sequence " + std::to_string(sequence.number);
    Text text;
    faults_.guard(place, [&] {
        text.bytes = reader_.text(run_.id, sequence.number);
        text.invalid = first_invalid_utf8(text.bytes);
    });
    TotalsCounter totals;
    std::vector<std::int32_t> steps;
    ranked_ = false;
    unranked_.clear();
    faults_.guard(place, [&] {
        for (std::int64_t begin = 0; begin < sequence.tokens; begin += page_tokens) {
            const TokenColumns tokens = reader_.tokens(run_.id, sequence.number, begin,
                                                       std::min(begin + page_tokens, sequence.tokens));
            totals.add(tokens);
            check_tokens(sequence, place, tokens, text);
            for (const std::int32_t step : tokens.steps) {
                steps.push_back(static_cast<std::int32_t>(std::min<std::int64_t>(step, run_.max_steps)));
            }
        }
    });
    for (const std::int64_t position : unranked_) {
        if (ranked_) { // of a sequence without any, nobody knew them
            faults_.add(place + ", token " + std::to_string(position), "nll is there and rank is 0");
        }
    }
    if (text.invalid != std::string::npos && !text.excused) {
        faults_.add(place, "its text is no UTF-8");
    }
    if (sequence.complete && !is_left_out(text.bytes, text.covered, text.bytes.size())) {
        faults_.add(place, "its text from byte " + std::to_string(text.covered) + " on is under no token");
    }
    compare(place, sequence, totals.totals());
    for (const SignalInfo& signal : signals_) {
        const std::string where = place + ", signal " + printable(signal.name, 60);
        faults_.guard(where, [&] { check_signal(sequence, where, signal, steps); });
    }
    return totals.totals();
}

void RunCheck::check_tokens(const SequenceInfo& sequence, const std::string& where,
                            const TokenColumns& tokens, Text& text) {
    const double most_entropy =
        std::log(static_cast<double>(std::max<std::int64_t>(run_.vocab_size, 1))) + slack;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        const std::int64_t position = tokens.first + static_cast<std::int64_t>(i);
        const std::string place = where + ", token " + std::to_string(position);
        const std::int32_t id = tokens.id[i];
        const std::int32_t rank = tokens.rank[i];
        const auto nll = static_cast<double>(tokens.nll[i]);
        const auto entropy = static_cast<double>(tokens.entropy[i]);
        const auto probability = static_cast<double>(tokens.max_probability[i]);
        const bool scored = !std::isnan(nll);
        const auto fault_if = [&](bool wrong, const auto& message) {
            if (wrong) {
                faults_.add(place, message());
            }
        };
        if (id < 0 || id >= run_.vocab_size) {
            faults_.add(place, "its id is " + std::to_string(id) + " and vocab_size is " +
                                   std::to_string(run_.vocab_size));
        } else {
            check_word(place, id);
        }
        if (tokens.begin[i] <= text.invalid && text.invalid < tokens.end[i]) {
            const auto word = words_.find(id);
            text.excused =
                word != words_.end() &&
                text.bytes.compare(tokens.begin[i], tokens.end[i] - tokens.begin[i], word->second) == 0;
        }
        check_span(place, tokens.begin[i], tokens.end[i], text);
        fault_if(scored && !(nll >= -slack),
                 [&] { return "nll is " + shown_number(nll) + ", and no probability is above 1"; });
        ranked_ = ranked_ || (scored && rank > 0);
        if (scored && rank == 0) {
            unranked_.push_back(position);
        }
        fault_if(!scored && rank != 0, [&] { return "nll is NULL and rank is " + std::to_string(rank); });
        fault_if(rank > run_.vocab_size, [&] {
            return "rank is " + std::to_string(rank) + " of " + std::to_string(run_.vocab_size);
        });
        fault_if(!std::isnan(entropy) && !(entropy >= -slack && entropy <= most_entropy),
                 [&] { return "entropy is " + shown_number(entropy) + ", not between 0 and ln vocab_size"; });
        fault_if(!std::isnan(probability) && !(probability > 0 && probability <= 1 + slack),
                 [&] { return "max_probability is " + shown_number(probability); });
        fault_if(tokens.steps[i] > run_.max_steps, [&] {
            return "steps is " + std::to_string(tokens.steps[i]) + " and the run's max_steps is " +
                   std::to_string(run_.max_steps);
        });
        fault_if(tokens.flops[i] < 0, [&] { return "flops is " + std::to_string(tokens.flops[i]); });
        fault_if(scored && sequence.complete && position + 1 == sequence.tokens, [&] {
            return std::string(
                "it is the last of its sequence and has an nll, though nothing follows that it "
                "could predict");
        });
    }
}

/// TraceReader keeps spans within the text.
void RunCheck::check_span(const std::string& place, std::uint64_t begin, std::uint64_t end, Text& text) {
    if (begin == end) {
        return; // a token that a template added
    }
    if (begin < text.covered) {
        faults_.add(place, "it begins at byte " + std::to_string(begin) + ", before the end " +
                               std::to_string(text.covered) + " of the tokens before it");
    } else if (end <= text.bytes.size() && !is_left_out(text.bytes, text.covered, begin)) {
        faults_.add(place, "bytes " + std::to_string(text.covered) + " to " + std::to_string(begin) +
                               " before it are under no token and are not white space");
    }
    text.covered = std::max(text.covered, end);
}

void RunCheck::check_word(const std::string& place, std::int64_t id) {
    // Beyond the largest known id, nothing says that the tokenizer goes so far: models have more rows.
    if (!words_.empty() && id < words_.rbegin()->first && !words_.contains(id) &&
        missing_words_.insert(id).second) {
        faults_.add(place, "token id " + std::to_string(id) + " has no row in vocabulary");
    }
}

void RunCheck::check_signal(const SequenceInfo& sequence, const std::string& place, const SignalInfo& signal,
                            const std::vector<std::int32_t>& steps) {
    if (sequence.tokens == 0) {
        return;
    }
    // Where chunks differ in their length, the last token's is the longest.
    const auto probe =
        reader_.signal(run_.id, sequence.number, signal.name, sequence.tokens - 1, sequence.tokens);
    if (!probe && !reader_.signal(run_.id, sequence.number, signal.name, 0, 1)) {
        return; // the sequence has none of it
    }
    const std::size_t bytes = probe ? std::max<std::size_t>(probe->data.size(), 1) : page_bytes;
    const std::int64_t page =
        std::clamp<std::int64_t>(static_cast<std::int64_t>(page_bytes / bytes), 1, page_tokens);
    for (std::int64_t begin = 0; begin < sequence.tokens; begin += page) {
        if (stop_.stop_requested()) {
            throw Cancelled();
        }
        const auto chunk = reader_.signal(run_.id, sequence.number, signal.name, begin,
                                          std::min(begin + page, sequence.tokens));
        if (!chunk) {
            faults_.add(place, "it has values of other tokens, and none from token " + std::to_string(begin));
            return;
        }
        check_values(place, signal, *chunk, steps);
    }
}

/// Numbers where steps ran, none where they did not, and the words that candidates are.
void RunCheck::check_values(const std::string& place, const SignalInfo& signal, const SignalChunk& chunk,
                            const std::vector<std::int32_t>& steps) {
    if (signal.axes.size() < 2 || signal.axes[1] != "step") {
        return;
    }
    const bool real = is_real(chunk.dtype);
    const std::int64_t steps_there = chunk.shape[1];
    if (steps_there > run_.max_steps + 1) {
        faults_.add(place, "its axis step has " + std::to_string(steps_there) +
                               " places and the run's max_steps is " + std::to_string(run_.max_steps));
        return;
    }
    const std::vector<double> values = to_doubles(chunk);
    const auto of_step = static_cast<std::int64_t>(values.size()) / (chunk.shape[0] * steps_there);
    // Where the last axis ends in zeros, its first entry, which every token has, says it.
    const std::int64_t stride = signal.storage == SignalStorage::trimmed ? chunk.shape.back() : 1;
    const bool words = signal.name == signal::candidate_ids && !real;
    bool empty_behind = false;
    std::int64_t number_behind = -1; // the first token with one
    for (std::int64_t t = 0; t < chunk.shape[0]; ++t) {
        const auto token = static_cast<std::size_t>(chunk.first + t);
        const std::int64_t last = token < steps.size() && !all_ran_ ? steps[token] : run_.max_steps;
        for (std::int64_t k = 0; k < steps_there; ++k) {
            for (std::int64_t i = 0; i < of_step; i += stride) {
                const double value = values[static_cast<std::size_t>((t * steps_there + k) * of_step + i)];
                const bool is_there = real ? !std::isnan(value) : value != did_not_run;
                if (words && k <= last && is_there) {
                    check_word(place, static_cast<std::int64_t>(value));
                }
                if (k <= last && !real && !is_there) {
                    faults_.add(place, "token " + std::to_string(token) + " ran step " + std::to_string(k) +
                                           ", where its value says that it did not");
                    return;
                }
                if (k > last && is_there && number_behind < 0) {
                    number_behind = static_cast<std::int64_t>(token);
                }
                empty_behind = empty_behind || (k > last && !is_there);
            }
        }
    }
    if (number_behind >= 0 && (empty_behind || !signal.every_step)) {
        faults_.add(place, "token " + std::to_string(number_behind) +
                               " has a value behind its last step, where " + (real ? "NaN" : "-1") +
                               " is due");
    }
}

} // namespace ponderscope
