// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/dist/agree.h"

#include "core/base/error.h"

#include <exception>
#include <utility>

namespace ponderscope {
namespace {

std::string shown(const nlohmann::json& value) {
    if (value.is_null()) {
        return "nothing";
    }
    constexpr std::size_t most = 60;
    const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    return text.empty() ? "none" : text.size() > most ? text.substr(0, most) + "..." : text;
}

} // namespace

nlohmann::json agree(Collectives& collectives, const World& world, const std::function<Findings()>& look) {
    nlohmann::json mine;
    std::exception_ptr fault;
    try {
        Findings found = look();
        mine = {{"common", std::move(found.common)}, {"own", std::move(found.own)}};
    } catch (const Cancelled&) {
        fault = std::current_exception();
        mine = {{"cancelled", true}};
    } catch (const std::exception& error) {
        fault = std::current_exception();
        mine = {{"fault", error.what()}};
    }
    std::vector<nlohmann::json> all;
    for (const std::string& words :
         collectives.gather(mine.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace))) {
        all.push_back(nlohmann::json::parse(words));
    }
    if (fault) {
        std::rethrow_exception(fault);
    }
    const nlohmann::json* first = nullptr;
    std::size_t first_rank = 0;
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
        const std::string who = "rank " + std::to_string(rank) + " of " + std::to_string(world.size);
        if (all[rank].contains("cancelled")) {
            throw Cancelled();
        }
        if (all[rank].contains("fault")) {
            throw InputError("R" + who.substr(1) + " ended: " + all[rank]["fault"].get<std::string>());
        }
        const nlohmann::json& common = all[rank]["common"];
        if (common.is_null()) {
            continue;
        }
        if (first == nullptr) {
            first = &common;
            first_rank = rank;
            continue;
        }
        nlohmann::json either = *first; // what only one of them was given differs, too
        either.update(common);
        for (const auto& [what, of_one] : either.items()) {
            const nlohmann::json other = first->value(what, nlohmann::json());
            const nlohmann::json value = common.value(what, nlohmann::json());
            if (other != value) {
                throw InputError("The processes were not started alike: " + what + " " + shown(other) +
                                 " at rank " + std::to_string(first_rank) + ", and " + shown(value) + " at " +
                                 who + "; give all of them the same.");
            }
        }
    }
    return all.front()["own"];
}

} // namespace ponderscope
