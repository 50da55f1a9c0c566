// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/policy/policy_spec.h"

#include "core/base/error.h"
#include "core/base/words.h"
#include "core/policy/policy.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>

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

/// A piece of the user's text for a message.
std::string in_quotes(std::string_view text) {
    constexpr std::size_t most = 60;
    std::string cut(text.substr(0, most));
    std::replace_if(
        cut.begin(), cut.end(), [](unsigned char c) { return c < 0x20 || c == 0x7F; }, '?');
    return "\"" + cut + (text.size() > most ? "...\"" : "\"");
}

const PolicyKind& find_kind(std::string_view name) {
    std::vector<std::string_view> names;
    for (const PolicyKind& kind : policy_kinds()) {
        if (kind.name == name) {
            return kind;
        }
        names.push_back(kind.name);
    }
    throw InputError("Unknown policy " + in_quotes(name) + did_you_mean(name, names) + " Policies are " +
                     joined(names) + ".");
}

std::string range_of(const PolicyParameter& parameter) {
    const std::string kind = parameter.whole ? "a whole number" : "a number";
    if (parameter.whole && parameter.high >= 0x1p64) {
        return kind + " below 2^64";
    }
    return kind + " from " + shortest(parameter.low) + " to " + shortest(parameter.high);
}

std::string keys_of(const PolicyKind& kind) {
    return kind.parameters.empty() ? "none" : joined(kind.parameters, &PolicyParameter::key);
}

[[noreturn]] void wrong_value(const PolicyKind& kind, const PolicyParameter& parameter,
                              std::string_view found) {
    throw InputError("Policy " + kind.name + ": expected " + range_of(parameter) + " for " + parameter.key +
                     " (" + parameter.meaning + "), found " + in_quotes(found) + ".");
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
            wrong_value(kind, parameter, text);
        }
        return *value;
    }
    const std::optional<double> value = to_number(text);
    if (!value || !(*value >= parameter.low && *value <= parameter.high)) {
        wrong_value(kind, parameter, text);
    }
    return *value == 0 ? 0.0 : *value; // no negative zero in canonical texts
}

std::string to_text(const PolicySpec::Value& value) {
    return std::visit([](auto number) { return shortest(number); }, value);
}

} // namespace

PolicySpec PolicySpec::parse(std::string_view text) {
    text = trimmed(text);
    if (text.empty()) {
        throw InputError("Expected a policy such as full, learned or calm_margin:lambda=0.9, found nothing.");
    }
    const std::size_t colon = text.find(':');
    PolicySpec spec;
    const PolicyKind& kind = find_kind(trimmed(text.substr(0, colon)));
    spec.kind = &kind;
    if (colon != std::string_view::npos) {
        std::string_view rest = text.substr(colon + 1);
        for (bool more = true; more;) {
            const std::size_t comma = rest.find(',');
            const std::string_view pair = trimmed(rest.substr(0, comma));
            more = comma != std::string_view::npos;
            rest = more ? rest.substr(comma + 1) : std::string_view();
            const std::size_t equals = pair.find('=');
            const std::string_view key = trimmed(pair.substr(0, equals));
            const PolicyParameter* parameter = kind.find(key);
            if (equals == std::string_view::npos || key.empty()) {
                throw InputError("Policy " + kind.name + ": expected KEY=VALUE after the colon, found " +
                                 in_quotes(pair) + "; its keys: " + keys_of(kind) + ".");
            }
            if (parameter == nullptr) {
                throw InputError("Policy " + kind.name + ": unknown key " + in_quotes(key) +
                                 "; its keys: " + keys_of(kind) + ".");
            }
            const Value value = read_value(kind, *parameter, trimmed(pair.substr(equals + 1)));
            if (!spec.given.emplace(parameter->key, value).second) {
                throw InputError("Policy " + kind.name + ": " + parameter->key + " is given twice.");
            }
        }
    }
    for (const PolicyParameter& parameter : kind.parameters) {
        if (spec.has(parameter.key)) {
            continue;
        }
        if (parameter.absent == PolicyParameter::Absent::refused) {
            throw InputError("Policy " + kind.name + ": expected " + range_of(parameter) + " for " +
                             parameter.key + " (" + parameter.meaning + "), found none; write " + kind.name +
                             ":" + parameter.key + "=NUMBER.");
        }
        if (parameter.absent == PolicyParameter::Absent::preset) {
            spec.given.emplace(parameter.key, parameter.value);
        }
    }
    return spec;
}

std::string PolicySpec::text() const {
    std::string written = kind->name;
    char separator = ':';
    for (const PolicyParameter& parameter : kind->parameters) {
        const auto found = given.find(parameter.key);
        if (found != given.end()) {
            written += separator + parameter.key + "=" + to_text(found->second);
            separator = ',';
        }
    }
    return written;
}

double PolicySpec::number(const std::string& key) const {
    return std::visit([](auto value) { return static_cast<double>(value); }, given.at(key));
}

std::uint64_t PolicySpec::whole(const std::string& key) const {
    return std::get<std::uint64_t>(given.at(key));
}

PolicySpec PolicySpec::with(const std::string& key, double value) const {
    if (kind->parameters.empty()) {
        throw InputError("Policy " + kind->name + " has no threshold to sweep.");
    }
    const PolicyParameter* parameter = key == "threshold" ? &kind->parameters.front() : kind->find(key);
    if (parameter == nullptr) {
        throw InputError("Policy " + kind->name + ": unknown key " + in_quotes(key) +
                         " to sweep; its keys: " + keys_of(*kind) + ", or threshold for the first.");
    }
    PolicySpec changed = *this;
    Value next = value;
    if (parameter->whole && value >= 0 && value < 0x1p53 && value == std::floor(value)) {
        next = static_cast<std::uint64_t>(value);
    }
    changed.given[parameter->key] = read_value(*kind, *parameter, to_text(next));
    return changed;
}

namespace {

/// The nearest number of twelve significant digits.
double to_twelve_digits(double value) {
    std::array<char, 32> text{};
    const auto end =
        std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::general, 12);
    double result = value;
    std::from_chars(text.data(), end.ptr, result);
    return result;
}

} // namespace

Sweep Sweep::parse(std::string_view text) {
    const auto wrong = [&](const std::string& found) {
        throw InputError(
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
    std::vector<std::string_view> parts;
    for (std::size_t begin = 0; begin <= values.size();) {
        const std::size_t end = std::min(values.find(separator, begin), values.size());
        parts.push_back(trimmed(values.substr(begin, end - begin)));
        begin = end + 1;
    }
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
        // The ends are what was written, to the last bit; between them, what a reader would write: 3.2, not
        // 3.1999999999999997.
        sweep.values.push_back(i == 0           ? numbers[0]
                               : i == count - 1 ? numbers[1]
                               : ratios
                                   ? to_twelve_digits(numbers[0] * std::pow(numbers[1] / numbers[0], along))
                                   : to_twelve_digits(numbers[0] + (numbers[1] - numbers[0]) * along));
    }
    return sweep;
}

} // namespace ponderscope
