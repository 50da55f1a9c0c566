// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/console.h"
#include "app/cli/options.h"
#include "app/cli/verbs.h"
#include "core/base/error.h"
#include "core/checkpoint/safetensors.h"

#include <iostream>
#include <span>

namespace ponderscope::cli {
namespace {

struct LogitsVerb {
    ModelOptions model;
    RunOptions how;
    std::filesystem::path ids;
    std::filesystem::path output;

    void run() const {
        ProgressPrinter printer(ProgressStyle::automatic);
        const Checkpoint checkpoint = model.open();
        std::error_code error;
        if (std::filesystem::exists(output, error) &&
            std::filesystem::equivalent(output.parent_path() / ".", checkpoint.folder, error)) {
            throw InputError(ErrorId::file_exists, output, "a file outside the folder of the checkpoint",
                             "an existing file of the checkpoint", "choose another name");
        }
        const std::vector<std::vector<std::int32_t>> rows = read_ids(ids);
        Engine engine = model.load(checkpoint, printer, stop_on_interrupt());
        how.apply(engine);
        std::vector<SequenceInput> sequences;
        for (const std::vector<std::int32_t>& row : rows) {
            sequences.push_back({"row " + std::to_string(sequences.size()), {}, row, {}, {}});
        }
        how.check_places(sequences);
        printer.finish();
        const ArrayMap arrays = engine.inspect_batch(rows);
        std::vector<TensorView> tensors;
        for (const auto& [name, array] : arrays) {
            tensors.push_back({name, array.dtype, array.shape,
                               array.dtype == DType::f32 ? std::as_bytes(std::span(array.floats))
                                                         : std::as_bytes(std::span(array.integers))});
        }
        write_safetensors(output, tensors,
                          {{"checkpoint", checkpoint.folder.string()},
                           {"method", to_string(checkpoint.config.ponder.method)},
                           {"scoring", engine.scoring()},
                           {"policy", engine.policy()},
                           {"device", engine.device_name()},
                           {"dtype", model.dtype}});
        const NamedArray& logits = arrays.at("logits");
        std::cout << output.string() << "  logits [" << logits.shape[0] << ", " << logits.shape[1] << ", "
                  << logits.shape[2] << "] and " << arrays.size() - 1 << " more arrays, scored "
                  << engine.scoring() << '\n';
    }
};

} // namespace

void add_logits(CLI::App& program) {
    auto [app, verb] = add_verb<LogitsVerb>(program, "logits");
    verb.model.add_to(app);
    verb.how.add_to(app);
    app.add_option("--ids", verb.ids,
                   "Token ids: JSON [[...], ...] or a safetensors file with input_ids; rows of equal length")
        ->required()
        ->type_name("FILE");
    app.add_option("-o,--output", verb.output, "File to write")->required()->type_name("OUT.safetensors");
    app.footer(
        "Example:\n  ponderscope logits sample_models/ponderlm-neox-1m --ids ids.json -o out.safetensors\n"
        "with [[1, 42, 7]] in ids.json");
}

} // namespace ponderscope::cli
