// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ponder/schedule/start_state.h"

#include "core/base/error.h"
#include "core/base/sha256.h"
#include "core/base/splitmix.h"
#include "core/base/words.h"
#include "core/checkpoint/safetensors.h"
#include "core/model/parameters.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <cmath>
#include <cstring>
#include <numbers>
#include <span>
#include <vector>

namespace ponderscope {

namespace {

const char* const tensor_name = "initial_state";

/// Reads `initial_state` [B, T, d] from a safetensors file, as fp32.
at::Tensor read_states(const std::filesystem::path& path, const ModelConfig& config) {
    const SafetensorsFile file = SafetensorsFile::open(path);
    const std::string expected = std::string("a tensor ") + tensor_name + " of shape [sequences, tokens, " +
                                 std::to_string(config.hidden_size) + "]";
    for (const TensorView& view : file.tensors()) {
        if (view.name != tensor_name) {
            continue;
        }
        const std::string shape = joined(view.shape, [](std::int64_t size) { return std::to_string(size); });
        if (view.shape.size() != 3 || view.shape[2] != config.hidden_size) {
            throw InputError(ErrorId::checkpoint_tensor, path, expected, "the shape [" + shape + "]",
                             "make start states of this model's width");
        }
        const at::ScalarType type = scalar_type_of(view.dtype);
        if (!at::isFloatingType(type)) {
            throw InputError(ErrorId::checkpoint_tensor, path, expected, "a tensor of whole numbers",
                             "store the tensor as float32");
        }
        at::Tensor rows = at::empty(view.shape, at::TensorOptions(type));
        std::memcpy(rows.data_ptr(), view.bytes.data(), view.bytes.size());
        rows = rows.to(at::kFloat);
        if (!at::isfinite(rows).all().item<bool>()) {
            throw InputError(ErrorId::checkpoint_tensor, path,
                             "finite numbers in " + std::string(tensor_name), "NaN or infinity",
                             "make the file again");
        }
        return rows;
    }
    throw InputError(ErrorId::checkpoint_tensor, path, expected, "no such tensor",
                     "give the file that holds the start states");
}

} // namespace

StartState StartState::parse(const std::string& spec, const std::filesystem::path& folder,
                             const ModelConfig& config) {
    StartState start;
    const std::string random = "random";
    if (spec.empty() || spec == random) {
        return start;
    }
    if (spec == "zero") {
        start.kind_ = Kind::zero;
        return start;
    }
    if (spec.starts_with(random + ":")) {
        const auto seed = parse_number<std::uint64_t>(std::string_view(spec).substr(random.size() + 1));
        if (!seed) {
            throw InputError(ErrorId::usage_value,
                             "--initial-state: expected random:SEED with a whole number from 0, found '" +
                                 spec + "'.");
        }
        start.seed_ = *seed;
        return start;
    }
    start.kind_ = Kind::file;
    std::error_code error;
    start.path_ = std::filesystem::exists(folder / spec, error) ? folder / spec : std::filesystem::path(spec);
    if (!std::filesystem::exists(start.path_, error)) {
        throw InputError(
            ErrorId::file_missing,
            "--initial-state: expected random, random:SEED, zero or a safetensors file, found '" + spec +
                "', and no such file in the working folder or in " + folder.string() + ".");
    }
    start.rows_ = read_states(start.path_, config).contiguous();
    // The digest covers shape and numbers, so the same states in another file or dtype have the same digest.
    const std::vector<std::int64_t> shape = start.rows_.sizes().vec();
    const std::span values(start.rows_.const_data_ptr<float>(),
                           static_cast<std::size_t>(start.rows_.numel()));
    Sha256 hash;
    start.digest_ = hash.update(std::as_bytes(std::span(shape))).update(std::as_bytes(values)).finish_hex();
    return start;
}

bool StartState::is_zero(const ModelConfig& config) const {
    // With deviation 0 in the config, random states are zeros.
    return kind_ == Kind::zero || (kind_ == Kind::random && config.sandwich.state_deviation == 0.0);
}

at::Tensor StartState::states(std::span<const Window> windows, const ModelConfig& config) const {
    const std::int64_t d = config.hidden_size;
    std::int64_t total = 0;
    for (const Window& window : windows) {
        total += static_cast<std::int64_t>(window.ids.size());
    }
    if (is_zero(config)) {
        return at::zeros({total, d}, at::kFloat);
    }
    at::Tensor all = at::empty({total, d}, kind_ == Kind::file ? at::kFloat : at::kDouble);
    std::int64_t first = 0;
    for (std::size_t i = 0; i < windows.size(); ++i) {
        const Window& window = windows[i];
        const std::int64_t sequence = window.sequence >= 0 ? window.sequence : static_cast<std::int64_t>(i);
        const auto length = static_cast<std::int64_t>(window.ids.size());
        at::Tensor part = all.narrow(0, first, length);
        if (kind_ == Kind::file) {
            if (sequence >= rows_.size(0) || window.first + length > rows_.size(1)) {
                throw InputError(ErrorId::checkpoint_tensor, path_,
                                 "start states for sequence " + std::to_string(sequence) + " up to token " +
                                     std::to_string(window.first + length),
                                 std::to_string(rows_.size(0)) + " sequences of " +
                                     std::to_string(rows_.size(1)) + " tokens",
                                 "give a file with a row for every token, or use random or zero");
            }
            part.copy_(rows_.select(0, sequence).narrow(0, window.first, length));
        } else {
            const std::uint64_t of_sequence = splitmix64(seed_, static_cast<std::uint64_t>(sequence));
            auto* values = part.mutable_data_ptr<double>();
            // erfinv(u), u uniform on (2Φ(-3) - 1, 2Φ(3) - 1), is a normal variable cut at 3 deviations.
            const double reach = std::erf(3.0 / std::numbers::sqrt2);
            at::parallel_for(0, length, 16, [&](std::int64_t begin, std::int64_t end) {
                for (std::int64_t t = begin; t < end; ++t) {
                    const std::uint64_t of_token =
                        splitmix64(of_sequence, static_cast<std::uint64_t>(window.first + t));
                    for (std::int64_t j = 0; j < d; ++j) {
                        const double u = unit_interval(splitmix64(of_token, static_cast<std::uint64_t>(j)));
                        values[t * d + j] = reach * (2 * u - 1);
                    }
                }
            });
        }
        first += length;
    }
    if (kind_ == Kind::file) {
        return all;
    }
    const SandwichConfig& sandwich = config.sandwich;
    return at::erfinv(all)
        .mul_(sandwich.state_deviation * std::numbers::sqrt2 * sandwich.state_scale)
        .to(at::kFloat);
}

std::string StartState::text(const ModelConfig& config) const {
    switch (kind_) {
    case Kind::zero:
        return "zero";
    case Kind::file:
        return path_.string();
    case Kind::random:
        break;
    }
    return config.sandwich.state_deviation == 0.0 ? "zero" : "random:" + std::to_string(seed_);
}

} // namespace ponderscope
