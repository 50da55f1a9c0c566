// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/policy_sweeps.h"

#include "core/base/error.h"
#include "core/base/words.h"

#include <algorithm>
#include <cmath>

namespace ponderscope::cli {
namespace {

/// One --sweep option: [KIND:]KEY=VALUES.
struct NamedSweep {
    std::string text;
    std::string kind; ///< empty: of all policies that have the key
    Sweep over;

    explicit NamedSweep(const std::string& given) : text(given) {
        const std::size_t colon = given.find(':');
        const bool named = colon < given.find('=');
        kind = named ? given.substr(0, colon) : std::string();
        over = Sweep::parse(named ? given.substr(colon + 1) : given);
    }
    /// The parameter of \p swept that this sweep varies; nullptr: none.
    [[nodiscard]] const PolicyParameter* of(const PolicyKind& swept) const {
        if ((!kind.empty() && kind != swept.name.substr(0, swept.name.find(':'))) ||
            swept.parameters.empty()) {
            return nullptr;
        }
        return over.key == "threshold" ? &swept.parameters.front() : swept.find(over.key);
    }
    /// "threshold" means what each kind has: of whole numbers those among the values.
    [[nodiscard]] std::vector<double> values(const PolicyParameter& parameter) const {
        std::vector<double> fitting = over.values;
        if (parameter.whole && over.key == "threshold") {
            std::erase_if(fitting, [](double value) { return value != std::floor(value); });
        }
        return fitting;
    }
};

} // namespace

std::vector<PolicySpec> read_policies(const std::vector<std::string>& policies,
                                      const std::vector<std::string>& sweeps,
                                      std::vector<std::string>& notices) {
    const std::vector<NamedSweep> all(sweeps.begin(), sweeps.end());
    for (const NamedSweep& one : all) {
        std::vector<std::string> keys;
        bool known = false;
        for (const std::string& text : policies) {
            const PolicyKind& kind = PolicySpec::named_kind(text);
            known = known || one.of(kind) != nullptr;
            if (!kind.parameters.empty()) {
                keys.push_back(kind.name + ": " + joined(kind.parameters, &PolicyParameter::key));
            }
        }
        if (!known) {
            throw InputError(ErrorId::policy_value,
                             "--sweep " + one.text + ": none of the policies has the key " +
                                 (one.kind.empty() ? "" : one.kind + ":") + one.over.key +
                                 "; their keys are " + (keys.empty() ? "none" : joined(keys)) +
                                 ", or threshold for the first of each.");
        }
    }
    std::vector<PolicySpec> specs{PolicySpec::parse("full")};
    const auto add = [&](const PolicySpec& spec) {
        if (std::find(specs.begin(), specs.end(), spec) == specs.end()) {
            specs.push_back(spec);
        }
    };
    for (const std::string& text : policies) {
        const PolicyKind& kind = PolicySpec::named_kind(text);
        bool swept = false;
        for (const NamedSweep& one : all) {
            const PolicyParameter* parameter = one.of(kind);
            if (parameter == nullptr) {
                continue;
            }
            const bool given = text.find(":" + parameter->key + "=") != std::string::npos ||
                               text.find("," + parameter->key + "=") != std::string::npos;
            if (given) {
                add(PolicySpec::parse(text)); // a row of its own beside the swept ones
            }
            swept = true;
            const std::vector<double> values = one.values(*parameter);
            if (values.empty()) {
                notices.push_back(kind.name + " is left out of --sweep " + one.text + ": " + parameter->key +
                                  " is a whole number; add --sweep " + kind.name + ":" + parameter->key +
                                  "=FIRST:LAST:COUNT.");
                continue;
            }
            // A swept key need not be given: its first value stands in for it.
            const PolicySpec first =
                PolicySpec::parse(given ? text
                                        : text + (text.find(':') == std::string::npos ? ":" : ",") +
                                              parameter->key + "=" + shortest(values.front()));
            for (const double value : values) {
                add(first.with(parameter->key, value));
            }
        }
        if (!swept) {
            add(PolicySpec::parse(text));
        }
    }
    return specs;
}

} // namespace ponderscope::cli
