// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/jit/signature.hpp"

#include "tensorcraft/core/error.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace tensorcraft::jit {
namespace {

std::string message_of(std::string_view text, std::span<const KernelConstant> constants = {}) {
  try {
    parse_signature(text, constants);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::value) << error.what();
    return error.what();
  }
  return "no error";
}

TEST(Signature, ReadsNameParametersAndLayout) {
  const auto s = parse_signature("axpy(float* y, const float* x, float a, int64 n)");
  EXPECT_EQ(s.name, "axpy");
  ASSERT_EQ(s.parameters.size(), 4u);
  EXPECT_EQ(s.parameters[0].dtype, DType::float32);
  EXPECT_FALSE(s.parameters[0].is_const);
  EXPECT_TRUE(s.parameters[1].is_const);
  EXPECT_FALSE(s.parameters[2].is_array());
  EXPECT_EQ(s.parameters[3].number, NumberType::int64);
  struct Arguments {
    float* y;
    const float* x;
    float a;
    int64_t n;
  };
  EXPECT_EQ(s.parameters[2].offset, offsetof(Arguments, a));
  EXPECT_EQ(s.parameters[3].offset, offsetof(Arguments, n));
  EXPECT_EQ(s.argument_bytes, sizeof(Arguments));
  EXPECT_EQ(to_string(s), "axpy(float* y, const float* x, float a, int64_t n)");
}

TEST(Signature, TakesTheSpellingsOfCAndOfTheLibrary) {
  const auto s = parse_signature(
      "  __global__ void mine::k ( half const * __restrict__ a, std::int64_t n, unsigned long long "
      "u,"
      "\n bfloat16* b, const int c, e4m3 * d, bool e, double f, unsigned g, size_t h, uint16 i ) "
      ";");
  EXPECT_EQ(to_string(s),
            "mine::k(const tensorcraft::f16* a, int64_t n, unsigned long long u, "
            "tensorcraft::bf16* b, int32_t c, tensorcraft::e4m3* d, bool e, double f, uint32_t g, "
            "size_t h, uint16_t i)");
  EXPECT_EQ(parse_signature("nothing()").argument_bytes, 0u);
  for (int i = 0; i < kNumDTypes; ++i) {
    const auto dtype = DType(i);
    const std::string name(to_string(dtype));
    const auto one = parse_signature("k(const " + name + "* x, " + name + " y)");
    EXPECT_EQ(one.parameters[0].dtype, dtype) << name;
    EXPECT_EQ(to_string(one.parameters[1].number), name);
    EXPECT_EQ(number_bytes(one.parameters[1].number), dtype_bytes(dtype));
  }
}

TEST(Signature, TakesConstantsThatAreDtypesAsTypes) {
  const std::vector<KernelConstant> constants = {{"T", DType::bfloat16}, {"kUnroll", int64_t(4)}};
  const auto s = parse_signature("scale<T, kUnroll, int64, -3>(T* y, T a)", constants);
  EXPECT_EQ(
      to_string(s),
      "scale<tensorcraft::bf16, kUnroll, int64_t, -3>(tensorcraft::bf16* y, tensorcraft::bf16 "
      "a)");
}

TEST(Signature, ShowsThePlaceOfAFault) {
  EXPECT_EQ(message_of("axpy(flaot* y, const float* x)"),
            "kernel: signature: unknown type 'flaot'; did you mean float?\n"
            "  axpy(flaot* y, const float* x)\n"
            "       ^~~~~");
  EXPECT_EQ(message_of("k(float* x, float* x)"),
            "kernel: signature: two parameters are named x\n"
            "  k(float* x, float* x)\n"
            "                     ^");
}

TEST(Signature, RefusesWhatIsNone) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "expected the kernel's name"},
      {"(float* x)", "expected the kernel's name"},
      {"axpy", "expected '('"},
      {"axpy(float* y", "expected ',' or ')'"},
      {"axpy(float* y) const", "expected nothing behind ')'"},
      {"axpy(float* y,)", "expected a parameter"},
      {"axpy(float*)", "needs a name"},
      {"axpy(float)", "needs a name"},
      {"axpy(* y)", "expected a type"},
      {"axpy(float** y)", "a pointer to pointers"},
      {"axpy(float& y)", "a reference"},
      {"axpy(float y[3])", "write an array as a pointer"},
      {"axpy(double* y)", "there are no arrays of float64"},
      {"axpy(const uint32* y)", "there are no arrays of uint32"},
      {"axpy(uint16* y)", "there are no arrays of uint16"},
      {"axpy(float* y z)", "expected ',' or ')'"},
      {"axpy(float* a::y)", "has no '::'"},
      {"axpy(float* y, int class)", "a parameter cannot be called 'class', a word of C++"},
      {"axpy(unsigned int)", "a parameter cannot be called 'int'"},
      {"mine::delete(int n)", "a kernel cannot be called 'mine::delete'"},
      {"axpy<(float* y)", "a template argument is"},
      {"axpy<>(float* y)", "expected a template argument"},
      {"axpy<4 (float* y)", "a template argument is"},
      {"axpy(vector<int> y)", "unknown type 'vector'"},
      {"axpy(T* y)", "unknown type 'T'"},
  };
  for (const auto& [text, expected] : cases) {
    const std::string message = message_of(text);
    EXPECT_NE(message.find(expected), message.npos) << text << ": " << message;
    EXPECT_NE(message.find('^'), message.npos) << message;
  }
  EXPECT_NE(message_of(std::string(kMaxSignatureBytes + 1, 'a')).find("at most"),
            std::string::npos);
  std::string many = "k(int a0";
  for (size_t i = 1; i <= kMaxKernelParameters; ++i) many += ", int a" + std::to_string(i);
  EXPECT_NE(message_of(many + ")").find("at most 64 parameters"), std::string::npos);
}

// Whatever the text, there is a signature or an error of kind value with a caret on one line.
TEST(Signature, NeverFailsOtherwiseOnTenThousandMalformedTexts) {
  std::mt19937 random(7);
  const std::string seed = "void axpy<T, 4>(float* y, const T* __restrict__ x, float a, int64 n);";
  const std::string alphabet("axT_09 *&<>(),;:[]{}\"\\\n\t\0\x80\xff#/'", 33);
  const std::vector<KernelConstant> constants = {{"T", DType::float16}};
  int accepted = 0;
  for (int i = 0; i < 10'000; ++i) {
    std::string text = seed;
    for (unsigned edits = 1 + random() % 6; edits > 0; --edits) {
      const size_t at = text.empty() ? 0 : random() % text.size();
      const char c = alphabet[random() % alphabet.size()];
      switch (random() % 4) {
        case 0:
          text.insert(at, 1, c);
          break;
        case 1:
          if (!text.empty()) text.erase(at, 1 + random() % 4);
          break;
        case 2:
          if (!text.empty()) text[at] = c;
          break;
        default:
          text.resize(at);
      }
    }
    try {
      const KernelSignature s = parse_signature(text, constants);
      EXPECT_EQ(to_string(parse_signature(to_string(s), constants)), to_string(s)) << text;
      ++accepted;
    } catch (const Error& error) {
      ASSERT_EQ(error.kind(), ErrorKind::value) << error.what();
      ASSERT_NE(std::string_view(error.what()).find('^'), std::string_view::npos) << error.what();
    }
  }
  EXPECT_LT(accepted, 5'000);
  EXPECT_GT(accepted, 100);
}

}  // namespace
}  // namespace tensorcraft::jit
