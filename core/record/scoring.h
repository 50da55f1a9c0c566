// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/record/session.h"
#include "core/text/text_reading.h"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>

namespace ponderscope {

struct ScoredRequest;

/// Answers requests about a model, one JSON object on each line (resources/docs/tasks.md). With a trace, each
/// request is recorded as a sequence of one run.
///
/// Splits texts as lm-evaluation-harness does. White space at the end of a context belongs to the
/// continuation. Context and continuation are encoded together. An empty context becomes the start token, or
/// the end token if there is no start token. Text that does not fit is cut on the left. The windows of
/// loglikelihood_rolling do not overlap.
class RequestScorer {
public:
    struct Options {
        RecordOptions record; ///< `context`: tokens per window; 0: the model's context
        TextReading reading;
    };
    /// All arguments must outlive the object. \p tokenizer: nullptr if requests have ids only. \p writer:
    /// nullptr disables the recording and all computation that only the recording needs. InputError: a
    /// context longer than the model's.
    RequestScorer(const Engine& engine, const Checkpoint& checkpoint, const Tokenizer* tokenizer,
                  Options options, TraceWriter* writer);
    ~RequestScorer();
    RequestScorer(const RequestScorer&) = delete;
    RequestScorer& operator=(const RequestScorer&) = delete;

    /// Answers lines in order; \p first_line counts from 1. The answer to an invalid line is an "error";
    /// blank lines are skipped. Requests with the same beginning compute the beginning once
    /// (Engine::score_sharing). \p stop throws Cancelled unless all lines are answered.
    void answer(std::span<const std::string> lines, std::int64_t first_line,
                const std::function<void(const nlohmann::json&)>& tell, const std::stop_token& stop = {});

    /// Ends the run, complete or partial. Returns the run's id; 0: nothing was recorded.
    std::int64_t finish(bool complete);

private:
    class Recording;
    [[nodiscard]] ScoredRequest read(const std::string& line, std::int64_t number) const;
    void read_pair(ScoredRequest& request, const nlohmann::json& context,
                   const nlohmann::json& continuation) const;
    void put_text(ScoredRequest& request, const std::string& text, std::size_t context = 0,
                  bool adds = true) const;
    void keep_last(ScoredRequest& request, std::int64_t tokens) const;
    void generate(std::span<ScoredRequest> requests, const std::stop_token& stop) const;
    void score(std::span<ScoredRequest> requests, const std::stop_token& stop) const;
    [[nodiscard]] nlohmann::json answer_of(const ScoredRequest& request) const;
    [[nodiscard]] std::int32_t prefix_token() const;

    const Engine& engine_;
    const Checkpoint& checkpoint_;
    const Tokenizer* tokenizer_;
    Options options_;
    std::int64_t window_ = 0; ///< tokens per window
    std::int64_t requests_ = 0;
    std::unique_ptr<Recording> recording_;
};

} // namespace ponderscope
