// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/jit/user_source.hpp"

#include "tests/support/expect_error.hpp"

#include <gtest/gtest.h>

#include <random>

namespace tensorcraft::jit {
namespace {

UserSource source_of(std::string text, std::string_view signature,
                     std::vector<KernelConstant> constants = {}) {
  return {"k.cu", std::move(text), parse_signature(signature, constants), constants};
}

bool has(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

TEST(UserSource, EqualSourcesShareARung) {
  const Rung& one = rung_of(source_of("void k() {}", "k()"));
  EXPECT_EQ(&rung_of(source_of("void k() {}", " k ( )")), &one);
  EXPECT_NE(&rung_of(source_of("void k() { }", "k()")), &one);
  EXPECT_NE(&rung_of(source_of("void k() {}", "k()", {{"a", true}})), &one);
  EXPECT_EQ(entry_name(one), "user_k");
  EXPECT_EQ(entry_name(rung_of(source_of("x", "a::b::k()"))), "user_a__b__k");
}

TEST(UserSource, WritesConstantsExactly) {
  const std::string text =
      entry_text(source_of("x", "k()",
                           {{"yes", true},
                            {"small", int64_t(-7)},
                            {"least32", int64_t(std::numeric_limits<int32_t>::min())},
                            {"large", int64_t(1) << 40},
                            {"least", std::numeric_limits<int64_t>::min()},
                            {"tenth", 0.1},
                            {"T", DType::bfloat16}}),
                 "sm_80");
  EXPECT_TRUE(has(text, "constexpr bool yes = true;\n"));
  EXPECT_TRUE(has(text, "constexpr int small = -7;\n"));
  EXPECT_TRUE(has(text, "constexpr long long least32 = -2147483648LL;\n"));
  EXPECT_TRUE(has(text, "constexpr long long large = 1099511627776LL;\n"));
  EXPECT_TRUE(has(text, "constexpr long long least = (-9223372036854775807LL - 1);\n"));
  EXPECT_TRUE(has(text, "constexpr float tenth = 0x1.99999ap-4f;\n"));
  EXPECT_TRUE(has(text, "using T = tensorcraft::bf16;\n"));
  EXPECT_TRUE(has(text, "#include \"tensorcraft/device/float16.cuh\"\n"));
  EXPECT_FALSE(has(text, "griddepcontrol"));
}

TEST(UserSource, TheEntryHasTheKernelsLaunchBounds) {
  const auto bounds_of = [](const char* text) {
    const std::string entry = entry_text(source_of(text, "ns::k(int n)"), "sm_90a");
    const size_t at = entry.find("launch_bounds(");
    return at == entry.npos ? "" : entry.substr(at, entry.find("))", at) + 1 - at);
  };
  EXPECT_EQ(bounds_of("__global__ void __launch_bounds__(256) k(int n) {}"), "launch_bounds(256)");
  EXPECT_EQ(bounds_of("__global__ __launch_bounds__( kT , min(1, 2) )\nvoid k (int n) {}"),
            "launch_bounds( kT , min(1, 2) )");
  EXPECT_EQ(bounds_of("__global__ void __launch_bounds__(256) other(int n) {} void k(int n) {}"),
            "");
  EXPECT_EQ(bounds_of("__launch_bounds__"), "");
  EXPECT_EQ(bounds_of("__launch_bounds__(((3) k("), "");
}

TEST(UserSource, ReachesTheHeadersThatTheTextIncludes) {
  const UserSource source =
      source_of("#include \"tensorcraft/device/reduce.cuh\"\nvoid k(int n) {}", "k(int n)");
  const auto headers = headers_of(source, entry_text(source, "sm_90a"));
  bool own = false, reduce = false;
  for (const auto& header : *headers) {
    own = own || header->name == "k.cu";
    reduce = reduce || header->name == "tensorcraft/device/reduce.cuh";
  }
  EXPECT_TRUE(own && reduce);
}

TEST(UserSource, RefusesWhatNoCompilerShouldSee) {
  const auto refuse = [](UserSource source, const char* text) {
    test::expect_error_with(ErrorKind::value, text, [&] { rung_of(std::move(source)); });
  };
  refuse(source_of(std::string("a\0b", 3), "k()"), "has a NUL at byte 1");
  refuse(source_of(" \n", "k()"), "the text is empty; it must define k");
  refuse(source_of(std::string(kMaxSourceBytes + 1, ' '), "k()"), "at most");
  refuse(source_of("x", "k()", {{"a b", true}}), "'a b' is no name");
  refuse(source_of("x", "k()", {{"class", true}}), "class is called like a word of C++");
  refuse(source_of("x", "k()", {{"a", true}, {"a", false}}), "a is given twice");
  refuse(source_of("x", "k()", {{"a", 1e300}}), "must be a finite float32, got 1e+300");
  UserSource elsewhere = source_of("x", "k()");
  elsewhere.file = "../k.cu";
  refuse(elsewhere, "name must be letters");
}

// No locale changes its point, as one does that of printf.
TEST(UserSource, WritesNumbersToTheLastBit) {
  const UserSource source =
      source_of("x", "k()", {{"a", 3.0}, {"b", -0.1}, {"c", 0.0}, {"d", 1e-45}});
  const std::string entry = entry_text(source, "sm_90a");
  for (const char* text :
       {"float a = 0x1.8p+1f;", "float b = -0x1.99999ap-4f;", "float c = 0x0p+0f;", "float d = 0x"})
    EXPECT_TRUE(has(entry, text)) << text << " in " << entry;
}

// The text is read for launch bounds and includes before any compiler sees it.
TEST(UserSource, TenThousandMalformedTextsBecomeEntries) {
  std::mt19937 random(3);
  const std::string seed =
      "#include \"tensorcraft/device/base.h\"\n__global__ void __launch_bounds__(256) k(int n) "
      "{}\n";
  for (int i = 0; i < 10'000; ++i) {
    std::string text = seed;
    for (unsigned edits = 1 + random() % 8; edits > 0 && !text.empty(); --edits) {
      const size_t at = random() % text.size();
      if (random() % 2)
        text.erase(at, 1 + random() % 9);
      else
        text[at] = char(random());
    }
    const UserSource source = source_of(text, "k(int n)");
    const std::string entry = entry_text(source, "sm_90a");
    ASSERT_TRUE(has(entry, "k(tensorcraft_arguments.n);"));
    ASSERT_GE(headers_of(source, entry)->size(), 2u);
  }
}

}  // namespace
}  // namespace tensorcraft::jit
