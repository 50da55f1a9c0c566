// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/checkpoint/checkpoint.h"
#include "core/model/parameters.h"
#include "core/text/tokenizer.h"
#include "core/train/recipe.h"

#include <nlohmann/json.hpp>

#include <functional>
#include <stop_token>
#include <string>

namespace ponderscope {

/// The config.json that a training writes: the recipe's model, completed from recipe and tokenizer (for fresh
/// models vocab_size, max_position_embeddings and architectures; start and end tokens, torch_dtype). Tables
/// that a checkpoint's config ties, but its files do not, are said to be two.
nlohmann::json complete_config(const Recipe& recipe, const Tokenizer& tokenizer);

/// InputError with one sentence for a checkpoint of a method that is not trained here.
void require_trainable(const Checkpoint& start);

/// That config.json as the rest of the program reads it. InputError names the recipe: also where the
/// tokenizer has more tokens than the model, or the context is longer than its positions. Notices that a
/// config's reader has are in it.
ModelConfig model_config_of(const Recipe& recipe, const nlohmann::json& config, const Tokenizer& tokenizer);

/// The model's tensors with the recipe's way to start them: normal with its standard deviation; matrices
/// whose output is added to the residual stream divided by sqrt(2 L), so that the stream's variance does not
/// grow with the depth (Radford et al. 2019).
ParameterLayout starting_layout(const Recipe& recipe, const ModelConfig& config);

/// The weights before the first step, on \p device in fp32. Fresh ones; or, if the recipe starts from a
/// checkpoint, the checkpoint's, with fresh tensors for parts that its plain model lacks: gates, routers,
/// depth mixing. Gates and routers belong to one method and are never used for another. \p notice hears which
/// are begun anew. InputError: a tensor that is absent, misshapen or not finite. Cancelled.
Parameters starting_parameters(const Recipe& recipe, const ModelConfig& config, at::Device device,
                               const std::function<void(const std::string&)>& notice,
                               const std::stop_token& stop = {});

} // namespace ponderscope
