// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/file_kind.h"

#include "core/base/error.h"
#include "core/checkpoint/safetensors.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <fstream>
#include <string>

namespace ponderscope {
namespace {

using namespace std::string_view_literals;

constexpr std::size_t looked_at = 4096;

constexpr std::pair<std::string_view, FileKind> marks[] = {
    {"version https://git-lfs.github.com/spec/", FileKind::lfs_pointer},
    {"GGUF", FileKind::gguf},
    {"\x89HDF\r\n\x1A\n", FileKind::hdf5},
    {"SQLite format 3\0"sv, FileKind::sqlite}};

struct Refusal {
    FileKind kind;
    const char* found;
    const char* remedy;
};
constexpr Refusal refusals[] = {
    {FileKind::empty, "an empty file", "get the file again"},
    {FileKind::lfs_pointer, "a Git LFS pointer instead of the file", "fetch it with: git lfs pull"},
    {FileKind::pickle, "a PyTorch pickle, which Ponderscope never opens, because a pickle can run any code",
     "if you trust its source, convert it: python3 -c \"from transformers import AutoModelForCausalLM as M; "
     "M.from_pretrained('FOLDER').save_pretrained('FOLDER-safetensors', safe_serialization=True)\""},
    {FileKind::zip, "a zip archive", "unpack the archive and give its folder"},
    {FileKind::gguf, "a GGUF file",
     "get the checkpoint's original Hugging Face folder with safetensors files"},
    {FileKind::html, "a web page", "the download went wrong: get the file itself again"},
    {FileKind::hdf5, "an HDF5 file of TensorFlow or Keras",
     "get the checkpoint's original Hugging Face folder with safetensors files"},
    {FileKind::sqlite, "an SQLite file", "if it is a trace, open it as a trace"},
    {FileKind::json, "a JSON file", "get the file again"},
    {FileKind::unknown, "a file of an unknown kind", "get the file again"}};

std::string in_lower_case(std::string_view text) {
    std::string lower(text);
    std::ranges::transform(lower, lower.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return lower;
}

} // namespace

FileKind recognise(std::string_view content) {
    const std::string_view text = content.substr(0, looked_at);
    if (text.empty()) {
        return FileKind::empty;
    }
    // Test this first: a safetensors header of 640 bytes starts with the two bytes of a pickle.
    if (text.size() > 8 && text[8] == '{') {
        std::uint64_t length = 0; // little-endian
        std::memcpy(&length, text.data(), sizeof length);
        if (length <= max_safetensors_header) { // SafetensorsFile checks it fully
            return FileKind::safetensors;
        }
    }
    for (const auto& [mark, kind] : marks) {
        if (text.starts_with(mark)) {
            return kind;
        }
    }
    if (text.starts_with("PK\x03\x04") || text.starts_with("PK\x05\x06")) {
        // torch.save writes NAME/data.pkl as the first member.
        return text.find("data.pkl") != std::string_view::npos ? FileKind::pickle : FileKind::zip;
    }
    if (text.size() >= 2 && text[0] == '\x80' && text[1] >= 2 && text[1] <= 5) {
        return FileKind::pickle;
    }
    const std::string_view trimmed =
        text.substr(std::min(text.find_first_not_of(" \t\r\n\xEF\xBB\xBF"), text.size()));
    const std::string start = in_lower_case(trimmed.substr(0, 16));
    for (const std::string_view mark : {"<!doctype html", "<html", "<head", "<!-- ", "<?xml"}) {
        if (start.starts_with(mark)) {
            return FileKind::html;
        }
    }
    return trimmed.starts_with('{') ? FileKind::json : FileKind::unknown;
}

FileKind recognise_file(const std::filesystem::path& path) {
    std::error_code error;
    if (!std::filesystem::is_regular_file(path, error)) {
        return FileKind::unknown;
    }
    // Do not open a trace here: this process may use it, and closing a descriptor would drop SQLite's locks.
    if (path.extension() == ".ponder") {
        return FileKind::sqlite;
    }
    std::ifstream file(path, std::ios::binary);
    std::string start(looked_at, '\0');
    file.read(start.data(), looked_at);
    if (!file && !file.eof()) {
        return FileKind::unknown;
    }
    start.resize(static_cast<std::size_t>(file.gcount()));
    const FileKind kind = recognise(start);
    // Pickles of protocols 0 and 1 begin with an opcode, without a mark.
    const bool old_pickle = kind == FileKind::unknown && has_pickle_name(path) &&
                            std::string_view("(]}cl").find(start.front()) != std::string_view::npos;
    return old_pickle ? FileKind::pickle : kind;
}

bool has_pickle_name(const std::filesystem::path& path) {
    constexpr std::array<std::string_view, 5> names{".bin", ".pt", ".pth", ".ckpt", ".pkl"};
    return std::ranges::find(names, in_lower_case(path.extension().string())) != names.end();
}

void refuse(const std::filesystem::path& path, FileKind kind) {
    const Refusal& refusal =
        *std::find_if(std::begin(refusals), std::end(refusals) - 1,
                      [&](const Refusal& one) { return one.kind == kind; }); // the last entry is the default
    std::string remedy = refusal.remedy;
    const std::string folder = path.has_parent_path() ? path.parent_path().string() : ".";
    for (std::size_t at = remedy.find("FOLDER"); at != std::string::npos;
         at = remedy.find("FOLDER", at + folder.size())) {
        remedy.replace(at, std::string_view("FOLDER").size(), folder);
    }
    throw InputError(ErrorId::checkpoint_kind, path, "safetensors weights", refusal.found, remedy);
}

} // namespace ponderscope
