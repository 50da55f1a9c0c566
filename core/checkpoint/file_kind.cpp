// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/file_kind.h"

#include "core/base/error.h"
#include "core/base/utf8.h"
#include "core/checkpoint/safetensors.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>
#include <string>
#include <string_view>

namespace ponderscope {
namespace {

constexpr std::size_t looked_at = 4096;

std::string_view as_text(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool starts_with_ignoring_case(std::string_view text, std::string_view lower_case) {
    return text.size() >= lower_case.size() &&
           std::equal(lower_case.begin(), lower_case.end(), text.begin(), [](char a, char b) {
               return a == static_cast<char>(std::tolower(static_cast<unsigned char>(b)));
           });
}

/// Opcodes that a pickle of protocol 0 or 1 plausibly starts with, where the name already says pickle.
bool looks_like_old_pickle(std::string_view text) {
    return !text.empty() && std::string_view("(]}cl").find(text.front()) != std::string_view::npos;
}

std::string how_to_convert(const std::filesystem::path& path) {
    const std::string folder = path.has_parent_path() ? path.parent_path().string() : ".";
    return "if you trust its source, convert it: python3 -c \"from transformers import "
           "AutoModelForCausalLM as M; "
           "M.from_pretrained('" +
           folder + "').save_pretrained('" + folder + "-safetensors', safe_serialization=True)\"";
}

} // namespace

FileKind recognise(std::span<const std::byte> content, std::uint64_t file_bytes) {
    if (file_bytes == 0 || content.empty()) {
        return FileKind::empty;
    }
    const std::string_view text = as_text(content).substr(0, looked_at);
    const auto starts_with = [&](std::string_view mark) { return text.substr(0, mark.size()) == mark; };
    // First, since a header of 640 bytes starts with the two bytes of a pickle.
    if (text.size() > 8 && text[8] == '{') {
        std::uint64_t length = 0;
        for (std::size_t i = 0; i < 8; ++i) {
            length |= static_cast<std::uint64_t>(content[i]) << (8 * i);
        }
        if (length <= max_safetensors_header) { // whether it is true is for the reader to find out
            return FileKind::safetensors;
        }
    }
    if (starts_with("version https://git-lfs.github.com/spec/") ||
        starts_with("version https://hawser.github.com/spec/")) {
        return FileKind::lfs_pointer;
    }
    if (starts_with("PK\x03\x04") || starts_with("PK\x05\x06")) {
        // torch.save writes NAME/data.pkl as the first member.
        return text.find("data.pkl") != std::string_view::npos ? FileKind::pickle : FileKind::zip;
    }
    if (text.size() >= 2 && text[0] == '\x80' && text[1] >= 2 && text[1] <= 5) {
        return FileKind::pickle;
    }
    if (starts_with("GGUF") || starts_with("lmgg") || starts_with("tjgg")) {
        return FileKind::gguf;
    }
    if (starts_with("\x89HDF\r\n\x1A\n")) {
        return FileKind::hdf5;
    }
    if (starts_with(std::string_view("SQLite format 3\0", 16))) {
        return FileKind::sqlite;
    }
    std::string_view trimmed = text;
    if (trimmed.substr(0, 3) == "\xEF\xBB\xBF") {
        trimmed.remove_prefix(3);
    }
    trimmed.remove_prefix(std::min(trimmed.find_first_not_of(" \t\r\n"), trimmed.size()));
    for (const std::string_view mark : {"<!doctype html", "<html", "<head", "<!-- ", "<?xml"}) {
        if (starts_with_ignoring_case(trimmed, mark)) {
            return FileKind::html;
        }
    }
    if (!trimmed.empty() && trimmed.front() == '{' &&
        first_invalid_utf8(trimmed.substr(0, trimmed.size() / 2)) == std::string_view::npos) {
        return FileKind::json;
    }
    return FileKind::unknown;
}

FileKind recognise_file(const std::filesystem::path& path) {
    std::error_code error;
    if (!std::filesystem::is_regular_file(path, error)) {
        return FileKind::unknown;
    }
    // A trace may be open in this process, and closing another descriptor of it takes away SQLite's locks.
    if (path.extension() == ".ponder") {
        return FileKind::sqlite;
    }
    const std::uintmax_t size = std::filesystem::file_size(path, error);
    std::ifstream file(path, std::ios::binary);
    std::array<char, looked_at> start{};
    file.read(start.data(), start.size());
    if (error || (file.bad() || (!file && file.gcount() == 0 && size > 0))) {
        return FileKind::unknown;
    }
    const std::string_view text(start.data(), static_cast<std::size_t>(file.gcount()));
    const FileKind kind = recognise(std::as_bytes(std::span(text.data(), text.size())), size);
    if (kind == FileKind::unknown && has_pickle_name(path) && looks_like_old_pickle(text)) {
        return FileKind::pickle;
    }
    return kind;
}

bool has_pickle_name(const std::filesystem::path& path) {
    std::string extension = path.extension().string();
    std::transform(extension.begin(), extension.end(), extension.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    constexpr std::array<std::string_view, 5> names{".bin", ".pt", ".pth", ".ckpt", ".pkl"};
    return std::find(names.begin(), names.end(), extension) != names.end();
}

void refuse(const std::filesystem::path& path, FileKind kind, std::span<const std::byte> content) {
    const std::string expected = "safetensors weights";
    switch (kind) {
    case FileKind::empty:
        throw InputError(ErrorId::checkpoint_kind, path, expected, "an empty file", "get the file again");
    case FileKind::lfs_pointer: {
        std::string found = "a Git LFS pointer instead of the file";
        const std::string_view text = as_text(content).substr(0, looked_at);
        if (const std::size_t size = text.find("\nsize "); size != std::string_view::npos) {
            const std::string_view digits = text.substr(size + 6, 20);
            found +=
                " of " + std::string(digits.substr(0, digits.find_first_not_of("0123456789"))) + " bytes";
        }
        throw InputError(ErrorId::checkpoint_kind, path, expected, found, "fetch it with: git lfs pull");
    }
    case FileKind::pickle:
        throw InputError(
            ErrorId::checkpoint_kind, path, expected,
            "a PyTorch pickle, which can run any code when it is opened and is never opened here",
            how_to_convert(path));
    case FileKind::zip:
        throw InputError(ErrorId::checkpoint_kind, path, expected, "a zip archive",
                         "unpack it and give the folder");
    case FileKind::gguf:
        throw InputError(ErrorId::checkpoint_kind, path, expected, "a GGUF file",
                         "get the checkpoint's original Hugging Face folder with safetensors files");
    case FileKind::html:
        throw InputError(ErrorId::checkpoint_kind, path, expected, "a web page",
                         "the download went wrong: get the file itself again");
    case FileKind::hdf5:
        throw InputError(ErrorId::checkpoint_kind, path, expected, "an HDF5 file of TensorFlow or Keras",
                         "get the checkpoint's original Hugging Face folder with safetensors files");
    case FileKind::sqlite:
        throw InputError(ErrorId::checkpoint_kind, path, expected, "an SQLite file",
                         "if it is a trace, open it as a trace");
    case FileKind::json:
        throw InputError(ErrorId::checkpoint_kind, path, expected, "a JSON file", "get the file again");
    case FileKind::safetensors:
    case FileKind::unknown:
        break;
    }
    throw InputError(ErrorId::checkpoint_kind, path, expected, "a file of an unknown kind",
                     "get the file again");
}

} // namespace ponderscope
