// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/policy/policy_spec.h"

#include "core/base/error.h"
#include "core/base/words.h"
#include "core/policy/policy.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

namespace ponderscope {
namespace {

std::string_view trimmed(std::string_view text) {
    constexpr std::string_view spaces = " \t\r\n";
    const std::size_t first = text.find_first_not_of(spaces);
    if (first == std::string_view::npos) {
        return {};
    }
    return text.substr(first, text.find_last_not_of(spaces) - first + 1);
}

/// Quotes a part of the user's text for a message.
std::string in_quotes(std::string_view text) {
    constexpr std::size_t most = 60;
    std::string cut(text.substr(0, most));
    std::replace_if(
        cut.begin(), cut.end(), [](unsigned char c) { return c < 0x20 || c == 0x7F; }, '?');
    return "\"" + cut + (text.size() > most ? "...\"" : "\"");
}

/// The name of rules over a named signal, without keys.
constexpr std::string_view signal_rules = "signal";
constexpr const char* signal_keys = "name, stops, theta";

const PolicyKind& find_kind(std::string_view name) {
    std::vector<std::string_view> names;
    for (const PolicyKind& kind : policy_kinds()) {
        if (kind.name == name) {
            return kind;
        }
        names.push_back(kind.name);
    }
    names.push_back(signal_rules);
    throw InputError(ErrorId::policy_unknown, "Unknown policy " + in_quotes(name) +
                                                  did_you_mean(name, names) + " Policies are " +
                                                  joined(names) + ".");
}

std::string range_of(const PolicyParameter& parameter) {
    const std::string kind = parameter.whole ? "a whole number" : "a number";
    if (parameter.whole && parameter.high >= 0x1p64) {
        return kind + " below 2^64";
    }
    if (parameter.high == std::numeric_limits<double>::max()) {
        return kind + (parameter.low == std::numeric_limits<double>::lowest()
                           ? ""
                           : " from " + shortest(parameter.low) + " on");
    }
    const auto end = [&](double value) { // 1000000, not 1e+06
        return parameter.whole ? shortest(static_cast<std::uint64_t>(value)) : shortest(value);
    };
    return kind + " from " + end(parameter.low) + " to " + end(parameter.high);
}

std::string keys_of(const PolicyKind& kind) {
    return kind.parameters.empty() ? "none"
           : kind.is_signal_rule() ? signal_keys
                                   : joined(kind.parameters, &PolicyParameter::key);
}

[[noreturn]] void refuse(const std::string& kind, const std::string& what) {
    throw InputError(ErrorId::policy_value, "Policy " + kind + ": " + what + ".");
}

[[noreturn]] void wrong_value(const PolicyKind& kind, const PolicyParameter& parameter,
                              const std::string& found) {
    refuse(kind.name, "expected " + range_of(parameter) + " for " + parameter.key + " (" + parameter.meaning +
                          "), found " + found);
}

[[noreturn]] void unknown_key(const PolicyKind& kind, std::string_view key) {
    refuse(kind.name, "unknown key " + in_quotes(key) + "; its keys: " + keys_of(kind));
}

std::optional<double> to_number(std::string_view text) {
    const auto value = parse_number<double>(text);
    return value && std::isfinite(*value) ? value : std::nullopt;
}

PolicySpec::Value read_value(const PolicyKind& kind, const PolicyParameter& parameter,
                             std::string_view text) {
    if (parameter.whole) {
        const auto value = parse_number<std::uint64_t>(text);
        if (!value || static_cast<double>(*value) < parameter.low ||
            (parameter.high < 0x1p64 && static_cast<double>(*value) > parameter.high)) {
            wrong_value(kind, parameter, in_quotes(text));
        }
        return *value;
    }
    const std::optional<double> value = to_number(text);
    if (!value || !(*value >= parameter.low && *value <= parameter.high)) {
        wrong_value(kind, parameter, in_quotes(text));
    }
    return *value == 0 ? 0.0 : *value; // no negative zero in canonical texts
}

std::string to_text(const PolicySpec::Value& value) {
    return std::visit([](auto number) { return shortest(number); }, value);
}

using Pairs = std::vector<std::pair<std::string_view, std::string_view>>;

/// Splits KEY=VALUE[,KEY=VALUE]...
Pairs split_pairs(const std::string& kind, const std::string& keys, std::string_view text) {
    Pairs pairs;
    for (const std::string_view part : split_at(text, ',')) {
        const std::string_view pair = trimmed(part);
        const std::size_t equals = pair.find('=');
        const std::string_view key = trimmed(pair.substr(0, equals));
        if (equals == std::string_view::npos || key.empty()) {
            refuse(kind,
                   "expected KEY=VALUE after the colon, found " + in_quotes(pair) + "; its keys: " + keys);
        }
        if (std::any_of(pairs.begin(), pairs.end(), [&](const auto& one) { return one.first == key; })) {
            refuse(kind, std::string(key) + " is given twice; give the key once");
        }
        pairs.emplace_back(key, trimmed(pair.substr(equals + 1)));
    }
    return pairs;
}

/// Removes `name` and `stops` from the pairs of a rule over a named signal, and returns the kind.
const PolicyKind& take_signal_kind(Pairs& pairs) {
    const auto take = [&](std::string_view key) {
        const auto found =
            std::find_if(pairs.begin(), pairs.end(), [&](const auto& one) { return one.first == key; });
        std::string_view value;
        if (found != pairs.end()) {
            value = found->second;
            pairs.erase(found);
        }
        return value;
    };
    const std::string_view name = take("name");
    if (name.empty()) {
        refuse("signal", "expected the name of a recorded signal for the key name, found nothing; write "
                         "signal:name=gate,theta=NUMBER");
    }
    const std::string_view stops = take("stops");
    if (!stops.empty() && stops != "below" && stops != "above") {
        refuse("signal", "expected stops=below or stops=above, found " + in_quotes(stops));
    }
    return signal_kind(policy_signal(name),
                       stops == "above" ? OwnRule::Stops::at_least : OwnRule::Stops::below);
}

/// The kind that a policy's text names, and the remaining pairs.
std::pair<const PolicyKind&, Pairs> split_policy(std::string_view text) {
    text = trimmed(text);
    if (text.empty()) {
        throw InputError(ErrorId::usage_missing,
                         "Expected a policy such as full, learned or calm_margin:lambda=0.9, found nothing.");
    }
    const std::size_t colon = text.find(':');
    const std::string_view name = trimmed(text.substr(0, colon));
    const PolicyKind* kind = name == signal_rules ? nullptr : &find_kind(name);
    Pairs pairs;
    if (colon != std::string_view::npos) {
        pairs = split_pairs(std::string(name), kind == nullptr ? signal_keys : keys_of(*kind),
                            text.substr(colon + 1));
    }
    if (kind == nullptr) {
        kind = &take_signal_kind(pairs);
    }
    return {*kind, std::move(pairs)};
}

/// Rounds to twelve significant digits.
double to_twelve_digits(double value) {
    std::array<char, 32> text{};
    const auto end =
        std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::general, 12);
    double result = value;
    std::from_chars(text.data(), end.ptr, result);
    return result;
}

} // namespace

const PolicyKind& PolicySpec::named_kind(std::string_view text) {
    return split_policy(text).first;
}

PolicySpec PolicySpec::parse(std::string_view text) {
    const auto [kind, pairs] = split_policy(text);
    PolicySpec spec;
    spec.kind = &kind;
    for (const auto& [key, value] : pairs) {
        const PolicyParameter* parameter = kind.find(key);
        if (parameter == nullptr) {
            unknown_key(kind, key);
        }
        spec.given.emplace(parameter->key, read_value(kind, *parameter, value));
    }
    for (const PolicyParameter& parameter : kind.parameters) {
        if (spec.has(parameter.key)) {
            continue;
        }
        if (parameter.absent == PolicyParameter::Absent::refused) {
            wrong_value(kind, parameter, "none; write " + kind.with_keys(parameter.key + "=NUMBER"));
        }
        if (parameter.absent == PolicyParameter::Absent::preset) {
            spec.given.emplace(parameter.key, parameter.value);
        }
    }
    return spec;
}

const PolicyKind* PolicySpec::kind_of(std::string_view text) try {
    return parse(text).kind;
} catch (const InputError&) {
    return nullptr;
}

std::string PolicySpec::text() const {
    std::string pairs;
    for (const PolicyParameter& parameter : kind->parameters) {
        const auto found = given.find(parameter.key);
        if (found != given.end()) {
            pairs += (pairs.empty() ? "" : ",") + parameter.key + "=" + to_text(found->second);
        }
    }
    return kind->with_keys(pairs);
}

double PolicySpec::number(const std::string& key) const {
    return std::visit([](auto value) { return static_cast<double>(value); }, given.at(key));
}

std::uint64_t PolicySpec::whole(const std::string& key) const {
    return std::get<std::uint64_t>(given.at(key));
}

PolicySpec PolicySpec::with(const std::string& key, double value) const {
    const PolicyParameter* parameter = kind->find(key);
    if (parameter == nullptr) {
        unknown_key(*kind, key);
    }
    PolicySpec changed = *this;
    Value next = value;
    if (parameter->whole && value >= 0 && value < 0x1p53 && value == std::floor(value)) {
        next = static_cast<std::uint64_t>(value);
    }
    changed.given[parameter->key] = read_value(*kind, *parameter, to_text(next));
    return changed;
}

const PolicyKind* find_policy_kind(std::string_view name) {
    if (trimmed(name.substr(0, name.find(':'))) == signal_rules && name.find(':') != std::string_view::npos) {
        const auto [kind, pairs] = split_policy(name);
        return pairs.empty() ? &kind : nullptr;
    }
    const auto found = std::ranges::find(policy_kinds(), name, &PolicyKind::name);
    return found != policy_kinds().end() ? &*found : nullptr;
}

Sweep Sweep::parse(std::string_view text) {
    const auto wrong = [&](const std::string& found) {
        throw InputError(
            ErrorId::usage_value,
            "--sweep " + in_quotes(text) +
                ": expected KEY=FIRST:LAST:COUNT, KEY=FIRST:LAST:COUNT:log or KEY=VALUE,VALUE,..., found " +
                found + ".");
    };
    const std::size_t equals = text.find('=');
    Sweep sweep;
    sweep.key = std::string(trimmed(text.substr(0, equals)));
    if (equals == std::string_view::npos || sweep.key.empty()) {
        wrong("no key");
    }
    const std::string_view values = trimmed(text.substr(equals + 1));
    const char separator = values.find(':') != std::string_view::npos ? ':' : ',';
    std::vector<std::string_view> parts = split_at(values, separator);
    std::ranges::transform(parts, parts.begin(), trimmed);
    const bool ratios = separator == ':' && parts.size() == 4 && parts.back() == "log";
    if (ratios) {
        parts.pop_back();
    }
    std::vector<double> numbers;
    for (const std::string_view part : parts) {
        const std::optional<double> number = to_number(part);
        if (!number) {
            wrong(in_quotes(part) + " where a number belongs");
        }
        numbers.push_back(*number);
    }
    if (separator == ',') {
        sweep.values = numbers;
        return sweep;
    }
    if (numbers.size() != 3) {
        wrong(std::to_string(numbers.size()) + " numbers");
    }
    constexpr double most = 10'000;
    if (!(numbers[2] >= 2 && numbers[2] <= most) || numbers[2] != std::floor(numbers[2])) {
        wrong(in_quotes(parts[2]) + " for the count, which is a whole number from 2 to 10000");
    }
    if (ratios && !(numbers[0] > 0 && numbers[1] > 0)) {
        wrong("a logarithmic sweep that is not over positive numbers");
    }
    const auto count = static_cast<std::int64_t>(numbers[2]);
    for (std::int64_t i = 0; i < count; ++i) {
        const double along = static_cast<double>(i) / static_cast<double>(count - 1);
        // The ends are the given numbers. Values between them are rounded: 3.2, not 3.1999999999999997.
        sweep.values.push_back(i == 0           ? numbers[0]
                               : i == count - 1 ? numbers[1]
                               : ratios
                                   ? to_twelve_digits(numbers[0] * std::pow(numbers[1] / numbers[0], along))
                                   : to_twelve_digits(numbers[0] + (numbers[1] - numbers[0]) * along));
    }
    return sweep;
}

} // namespace ponderscope
