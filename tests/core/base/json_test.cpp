// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/json.h"

#include "core/base/error.h"
#include "core/base/files.h"
#include "tests/support/test_data.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace ponderscope {
namespace {

/// The sentence that \p call ends with.
template <typename Call>
std::string refusal(Call&& call) {
    try {
        call();
    } catch (const InputError& error) {
        return error.what();
    }
    return "(no error)";
}

std::string parse_sentence(const std::string& text, const JsonLimits& limits = {}) {
    return refusal([&] { parse_json(text, "f.json", limits); });
}

TEST(Json, ReadsWhatTheLibraryReads) {
    const std::string text =
        R"({"a": [1, -2, 3.5, true, null, "x\u00e9", {}], "b": {"c": []}, "d": 18446744073709551615})";
    EXPECT_EQ(parse_json(text, "f.json"), nlohmann::json::parse(text));
    EXPECT_EQ(parse_json("3", "f.json"), 3);
    EXPECT_EQ(parse_json("[]", "f.json"), nlohmann::json::array());
    EXPECT_EQ(parse_json("\xEF\xBB\xBF{}", "f.json"), nlohmann::json::object())
        << "a byte order mark is passed over";
}

TEST(Json, EveryFaultHasItsSentence) {
    const std::vector<std::pair<std::string, std::string>> cases{
        {"", "f.json: expected valid JSON, found an empty file; get the file again."},
        {std::string("{}\0x", 4), "f.json: expected valid JSON, found a NUL byte at line 1, byte 3; correct "
                                  "the file or get it again."},
        {R"({"a": 1, "b": 2, "a": 3})",
         "f.json: expected every key once, found the key \"a\" twice in one object; remove one of them."},
        {"{\"a\": \"\xC3(\"}",
         "f.json: expected JSON in UTF-8, found an invalid byte sequence at line 1, byte 8; "
         "correct the file or get it again."},
        {"{\n \"a\": tru\n}",
         "f.json: expected valid JSON, found syntax error while parsing value - invalid literal; last "
         "read: '\"a\": tru<U+000A>' at line 2, byte 10; correct the file or get it again."},
    };
    for (const auto& [text, expected] : cases) {
        EXPECT_EQ(parse_sentence(text), expected) << text;
    }
    for (const std::string text : {"{", "[1,", "{\"a\":1} x", "[1,]", "{'a':1}", "nan", "[NaN]", "[Infinity]",
                                   "[1e999]", "01", "\"a\nb\"", "// c\n1", "{\"a\"}", "\"\\ud800\""}) {
        const std::string said = parse_sentence(text);
        EXPECT_EQ(said.rfind("f.json: expected valid JSON, found ", 0), 0U) << text << " -> " << said;
        EXPECT_NE(said.find("at line "), std::string::npos) << said;
    }
}

TEST(Json, ReadsWhatPythonWrites) {
    const auto read = [](const std::string& text) { return parse_json(text, "f.json", {.python = true}); };
    const nlohmann::json numbers = read(R"({"a": [Infinity, -Infinity, NaN, -1], "NaN": "NaN, \"Infinity"})");
    EXPECT_EQ(numbers["a"][0], std::numeric_limits<double>::infinity());
    EXPECT_EQ(numbers["a"][1], -std::numeric_limits<double>::infinity());
    EXPECT_TRUE(std::isnan(numbers["a"][2].get<double>()));
    EXPECT_EQ(numbers["a"][3], -1);
    EXPECT_EQ(numbers["NaN"], "NaN, \"Infinity");
    EXPECT_EQ(read(R"({"a": {"b": 1}, "c": 2, "a": [3]})"), nlohmann::json::parse(R"({"a": [3], "c": 2})"));
    for (const std::string text : {"-NaN", "1NaN", "NaNs", "[Infinit]", "+Infinity", "nan", "[--Infinity]"}) {
        EXPECT_THROW((void)read(text), InputError) << text;
    }
    const nlohmann::json nan = read(R"({"a": NaN})");
    EXPECT_THROW((void)JsonObject(nan, "f.json").number("a"), InputError);
    try { // the place is that of the file
        (void)read("{\"a\": NaN, \"b\": Infinity, c}");
        FAIL();
    } catch (const InputError& error) {
        EXPECT_NE(std::string(error.what()).find("line 1, byte 27"), std::string::npos) << error.what();
    }
}

TEST(JsonObject, RemembersWhatItWasAskedFor) {
    const nlohmann::json document = {{"a", 1}, {"b", 2}, {"c", nullptr}, {"d", 4}};
    JsonObject object(document, "f.json");
    object.remember_asked();
    const JsonObject copy = object;
    EXPECT_EQ(copy.integer("b"), 2);
    EXPECT_FALSE(copy.has("x"));
    EXPECT_EQ(object.never_asked(), (std::vector<std::string>{"a", "d"}));
}

TEST(Json, DepthAndSizeAreLimited) {
    const std::string brackets(100'000, '[');
    EXPECT_EQ(parse_sentence(brackets),
              "f.json: expected at most 64 nested levels, found more; check that it is the right file.");
    std::string objects;
    for (int i = 0; i < 100'000; ++i) {
        objects += "{\"a\":";
    }
    EXPECT_EQ(parse_sentence(objects),
              "f.json: expected at most 64 nested levels, found more; check that it is the right file.");
    EXPECT_EQ(parse_sentence("[[[1]]]", {100, 3}), "(no error)");
    EXPECT_NE(parse_sentence("[[[[1]]]]", {100, 3}), "(no error)");
    EXPECT_EQ(parse_sentence("[1, 2, 3]", {5, 3}),
              "f.json: expected JSON of at most 5 bytes, found 9 bytes; check that it is the right file.");
}

TEST(Json, TheSameKeyInTwoObjectsIsFine) {
    EXPECT_EQ(parse_json(R"([{"a": 1}, {"a": 2}, {"b": {"a": 1}, "a": {"a": 2}}])", "f.json").size(), 3U);
}

TEST(Json, FilesAreNamed) {
    testing::TemporaryFolder folder;
    write_file_atomically(folder / "c.json", std::string_view("{\"a\": 1"));
    EXPECT_EQ(refusal([&] {
                  read_json_file(folder / "c.json");
              }).rfind((folder / "c.json").string() + ": expected valid JSON", 0),
              0U);
    EXPECT_EQ(refusal([&] { read_json_file(folder / "none.json"); }),
              (folder / "none.json").string() + ": expected a file, found nothing there; check the path.");
}

TEST(JsonObject, GettersNameKeyAndValue) {
    const nlohmann::json document = parse_json(
        R"({"n": 3, "big": 18446744073709551615, "x": 0.5, "t": "silu", "b": true, "z": null, "o": {"i": "8"}, "a": [1]})",
        "c.json");
    const JsonObject object(document, "c.json");
    EXPECT_EQ(object.integer("n"), 3);
    EXPECT_EQ(object.number("n"), 3.0);
    EXPECT_EQ(object.number("x"), 0.5);
    EXPECT_EQ(object.text("t"), "silu");
    EXPECT_EQ(object.boolean("b"), true);
    EXPECT_EQ(object.integer("z"), std::nullopt) << "null counts as absent";
    EXPECT_EQ(object.integer("none"), std::nullopt);
    EXPECT_EQ(object.array("a")->size(), 1U);
    EXPECT_FALSE(object.has("z"));

    const std::string start = "c.json: expected ";
    const std::string end = "; correct the file.";
    EXPECT_EQ(refusal([&] { static_cast<void>(object.integer("t")); }),
              start + "a whole number for \"t\", found \"silu\"" + end);
    EXPECT_EQ(refusal([&] { static_cast<void>(object.integer("n", 4, 9)); }),
              start + "a whole number from 4 to 9 for \"n\", found 3" + end);
    EXPECT_EQ(refusal([&] { static_cast<void>(object.integer("n", 4)); }),
              start + "a whole number of at least 4 for \"n\", found 3" + end);
    EXPECT_EQ(refusal([&] { static_cast<void>(object.integer("big")); }),
              start + "a whole number for \"big\", found 18446744073709551615" + end);
    EXPECT_EQ(refusal([&] { static_cast<void>(object.integer("x")); }),
              start + "a whole number for \"x\", found 0.5" + end);
    EXPECT_EQ(refusal([&] { static_cast<void>(object.integer("b")); }),
              start + "a whole number for \"b\", found true" + end);
    EXPECT_EQ(refusal([&] { static_cast<void>(object.number("b")); }),
              start + "a number for \"b\", found true" + end);
    EXPECT_EQ(refusal([&] { static_cast<void>(object.boolean("n")); }),
              start + "true or false for \"n\", found 3" + end);
    EXPECT_EQ(refusal([&] { static_cast<void>(object.text("o")); }),
              start + "a text for \"o\", found an object" + end);
    EXPECT_EQ(refusal([&] { static_cast<void>(object.array("o")); }),
              start + "an array for \"o\", found an object" + end);
    EXPECT_EQ(refusal([&] { static_cast<void>(object.object("a")); }),
              start + "an object for \"a\", found an array of 1" + end);
    EXPECT_EQ(refusal([&] { static_cast<void>(object.required_integer("none")); }),
              start + "a whole number for \"none\", found no such key" + end);
    EXPECT_EQ(refusal([&] { static_cast<void>(object.required_text("z")); }),
              start + "a text for \"z\", found null" + end);
    EXPECT_EQ(refusal([&] { static_cast<void>(object.required_object("o").integer("i")); }),
              start + "a whole number for \"o.i\", found \"8\"" + end);
    EXPECT_EQ(refusal([&] {
                  object.required_object("o").allow_only({"j", "k"});
              }),
              "c.json: expected only known keys in \"o\", found \"i\"; remove it or use one of: j, k.");
    EXPECT_EQ(refusal([&] { JsonObject(document["a"], "c.json"); }),
              "c.json: expected a JSON object, found an array of 1; correct the file.");
}

} // namespace
} // namespace ponderscope
