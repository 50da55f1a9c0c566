// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/json.h"

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace ponderscope {

/// Working memory for matches of any number of patterns; one object for each thread.
class MatchState {
public:
    MatchState();
    ~MatchState();
    MatchState(const MatchState&) = delete;
    MatchState& operator=(const MatchState&) = delete;

private:
    friend class Pattern;
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

/// A pattern from a tokenizer file: a plain string, or a regular expression. Oniguruma matches it in Ruby's
/// syntax, as the library tokenizers does, with limits on the cost of a match. Immutable; threads may share
/// it.
class Pattern {
public:
    static Pattern literal(std::string text);
    /// InputError names \p file and the reason if the expression does not compile.
    static Pattern regex(std::string_view expression, const std::filesystem::path& file);

    /// The "pattern" of \p object: {"String": …}, {"Regex": …} or a plain string. InputError.
    static Pattern parse(const JsonObject& object);

    struct Match {
        std::size_t begin = 0, end = 0;
    };
    /// Finds all matches in order. Skips an empty match directly after the previous match. \p text must be
    /// valid UTF-8. InputError: a match exceeds the limits, or the text has 2 GiB or more.
    class Search {
    public:
        Search(const Pattern& pattern, std::string_view text, MatchState& state);
        bool next(Match& match);

    private:
        const Pattern* pattern_;
        std::string_view text_;
        MatchState* state_;
        std::size_t from_ = 0;
        std::size_t last_end_ = static_cast<std::size_t>(-1);
    };

private:
    struct Code;
    Pattern() = default;
    bool find(std::string_view text, std::size_t from, MatchState& state, Match& match) const;

    std::string text_; ///< the literal, or the expression from the file
    std::shared_ptr<const Code> code_;
};

} // namespace ponderscope
