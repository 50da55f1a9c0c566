// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/train/corpus.h"
#include "core/train/recipe.h"
#include "core/train/trainer.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>
#include <string>

namespace ponderscope {

/// The output folder of a training, and the rules for its earlier content. One training for each folder.
class OutputFolder {
public:
    enum class Start : std::uint8_t { fresh, resumed, complete };

    /// Checks the folder without changing it. InputError: the path is not a folder; the folder is not empty
    /// and \p existing is refuse; or it has no training to resume.
    OutputFolder(std::filesystem::path path, ExistingOutput existing);

    [[nodiscard]] Start start() const { return start_; }
    /// Creates the folder; for a new start, removes the files of an earlier training. EnvironmentError.
    void prepare() const;

    [[nodiscard]] const std::filesystem::path& path() const { return path_; }
    [[nodiscard]] std::filesystem::path config() const { return path_ / "config.json"; }
    [[nodiscard]] std::filesystem::path weights() const { return path_ / "model.safetensors"; }
    [[nodiscard]] std::filesystem::path provenance() const { return path_ / "training.json"; }
    [[nodiscard]] std::filesystem::path trace() const { return path_ / "training.ponder"; }
    [[nodiscard]] std::filesystem::path state() const { return path_ / "training_state.safetensors"; }

private:
    [[nodiscard]] bool has_begun() const;

    std::filesystem::path path_;
    Start start_ = Start::fresh;
};

/// The content of training.json besides the results.
struct Provenance {
    std::string device;    ///< "cpu", "cuda:0"
    std::string precision; ///< of the products: "float32", "bfloat16"
    std::int64_t threads = 0;
    std::string torch_version;
    bool complete = false;
};

/// training.json: the recipe with all defaults, the texts with their digests, and the results so far.
nlohmann::json provenance_json(const Recipe& recipe, const Corpus& corpus, const TrainResult& result,
                               const Provenance& about);

/// The results in the training.json of a finished training. InputError: they are missing.
TrainResult read_provenance(const std::filesystem::path& path);

} // namespace ponderscope
