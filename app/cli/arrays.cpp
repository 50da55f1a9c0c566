// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/arrays.h"

#include "core/checkpoint/safetensors.h"

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

namespace ponderscope::cli {
namespace {

std::size_t elements(const std::vector<std::int64_t>& shape, std::size_t from = 0) {
    std::size_t product = 1;
    for (std::size_t axis = from; axis < shape.size(); ++axis) {
        product *= static_cast<std::size_t>(shape[axis]);
    }
    return product;
}

/// Copies row \p source of \p part to row \p target of \p whole; the token axis (1) may be shorter in the
/// part.
template <typename Value>
void copy_row(const std::vector<Value>& part, const std::vector<std::int64_t>& part_shape, std::size_t source,
              std::vector<Value>& whole, const std::vector<std::int64_t>& whole_shape, std::size_t target) {
    if (part.empty()) {
        return; // an array holds floats or integers, never both
    }
    const std::size_t part_row = elements(part_shape, 1);
    const std::size_t whole_row = elements(whole_shape, 1);
    std::copy_n(part.begin() + static_cast<std::ptrdiff_t>(source * part_row), part_row,
                whole.begin() + static_cast<std::ptrdiff_t>(target * whole_row));
}

ArrayMap merge_lengths(const std::map<std::size_t, std::pair<std::vector<std::size_t>, ArrayMap>>& groups,
                       std::size_t rows, const std::vector<std::vector<std::int32_t>>& ids) {
    ArrayMap merged;
    const auto most = static_cast<std::int64_t>(groups.rbegin()->first);
    // The longest rows that have an array give it its shape: a step may have run in short rows only.
    std::map<std::string, NamedArray> models;
    for (const auto& [length, group] : groups) {
        for (const auto& [name, array] : group.second) {
            NamedArray& model = models[name];
            model.dtype = array.dtype;
            model.shape = array.shape;
            model.shape[0] = static_cast<std::int64_t>(rows);
            model.shape[1] += most - static_cast<std::int64_t>(length);
        }
    }
    for (auto& [name, whole] : models) {
        whole.floats.assign(whole.dtype == DType::f32 ? elements(whole.shape) : 0,
                            std::numeric_limits<float>::quiet_NaN());
        whole.integers.assign(whole.dtype == DType::i64 ? elements(whole.shape) : 0, 0);
        for (const auto& [length, group] : groups) {
            const auto& [members, arrays] = group;
            const auto found = arrays.find(name);
            if (found == arrays.end()) {
                continue; // a row of one token has no NLL
            }
            const NamedArray& part = found->second;
            for (std::size_t row = 0; row < members.size(); ++row) {
                copy_row(part.floats, part.shape, row, whole.floats, whole.shape, members[row]);
                copy_row(part.integers, part.shape, row, whole.integers, whole.shape, members[row]);
            }
        }
        merged.emplace(name, std::move(whole));
    }
    NamedArray lengths;
    lengths.dtype = DType::i64;
    lengths.shape = {static_cast<std::int64_t>(rows)};
    for (const auto& row : ids) {
        lengths.integers.push_back(static_cast<std::int64_t>(row.size()));
    }
    merged.emplace("lengths", std::move(lengths));
    return merged;
}

} // namespace

ArrayMap compute_arrays(const Engine& engine, const std::vector<std::vector<std::int32_t>>& rows) {
    std::map<std::size_t, std::pair<std::vector<std::size_t>, ArrayMap>> groups;
    for (std::size_t row = 0; row < rows.size(); ++row) {
        groups[rows[row].size()].first.push_back(row);
    }
    for (auto& [length, group] : groups) {
        std::vector<std::vector<std::int32_t>> batch;
        for (const std::size_t member : group.first) {
            batch.push_back(rows[member]);
        }
        group.second = engine.inspect_batch(batch, {group.first.begin(), group.first.end()});
    }
    if (groups.size() == 1) {
        return std::move(groups.begin()->second.second);
    }
    return merge_lengths(groups, rows.size(), rows);
}

void write_arrays(const std::filesystem::path& path, const ArrayMap& arrays,
                  const std::map<std::string, std::string>& metadata) {
    std::vector<TensorView> tensors;
    tensors.reserve(arrays.size());
    for (const auto& [name, array] : arrays) {
        TensorView tensor;
        tensor.name = name;
        tensor.dtype = array.dtype;
        tensor.shape = array.shape;
        tensor.bytes = array.dtype == DType::f32 ? std::as_bytes(std::span(array.floats))
                                                 : std::as_bytes(std::span(array.integers));
        tensors.push_back(std::move(tensor));
    }
    write_safetensors(path, tensors, metadata);
}

} // namespace ponderscope::cli
