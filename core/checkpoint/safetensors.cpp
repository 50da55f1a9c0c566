// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/safetensors.h"

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/utf8.h"
#include "core/checkpoint/file_kind.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace ponderscope {
namespace {

constexpr std::size_t length_bytes = 8;
static_assert(std::endian::native == std::endian::little); // as in the file format
constexpr std::uint64_t max_size = std::numeric_limits<std::int64_t>::max();
const char* const get_again = "the file is damaged or incomplete: get it again";

std::string in_quotes(std::string_view name) {
    return '"' + printable(name) + '"';
}

/// Multiplies \p value. False: the product overflows a signed 64-bit number.
bool multiply(std::uint64_t& value, std::uint64_t by) {
    if (by != 0 && value > max_size / by) {
        return false;
    }
    value *= by;
    return true;
}

/// An entry of the header. Its byte range is not yet checked against the file.
struct Entry {
    TensorView view;
    std::string unknown_dtype; ///< empty: the dtype is view.dtype
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
};

std::uint64_t whole_number(const nlohmann::json& value, const std::filesystem::path& path,
                           const std::string& what) {
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > max_size) {
        throw InputError(ErrorId::checkpoint_damaged, path, "whole numbers from 0 in " + what,
                         describe(value), get_again);
    }
    return value.get<std::uint64_t>();
}

Entry read_entry(const std::string& name, const nlohmann::json& value, const std::filesystem::path& path) {
    const std::string of = "of tensor " + in_quotes(name);
    const JsonObject object(value, path, printable(name));
    Entry entry;
    entry.view.name = name;

    const std::string dtype = object.required_text("dtype");
    const std::optional<DType> known = dtype_from_name(dtype);
    if (known) {
        entry.view.dtype = *known;
    } else { // an error only if the model needs the tensor
        entry.unknown_dtype = dtype;
    }

    std::uint64_t bytes = known ? size_of(*known) : 1;
    for (const nlohmann::json& size : object.required_array("shape")) {
        const std::uint64_t elements = whole_number(size, path, "the shape " + of);
        if (!multiply(bytes, elements)) {
            throw InputError(ErrorId::checkpoint_damaged, path,
                             "a size that fits into memory for the shape " + of,
                             object.required_array("shape").dump(), get_again);
        }
        entry.view.shape.push_back(static_cast<std::int64_t>(elements));
    }

    const nlohmann::json& offsets = object.required_array("data_offsets");
    if (offsets.size() != 2) {
        throw InputError(ErrorId::checkpoint_damaged, path, "two data_offsets " + of, describe(offsets),
                         get_again);
    }
    entry.begin = whole_number(offsets[0], path, "the data_offsets " + of);
    entry.end = whole_number(offsets[1], path, "the data_offsets " + of);
    if (entry.end < entry.begin || (known && entry.end - entry.begin != bytes)) {
        throw InputError(ErrorId::checkpoint_damaged, path,
                         std::to_string(bytes) + " bytes for the shape and dtype " + of,
                         "data_offsets " + offsets.dump(), get_again);
    }
    return entry;
}

std::map<std::string, std::string> read_metadata(const nlohmann::json& value,
                                                 const std::filesystem::path& path) {
    std::map<std::string, std::string> metadata;
    if (value.is_null()) { // some programs write it, and the format's own reader accepts it
        return metadata;
    }
    const JsonObject object(value, path, "__metadata__");
    for (const auto& [key, text] : value.items()) {
        if (!text.is_string()) {
            object.fail(key, "a text", get_again);
        }
        metadata.emplace(key, text.get<std::string>());
    }
    return metadata;
}

} // namespace

SafetensorsFile SafetensorsFile::open(const std::filesystem::path& path) {
    SafetensorsFile file(MappedFile::open(path));
    const std::span<const std::byte> bytes = file.file_.bytes();

    const FileKind kind = recognise(file.file_.text());
    if (kind != FileKind::safetensors && kind != FileKind::unknown) {
        refuse(path, kind);
    }
    if (bytes.size() < length_bytes) {
        throw InputError(ErrorId::checkpoint_damaged, path, "safetensors weights, at least 8 bytes",
                         std::to_string(bytes.size()) + " bytes", get_again);
    }
    std::uint64_t header_bytes = 0;
    std::memcpy(&header_bytes, bytes.data(), length_bytes);
    if (header_bytes > max_safetensors_header) {
        throw InputError(ErrorId::checkpoint_damaged, path,
                         "a safetensors header of at most " + std::to_string(max_safetensors_header) +
                             " bytes",
                         "a length of " + std::to_string(header_bytes),
                         "the file is damaged or of another kind: get it again");
    }
    if (header_bytes > bytes.size() - length_bytes) {
        throw InputError(
            ErrorId::checkpoint_damaged, path, "a header of " + std::to_string(header_bytes) + " bytes",
            "only " + std::to_string(bytes.size() - length_bytes) + " bytes after the length field",
            get_again);
    }
    const std::string_view header = file.file_.text().substr(length_bytes, header_bytes);
    if (header.empty() || header.front() != '{') {
        throw InputError(ErrorId::checkpoint_damaged, path, "a safetensors header that begins with {",
                         header.empty() ? "an empty header" : in_quotes(header.substr(0, 8)),
                         "the file is damaged or of another kind: get it again");
    }

    const nlohmann::json document = parse_json(header, path, {max_safetensors_header, 8});
    std::vector<Entry> entries;
    for (const auto& [name, value] : document.items()) {
        if (name == "__metadata__") {
            file.metadata_ = read_metadata(value, path);
        } else {
            entries.push_back(read_entry(name, value, path));
        }
    }
    // Sort in file order. An empty tensor comes before the tensor with the same offset.
    std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
        return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
    });

    const std::span<const std::byte> data = bytes.subspan(length_bytes + header_bytes);
    std::uint64_t expected_begin = 0;
    for (Entry& entry : entries) {
        if (entry.begin != expected_begin) {
            const bool overlap = entry.begin < expected_begin;
            throw InputError(ErrorId::checkpoint_damaged, path,
                             "tensor " + in_quotes(entry.view.name) + " to begin at byte " +
                                 std::to_string(expected_begin) + " of the data",
                             "byte " + std::to_string(entry.begin) +
                                 (overlap ? ", inside another tensor" : ", after a gap"),
                             get_again);
        }
        if (entry.end > data.size()) {
            throw InputError(ErrorId::checkpoint_damaged, path,
                             std::to_string(entry.end) + " bytes of data for tensor " +
                                 in_quotes(entry.view.name),
                             std::to_string(data.size()), get_again);
        }
        entry.view.bytes = data.subspan(entry.begin, entry.end - entry.begin);
        expected_begin = entry.end;
        if (!entry.unknown_dtype.empty()) {
            file.unreadable_.emplace(entry.view.name, entry.unknown_dtype);
            continue;
        }
        file.by_name_.emplace(entry.view.name, file.tensors_.size());
        file.tensors_.push_back(std::move(entry.view));
    }
    if (expected_begin != data.size()) {
        throw InputError(ErrorId::checkpoint_damaged, path,
                         "the file to end with its last tensor, after " + std::to_string(expected_begin) +
                             " bytes of data",
                         std::to_string(data.size()) + " bytes", get_again);
    }
    return file;
}

const TensorView* SafetensorsFile::find(const std::string& name) const {
    const auto position = by_name_.find(name);
    return position == by_name_.end() ? nullptr : &tensors_[position->second];
}

void write_safetensors(const std::filesystem::path& path, const std::vector<TensorView>& tensors,
                       const std::map<std::string, std::string>& metadata) {
    // Wide elements come first, so that every tensor is aligned, as other readers expect.
    std::vector<std::size_t> order(tensors.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return size_of(tensors[a].dtype) > size_of(tensors[b].dtype);
    });

    nlohmann::ordered_json entries = nlohmann::ordered_json::object();
    if (!metadata.empty()) {
        entries["__metadata__"] = metadata;
    }
    std::uint64_t offset = 0;
    for (const std::size_t index : order) {
        const TensorView& tensor = tensors[index];
        std::uint64_t bytes = size_of(tensor.dtype);
        for (const std::int64_t size : tensor.shape) {
            if (size < 0 || !multiply(bytes, static_cast<std::uint64_t>(size))) {
                throw std::invalid_argument("write_safetensors: impossible shape of " + tensor.name);
            }
        }
        if (bytes != tensor.bytes.size() || tensor.name == "__metadata__" || entries.contains(tensor.name)) {
            throw std::invalid_argument("write_safetensors: wrong number of bytes or name used twice: " +
                                        tensor.name);
        }
        entries[tensor.name] = {{"dtype", name_of(tensor.dtype)},
                                {"shape", tensor.shape},
                                {"data_offsets", {offset, offset + bytes}}};
        offset += bytes;
    }
    std::string header = entries.dump();
    header.append((length_bytes - header.size() % length_bytes) % length_bytes, ' ');

    const std::uint64_t length = header.size();
    AtomicFile file(path);
    file.write(std::as_bytes(std::span(&length, 1)));
    file.write(std::string_view(header));
    for (const std::size_t index : order) {
        file.write(tensors[index].bytes);
    }
    file.commit();
}

} // namespace ponderscope
