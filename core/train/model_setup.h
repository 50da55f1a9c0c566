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

/// The config.json that a training writes: the recipe's model with added keys (for new models vocab_size,
/// max_position_embeddings and architectures; start and end tokens, torch_dtype). If the start checkpoint
/// ties its tables in the config but not in the files, the new config does not tie them.
nlohmann::json complete_config(const Recipe& recipe, const Tokenizer& tokenizer);

/// InputError: this program does not train the checkpoint's method.
void require_trainable(const Checkpoint& start);

/// Reads this config.json. InputError names the recipe, also if the tokenizer has more tokens than the model,
/// or the context exceeds its positions. The result includes the notices of the config's reader.
ModelConfig model_config_of(const Recipe& recipe, const nlohmann::json& config, const Tokenizer& tokenizer);

/// The model's tensors with the recipe's initialisation: normal with its standard deviation. Matrices that
/// add to the residual stream are divided by sqrt(2 L), so that the stream's variance does not grow with
/// depth (Radford et al. 2019).
ParameterLayout starting_layout(const Recipe& recipe, const ModelConfig& config);

/// The weights before the first step, on \p device in fp32. New weights, or the weights of the recipe's start
/// checkpoint. Parts that the start checkpoint lacks get new tensors: gates, routers, depth mixing. Gates and
/// routers of one method are never used for another method. \p notice reports the new tensors. InputError: a
/// tensor that is absent, of another shape or not finite. Cancelled.
Parameters starting_parameters(const Recipe& recipe, const ModelConfig& config, at::Device device,
                               const std::function<void(const std::string&)>& notice,
                               const std::stop_token& stop = {});

} // namespace ponderscope
