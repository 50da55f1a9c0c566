// SPDX-License-Identifier: GPL-3.0-or-later
// Compares what we compute with what another implementation computed: a folder with config.json,
// model.safetensors, golden.safetensors and case.json.
#include "app/cli/console.h"
#include "app/cli/options.h"
#include "app/cli/verbs.h"
#include "core/base/error.h"
#include "core/base/json.h"
#include "core/ponder/engine/reference.h"

#include <iostream>
#include <memory>

namespace ponderscope::cli {
namespace {

struct VerifyVerb {
    std::vector<std::filesystem::path> cases;
    ModelOptions model;
    RunOptions how;
    double tolerance = 0;
    bool json = false;
    bool quiet = false;

    ReferenceResult verify(const std::filesystem::path& folder) const;
    void run() const;
};

ReferenceResult VerifyVerb::verify(const std::filesystem::path& folder) const {
    const nlohmann::json description = read_json_file(folder / "case.json");
    ModelOptions options = model;
    RunOptions ways = how;
    options.checkpoint = folder;
    if (const auto arguments = description.find("arguments");
        arguments != description.end() && arguments->is_array()) {
        for (std::size_t i = 0; i + 1 < arguments->size(); i += 2) {
            const std::string flag = arguments->at(i).is_string() ? arguments->at(i).get<std::string>() : "";
            const nlohmann::json& value = arguments->at(i + 1);
            const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
            // What the user gives goes before what the case says.
            if (flag == "--method") {
                options.method = model.method.empty() ? text : model.method;
            } else if (flag == "--steps") {
                options.steps = model.steps > 0 ? model.steps : std::strtoll(text.c_str(), nullptr, 10);
            } else if (flag == "--initial-state") {
                ways.start_state = how.start_state.empty() ? text : how.start_state;
            } else if (flag == "--kv") {
                ways.kv = how.kv.empty() ? text : how.kv;
            } else if (flag == "--policy") {
                ways.policy = how.policy.empty() ? text : how.policy;
            } else if (flag == "--jacobi") {
                ways.jacobi = how.jacobi.empty() ? text : how.jacobi;
            } else {
                throw InputError(folder / "case.json", "arguments that this program knows", "'" + flag + "'",
                                 "use a newer ponderscope");
            }
        }
    }
    ProgressPrinter printer(ProgressStyle::none);
    Engine engine = options.load(options.open(), printer, stop_on_interrupt());
    ways.apply(engine);
    return compare_with_reference(engine, folder, tolerance);
}

std::string scientific(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.2e", value);
    return text;
}

void VerifyVerb::run() const {
    std::size_t passed = 0;
    std::size_t unread = 0;
    nlohmann::json report = nlohmann::json::array();
    for (const std::filesystem::path& folder : cases) {
        std::string name = folder.filename().string();
        if (name.empty()) {
            name = folder.parent_path().filename().string();
        }
        nlohmann::json entry{{"case", name}};
        ReferenceResult result;
        std::string error;
        try {
            result = verify(folder);
        } catch (const Cancelled&) {
            throw;
        } catch (const Error& failure) {
            // One wrong folder must not hide the others' results.
            error = failure.what();
            ++unread;
        }
        const bool good = error.empty() && result.passed();
        passed += good ? 1 : 0;
        entry["passed"] = good;
        if (!error.empty()) {
            entry["error"] = error;
        }
        entry["tolerance"] = result.tolerance;
        if (!json) {
            std::cout << (good ? "pass  " : "FAIL  ") << name << (error.empty() ? "" : "  " + error) << '\n';
        }
        for (const ReferenceComparison& comparison : result.comparisons) {
            entry["tensors"][comparison.name] =
                comparison.shape_fits ? nlohmann::json(comparison.difference) : nlohmann::json("shape");
            if (json || (quiet && comparison.passed) || (quiet && !comparison.decides)) {
                continue;
            }
            std::cout << "      " << (comparison.decides ? (comparison.passed ? "ok  " : "BAD ") : "    ")
                      << comparison.name << "  "
                      << (!comparison.shape_fits ? std::string("another shape or type")
                          : comparison.exact
                              ? std::to_string(static_cast<std::int64_t>(comparison.difference)) + " unequal"
                              : "max |difference| " + scientific(comparison.difference) + " (tolerance " +
                                    scientific(comparison.tolerance) + ")")
                      << '\n';
        }
        if (!json && !quiet && !result.missing.empty()) {
            std::cout << "          not compared:";
            for (const std::string& missing : result.missing) {
                std::cout << ' ' << missing;
            }
            std::cout << '\n';
        }
        report.push_back(std::move(entry));
    }
    if (json) {
        std::cout << report.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
    } else {
        std::cout << passed << " of " << cases.size() << " cases agree\n";
    }
    const std::string of_all = " of " + std::to_string(cases.size()) + " cases ";
    if (passed + unread < cases.size()) {
        throw CheckFailed(std::to_string(cases.size() - passed - unread) + of_all +
                          "differ from their reference.");
    }
    if (unread > 0) {
        throw InputError(std::to_string(unread) + of_all +
                         "could not be compared: what they lack is said above.");
    }
}

} // namespace

void add_verify(CLI::App& program) {
    auto verb = std::make_shared<VerifyVerb>();
    CLI::App* app = add_verb(program, "verify");
    app->add_option("case", verb->cases,
                    "Folders with config.json, model.safetensors, golden.safetensors, case.json")
        ->required();
    verb->model.add_to(*app, false);
    verb->how.add_to(*app);
    app->add_option("--tolerance", verb->tolerance,
                    "Largest absolute difference allowed (default: the case's own)")
        ->check(CLI::PositiveNumber);
    app->add_flag("-q,--quiet", verb->quiet, "One line a case, and what failed");
    app->add_flag("--json", verb->json, "Print the result as JSON");
    app->footer(
        "logits, nll, generated ids, steps and FLOPs decide; other tensors are shown to find a fault.\n"
        "Example:\n  ponderscope verify tests/golden/ponderlm_gpt2_s1_scaled_tied");
    app->callback([verb] { verb->run(); });
}

} // namespace ponderscope::cli
