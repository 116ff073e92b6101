// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/runtime/safetensors/parser.hpp"

#include "tests/runtime/safetensors/writer.hpp"

#include <gtest/gtest.h>

#include <span>

namespace tensorcraft::safetensors {
namespace {

using test::file_bytes;
using test::tensor_entry;

std::variant<Header, Refused> parse(std::string_view bytes, uint64_t file_size) {
  return parse_header(std::as_bytes(std::span(bytes)), file_size);
}
std::variant<Header, Refused> parse(std::string_view bytes) { return parse(bytes, bytes.size()); }

// "" if the file is accepted, else the reason's name.
std::string_view reason(const std::variant<Header, Refused>& result) {
  const auto* refused = std::get_if<Refused>(&result);
  return refused ? to_string(refused->reason) : "";
}
std::string_view reason_of(std::string_view header, size_t data_bytes = 0) {
  return reason(parse(file_bytes(header, data_bytes)));
}
std::string message_of(std::string_view header, size_t data_bytes = 0) {
  return std::get<Refused>(parse(file_bytes(header, data_bytes))).message;
}
std::string_view index_reason(std::string_view text) {
  const auto result = parse_index(text);
  const auto* refused = std::get_if<Refused>(&result);
  return refused ? to_string(refused->reason) : "";
}

// A header with one tensor.
std::string one(std::string_view dtype, std::string_view shape, uint64_t begin, uint64_t end) {
  return "{" + tensor_entry("t", dtype, shape, begin, end) + "}";
}
// A header with one empty tensor that has one more field.
std::string with_field(std::string_view field) {
  return join(R"({"t":{"dtype":"U8","shape":[0],"data_offsets":[0,0],)", field, "}}");
}

}  // namespace

TEST(Parser, ReadsTensorsInTheOrderOfTheirData) {
  const std::string header = "{" + tensor_entry("b", "I16", "[1,2]", 12, 16) + "," +
                             R"("__metadata__":{"format":"pt"},)" +
                             tensor_entry("a", "F32", "[3]", 0, 12) + "}";
  const auto result = parse(file_bytes(header, 16));
  ASSERT_EQ(reason(result), "");
  const Header& read = std::get<Header>(result);
  ASSERT_EQ(read.tensors.size(), 2u);
  EXPECT_EQ(read.tensors[0].name, "a");
  EXPECT_EQ(read.tensors[0].dtype, DType::float32);
  EXPECT_EQ(read.tensors[0].nbytes(), 12u);
  EXPECT_EQ(read.tensors[1].name, "b");
  EXPECT_EQ(read.tensors[1].format, "I16");
  EXPECT_EQ(read.tensors[1].shape, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(read.tensors[1].begin, 12u);
  EXPECT_EQ(read.data_offset, 8 + header.size());
  ASSERT_EQ(read.metadata.size(), 1u);
  EXPECT_EQ(read.metadata[0], (std::pair<std::string, std::string>("format", "pt")));
}

// W1
TEST(Parser, ChecksTheLengthOfTheHeader) {
  EXPECT_EQ(reason(parse("")), "file_too_short");
  EXPECT_EQ(reason(parse("1234567")), "file_too_short");
  EXPECT_EQ(reason(parse(std::string(8, '\0'))), "header_too_short");
  EXPECT_EQ(reason_of("{"), "header_too_short");
  EXPECT_EQ(reason_of("{}"), "");
  EXPECT_EQ(reason(parse(file_bytes("{}", 0).substr(0, 9))), "header_past_end");
  EXPECT_EQ(reason(parse(std::string(7, '\xFF') + '\x7F')), "header_too_long");
  EXPECT_EQ(reason(parse(std::string(8, '\xFF'))), "header_too_long");
}

TEST(Parser, TakesAHeaderOfAHundredMillionBytes) {
  const std::string largest = "{}" + std::string(kMaxHeaderBytes - 2, ' ');
  EXPECT_EQ(reason_of(largest), "");
  EXPECT_EQ(reason_of(largest + " "), "header_too_long");
}

TEST(Parser, WantsNoMoreBytesThanAnAcceptableLengthGives) {
  const auto extent = [](std::string_view bytes, uint64_t file_size) {
    return header_extent(std::as_bytes(std::span(bytes)), file_size);
  };
  const std::string good = file_bytes("{}", 0);
  EXPECT_EQ(extent(good, 10), 10u);
  EXPECT_EQ(extent(good, 9), 8u);
  EXPECT_EQ(extent("abc", 3), 3u);
  EXPECT_EQ(extent(std::string(8, '\xFF'), ~0ull), 8u);
}

// W2
TEST(Parser, WantsUtf8AnObjectAndOnlySpacesAfterIt) {
  EXPECT_EQ(reason_of("{}   "), "");
  EXPECT_EQ(reason_of("{}\n"), "trailing_bytes");
  EXPECT_EQ(reason_of("{}{}"), "trailing_bytes");
  EXPECT_EQ(reason_of(std::string("{}\0", 3)), "trailing_bytes");
  EXPECT_EQ(reason_of(" {}"), "not_an_object");
  EXPECT_EQ(reason_of("[]"), "not_an_object");
  EXPECT_EQ(reason_of("{" + tensor_entry("\u00e9", "U8", "[0]", 0, 0) + "}"), "");
  EXPECT_EQ(reason_of("{" + tensor_entry("\xE9", "U8", "[0]", 0, 0) + "}"), "not_utf8");
}

// W3
TEST(Parser, RefusesADuplicateKeyAtEveryLevel) {
  const std::string t = tensor_entry("t", "U8", "[0]", 0, 0);
  EXPECT_EQ(reason_of("{" + t + "," + tensor_entry("u", "U8", "[0]", 0, 0) + "}"), "");
  EXPECT_EQ(reason_of("{" + t + "," + t + "}"), "duplicate_key");
  EXPECT_EQ(reason_of(with_field(R"("dtype":"U8")")), "duplicate_key");
  EXPECT_EQ(reason_of(R"({"__metadata__":{"a":"1","a":"1"}})"), "duplicate_key");
  EXPECT_EQ(reason_of(R"({"__metadata__":{},"__metadata__":{}})"), "duplicate_key");
  EXPECT_EQ(reason_of(with_field(R"("x":{"a":1,"a":2})")), "duplicate_key");
}

TEST(Parser, TakesWholeNumbersOnly) {
  for (const char* shape :
       {"[-1]", "[1.0]", "[1e0]", "[NaN]", "[01]", "[\"1\"]", "[null]", "[[1]]"})
    EXPECT_EQ(reason_of(one("U8", shape, 0, 1), 1), "not_an_integer") << shape;
  EXPECT_EQ(reason_of(one("U8", "[18446744073709551616]", 0, 1), 1), "integer_overflow");
  EXPECT_EQ(reason_of(R"({"t":{"dtype":"U8","shape":[1],"data_offsets":[0,1.0]}})", 1),
            "not_an_integer");
}

TEST(Parser, TakesEightLevelsAndThirtyTwoDimensions) {
  // The header's object and the tensor's are two levels.
  EXPECT_EQ(reason_of(with_field(R"("x":[[[[[[]]]]]])")), "");
  EXPECT_EQ(reason_of(with_field(R"("x":[[[[[[[]]]]]]])")), "too_deep");
  std::string ones = "[1";
  for (int i = 1; i < 32; ++i) ones += ",1";
  EXPECT_EQ(reason_of(one("U8", ones + "]", 0, 1), 1), "");
  EXPECT_EQ(reason_of(one("U8", ones + ",1]", 0, 1), 1), "rank_too_high");
}

TEST(Parser, TakesNamesOf64KiB) {
  const auto named = [](size_t bytes) {
    return "{" + tensor_entry(std::string(bytes, 'n'), "U8", "[0]", 0, 0) + "}";
  };
  EXPECT_EQ(reason_of(named(65536)), "");
  EXPECT_EQ(reason_of(named(65537)), "name_too_long");
}

TEST(Parser, WantsEveryFieldWithItsType) {
  EXPECT_EQ(reason_of(R"({"t":{"shape":[0],"data_offsets":[0,0]}})"), "missing_field");
  EXPECT_EQ(reason_of(R"({"t":{"dtype":"U8","data_offsets":[0,0]}})"), "missing_field");
  EXPECT_EQ(reason_of(R"({"t":{"dtype":"U8","shape":[0]}})"), "missing_field");
  for (const char* value : {"1", "null", "[]", "\"x\""})
    EXPECT_EQ(reason_of(join("{\"t\":", value, "}")), "bad_field") << value;
  EXPECT_EQ(reason_of(R"({"t":{"dtype":5}})"), "bad_field");
  EXPECT_EQ(reason_of(R"({"t":{"shape":{}}})"), "bad_field");
  EXPECT_EQ(reason_of(R"({"t":{"data_offsets":0}})"), "bad_field");
  for (const char* offsets : {"[]", "[0]", "[0,0,0]"})
    EXPECT_EQ(reason_of(join(R"({"t":{"dtype":"U8","shape":[0],"data_offsets":)", offsets, "}}")),
              "bad_field");
}

// W4
TEST(Parser, TakesMetadataFromStringToString) {
  EXPECT_EQ(reason_of(R"({"__metadata__":{"a":"b","":""}})"), "");
  for (const char* value : {"null", "[]", "\"x\"", R"({"a":1})", R"({"a":null})", R"({"a":{}})"})
    EXPECT_EQ(reason_of(join("{\"__metadata__\":", value, "}")), "bad_metadata") << value;
}

// W5
TEST(Parser, KnowsTheSizeOfEveryDtype) {
  struct Case {
    const char* name;
    int bytes_of_eight;
    std::optional<DType> dtype;
  };
  for (const Case& c : std::initializer_list<Case>{{"F32", 32, DType::float32},
                                                   {"F16", 16, DType::float16},
                                                   {"BF16", 16, DType::bfloat16},
                                                   {"F8_E4M3", 8, DType::float8_e4m3fn},
                                                   {"F8_E5M2", 8, DType::float8_e5m2},
                                                   {"I8", 8, DType::int8},
                                                   {"I16", 16, DType::int16},
                                                   {"I32", 32, DType::int32},
                                                   {"I64", 64, DType::int64},
                                                   {"U8", 8, DType::uint8},
                                                   {"BOOL", 8, DType::bool_},
                                                   {"F64", 64, {}},
                                                   {"C64", 64, {}},
                                                   {"U16", 16, {}},
                                                   {"U32", 32, {}},
                                                   {"U64", 64, {}},
                                                   {"F8_E8M0", 8, {}},
                                                   {"F8_E4M3FNUZ", 8, {}},
                                                   {"F8_E5M2FNUZ", 8, {}},
                                                   {"F6_E2M3", 6, {}},
                                                   {"F6_E3M2", 6, {}},
                                                   {"F4", 4, {}}}) {
    const auto result =
        parse(file_bytes(one(c.name, "[8]", 0, c.bytes_of_eight), c.bytes_of_eight));
    ASSERT_EQ(reason(result), "") << c.name;
    EXPECT_EQ(std::get<Header>(result).tensors[0].dtype, c.dtype) << c.name;
  }
  for (const char* name : {"F31", "f32", "", "F32 "})
    EXPECT_EQ(reason_of(one(name, "[0]", 0, 0)), "unknown_dtype") << name;
}

TEST(Parser, MultipliesShapesWithoutWrapping) {
  // This shape wraps around to four elements.
  EXPECT_EQ(reason_of(one("U8", "[4194305,4194305,211106198978564]", 0, 4), 4), "shape_overflow");
  // 2^64 bits: one bit more than counts.
  EXPECT_EQ(reason_of(one("U8", "[2305843009213693952]", 0, 0)), "shape_overflow");
  EXPECT_EQ(reason_of(one("U8", "[2305843009213693951]", 0, 2305843009213693951)),
            "truncated_file");
  EXPECT_EQ(reason_of(one("U8", "[9223372036854775807,0]", 0, 0)), "");
  EXPECT_EQ(reason_of(one("U8", "[9223372036854775808,0]", 0, 0)), "shape_overflow");
}

// W6
TEST(Parser, WantsWholeBytesAndTheExactSize) {
  EXPECT_EQ(reason_of(one("F4", "[2]", 0, 1), 1), "");
  EXPECT_EQ(reason_of(one("F4", "[3]", 0, 2), 2), "partial_byte");
  EXPECT_EQ(reason_of(one("F6_E2M3", "[4]", 0, 3), 3), "");
  EXPECT_EQ(reason_of(one("F6_E2M3", "[3]", 0, 3), 3), "partial_byte");
  EXPECT_EQ(reason_of(one("F32", "[2]", 0, 8), 8), "");
  EXPECT_EQ(reason_of(one("F32", "[2]", 0, 7), 7), "size_mismatch");
  EXPECT_EQ(reason_of(one("F32", "[2]", 0, 9), 9), "size_mismatch");
  EXPECT_EQ(reason_of(one("F32", "[2]", 8, 0), 8), "reversed_offsets");
  EXPECT_EQ(reason_of(one("U8", "[]", 0, 1), 1), "");
}

// W7
TEST(Parser, WantsTensorsThatFillTheDataExactly) {
  const auto two = [](uint64_t begin, uint64_t end) {
    return "{" + tensor_entry("a", "U8", "[4]", 0, 4) + "," +
           tensor_entry("b", "U8", "[4]", begin, end) + "}";
  };
  EXPECT_EQ(reason_of(two(4, 8), 8), "");
  EXPECT_EQ(reason_of(two(3, 7), 7), "overlap");
  EXPECT_EQ(reason_of(two(0, 4), 4), "overlap");
  EXPECT_EQ(reason_of(two(5, 9), 9), "hole");
  EXPECT_EQ(reason_of(one("U8", "[1]", 1, 2), 2), "hole");
  EXPECT_EQ(reason_of(two(4, 8), 7), "truncated_file");
  EXPECT_EQ(reason_of(two(4, 8), 9), "file_too_long");
  EXPECT_EQ(reason_of("{}", 1), "file_too_long");
}

// W8
TEST(Parser, WantsEmptyTensorsBetweenOthers) {
  const auto with_empty_at = [](uint64_t at) {
    return "{" + tensor_entry("a", "U8", "[4]", 0, 4) + "," +
           tensor_entry("e", "U8", "[0,7]", at, at) + "}";
  };
  EXPECT_EQ(reason_of(with_empty_at(0), 4), "");
  EXPECT_EQ(reason_of(with_empty_at(4), 4), "");
  EXPECT_EQ(reason_of(with_empty_at(2), 4), "misplaced_empty");
  EXPECT_EQ(reason_of(with_empty_at(5), 4), "misplaced_empty");
  EXPECT_EQ(reason_of(one("U8", "[0]", 0, 1), 1), "size_mismatch");
}

TEST(Parser, SaysWhichTensorAndWhatIsAccepted) {
  EXPECT_EQ(message_of(one("F31", "[1]", 0, 4), 4),
            "tensor \"t\": dtype \"F31\" is unknown; accepted: F32, F16, BF16, F8_E4M3, F8_E5M2, "
            "I8, I16, I32, I64, U8, BOOL");
  EXPECT_EQ(message_of(one("F32", "[2]", 0, 7), 7),
            "tensor \"t\": data_offsets [0, 7] hold 7 bytes, its shape and dtype need 8");
  EXPECT_EQ(message_of(one("U8", "[4]", 0, 4), 3),
            "the file is truncated: its tensors need 4 bytes after the header, 3 are there; fetch "
            "the file again");
  EXPECT_EQ(message_of(one("U8", "[-4]", 0, 4), 4),
            "tensor \"t\": byte 28 of the JSON: a whole number is expected, without sign, "
            "fraction, exponent or leading zero");
}

// Promise 19's header: 10^5 tensors.
TEST(Parser, ReadsAHundredThousandTensors) {
  std::string header;
  const uint64_t bytes = 2'000'000;
  for (uint64_t i = 0; i < 100'000; ++i)
    header += (i ? "," : "{") +
              tensor_entry(join("layer.", i), "U8", "[1000,2000]", i * bytes, (i + 1) * bytes);
  const std::string file = file_bytes(header + "}", 0);
  const auto result = parse(file, file.size() + 100'000 * bytes);
  ASSERT_EQ(reason(result), "");
  EXPECT_EQ(std::get<Header>(result).tensors.back().name, "layer.99999");
}

// W11
TEST(Index, MapsTensorsToPlainFileNames) {
  const auto result = parse_index(
      R"( {"metadata": {"total_size": 1.5e9}, "weight_map": {"b": "2.safetensors", "a": "1"}} )"
      "\n");
  ASSERT_TRUE(std::holds_alternative<ShardMap>(result));
  EXPECT_EQ(std::get<ShardMap>(result), (ShardMap{{"b", "2.safetensors"}, {"a", "1"}}));
  for (const char* shard : {"", ".", "..", "../x", "a/b", "/a", "a..b", R"(a\\b)", R"(a\u0000b)"})
    EXPECT_EQ(index_reason(join(R"({"weight_map":{"a":")", shard, "\"}}")), "bad_shard_name");
}

TEST(Index, RefusesWhatIsNoIndex) {
  EXPECT_EQ(index_reason("{\"weight_map\":{}}"), "");
  EXPECT_EQ(index_reason("{}"), "missing_field");
  EXPECT_EQ(index_reason("[]"), "not_an_object");
  EXPECT_EQ(index_reason(""), "not_an_object");
  EXPECT_EQ(index_reason("{\"weight_map\":{}}x"), "trailing_bytes");
  EXPECT_EQ(index_reason(std::string("{\"weight_map\":{}}\0", 18)), "trailing_bytes");
  EXPECT_EQ(index_reason(R"({"weight_map":{"a":1}})"), "bad_json");
  EXPECT_EQ(index_reason(R"({"weight_map":{"a":"x","a":"y"}})"), "duplicate_key");
  EXPECT_EQ(index_reason("{\"\xFF\":1}"), "not_utf8");
}

}  // namespace tensorcraft::safetensors
