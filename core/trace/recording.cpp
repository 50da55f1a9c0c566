// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trace/recording.h"

#include "core/trace/shard.h"

#include <algorithm>
#include <map>

namespace ponderscope {
namespace {

std::string differ(const std::string& what, const std::string& a, const std::string& b) {
    constexpr std::size_t most = 60;
    return what + " " + (a.empty() ? "none" : a.substr(0, most)) + ", and " + what + " " +
           (b.empty() ? "none" : b.substr(0, most));
}

/// Of the same name: along other axes, or of other layers, heads or tokens, which the description says.
std::string difference_of_signals(const SignalInfo& one, const SignalInfo& other) {
    const auto said = [](const SignalInfo& info) {
        std::string text;
        for (const std::string& axis : info.axes) {
            text += (text.empty() ? "[" : ", ") + axis;
        }
        return text + "] " + info.description;
    };
    const std::string a = said(one);
    const std::string b = said(other);
    if (a == b) {
        return {};
    }
    const auto parts = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
    const std::size_t word = a.substr(0, static_cast<std::size_t>(parts.first - a.begin())).rfind(' ') + 1;
    return differ("signal " + one.name, a.substr(word), b.substr(word));
}

std::string difference_of_signals(const std::vector<SignalInfo>& one, const std::vector<SignalInfo>& other) {
    std::map<std::string, const SignalInfo*> there;
    for (const SignalInfo& info : one) {
        there.emplace(info.name, &info);
    }
    for (const SignalInfo& info : other) {
        const auto found = there.find(info.name);
        if (found == there.end()) {
            return "no signal " + info.name + ", and one";
        }
        if (std::string difference = difference_of_signals(*found->second, info); !difference.empty()) {
            return difference;
        }
        there.erase(found);
    }
    return there.empty() ? "" : "a signal " + there.begin()->first + ", and none";
}

} // namespace

std::string difference_of_recordings(const Recording& one, const Recording& other) {
    std::string difference = difference_of_runs(one.run, other.run);
    if (difference.empty() && one.batch > 0 && other.batch > 0 && one.batch != other.batch) {
        difference = differ("--batch", std::to_string(one.batch), std::to_string(other.batch));
    }
    return difference.empty() ? difference_of_signals(one.signals, other.signals) : difference;
}

} // namespace ponderscope
