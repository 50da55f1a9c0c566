// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trace/check.h"
#include "core/trace/database.h"
#include "core/trace/records.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace ponderscope {

/// What the files that implement check_trace share: the connection and the list of faults.
class TraceChecker {
public:
    TraceChecker(Database& database, TraceCheck& result, std::size_t most, const ProgressSink& progress,
                 const std::stop_token& stop)
        : database_(database), result_(result), most_(most), progress_(progress), stop_(stop) {}

    /// Thrown when there are enough faults.
    struct Enough {};

    void run();

private:
    struct Run {
        std::int64_t id = 0;
        std::string place;
        std::int64_t tokenizer = 0;
        std::int64_t vocab_size = 0;
        std::int64_t max_steps = 0;
        bool all_ran = false;           ///< an exit only chose the read-out: every step is there
        bool packed = false;            ///< its tokens lie in a signal
        std::int64_t largest_word = -1; ///< largest id in the vocabulary; -1: there is none
    };
    struct Sequence {
        std::int64_t id = 0;
        std::string place;
        std::int64_t tokens = 0;
        std::int64_t text_bytes = 0;
        bool complete = false;
        std::optional<std::int64_t> text_crc{}, tokens_crc{}; ///< nothing: not kept
    };
    struct Totals {
        std::int64_t tokens = 0, scored_tokens = 0, scored_bytes = 0;
        double nll_sum = 0, steps_sum = 0, flops_sum = 0;
        void add(const Totals& other);
    };
    struct Signal {
        std::int64_t id = 0;
        std::string name;
        std::vector<std::string> axes;
    };

    /// A number as JSON writes it, or a word.
    [[nodiscard]] static std::string shown(double value);
    void fault(const std::string& place, const std::string& message);
    void fault_of_rows(const std::string& query, const std::string& message);
    void check_structure();
    void check_references();
    void check_trainings();
    void check_run(std::int64_t id);
    void check_run_texts(const std::string& place, std::int64_t id);
    void check_sequence(const Run& run, const Sequence& sequence, const Totals& told,
                        const std::vector<Signal>& signals, Totals& of_run);
    void compare(const std::string& place, const Totals& told, const Totals& found);
    [[nodiscard]] std::string check_text(const Run& run, const Sequence& sequence);
    /// Whether the token over this byte of the text stands for bytes that are no UTF-8: a model made them.
    [[nodiscard]] bool is_word_at(const Run& run, const Sequence& sequence, const std::string& text,
                                  std::size_t offset);
    [[nodiscard]] Totals check_tokens(const Run& run, const Sequence& sequence, const std::string& text,
                                      std::vector<std::int32_t>& steps);
    /// One token, from a row or from what is packed.
    struct Token {
        std::int64_t position = 0, id = 0, begin = 0, end = 0, rank = 0, steps = 0, flops = 0;
        double nll = 0, entropy = 0, max_probability = 0; ///< NaN: NULL
    };
    /// Calls \p each for the tokens of a sequence, in their order, until it says false.
    template <class Each>
    void for_each_token(const Run& run, const Sequence& sequence, const Each& each);
    void check_span(const std::string& place, std::int64_t begin, std::int64_t end, std::int64_t previous,
                    const Sequence& sequence, const std::string& text);
    /// \p due: what was written with it; \p what: "its text".
    void check_digest(const std::string& place, const char* what, std::optional<std::int64_t> due,
                      std::uint32_t found);
    [[nodiscard]] static std::optional<std::int64_t> digest_in(const Statement& row, int column);
    void check_labels(const Sequence& sequence);
    void check_word(const Run& run, const std::string& place, std::int64_t id);

    // check_signals.cpp
    [[nodiscard]] std::vector<Signal> check_signal_table(const Run& run);
    void check_sums(const Run& run, const Signal& signal);
    void check_chunks(const Run& run, const Sequence& sequence, const Signal& signal,
                      const std::vector<std::int32_t>& steps);
    void check_values(const Run& run, const std::string& place, const Signal& signal,
                      const SignalChunk& chunk, const std::vector<std::int32_t>& steps);

    Database& database_;
    TraceCheck& result_;
    std::size_t most_;
    const ProgressSink& progress_;
    const std::stop_token& stop_;
    std::int64_t all_tokens_ = 0;
    std::set<std::int64_t> words_;         ///< ids in the vocabulary of the run's tokenizer
    std::set<std::int64_t> missing_words_; ///< those that were said already
};

} // namespace ponderscope
