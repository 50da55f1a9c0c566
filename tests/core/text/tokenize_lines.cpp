// SPDX-License-Identifier: GPL-3.0-or-later
// For scripts that compare with other implementations: reads one JSON string a line, writes one JSON object a
// line with the ids and spans, the decoded text (as bytes in Latin-1, since it may be no UTF-8), or the
// error.
//   tokenize_lines TOKENIZER [--special]
#include "core/base/error.h"
#include "core/base/utf8.h"
#include "core/text/tokenizer.h"

#include <nlohmann/json.hpp>

#include <cstring>
#include <iostream>
#include <string>

namespace {

std::string as_latin1(std::string_view bytes) {
    std::string text;
    for (const char b : bytes) {
        ponderscope::append_utf8(text, static_cast<unsigned char>(b));
    }
    return text;
}

} // namespace

int main(int argc, char** argv) {
    try {
        if (argc < 2) {
            std::cerr << "usage: tokenize_lines TOKENIZER [--special]\n";
            return 2;
        }
        const auto tokenizer = ponderscope::Tokenizer::load_folder(argv[1]);
        const bool special = argc > 2 && std::strcmp(argv[2], "--special") == 0;
        for (std::string line; std::getline(std::cin, line);) {
            nlohmann::json result;
            try {
                const auto text = nlohmann::json::parse(line).get<std::string>();
                const ponderscope::Encoding e = tokenizer.encode(text, special);
                result = {{"ids", e.ids},
                          {"begin", e.begin},
                          {"end", e.end},
                          {"decoded", as_latin1(tokenizer.decode(e.ids))}};
            } catch (const ponderscope::Error& error) {
                result = {{"error", error.what()}};
            }
            std::cout << result << "\n";
        }
        return 0;
    } catch (const std::exception& error) {
        std::cerr << error.what() << "\n";
        return 2;
    }
}
