// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/files.h"
#include "core/checkpoint/model_config.h"
#include "tests/support/errors.h"
#include "tests/support/notices.h"
#include "tests/support/test_data.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace ponderscope::testing {

/// error_of with the path of \p folder cut off its beginning.
template <typename Call>
std::string sentence(const std::filesystem::path& folder, Call&& call) {
    std::string error = error_of<Error>(call);
    for (const std::string& prefix : {folder.string() + "/", folder.string()}) {
        error.erase(0, error.starts_with(prefix) ? prefix.size() : 0);
    }
    return error;
}

/// A safetensors file put together by hand, right or wrong: length, header, data.
inline std::string safetensors(std::string_view header, std::string_view data = {}) {
    std::string file;
    for (std::size_t i = 0; i < 8; ++i) {
        file += static_cast<char>(static_cast<std::uint64_t>(header.size()) >> (8 * i));
    }
    file += header;
    file += data;
    return file;
}

/// Without the sync of the real writer, which tests by the hundred would wait for.
inline void put_file(const std::filesystem::path& path, std::string_view content) {
    std::ofstream file(path, std::ios::binary);
    file.write(content.data(), static_cast<std::streamsize>(content.size()));
    ASSERT_TRUE(file.good()) << path;
}

/// read_model_config on a text.
inline ModelConfig read_config(std::string_view text, std::optional<MethodKind> method = std::nullopt) {
    const TemporaryFolder folder;
    put_file(folder / "config.json", text);
    return read_model_config(folder / "config.json", method);
}

/// The sentence that a config.json with this text gets.
inline std::string config_sentence(std::string_view text, std::optional<MethodKind> method = std::nullopt) {
    const TemporaryFolder folder;
    put_file(folder / "config.json", text);
    return sentence(folder.path(), [&] { read_model_config(folder / "config.json", method); });
}

/// The config is refused, and the sentence has this part: the key in quotation marks, or a word of its own.
inline void expect_refused(std::string_view text, std::string_view part,
                           std::optional<MethodKind> method = std::nullopt) {
    const std::string sentence = config_sentence(text, method);
    EXPECT_NE(sentence, "") << text;
    EXPECT_NE(sentence.find(part), std::string::npos) << text << ": " << sentence;
}

} // namespace ponderscope::testing
