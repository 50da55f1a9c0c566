// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/error.h"
#include "core/trace/database.h"
#include "core/trace/reader.h"
#include "core/trace/tools/check.h"

#include <cstdint>
#include <map>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

namespace ponderscope {

/// The faults of a trace, up to a number.
class FaultList {
public:
    FaultList(std::filesystem::path path, TraceCheck& result, std::size_t most)
        : path_(std::move(path)), result_(result), most_(most) {}

    /// Thrown when there are enough faults.
    struct Enough {};
    void add(const std::string& place, const std::string& message);
    void clear() { result_ = {}; }
    /// Runs \p body; what it refuses to read (InputError) is a fault.
    template <class Body>
    void guard(const std::string& place, const Body& body) {
        try {
            body();
        } catch (const InputError& error) {
            add(place, without_path(error.what()));
        }
    }

private:
    /// A sentence of InputError without the path in front and what to do.
    [[nodiscard]] std::string without_path(std::string message) const;
    std::filesystem::path path_;
    TraceCheck& result_;
    std::size_t most_;
};

/// The texts, tokens and signals of one run, as TraceReader gives them.
class RunCheck {
public:
    RunCheck(FaultList& faults, const TraceReader& reader, const RunInfo& run, const std::string& place,
             const std::vector<SignalInfo>& signals, const std::stop_token& stop);
    /// The totals that the tokens of a sequence add up to.
    TokenTotals check(const SequenceInfo& sequence);
    /// \p told: what the row says.
    void compare(const std::string& place, const TokenTotals& told, const TokenTotals& found);

private:
    struct Text {
        std::string bytes;
        std::size_t invalid = std::string::npos; ///< the first byte that is no UTF-8
        bool excused = false;                    ///< a token stands for these bytes: a model made them
        std::uint64_t covered = 0;               ///< bytes up to here are under tokens
    };
    void check_tokens(const SequenceInfo& sequence, const std::string& place, const TokenColumns& tokens,
                      Text& text);
    void check_span(const std::string& place, std::uint64_t begin, std::uint64_t end, Text& text);
    void check_signal(const SequenceInfo& sequence, const std::string& place, const SignalInfo& signal,
                      const std::vector<std::int32_t>& steps);
    void check_values(const std::string& place, const SignalInfo& signal, const SignalChunk& chunk,
                      const std::vector<std::int32_t>& steps);
    void check_word(const std::string& place, std::int64_t id);

    FaultList& faults_;
    const TraceReader& reader_;
    const RunInfo& run_;
    const std::vector<SignalInfo>& signals_;
    const std::stop_token& stop_;
    bool all_ran_; ///< an exit only chose the read-out: every step is there
    std::map<std::int64_t, std::string> words_;
    std::set<std::int64_t> missing_words_; ///< those that were said already
    bool ranked_ = false;                  ///< of the sequence: some rank is known
    std::vector<std::int64_t> unranked_;   ///< of the sequence: scored, without a rank
};

} // namespace ponderscope
