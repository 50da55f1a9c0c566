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

/// Answers requests about a model, one JSON object a line (resources/docs/tasks.md), and records them if
/// there is a trace: each request is a sequence of one run.
///
/// Texts are cut as lm-evaluation-harness cuts them: white space at the end of a context belongs to the
/// continuation, both are encoded together, an empty context is the start token (or else the end token), text
/// that does not fit is cut on the left, and rolling windows do not overlap.
class RequestScorer {
public:
    struct Options {
        RecordOptions record; ///< `context`: tokens a window; 0: the model's context
        TextReading reading;
    };
    /// All must outlive this. \p tokenizer: nullptr for requests of ids only. \p writer: nullptr: no
    /// recording, and only the computation that answers need. InputError: a context beyond the model's.
    RequestScorer(const Engine& engine, const Checkpoint& checkpoint, const Tokenizer* tokenizer,
                  Options options, TraceWriter* writer);
    ~RequestScorer();
    RequestScorer(const RequestScorer&) = delete;
    RequestScorer& operator=(const RequestScorer&) = delete;

    /// Answers lines in their order; \p first_line counts from 1. A wrong line is answered with an "error"; a
    /// blank line is skipped. Requests that begin alike share the computation of their beginning
    /// (Engine::score_sharing). Cancelled: \p stop came before the last one.
    void answer(std::span<const std::string> lines, std::int64_t first_line,
                const std::function<void(const nlohmann::json&)>& tell, const std::stop_token& stop = {});

    /// Ends the run, complete or partial. Its id; 0: nothing was recorded.
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
    std::int64_t window_ = 0; ///< tokens that the model sees at once
    std::int64_t requests_ = 0;
    std::unique_ptr<Recording> recording_;
};

} // namespace ponderscope
