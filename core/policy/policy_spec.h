// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace ponderscope {

struct PolicyKind;

/// A halting policy as text: `calm_margin:lambda=0.9`, `uniform:rate=1.2,seed=7`, `full`. Command line, trace
/// and window use the same text: NAME[:KEY=VALUE[,KEY=VALUE]...]. Numbers are written as in C, whatever the
/// locale. Two keys have words as values: `name` and `stops` in signal:name=gate,stops=below,theta=0.5. These
/// keys are part of the kind's name (PolicyKind::name).
struct PolicySpec {
    using Value = std::variant<double, std::uint64_t>;

    const PolicyKind* kind = nullptr;   ///< never null after parse()
    std::map<std::string, Value> given; ///< checked against the kind; includes defaults

    /// InputError for every mistake: an unknown name (the message suggests the nearest name); an unknown,
    /// repeated or missing key; a value that is missing, not a number, or out of range.
    static PolicySpec parse(std::string_view text);

    /// The kind that a text names. Keys with numbers may be missing. InputError: unknown name.
    static const PolicyKind& named_kind(std::string_view text);
    /// The kind of a recorded run's policy, whose text is untrusted; nullptr: unknown.
    static const PolicyKind* kind_of(std::string_view text);

    /// Canonical text: keys in the kind's order, defaults included, numbers with the fewest digits that read
    /// back the same. parse(text()) returns the same policy.
    [[nodiscard]] std::string text() const;
    [[nodiscard]] bool has(const std::string& key) const { return given.contains(key); }
    /// A number of the spec. The key must exist.
    [[nodiscard]] double number(const std::string& key) const;
    [[nodiscard]] std::uint64_t whole(const std::string& key) const;

    /// The same policy with another value for \p key. InputError: the policy has no such parameter, or the
    /// value is out of range.
    [[nodiscard]] PolicySpec with(const std::string& key, double value) const;

    bool operator==(const PolicySpec&) const = default;
};

/// The values of a sweep: "theta=0.1:0.9:5" (5 values from 0.1 to 0.9, both included), "theta=1e-4:1:9:log"
/// (in equal ratios) or "theta=0.1,0.2,0.5". InputError for every mistake.
struct Sweep {
    std::string key;
    std::vector<double> values;
    static Sweep parse(std::string_view text);
};

} // namespace ponderscope
