// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/json.h"

#include "core/base/error.h"
#include "core/base/files.h"
#include "tests/support/errors.h"
#include "tests/support/test_data.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace ponderscope {
namespace {

using testing::error_of;

std::string parse_error(const std::string& text, const JsonLimits& limits = {}) {
    return error_of([&] { parse_json(text, "f.json", limits); });
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

TEST(Json, FaultsAreNamedWithTheirPlace) {
    const std::vector<std::pair<std::string, std::string>> cases{
        {"", "f.json"},
        {std::string("{}\0x", 4), "line 1, byte 3"},
        {R"({"a": 1, "b": 2, "a": 3})", "\"a\""},
        {"{\"a\": \"\xC3(\"}", "line 1, byte 8"},
        {"{\n \"a\": tru\n}", "line 2, byte 10"},
    };
    for (const auto& [text, part] : cases) {
        const std::string error = parse_error(text);
        EXPECT_NE(error.find(part), std::string::npos) << text << " -> " << error;
        EXPECT_TRUE(error.ends_with(" [json.syntax]")) << text << " -> " << error;
    }
    for (const std::string text : {"{", "[1,", "{\"a\":1} x", "[1,]", "{'a':1}", "nan", "[NaN]", "[Infinity]",
                                   "[1e999]", "01", "\"a\nb\"", "// c\n1", "{\"a\"}", "\"\\ud800\""}) {
        const std::string error = parse_error(text);
        EXPECT_NE(error.find("line "), std::string::npos) << text << " -> " << error;
        EXPECT_TRUE(error.ends_with(" [json.syntax]")) << text << " -> " << error;
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
    const std::string error = error_of([&] { (void)read("{\"a\": NaN, \"b\": Infinity, c}"); });
    EXPECT_NE(error.find("line 1, byte 27"), std::string::npos) << "the place is that of the file: " << error;
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
    std::string objects;
    for (int i = 0; i < 100'000; ++i) {
        objects += "{\"a\":";
    }
    for (const std::string& deep : {brackets, objects}) {
        const std::string error = parse_error(deep);
        EXPECT_NE(error.find(" 64 "), std::string::npos) << error;
        EXPECT_TRUE(error.ends_with(" [json.syntax]")) << error;
    }
    EXPECT_EQ(parse_error("[[[1]]]", {100, 3}), "");
    EXPECT_NE(parse_error("[[[[1]]]]", {100, 3}), "");
    EXPECT_TRUE(parse_error("[1, 2, 3]", {5, 3}).ends_with(" [json.syntax]"));
}

TEST(Json, TheSameKeyInTwoObjectsIsFine) {
    EXPECT_EQ(parse_json(R"([{"a": 1}, {"a": 2}, {"b": {"a": 1}, "a": {"a": 2}}])", "f.json").size(), 3U);
}

TEST(Json, FilesAreNamed) {
    testing::TemporaryFolder folder;
    write_file_atomically(folder / "c.json", std::string_view("{\"a\": 1"));
    for (const auto& [name, id] : {std::pair{"c.json", "[json.syntax]"}, {"none.json", "[file.missing]"}}) {
        const std::string error = error_of([&] { read_json_file(folder / name); });
        EXPECT_TRUE(error.starts_with((folder / name).string() + ": ")) << error;
        EXPECT_TRUE(error.ends_with(id)) << error;
    }
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

    const auto expect_error = [](const auto& call, const std::string& part, const std::string& id) {
        const std::string error = error_of(call);
        EXPECT_TRUE(error.starts_with("c.json: ")) << error;
        EXPECT_NE(error.find(part), std::string::npos) << error;
        EXPECT_TRUE(error.ends_with(" [" + id + "]")) << error;
    };
    using Object = const JsonObject&;
    const std::pair<void (*)(Object), const char*> cases[]{
        {[](Object o) { (void)o.integer("t"); }, R"("t")"},
        {[](Object o) { (void)o.integer("n", 4, 9); }, R"("n")"},
        {[](Object o) { (void)o.integer("n", 4); }, R"("n")"},
        {[](Object o) { (void)o.integer("big"); }, R"("big")"},
        {[](Object o) { (void)o.integer("x"); }, R"("x")"},
        {[](Object o) { (void)o.integer("b"); }, R"("b")"},
        {[](Object o) { (void)o.number("b"); }, R"("b")"},
        {[](Object o) { (void)o.boolean("n"); }, R"("n")"},
        {[](Object o) { (void)o.text("o"); }, R"("o")"},
        {[](Object o) { (void)o.array("o"); }, R"("o")"},
        {[](Object o) { (void)o.object("a"); }, R"("a")"},
        {[](Object o) { (void)o.required_integer("none"); }, R"("none")"},
        {[](Object o) { (void)o.required_text("z"); }, R"("z")"},
        {[](Object o) { (void)o.required_object("o").integer("i"); }, R"("o.i")"}};
    for (const auto& [ask, part] : cases) {
        expect_error([&, call = ask] { call(object); }, part, "json.value");
    }
    expect_error([&] { object.required_object("o").allow_only({"j", "k"}); }, R"("i")", "json.key");
    expect_error([&] { JsonObject(document["a"], "c.json"); }, "c.json", "json.value");
}

} // namespace
} // namespace ponderscope
