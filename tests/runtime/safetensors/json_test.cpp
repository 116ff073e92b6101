// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/runtime/safetensors/json.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <optional>

namespace tensorcraft::safetensors {
namespace {

template <class Call>
std::optional<Refusal> refusal_of(Call&& call) {
  try {
    call();
  } catch (const Refused& refused) {
    return refused.reason;
  }
  return std::nullopt;
}

// Why a whole text is no value; a text with something left over is bad_json too.
std::optional<Refusal> skipped(std::string_view text) {
  return refusal_of([&] {
    JsonReader json(text);
    json.skip();
    if (json.peek() != '\0') throw Refused{Refusal::bad_json, "left over"};
  });
}

std::optional<Refusal> as_integer(std::string_view text) {
  return refusal_of([&] { JsonReader(text).integer(); });
}

std::string nested(int depth) { return std::string(depth, '[') + std::string(depth, ']'); }

}  // namespace

TEST(JsonReader, AcceptsEveryKindOfValue) {
  for (const char* text : {"{}", "[]", " { \"a\" : [ 1 , -2.5e+3 ] ,\t\"b\":\r\nnull}", "true",
                           "false", "0", "-0.0", "1E5", "\"\"", "[[],{},\"x\"]"})
    EXPECT_EQ(skipped(text), std::nullopt) << text;
}

TEST(JsonReader, RefusesWhatIsNotJson) {
  for (const char* text :
       {"",        "{",         "[",     "{]",      "[}",        "[1,]",        "{\"a\":1,}",
        "{\"a\"}", "{\"a\" 1}", "{a:1}", "{'a':1}", "[1 2]",     "tru",         "nulL",
        "NaN",     "Infinity",  "-",     "+1",      "01",        ".5",          "1.",
        "1e",      "\"",        "\"\\",  "\"\\x\"", "\"\\u12\"", "\"\\u12G4\"", "\"\n\"",
        "{} {}",   "/**/1",     "[1]]"})
    EXPECT_EQ(skipped(text), Refusal::bad_json) << text;
}

TEST(JsonReader, ReadsEscapesAndSurrogatePairs) {
  const auto read = [](std::string_view text) { return JsonReader(text).string(); };
  EXPECT_EQ(read(R"("\"\\\/\b\f\n\r\t")"), "\"\\/\b\f\n\r\t");
  EXPECT_EQ(read(R"("\u0041\u00e9\u20AC\ud83d\ude00")"), "A\u00e9\u20ac\U0001F600");
  EXPECT_EQ(read(R"("\u0000")"), std::string(1, '\0'));
}

TEST(JsonReader, RefusesHalfOfASurrogatePair) {
  for (const char* text : {R"("\ud83d")", R"("\ude00")", R"("\ud83dx")", R"("\ud83d\n")",
                           R"("\ud83d\u0041")", R"("\ud83d\ud83d")", R"("\ud83d\u)", R"("\ud83d)"})
    EXPECT_EQ(skipped(text), Refusal::bad_json) << text;
}

TEST(JsonReader, TakesIntegersUpTo64BitsAndNoOtherSpelling) {
  EXPECT_EQ(JsonReader("18446744073709551615").integer(), std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(JsonReader(" 0 ").integer(), 0u);
  EXPECT_EQ(as_integer("18446744073709551616"), Refusal::integer_overflow);
  EXPECT_EQ(as_integer("99999999999999999999"), Refusal::integer_overflow);
  for (const char* text : {"-1", "+1", "1.0", "1e3", "1E3", "01", "00", "NaN", "\"1\"", "", "null"})
    EXPECT_EQ(as_integer(text), Refusal::not_an_integer) << text;
}

TEST(JsonReader, RefusesADuplicateKeyAtAnyLevel) {
  EXPECT_EQ(skipped(R"({"a":{"b":1},"b":{"a":1}})"), std::nullopt);
  EXPECT_EQ(skipped(R"({"a":1,"b":2,"a":1})"), Refusal::duplicate_key);
  EXPECT_EQ(skipped(R"([{"x":[{"a":1,"a":1}]}])"), Refusal::duplicate_key);
  EXPECT_EQ(skipped(R"({"a":1,"\u0061":2})"), Refusal::duplicate_key);
}

TEST(JsonReader, NestsEightLevelsDeep) {
  EXPECT_EQ(skipped(nested(8)), std::nullopt);
  EXPECT_EQ(skipped(nested(9)), Refusal::too_deep);
  EXPECT_EQ(skipped("[" + nested(7) + "," + nested(7) + "]"), std::nullopt);
  EXPECT_EQ(skipped(std::string(100000, '[')), Refusal::too_deep);
}

TEST(JsonReader, TakesKeysOf64KiB) {
  const auto with_key = [](size_t bytes) { return "{\"" + std::string(bytes, 'k') + "\":1}"; };
  EXPECT_EQ(skipped(with_key(65536)), std::nullopt);
  EXPECT_EQ(skipped(with_key(65537)), Refusal::name_too_long);
}

TEST(JsonReader, TakesAMillionKeys) {
  std::string text = "{";
  for (int i = 0; i < 1'000'000; ++i) text += "\"" + std::to_string(i) + "\":0,";
  EXPECT_EQ(skipped(text + "\"x\":0}"), Refusal::too_many_keys);
  text.back() = '}';
  EXPECT_EQ(skipped(text), std::nullopt);
}

TEST(Utf8, AcceptsTheFirstAndLastCharacterOfEachLength) {
  for (const char* text : {"\x01\x7F", "\xC2\x80\xDF\xBF", "\xE0\xA0\x80\xED\x9F\xBF\xEE\x80\x80",
                           "\xEF\xBF\xBF", "\xF0\x90\x80\x80\xF4\x8F\xBF\xBF"})
    EXPECT_TRUE(is_utf8(text)) << text;
  EXPECT_TRUE(is_utf8(""));
}

TEST(Utf8, RefusesOverlongSurrogateTruncatedAndTooLargeForms) {
  for (const char* text :
       {"\x80", "\xBF", "\xC0\x80", "\xC1\xBF", "\xC2", "\xC2\x7F", "\xC2\xC0", "\xE0\x9F\xBF",
        "\xED\xA0\x80", "\xED\xBF\xBF", "\xE2\x82", "\xE2\x82\x41", "\xF0\x8F\xBF\xBF",
        "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "\xF0\x9F\x98"})
    EXPECT_FALSE(is_utf8(text)) << text;
}

}  // namespace tensorcraft::safetensors
