// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/record/record_choice.h"

#include "core/base/error.h"
#include "core/base/words.h"

#include <string_view>
#include <vector>

namespace ponderscope {

namespace {

/// Splits at commas, except between the layer numbers of a list.
std::vector<std::string> parts_of(const std::string& text) {
    std::vector<std::string> parts;
    for (const std::string_view part : split_at(text, ',')) {
        const bool numbers = !part.empty() && part.find_first_not_of("0123456789-") == std::string_view::npos;
        if (numbers && !parts.empty() && parts.back().starts_with("states:")) {
            parts.back() += "," + std::string(part);
        } else {
            parts.emplace_back(part);
        }
    }
    return parts;
}

} // namespace

RecordChoice RecordChoice::parse(const std::string& text) {
    RecordChoice choice;
    bool named = false;
    bool layers = false;
    const auto refuse = [&](const std::string& what) {
        throw InputError(
            ErrorId::usage_value,
            "--record: expected scalars alone, or basic or steps, with layers, states, states:LAYERS, "
            "experts or experts:probabilities, each once and with commas between them, " +
                what + ".");
    };
    for (const std::string& part : parts_of(text)) {
        constexpr std::string_view of_layers = "states:";
        if (part == "basic" || part == "steps" || part == "scalars") {
            if (named) {
                refuse("found two of scalars, basic and steps");
            }
            named = true;
            choice.scalars = part == "scalars";
            choice.level = part == "steps" ? RecordLevel::steps : RecordLevel::basic;
        } else if (part == "layers" && !layers) {
            layers = true;
        } else if ((part == "states" || (part.starts_with(of_layers) && part.size() > of_layers.size())) &&
                   !choice.states) {
            choice.states = part == "states" ? "" : part.substr(of_layers.size());
        } else if ((part == "experts" || part == "experts:probabilities") &&
                   choice.experts == RecordedExperts::none) {
            choice.experts = part == "experts" ? RecordedExperts::chosen : RecordedExperts::probabilities;
        } else {
            refuse("found '" + part + "'");
        }
    }
    if (choice.scalars && (layers || choice.states || choice.experts != RecordedExperts::none)) {
        refuse("found layers, states or experts beside scalars, which records none of them");
    }
    choice.exits = layers && !named;
    choice.lens = layers && named;
    return choice;
}

void RecordChoice::apply(Engine& engine) const {
    if (exits) {
        if (engine.max_steps() > 0) {
            throw InputError(
                ErrorId::usage_unsuited,
                "--record layers makes the blocks of a vanilla model its steps, and this model (method " +
                    to_string(engine.config().ponder.method) +
                    ") has steps of its own; write --record steps,layers to read every layer out "
                    "at every step.");
        }
        engine.choose(&RunPlan::layers_are_steps, true);
    }
    engine.choose(&RunPlan::lens, lens);
    engine.choose(&RunPlan::experts, experts);
    engine.choose(&RunPlan::states,
                  states ? std::optional(StateChoice::parse(*states, engine.config())) : std::nullopt);
}

} // namespace ponderscope
