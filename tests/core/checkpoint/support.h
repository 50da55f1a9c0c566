// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/checkpoint/model_config.h"
#include "tests/support/test_data.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace ponderscope::testing {

/// What \p call throws, with "FOLDER/" cut out so that it can be compared; "(no error)" when it does not.
template <typename Call>
std::string sentence(const std::filesystem::path& folder, Call&& call) {
    try {
        call();
    } catch (const Error& error) {
        std::string text = error.what();
        for (const std::string& prefix : {folder.string() + "/", folder.string()}) {
            for (std::size_t at = text.find(prefix); at != std::string::npos; at = text.find(prefix, at)) {
                text.erase(at, prefix.size());
            }
        }
        return text;
    }
    return "(no error)";
}

/// The id of the error that \p call throws, such as "checkpoint.kind"; empty when it does not.
template <typename Call>
std::string refusal_id(Call&& call) {
    try {
        call();
    } catch (const Error& error) {
        return name_of(error.id());
    }
    return {};
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
    EXPECT_NE(sentence, "(no error)") << text;
    EXPECT_NE(sentence.find(part), std::string::npos) << text << ": " << sentence;
}

} // namespace ponderscope::testing
