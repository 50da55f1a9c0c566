// SPDX-License-Identifier: GPL-3.0-or-later
// What the harnesses of libFuzzer share. Each defines LLVMFuzzerTestOneInput for one kind of input: whatever
// the bytes are, they are read and keep what the reader promises, or are refused with one sentence.
#pragma once

#include "core/base/error.h"
#include "tests/support/test_data.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace ponderscope::fuzz {

/// Ends the program, so that the fuzzer keeps the input.
[[noreturn]] inline void fail(const std::string& what) {
    std::fprintf(stderr, "broken promise: %s\n", what.c_str());
    std::abort();
}

inline void require(bool holds, const std::string& what) {
    if (!holds) {
        fail(what);
    }
}

/// A sentence on one line that ends as one, or asks what was meant; it begins with \p path, or with its
/// folder where a whole checkpoint is meant.
inline void require_sentence(const Error& error, const std::filesystem::path& path) {
    const std::string said = error.what();
    require(!said.empty() && (said.back() == '.' || said.back() == '?') &&
                said.find('\n') == std::string::npos && said.size() < 4000 &&
                (said.starts_with(path.string()) || said.starts_with(path.parent_path().string() + ": ")),
            said);
}

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
    return {reinterpret_cast<const char*>(data), size};
}

/// A folder of this process for the files that readers open by name.
inline std::filesystem::path folder() {
    static const testing::TemporaryFolder one;
    return one.path();
}

/// A new file each time: truncating one makes some file systems write the old content out first.
inline std::filesystem::path put(const std::string& name, std::string_view bytes) {
    std::filesystem::path path = folder() / name;
    std::filesystem::remove(path);
    std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return path;
}

/// Sentences are an answer; every other exception leaves the harness and ends it.
template <class Ask>
void ask(Ask&& question, const std::filesystem::path& path = {}) {
    try {
        question();
    } catch (const Error& error) {
        require_sentence(error, path);
    }
}

} // namespace ponderscope::fuzz
