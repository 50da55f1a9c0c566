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
struct Sweep;

/// A halting policy as text: `calm_margin:lambda=0.9`, `uniform:rate=1.2,seed=7`, `full`. The same on the
/// command line, in the trace and in the window.
///
/// NAME[:KEY=VALUE[,KEY=VALUE]...]. Numbers are written as in C, whatever the locale. Two keys hold words:
/// `name` and `stops` of signal:name=gate,stops=below,theta=0.5; they are part of the kind
/// (PolicyKind::name).
struct PolicySpec {
    using Value = std::variant<double, std::uint64_t>;

    const PolicyKind* kind = nullptr;   ///< never null in a parsed one
    std::map<std::string, Value> given; ///< checked against the kind; preset ones filled in

    /// InputError for every mistake: an unknown name (with the nearest), an unknown or doubled key, no value,
    /// no number, out of range, a missing key. The key that \p sweep moves may be missing: it takes the
    /// sweep's first value.
    static PolicySpec parse(std::string_view text, const Sweep* sweep = nullptr);

    /// The kind of a run's policy, an untrusted text; nullptr: no such kind.
    static const PolicyKind* kind_of(std::string_view text);

    /// Canonical: keys in the kind's order, presets written out, the shortest digits that read back the same.
    /// parse(text()) is the same policy.
    [[nodiscard]] std::string text() const;
    [[nodiscard]] bool has(const std::string& key) const { return given.contains(key); }
    /// A number of the spec; the key must be there.
    [[nodiscard]] double number(const std::string& key) const;
    [[nodiscard]] std::uint64_t whole(const std::string& key) const;

    /// The same policy with another value. "threshold" means the first parameter of the kind, which a sweep
    /// varies. InputError: a policy without such a parameter, or a value out of range.
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
