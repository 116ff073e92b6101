// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/elementwise/expression.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/ops/all.hpp"
#include "tensorcraft/ops/elementwise/elementwise.hpp"
#include "tensorcraft/ops/elementwise/problem.hpp"
#include "tests/support/expect_error.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace tensorcraft {
namespace {

using expression::compile_expression;
using expression::Operand;
using expression::Program;
using kernel::elementwise::device_text;
using kernel::elementwise::rungs_of;
using test::expect_error;

constexpr DType f32 = DType::float32, f16 = DType::float16, bf16 = DType::bfloat16,
                i32 = DType::int32, i64 = DType::int64, truth = DType::bool_;

std::vector<Device> all_devices() {
  std::vector<Device> all{Device::cpu()};
  if (devices().back() == Device::simt()) all.push_back(Device::simt());
  if (cuda_device_count() > 0) all.push_back(Device::cuda(0));
  return all;
}

Tensor random_tensor(DType dtype, const Dims& shape, Device device, unsigned seed) {
  std::mt19937 random(seed);
  Tensor host(f32, shape);
  for (int64_t i = 0; i < host.view().size(); ++i)
    host.data_as<float>()[i] = std::normal_distribution<float>(0, 2)(random);
  return astype(host, {.dtype = dtype}).to(device);
}

std::vector<std::byte> bytes_of(const Tensor& t) {
  std::vector<std::byte> bytes(t.nbytes());
  t.copy_to_host(bytes.data(), bytes.size());
  return bytes;
}

// A number as the operators take it: one element of a dtype.
Tensor number(double value, DType dtype, Device device) {
  Tensor t(dtype, Dims{}, device);
  fill(t, t, {.value = value});
  return t;
}

struct Sequence {
  const char* text;
  std::function<Tensor(const Tensor& x, const Tensor& y, const Tensor& row)> operators;
};

// The rule of the issue: an expression equals the sequence of the operators in it, bit for bit.
TEST(Expression, EqualsTheSequenceOfOperatorsBitForBit) {
  const Sequence sequences[] = {
      {"silu(x) * y + row",
       [](auto& x, auto& y, auto& row) { return add(multiply(silu(x), y), row); }},
      {"x * y + x * row",  // products that must not fuse with the sum
       [](auto& x, auto& y, auto& row) { return add(multiply(x, y), multiply(x, row)); }},
      {"exp(x) - y * row",
       [](auto& x, auto& y, auto& row) { return subtract(exp(x), multiply(y, row)); }},
      {"-abs(x) / (row * row + 0.3) ** 2 + y",
       [](auto& x, auto& y, auto& row) {
         const Tensor low = add(multiply(row, row), number(0.3, row.dtype(), row.device()));
         const Tensor two = number(2, low.dtype(), low.device());
         return add(divide(negative(abs(x)), pow(low, two)), y);
       }},
      {"where(x > y and not isnan(row), gelu(x), elu(row, 0.5)) - max(tanh(y), sqrt(row * row))",
       [](auto& x, auto& y, auto& row) {
         const Tensor holds = logical_and(greater(x, y), logical_not(isnan(row)));
         const Tensor first = where(holds, gelu(x), elu(row, {.alpha = 0.5f}));
         return subtract(first, maximum(tanh(y), sqrt(multiply(row, row))));
       }},
      {"clip(round(x), -1, 1.3) * rsqrt(abs(y)) - log(abs(row))",
       [](auto& x, auto& y, auto& row) {
         return subtract(multiply(clip(round(x), {.min = -1, .max = 1.3}), rsqrt(abs(y))),
                         log(abs(row)));
       }},
      {"bfloat16(float32(x) * y) + row", [](auto& x, auto& y, auto& row) {
         const Tensor product = multiply(astype(x, {.dtype = f32}), y);
         return add(astype(product, {.dtype = bf16}), row);
       }}};
  for (const Device device : all_devices())
    for (const auto& [a, b] : {std::pair(f32, f32), {bf16, bf16}, {f16, f16}, {f16, bf16}}) {
      const Tensor x = random_tensor(a, {37, 64}, device, 1);
      const Tensor y = random_tensor(b, {37, 64}, device, 2);
      const Tensor row = random_tensor(a, {64}, device, 3);
      for (const Sequence& s : sequences) {
        const Tensor expected = s.operators(x, y, row);
        const Tensor got = elementwise(s.text, {{"x", x}, {"y", y}, {"row", row}});
        EXPECT_EQ(got.dtype(), expected.dtype()) << s.text;
        EXPECT_TRUE(bytes_of(got) == bytes_of(expected))
            << s.text << " of " << a << " on " << device;
      }
    }
}

TEST(Expression, EveryVariantGivesTheSameBits) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU";
  const Device device = Device::cuda(0);
  const Tensor x = random_tensor(bf16, {1024, 96}, device, 1);
  const Tensor row = random_tensor(f32, {96}, device, 2);
  const char* text = "where(x > 0.5, exp(x) * row, gelu_tanh(x) + row ** 2) / 3";
  const Tensor expected = elementwise(text, {{"x", x}, {"row", row}}, {.variant = "naive"});
  for (const char* variant : {"fused", "strided"})
    EXPECT_EQ(bytes_of(elementwise(text, {{"x", x}, {"row", row}}, {.variant = variant})),
              bytes_of(expected))
        << variant;
}

DType type_of(std::string_view text, std::initializer_list<Operand> operands) {
  return compile_expression(text, {operands.begin(), operands.size()}, std::nullopt).out();
}

TEST(Expression, TypesByTheRulesOfPromotion) {
  const Operand a{"a", f16}, b{"b", bf16}, c{"c", f32}, n{"n", i32}, m{"m", i64}, t{"t", truth};
  const Operand half{"half", 0.5}, two{"two", int64_t(2)};
  EXPECT_EQ(type_of("a + 1", {a}), f16);
  EXPECT_EQ(type_of("a * 0.5", {a}), f16);
  EXPECT_EQ(type_of("a + b", {a, b}), f32);
  EXPECT_EQ(type_of("a * c", {a, c}), f32);
  EXPECT_EQ(type_of("n * b", {n, b}), bf16);
  EXPECT_EQ(type_of("n + m", {n, m}), i64);
  EXPECT_EQ(type_of("n + two", {n, two}), i32);
  EXPECT_EQ(type_of("n * half", {n, half}), f32);
  EXPECT_EQ(type_of("n / 2", {n}), f32);
  EXPECT_EQ(type_of("n ** 2", {n}), i32);
  EXPECT_EQ(type_of("a < b", {a, b}), truth);
  EXPECT_EQ(type_of("not t", {t}), truth);
  EXPECT_EQ(type_of("where(t, 1, 0)", {t}), i64);
  EXPECT_EQ(type_of("where(t, a, 0)", {t, a}), f16);
  EXPECT_EQ(type_of("where(t, a, n)", {t, a, n}), f16);
  EXPECT_EQ(type_of("bfloat16(c)", {c}), bf16);
  EXPECT_EQ(type_of("float32(0.1) * b", {b}), f32);
}

TEST(Expression, FollowsPythonsPrecedence) {
  Tensor x(f32, {1});
  fill(x, x, {.value = 3});
  const auto value = [&](std::string_view text) {
    return elementwise(text, {{"x", x}}, {.out_dtype = f32}).data_as<float>()[0];
  };
  EXPECT_EQ(value("-x ** 2"), -9);
  EXPECT_EQ(value("2 ** -x"), 0.125f);
  EXPECT_EQ(value("x ** 2 ** 0.5 * 0 + 2 ** 3 ** 2"), 512);
  EXPECT_EQ(value("1 - x - 1"), -3);
  EXPECT_EQ(value("12 / x / 2 * 5"), 10);
  EXPECT_EQ(value("1 + 2 * x < 8 and not x == 2"), 1);
  EXPECT_EQ(value("x > 5 or x > 1 and x > 4"), 0);
  EXPECT_EQ(value("not x > 5 and x > 1"), 1);
  EXPECT_EQ(value("+(x) - -x"), 6);
  EXPECT_EQ(value("where(True, x, nan)"), 3);
  EXPECT_EQ(value(" .5*x+1.\t"), 2.5f);
  EXPECT_EQ(value("min(x, inf) + 1e1"), 13);
  EXPECT_EQ(value("7 // 2 * x % 5"), 4);
  EXPECT_EQ(value("-7 // 2 + x"), -1);
  EXPECT_EQ(value("x + (~5 & 12 | 1 << 2 ^ 3)"), 18);
}

struct Wrong {
  ErrorKind kind;
  std::string text, message;
};

TEST(Expression, PointsAtTheColumnOfWhatIsWrong) {
  const std::string symbols = "+ - * / // % ** & | ^ ~ << >> ( ) , < <= > >= == !=";
  const Wrong all[] = {
      {ErrorKind::value, "silu(g) * q",
       "unknown name 'q' in the expression; there are g, n (column 11)\n  silu(g) * q\n            "
       "^"},
      {ErrorKind::value, "sulu(g)",
       "unknown function 'sulu'; did you mean silu? (column 1)\n  sulu(g)\n  ^"},
      {ErrorKind::value, "g + exp(g, n)",
       "exp takes 1 argument, got more (column 5)\n  g + exp(g, n)\n      ^"},
      {ErrorKind::value, "where(g > n, g)",
       "where takes 3 arguments, got 2 (column 1)\n  where(g > n, g)\n  ^"},
      {ErrorKind::value, "g +", "expected a value, found the end (column 4)\n  g +\n     ^"},
      {ErrorKind::value, "g n",
       "expected an operator or the end, found 'n' (column 3)\n  g n\n    ^"},
      {ErrorKind::value, "(g + n", "'(' at column 1 is not closed\n  (g + n\n  ^"},
      {ErrorKind::value, "silu(g * n", "'(' at column 5 is not closed\n  silu(g * n\n      ^"},
      {ErrorKind::value, "max(g n)",
       "expected ',' or ')', found 'n' (column 7)\n  max(g n)\n        ^"},
      {ErrorKind::value, "g $ n",
       "'$' has no meaning in an expression; expected a name, a number or one of " + symbols +
           " (column 3)\n  g $ n\n    ^"},
      {ErrorKind::type, "g & n",
       "bitwise_and takes integers or bool, got float32 (column 3)\n  g & n\n    ^"},
      {ErrorKind::type, "atan2(n, n)",
       "atan2 takes a float dtype, got int32; convert it first, as in float32(x) (column 1)\n"
       "  atan2(n, n)\n  ^"},
      {ErrorKind::value, "g\xc3\xa9",
       "'?' has no meaning in an expression; expected a name, a number or one of " + symbols +
           " (column 2)\n  g??\n   ^"},
      {ErrorKind::value, "", "the expression is empty; give one such as x + 1 (column 1)\n  \n  ^"},
      {ErrorKind::value, "0 < g < n",
       "comparisons do not chain; write (a < b) and (b < c) (column 7)\n  0 < g < n\n        ^"},
      {ErrorKind::type, "g + exp(n)",
       "exp takes a float dtype, got int32; convert it first, as in float32(x) (column 5)\n  g + "
       "exp(n)\n"
       "      ^"},
      {ErrorKind::type, "g + (n > 1)",
       "dtype bool takes no part in arithmetic; convert it first, as in int32(x) (column 3)\n"
       "  g + (n > 1)\n    ^"},
      {ErrorKind::type, "where(n, g, 1)",
       "the condition of where must be of dtype bool, got int32; write x != 0 (column 1)\n"
       "  where(n, g, 1)\n  ^"},
      {ErrorKind::type, "elu(g, n)",
       "the second argument of elu must be a number, got an array (column 1)\n  elu(g, n)\n  ^"},
      {ErrorKind::value, "g + n * 3000000000",
       "the number 3000000000 does not fit int32; use one from -2147483648 to 2147483647, or "
       "convert the array to a wider dtype first (column 7)\n  g + n * 3000000000\n        ^"},
      {ErrorKind::value, "g + 99999999999999999999",
       "the number does not fit 64 bits; write it with a point (column 5)\n"
       "  g + 99999999999999999999\n      ^"},
  };
  const Operand operands[] = {{"g", f32}, {"n", i32}};
  for (const Wrong& w : all)
    expect_error(
        w.kind, [&] { compile_expression(w.text, operands, std::nullopt); },
        "elementwise: " + w.message);
  expect_error(
      ErrorKind::value, [&] { compile_expression("g", operands, std::nullopt); },
      "elementwise: argument n is not in the expression; leave it out");
}

TEST(Expression, NamesTheOperandThatDoesNotFit) {
  Tensor x(f32, {2, 3}), y(f32, {4}), half(f16, {2, 3});
  expect_error(
      ErrorKind::value, [&] { elementwise("x + y", {{"x", x}, {"y", y}}); },
      "elementwise: y: shapes [2, 3] and [4] do not broadcast: dimension 1 is 3 and 4");
  expect_error(
      ErrorKind::type, [&] { elementwise(half, "x + 1", {{"x", x}}); },
      "elementwise: out: Dtype value [float16] not in the allowed options: [float32]");
  const TensorView part = x.view().slice(1, 0, 2), later = x.view().slice(1, 1, 3);
  expect_error(
      ErrorKind::value, [&] { elementwise(later, "g + 1", {{"g", part}}); },
      "elementwise: out overlaps the memory of g; they must be the same tensor or apart");
  EXPECT_THROW(elementwise("a + 1", {{"a", 2}}), Error);
  EXPECT_THROW(elementwise("a + a", {{"a", x}, {"a", x}}), Error);
}

TEST(Expression, WritesOverAnOperandWhereThatIsAsked) {
  Tensor x(f32, {1000}), y(f32, {1000});
  fill(x, x, {.value = 2});
  fill(y, y, {.value = 5});
  elementwise(x, "x * y + alpha", {{"x", x}, {"y", y}, {"alpha", 1}});
  EXPECT_EQ(x.data_as<float>()[999], 11);
  elementwise(y, "where(keep, y, half)", {{"keep", false}, {"y", y}, {"half", 0.5f}});
  EXPECT_EQ(y.data_as<float>()[999], 0.5f);
}

TEST(Expression, SharesItsTextBetweenNamesAndNumbers) {
  const auto program = [](std::string_view text, std::initializer_list<Operand> operands) {
    return compile_expression(text, {operands.begin(), operands.size()}, std::nullopt);
  };
  const Program a = program("silu(g) * u + 0.5", {{"g", bf16}, {"u", bf16}});
  const Program b = program("silu(p)*q + k", {{"p", bf16}, {"q", bf16}, {"k", 7.25}});
  EXPECT_EQ(&rungs_of(a), &rungs_of(b));
  EXPECT_NE(&rungs_of(a), &rungs_of(program("silu(g) * u - 0.5", {{"g", bf16}, {"u", bf16}})));
  EXPECT_NE(&rungs_of(a), &rungs_of(program("silu(g) * u + 0.5", {{"g", bf16}, {"u", f32}})));
  // An expression that occurs twice is computed once.
  EXPECT_EQ(program("exp(x) * exp(x)", {{"x", f32}}).num_steps, 2);
}

// A text that the grammar makes, so that some are right.
std::string random_value(std::mt19937& random, int depth) {
  constexpr std::array kLeaves = {"x",   "x",    "y",   "k",      "2",
                                  "0.5", "True", "inf", "x ** 2", "int8(1)"};
  constexpr std::array kOperators = {"+", "-",  "*",  "/", "//", "%",  "**",    "&",   "|",
                                     "^", "<<", ">>", "<", "==", "!=", " and ", " or "};
  constexpr std::array kFunctions = {"exp",     "abs",  "isnan",    "not ",       "-",
                                     "~",       "sin",  "floor",    "sign",       "isfinite",
                                     "signbit", "int8", "bfloat16", "leaky_relu", "float32"};
  const auto value = [&] { return random_value(random, depth - 1); };
  switch (depth > 0 ? random() % 6 : 0) {
    case 0:
      return kLeaves[random() % kLeaves.size()];
    case 1:
      return join(kFunctions[random() % kFunctions.size()], "(", value(), ")");
    case 2:
      return join("where(", value(), " > ", value(), ", ", value(), ", ", value(), ")");
    case 3:
      return join("(", value(), ")");
    default:
      return join(value(), kOperators[random() % kOperators.size()], value());
  }
}

// Such a text, often with a few characters or parts changed.
std::string random_text(std::mt19937& random) {
  constexpr std::array kParts = {
      "(",     ")",    ",",    "+", "**", "and", "not", "where(",
      "1e400", "\t\n", "\xff", "@", ".",  "q",   "--",  "99999999999999999999"};
  std::string text = random_value(random, int(random() % 6));
  for (size_t changes = random() % 4; changes > 0; --changes) {
    const size_t at = random() % (text.size() + 1);
    if (random() % 2 == 0)
      text.insert(at, kParts[random() % kParts.size()]);
    else
      text.insert(at, 1, char(random()));
  }
  return text;
}

TEST(Expression, AnswersEveryTextWithAProgramOrATypedError) {
  std::mt19937 random(7);
  const Operand operands[] = {{"x", bf16}, {"y", i32}, {"k", 0.25}};
  const Operand one[] = {{"x", f32}};
  int right = 0;
  for (int i = 0; i < 20000; ++i) {
    const std::string text = random_text(random);
    try {
      const Program p = compile_expression(text, i % 2 ? std::span<const Operand>(one) : operands,
                                           i % 3 ? std::optional<DType>() : DType::float8_e4m3fn);
      ++right;
      EXPECT_FALSE(device_text(p).empty());
    } catch (const Error& e) {
      EXPECT_TRUE(e.kind() == ErrorKind::value || e.kind() == ErrorKind::type) << text << e.what();
    }
  }
  EXPECT_GT(right, 300);  // or the fuzzer reaches nothing
}

TEST(Expression, SurvivesTextsThatNestOrRunOnForEver) {
  const Operand x[] = {{"x", f32}};
  const auto repeated = [](std::string_view part, int count, std::string_view end) {
    std::string text;
    for (int i = 0; i < count; ++i) text += part;
    return text.append(end);
  };
  for (const auto& text :
       {repeated("(", 4000, "x"), repeated("-", 4000, "x"), repeated("not ", 1000, "x"),
        repeated("x**", 1300, "x"), repeated("exp(", 1000, "x"), repeated("x+", 2000, "x*2"),
        repeated("x*1.5+", 600, "x"), repeated("x", 5000, ""), repeated("9", 4000, ""),
        repeated("2**", 1000, "x"), repeated("where(x>0,", 300, "x")}) {
    try {
      compile_expression(text, x, std::nullopt);
      ADD_FAILURE() << text.substr(0, 20);
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::value) << e.what();
      EXPECT_LT(std::string(e.what()).size(), 400u);
    }
  }
  const std::string most = repeated("(", 60, "x") + repeated(")", 60, "");
  EXPECT_EQ(compile_expression(most, x, std::nullopt).num_steps, 1);
}

TEST(Expression, SaysWhyAnAddressOrStrideIsLeftToAnotherVariant) {
  const auto explained = [](uintptr_t offset, const Dims& shape, const Dims& strides) {
    const auto gpu = [](uintptr_t address, const Dims& s, const Dims& t) {
      return TensorView(reinterpret_cast<void*>(address), f32, s, t, Device::cuda(0));
    };
    const TensorView x = gpu((uintptr_t(1) << 40) + offset, shape, strides);
    const TensorView out = gpu(uintptr_t(2) << 40, shape, contiguous_strides(shape));
    const op::NamedValue names[] = {{"x"}};
    const op::Value options[] = {std::string_view("exp(x)"), op::NamedValues(names)};
    return find_operator("elementwise")
        .explain(std::span(&out, 1), {std::span(&x, 1), options}, device_info_of_arch("sm_90a"));
  };
  EXPECT_EQ(explained(0, {64, 64}, {64, 1}).variant, "fused");
  EXPECT_EQ(explained(0, {64, 64}, {0, 1}).variant, "fused");
  EXPECT_EQ(explained(0, {64, 64}, {1, 0}).variant, "fused");  // one element a row
  EXPECT_EQ(explained(0, {64, 64}, {128, 1}).variant, "fused");
  const std::pair<op::Explanation, const char*> declined[] = {
      {explained(4, {64, 64}, {64, 1}), "every address must be a multiple of a vector's bytes"},
      {explained(0, {64, 63}, {64, 1}), "the last axis must be whole vectors of 16 bytes"},
      {explained(0, {64, 64}, {65, 1}), "every stride must be a multiple of a vector of 16 bytes"},
      {explained(0, {64, 64}, {1, 64}),
       "elements of the last axis must be neighbours, or one in an input"}};
  for (const auto& [e, reason] : declined) {
    EXPECT_EQ(e.variant, "strided");
    EXPECT_EQ(e.variants[0].reason, reason);
  }
}

TEST(Expression, ReadsAndWritesAcrossStridesBeyond2To31) {
  constexpr int64_t stride = (int64_t(1) << 31) + 8;
  const size_t bytes = size_t(stride + 16) * sizeof(float);
  float* memory[2];
  for (float*& m : memory) {  // pages come with the first touch
    void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ASSERT_NE(mapped, MAP_FAILED);
    m = static_cast<float*>(mapped);
  }
  for (const Device device : all_devices()) {
    if (device.is_cuda()) continue;
    for (int i = 0; i < 10; ++i) memory[0][i / 5 * stride + i % 5] = float(i);
    const auto view = [&](float* m) { return TensorView(m, f32, {2, 5}, {stride, 1}, device); };
    elementwise(view(memory[1]), "x * x + 1", {{"x", view(memory[0])}});
    for (int i = 0; i < 10; ++i)
      EXPECT_EQ(memory[1][i / 5 * stride + i % 5], float(i * i + 1)) << device;
  }
  for (float* m : memory) munmap(m, bytes);
}

TEST(ExpressionOnGpu, CountsMoreThan2To31Elements) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU";
  const Device device = Device::cuda(0);
  constexpr int64_t cols = (int64_t(1) << 30) + 16;
  const Tensor x(DType::int8, {3, cols}, device), row(DType::int8, {cols}, device);
  fill(x, x, {.value = 1});
  fill(row, row, {.value = 2});
  for (const char* variant : {"fused", "strided"}) {
    const Tensor sum =
        elementwise("int8(int32(x) + int32(row))", {{"x", x}, {"row", row}}, {.variant = variant});
    std::vector<int8_t> values(sum.nbytes());
    sum.copy_to_host(values.data(), values.size());
    EXPECT_EQ(std::count(values.begin(), values.end(), 3), 3 * cols) << variant;
  }
}

}  // namespace
}  // namespace tensorcraft
