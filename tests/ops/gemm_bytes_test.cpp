// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/all.hpp"
#include "tensorcraft/ops/gemm/gemm.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/tensors.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

// Products of float8 and int8: their scales, zero points, and values that conformance lacks.
namespace tensorcraft {
namespace {

using test::doubles, test::expect_error, test::normal_tensor, test::places, test::tensor_of;

constexpr DType kE4m3 = DType::float8_e4m3fn, kE5m2 = DType::float8_e5m2;

Tensor filled(const Dims& shape, float value) {
  Tensor t(DType::float32, shape, Device::cpu());
  std::fill_n(t.data_as<float>(), t.size(), value);
  return t;
}

TEST(GemmBytes, SayWhatScalesAre) {
  const Tensor a = normal_tensor({5, 300}, kE4m3), b = normal_tensor({140, 300}, kE4m3);
  const auto scaled = [&](const Dims& x, const Dims& y, Accumulation how = {}) {
    const Tensor a_scale = normal_tensor(x), b_scale = normal_tensor(y);
    gemm(a, b, {.transpose_b = true, .a_scale = a_scale, .b_scale = b_scale, .accumulation = how});
  };
  for (const Dims& y : {Dims{2, 3}, Dims{140, 3}}) EXPECT_NO_THROW(scaled({5, 3}, y));
  for (const Dims& y : {Dims{140}, Dims{140, 1}}) EXPECT_NO_THROW(scaled({5, 1}, y));
  expect_error(
      ErrorKind::value, [&] { scaled({5, 2}, {140}); },
      "gemm: a_scale: expected one number, [5, 1] or one for 128 elements of a row of a, [5, 3], "
      "got shape [5, 2]");
  expect_error(
      ErrorKind::value, [&] { scaled({5, 1}, {2, 3}); },
      "gemm: a_scale: expected one for 128 elements of a row of a, [5, 3], as b_scale is by block, "
      "got shape [5, 1]");
  expect_error(
      ErrorKind::value, [&] { scaled({5, 3}, {3, 2}); },
      "gemm: b_scale: expected one for 128 elements of a column of b, [140, 3], or one for squares "
      "of 128 x 128, [2, 3], as a_scale is by block, got shape [3, 2]");
  expect_error(
      ErrorKind::value, [&] { scaled({5, 3}, {2, 3}, Accumulation::fast); },
      "gemm: accumulation: products with scales by block are promoted; leave accumulation out");
}

TEST(GemmBytes, SayWhatTheyTake) {
  const Tensor f = normal_tensor({4, 8}, DType::bfloat16), i = normal_tensor({4, 8}, DType::int8);
  const Tensor x = normal_tensor({4, 8}, kE4m3), y = normal_tensor({4, 8}, kE5m2);
  expect_error(
      ErrorKind::type,
      [&] { gemm(f, f, {.transpose_b = true, .accumulation = Accumulation::fast}); },
      "gemm: accumulation: \"fast\" takes float8 operands, and a is bfloat16; leave accumulation "
      "out");
  expect_error(
      ErrorKind::value, [&] { gemm(i, i, {.alpha = 2, .transpose_b = true}); },
      "gemm: out is int32, which is the sums of int8 products alone; alpha, c, bias, scales, "
      "gates, activations and epilogues need out_dtype float32, float16, bfloat16 or int8");
  expect_error(
      ErrorKind::type, [&] { gemm(x, x, {.transpose_b = true, .out_dtype = DType::int32}); },
      "gemm: out_dtype of float8_e4m3fn operands must be float32, float16, bfloat16, "
      "float8_e4m3fn or float8_e5m2, got int32");
  const Tensor zero(DType::int32, {}, Device::cpu());
  expect_error(
      ErrorKind::type, [&] { gemm(f, f, {.transpose_b = true, .b_zero = zero}); },
      "gemm: b_zero is a zero point of int8 operands, and a is bfloat16; leave it out");
  EXPECT_THROW(gemm(i, i, {.transpose_b = true, .a_zero = filled({}, 1)}), Error);
  const Tensor one = filled({}, 1), two = filled({2}, 1);
  expect_error(
      ErrorKind::value, [&] { gemm(f, f, {.transpose_b = true, .out_scale = one}); },
      "gemm: out_scale is a factor of results of 8 bits, and out is bfloat16; leave it out, or "
      "give out_dtype float8_e4m3fn, float8_e5m2 or int8");
  expect_error(
      ErrorKind::value,
      [&] { gemm(f, f, {.transpose_b = true, .out_dtype = kE4m3, .out_scale = two}); },
      "gemm: out_scale: expected one number, got shape [2]");
  const Tensor c = astype(filled({4, 4}, 1), {.dtype = kE4m3});
  expect_error(
      ErrorKind::value, [&] { gemm(f, f, {.c = c, .transpose_b = true, .out_dtype = kE4m3}); },
      "gemm: c would have the dtype of the result, float8_e4m3fn; leave it out, or add it by an "
      "epilogue, such as epilogue=\"x + c\"");
  EXPECT_THROW(gemm(x, y, {.transpose_b = true}), Error);
  EXPECT_EQ(gemm(x, x, {.transpose_b = true}).dtype(), DType::bfloat16);
  EXPECT_EQ(gemm(i, i, {.transpose_b = true}).dtype(), DType::int32);
}

// The tile that the emulator has of split_k.
std::optional<GemmConfig> in_two(std::string_view variant) {
  if (variant != "split_k") return {};
  return GemmConfig{.tile_m = 64, .tile_n = 64, .split = 2};
}

// The variants of a device that take float8 or int8 along k.
std::vector<std::string_view> byte_variants(Device device) {
  if (device == Device::cpu()) return {"cpu", "reference"};
  return {"persistent", "split_k", "warp_specialized", "wgmma", "naive"};
}

// One number and one a line, of either operand, and a number that changes between two calls.
TEST(GemmBytes, MultiplyByScalesOfEachKind) {
  const int64_t m = 40, n = 72, k = 144;
  for (const DType dtype : {kE4m3, DType::int8}) {
    const Tensor a = normal_tensor({m, k}, dtype, 1), b = normal_tensor({n, k}, dtype, 2);
    for (const Dims& a_shape : {Dims{}, Dims{1}, Dims{m, 1}})
      for (const Dims& b_shape : {Dims{1, 1}, Dims{n}}) {
        const Tensor a_scale = normal_tensor(a_shape, DType::float32, 3),
                     b_scale = normal_tensor(b_shape, DType::float32, 4);
        const auto product = [&](Device device, std::string_view variant) {
          const Tensor x = a.to(device), y = b.to(device), s = a_scale.to(device),
                       t = b_scale.to(device);
          return gemm(x, y,
                      {.alpha = 0.5f,
                       .transpose_b = true,
                       .a_scale = s,
                       .b_scale = t,
                       .out_dtype = DType::bfloat16,
                       .variant = variant});
        };
        for (int call = 0; call < 2; ++call) {
          const Tensor want = product(Device::cpu(), "reference");
          for (const Device device : places())
            for (const std::string_view variant :
                 device == Device::cpu() ? std::vector<std::string_view>{"cpu", "reference"}
                                         : std::vector<std::string_view>{"persistent", "naive"}) {
              SCOPED_TRACE(join(dtype, " ", a_shape, " ", b_shape, " ", device, " ", variant));
              test::expect_close(product(device, variant), want, 0x1p-6, 0x1p-4);
            }
          a_scale.data_as<float>()[0] *= -2;
        }
      }
  }
}

// NaN and infinities are where the reference has them, whatever a scale is.
TEST(GemmBytes, KeepSpecialValues) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const int64_t m = 16, n = 16, k = 272, blocks = 3;
  for (const DType dtype : {kE4m3, kE5m2}) {
    const Tensor a = normal_tensor({m, k}, dtype, 1), b = normal_tensor({n, k}, dtype, 2);
    const auto set = [&](const Tensor& t, int64_t i, int64_t j, double x) {
      host::Elements(t.view()).set(i * k + j, x);
    };
    for (int64_t j = 0; j < k; ++j) set(a, 0, j, 0), set(b, 0, j, 0);  // rows of zeros
    set(a, 1, 5, 1e9);                                                 // saturates
    set(a, 2, 130, std::numeric_limits<double>::quiet_NaN());
    if (dtype == kE5m2) a.data_as<uint8_t>()[3 * k + 200] = 0x7c;  // an infinity
    for (const Dims& squares : {Dims{1, blocks}, Dims{n, blocks}}) {
      const Tensor a_scale = filled({m, blocks}, 0.5), b_scale = filled(squares, 2);
      a_scale.data_as<float>()[4 * blocks + 1] = 0;
      a_scale.data_as<float>()[5 * blocks + 2] = kInf;
      a_scale.data_as<float>()[0 * blocks + 1] = kInf;  // times zeros
      const auto product = [&](Device device, std::string_view variant) {
        const Tensor x = a.to(device), y = b.to(device), s = a_scale.to(device),
                     t = b_scale.to(device);
        return doubles(
            gemm(x, y, {.transpose_b = true, .a_scale = s, .b_scale = t, .variant = variant}));
      };
      const auto want = product(Device::cpu(), "reference");
      EXPECT_TRUE(std::isnan(want[0]) && std::isnan(want[2 * size_t(n) + 1]));
      for (const Device device : places())
        for (const auto variant : byte_variants(device)) {
          if (device == Device::simt() && dtype == kE5m2 && variant != "naive") continue;
          const auto got = product(device, variant);
          SCOPED_TRACE(join(dtype, " ", squares, " on ", device));
          for (size_t i = 0; i < got.size(); ++i) {
            if (std::isfinite(want[i]))
              EXPECT_NEAR(got[i], want[i], 0.02 * std::abs(want[i]) + 0.5) << variant << " " << i;
            else
              EXPECT_TRUE(std::isnan(want[i]) ? std::isnan(got[i]) : got[i] == want[i])
                  << device << " " << variant << " " << i << ": " << got[i] << ", " << want[i];
          }
        }
    }
  }
}

// Ones times ones count k, with scales that say which block a product is of.
TEST(GemmBytes, CountEveryProductOnceInEverySplit) {
  for (const int64_t k : {16, 112, 128, 144, 256, 400, 640, 1040}) {
    const int64_t m = 64, n = 72, blocks = div_ceil(k, int64_t(128));
    const Tensor a = astype(filled({m, k}, 1), {.dtype = kE4m3});
    const Tensor b = astype(filled({n, k}, 1), {.dtype = kE4m3});
    const Tensor a_scale = filled({m, blocks}, 1), b_scale = filled({1, blocks}, 1);
    double want = 0;
    for (int64_t block = 0; block < blocks; ++block) {
      for (int64_t i = 0; i < m; ++i)
        a_scale.data_as<float>()[i * blocks + block] = float(1 << block % 3);
      want += double(std::min<int64_t>(128, k - block * 128)) * double(1 << block % 3);
    }
    for (const Device device : places())
      for (const auto variant : byte_variants(device)) {
        if (variant == "split_k" && k <= 128) continue;
        const Tensor x = a.to(device), y = b.to(device), s = a_scale.to(device),
                     t = b_scale.to(device);
        const GemmOptions options{.transpose_b = true,
                                  .a_scale = s,
                                  .b_scale = t,
                                  .config = in_two(variant),
                                  .variant = variant};
        const GemmOptions fast{.transpose_b = true,
                               .accumulation = Accumulation::fast,
                               .config = in_two(variant),
                               .variant = variant};
        // bfloat16 rounds what it cannot hold.
        if (blocks > 1) {
          for (const double got : doubles(gemm(x, y, options)))
            ASSERT_NEAR(got, want, want / 256) << device << " " << variant << " " << k;
        }
        for (const double got : doubles(gemm(x, y, fast)))
          ASSERT_NEAR(got, double(k), double(k) / 256) << device << " " << variant << " " << k;
      }
  }
}

// A tile of 192 columns begins and ends inside squares of b.
TEST(GemmBytes, ScaleEachSquareInATileThatMeetsTwo) {
  const int64_t m = 130, n = 400, k = 272, blocks = 3;
  const Tensor a = normal_tensor({m, k}, kE4m3, 1), b = normal_tensor({n, k}, kE4m3, 2);
  const Tensor a_scale = normal_tensor({m, blocks}, DType::float32, 3);
  const Tensor b_scale = normal_tensor({4, blocks}, DType::float32, 4);
  const GemmOptions options{
      .transpose_b = true, .a_scale = a_scale, .b_scale = b_scale, .variant = "reference"};
  const Tensor want = gemm(a, b, options);
  for (const Device device : places()) {
    if (device == Device::cpu()) continue;
    const Tensor x = a.to(device), y = b.to(device), s = a_scale.to(device), t = b_scale.to(device);
    const Tensor got = gemm(x, y,
                            {.transpose_b = true,
                             .a_scale = s,
                             .b_scale = t,
                             .config = GemmConfig{.tile_m = 128, .tile_n = 192},
                             .variant = "persistent"});
    test::expect_close(got, want, 0x1p-6, 0x1p-3);
  }
}

// Codes of a row of numbers times one: saturation, ties to even, NaN, and factors of 0 and
// infinity.
TEST(GemmBytes, RoundResultsOfEightBitsOnce) {
  constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::nanf("");
  const float numbers[] = {0.5f, 1.5f,  2.5f, -0.5f, -1.5f, 127.5f, 1000,  -1000,
                           kInf, -kInf, kNan, 0,     17,    19,     18.5f, -448};
  const auto n = int64_t(std::size(numbers));
  Tensor b(DType::float32, {1, n}, Device::cpu());
  std::ranges::copy(numbers, b.data_as<float>());
  const auto codes = [&](Device device, DType dtype, float factor, std::string_view variant) {
    const Tensor x = filled({1, 1}, 1).to(device), y = b.to(device),
                 s = filled({}, factor).to(device);
    return doubles(gemm(x, y, {.out_dtype = dtype, .out_scale = s, .variant = variant}));
  };
  const std::vector<double> whole{0,   2,    2, 0, -2, 127, 127, -128,
                                  127, -128, 0, 0, 17, 19,  18,  -128};
  for (const Device device : places())
    for (const std::string_view variant : {"", "naive", "reference"}) {
      if (!variant.empty() && (variant == "naive") == (device == Device::cpu())) continue;
      SCOPED_TRACE(join(device, " ", variant));
      EXPECT_EQ(codes(device, DType::int8, 1, variant), whole);
      const auto e4m3 = codes(device, kE4m3, 1, variant), e5m2 = codes(device, kE5m2, 1, variant);
      EXPECT_EQ((std::vector{e4m3[6], e4m3[7], e4m3[8], e4m3[9]}),
                (std::vector<double>{448, -448, 448, -448}));
      EXPECT_TRUE(std::isnan(e4m3[10]) && std::isnan(e5m2[10]));
      EXPECT_EQ((std::vector{e4m3[12], e4m3[13], e5m2[14], e5m2[8]}),
                (std::vector<double>{16, 20, 20, 57344}));  // 17 and 19 are halfway
      EXPECT_EQ(codes(device, DType::int8, 0, variant), std::vector<double>(size_t(n), 0));
      EXPECT_TRUE(std::isnan(codes(device, kE4m3, 0, variant)[8]));  // an infinity times 0
      const auto most = codes(device, kE4m3, kInf, variant);
      EXPECT_TRUE(most[0] == 448 && most[3] == -448 && std::isnan(most[11]));
    }
}

// Sums of int8 are exact where those of float32 are not.
TEST(GemmBytes, SumInt8Exactly) {
  const int64_t m = 64, n = 72, k = 3008;
  const Tensor a(DType::int8, {m, k}, Device::cpu()), b(DType::int8, {n, k}, Device::cpu());
  for (int64_t i = 0; i < m * k; ++i) a.data_as<int8_t>()[i] = int8_t(-128 + i % 3);
  for (int64_t i = 0; i < n * k; ++i) b.data_as<int8_t>()[i] = int8_t(-128 + i % 2 * 255);
  const auto product = [&](Device device, std::string_view variant) {
    const Tensor x = a.to(device), y = b.to(device);
    return test::values<int32_t>(
        gemm(x, y, {.transpose_b = true, .config = in_two(variant), .variant = variant}));
  };
  std::vector<int32_t> want;
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      int32_t sum = 0;
      for (int64_t l = 0; l < k; ++l)
        sum += a.data_as<int8_t>()[i * k + l] * b.data_as<int8_t>()[j * k + l];
      want.push_back(sum);
    }
  for (const Device device : places())
    for (const std::string_view variant :
         device == Device::cpu() ? std::vector<std::string_view>{"cpu", "reference", ""}
                                 : std::vector<std::string_view>{"persistent", "split_k", "naive"})
      EXPECT_EQ(product(device, variant), want) << device << " " << variant;
}

int32_t zero_at(const std::optional<Tensor>& zero, int64_t i) {
  return zero ? zero->data_as<int32_t>()[zero->size() > 1 ? i : 0] : 0;
}

// Products of a - a_zero and b - b_zero, in every layout: int32 sums wrap as those of C++ do.
TEST(GemmBytes, TakeZeroPointsFromInt8Exactly) {
  const int64_t m = 40, n = 72, k = 144;
  const auto zeros = [](const Dims& shape, int32_t first) {
    Tensor t(DType::int32, shape, Device::cpu());
    for (int64_t i = 0; i < t.size(); ++i) t.data_as<int32_t>()[i] = first + int32_t(i % 7);
    return t;
  };
  for (const bool is_transposed : {false, true})
    for (const int which : {1, 2, 3, 4}) {
      const Tensor a = normal_tensor(is_transposed ? Dims{k, m} : Dims{m, k}, DType::int8, 1),
                   b = normal_tensor(is_transposed ? Dims{k, n} : Dims{n, k}, DType::int8, 2);
      std::optional<Tensor> a_zero, b_zero;
      if (which & 1) a_zero = zeros({}, -100);
      if (which & 2) b_zero = zeros({n}, 3);
      if (which == 4) a_zero = zeros({m, 1}, -128), b_zero = zeros({1}, 127);
      std::vector<int32_t> want;
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j) {
          int32_t sum = 0;
          for (int64_t l = 0; l < k; ++l)
            sum +=
                (a.data_as<int8_t>()[is_transposed ? l * m + i : i * k + l] - zero_at(a_zero, i)) *
                (b.data_as<int8_t>()[is_transposed ? l * n + j : j * k + l] - zero_at(b_zero, j));
          want.push_back(sum);
        }
      for (const Device device : places())
        for (const std::string_view variant :
             device == Device::cpu() ? std::vector<std::string_view>{"cpu", "reference", ""}
                                     : std::vector<std::string_view>{"", "naive"}) {
          const Tensor x = a.to(device), y = b.to(device);
          std::optional<Tensor> s, t;
          if (a_zero) s = a_zero->to(device);
          if (b_zero) t = b_zero->to(device);
          GemmOptions options{
              .transpose_a = is_transposed, .transpose_b = !is_transposed, .variant = variant};
          if (s) options.a_zero = *s;
          if (t) options.b_zero = *t;
          SCOPED_TRACE(join(device, " ", variant, " ", which, " ", is_transposed));
          EXPECT_EQ(test::values<int32_t>(gemm(x, y, options)), want);
        }
    }
}

// A row has the same bits alone and among others, and again.
TEST(GemmBytes, RepeatBitsWhateverTheBatch) {
  const int64_t n = 72, k = 272, rows = 70;
  for (const DType dtype : {kE4m3, DType::int8})
    for (const Device device : places()) {
      const Tensor a = normal_tensor({rows, k}, dtype, 1), b = normal_tensor({n, k}, dtype, 2);
      const Tensor weights = b.to(device);
      const auto product = [&](int64_t m) {
        const Tensor x = copy(a.view().slice(0, 0, m)).to(device);
        return gemm(x, weights, {.transpose_b = true, .batch_invariant = true}).to(Device::cpu());
      };
      const Tensor all = product(rows), again = product(rows);
      EXPECT_EQ(std::memcmp(all.data(), again.data(), all.nbytes()), 0) << device << " " << dtype;
      for (const int64_t m : {1, 5, 64}) {
        const Tensor some = product(m);
        EXPECT_EQ(std::memcmp(all.data(), some.data(), some.nbytes()), 0)
            << device << " " << dtype << " " << m;
      }
    }
}

}  // namespace
}  // namespace tensorcraft
