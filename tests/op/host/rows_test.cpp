// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/host/rows.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/op/host/simd.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace tensorcraft::host {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

std::vector<float> span_of(float low, float high, int count) {
  std::vector<float> x(count);
  for (int i = 0; i < count; ++i) x[i] = low + (high - low) * float(i) / float(count - 1);
  return x;
}

double ulp(double value) {
  const float f = float(std::abs(value));
  return double(std::nextafter(f, kInf)) - double(f);
}

TEST(RowExp, IsWithinTwoUnitsInTheLastPlace) {
  const auto x = span_of(-104.0f, 88.7f, 400001);
  std::vector<float> y(x.size());
  row_exp(y.data(), x.data(), 0.0f, int64_t(x.size()));
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double exact = std::exp(double(x[i]));
    worst = std::max(worst, std::abs(double(y[i]) - exact) / ulp(exact));
  }
  EXPECT_LE(worst, 2.0);
}

TEST(RowExp, HandlesTheEndsOfFloat) {
  const std::vector<float> x = {0.0f, -0.0f, 89.0f, 1e30f, kInf, -105.0f, -1e30f, -kInf, kNaN};
  std::vector<float> y(x.size());
  row_exp(y.data(), x.data(), 0.0f, int64_t(x.size()));
  EXPECT_EQ(std::vector<float>(y.begin(), y.end() - 1),
            (std::vector<float>{1, 1, kInf, kInf, kInf, 0, 0, 0}));
  EXPECT_TRUE(std::isnan(y.back()));
}

TEST(RowExp, ShiftsAndReturnsTheSum) {
  const auto x = span_of(-3.0f, 5.0f, 77);
  std::vector<float> y(x.size());
  const float sum = row_exp(y.data(), x.data(), 5.0f, int64_t(x.size()));
  double expected = 0;
  for (const float v : x) expected += std::exp(double(v) - 5.0);
  EXPECT_NEAR(sum, expected, 1e-5);
  EXPECT_NEAR(y.back(), 1.0f, 1e-7);
}

using RowFunction = void (*)(float*, const float*, int64_t);

// The largest |error| / (absolute + relative * |exact|) over [-12, 12].
template <class Exact>
double worst_error(RowFunction function, Exact exact, double absolute, double relative) {
  const auto x = span_of(-12.0f, 12.0f, 100001);
  std::vector<float> y(x.size());
  function(y.data(), x.data(), int64_t(x.size()));
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double e = exact(double(x[i]));
    worst = std::max(worst, std::abs(double(y[i]) - e) / (absolute + relative * std::abs(e)));
  }
  return worst;
}

template <Activation A>
void activate(float* y, const float* x, int64_t n) {
  row_activate(y, x, A, n);
}

TEST(RowFunctions, AgreeWithDouble) {
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  const auto tanh = [](double x) { return std::tanh(x); };
  const auto erf = [](double x) { return std::erf(x); };
  EXPECT_LE(worst_error(row_sigmoid, sigmoid, 1e-12, 5e-7), 1);
  EXPECT_LE(worst_error(row_tanh, tanh, 1e-12, 4e-7), 1);
  EXPECT_LE(worst_error(row_erf, erf, 1.5e-7, 0), 1);
}

TEST(RowActivate, AgreesWithDoubleForEveryActivation) {
  const auto relu = [](double x) { return std::max(x, 0.0); };
  const auto gelu = [](double x) { return 0.5 * x * std::erfc(-x * std::sqrt(0.5)); };
  const auto gelu_tanh = [](double x) {
    return x / (1 + std::exp(-2 * std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
  };
  const auto silu = [](double x) { return x / (1 + std::exp(-x)); };
  const auto none = [](double x) { return x; };
  EXPECT_EQ(worst_error(activate<Activation::none>, none, 1, 0), 0);
  EXPECT_EQ(worst_error(activate<Activation::relu>, relu, 1, 0), 0);
  EXPECT_LE(worst_error(activate<Activation::gelu>, gelu, 1e-7, 2e-7), 1);
  EXPECT_LE(worst_error(activate<Activation::gelu_tanh>, gelu_tanh, 1e-7, 1e-6), 1);
  EXPECT_LE(worst_error(activate<Activation::silu>, silu, 1e-12, 5e-7), 1);
}

TEST(RowActivate, KeepsNaN) {
  for (const Activation a : {Activation::none, Activation::relu, Activation::gelu,
                             Activation::gelu_tanh, Activation::silu}) {
    float y = 0;
    row_activate(&y, &kNaN, a, 1);
    EXPECT_TRUE(std::isnan(y)) << int(a);
  }
}

TEST(RowReductions, CoverEveryLength) {
  for (int n = 0; n <= 100; ++n) {
    std::vector<float> x(n), ones(n, 1.0f);
    std::iota(x.begin(), x.end(), 1.0f);
    EXPECT_EQ(row_sum(x.data(), n), float(n * (n + 1) / 2));
    EXPECT_EQ(row_dot(x.data(), ones.data(), n), float(n * (n + 1) / 2));
    std::vector<uint16_t> halves(n);
    store_row(halves.data(), x.data(), DType::bfloat16, 1, n);
    EXPECT_EQ(row_dot(ones.data(), halves.data(), n), float(n * (n + 1) / 2));
    EXPECT_EQ(row_sum_of_squares(x.data(), 1.0f, n), float((n - 1) * n * (2 * n - 1) / 6));
    EXPECT_EQ(row_sum_of_scaled_squares(x.data(), 2.0f, n), 4 * row_sum_of_squares(x.data(), 0, n));
    EXPECT_EQ(row_max_magnitude(x.data(), n), float(n));
    EXPECT_EQ(row_max(x.data(), n), n == 0 ? -kInf : float(n));
    for (int i = 0; i < n; ++i) {
      auto with_nan = x;
      with_nan[i] = kNaN;
      ASSERT_TRUE(std::isnan(row_max(with_nan.data(), n))) << n << " " << i;
      ASSERT_TRUE(std::isnan(row_max_magnitude(with_nan.data(), n))) << n << " " << i;
    }
  }
}

TEST(RowArithmetic, WorksInPlace) {
  std::vector<float> y = {1, 2, 3}, x = {4, 5, 6};
  row_scale(y.data(), y.data(), 2.0f, 1.0f, 3);
  EXPECT_EQ(y, (std::vector<float>{3, 5, 7}));
  row_add(y.data(), x.data(), 3);
  EXPECT_EQ(y, (std::vector<float>{7, 10, 13}));
  row_multiply(y.data(), x.data(), 3);
  EXPECT_EQ(y, (std::vector<float>{28, 50, 78}));
  row_add_scaled(y.data(), x.data(), -1.0f, 3);
  EXPECT_EQ(y, (std::vector<float>{24, 45, 72}));
}

float exact_half(uint16_t bits) {
  const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  const float sign = bits & 0x8000 ? -1.0f : 1.0f;
  if (exponent == 31) return mantissa ? kNaN : sign * kInf;
  if (exponent == 0) return sign * std::ldexp(float(mantissa), -24);
  return sign * std::ldexp(float(1024 + mantissa), exponent - 25);
}

TEST(Conversions, LoadAndStoreEveryPatternOfBothTypes) {
  std::vector<uint16_t> bits(65536), back(65536);
  std::iota(bits.begin(), bits.end(), 0);
  std::vector<float> floats(65536);
  for (const DType dtype : {DType::float16, DType::bfloat16}) {
    load_row(floats.data(), bits.data(), dtype, 1, 65536);
    store_row(back.data(), floats.data(), dtype, 1, 65536);
    for (int i = 0; i < 65536; ++i) {
      const float expected = dtype == DType::float16 ? exact_half(uint16_t(i))
                                                     : std::bit_cast<float>(uint32_t(i) << 16);
      if (std::isnan(expected)) {
        ASSERT_TRUE(std::isnan(floats[i])) << dtype << " " << i;
        load_row(&floats[i], &back[i], dtype, 1, 1);
        ASSERT_TRUE(std::isnan(floats[i])) << dtype << " " << i;
      } else {
        ASSERT_EQ(std::bit_cast<uint32_t>(floats[i]), std::bit_cast<uint32_t>(expected)) << i;
        ASSERT_EQ(back[i], i) << dtype;
      }
    }
  }
}

TEST(Conversions, LoadEveryCode) {
  std::vector<uint8_t> codes(512);
  std::iota(codes.begin(), codes.end(), 0);
  std::vector<float> together(256), apart(256);
  for (const DType dtype : {DType::int8, DType::float8_e4m3fn}) {
    load_codes(together.data(), codes.data(), dtype, 1, 256);
    load_codes(apart.data(), codes.data(), dtype, 2, 256);
    for (int i = 0; i < 256; ++i) {
      const int exponent = i >> 3 & 15, mantissa = i & 7;
      const float magnitude = (i & 127) == 127 ? kNaN
                              : exponent == 0  ? std::ldexp(float(mantissa), -9)
                                               : std::ldexp(float(8 + mantissa), exponent - 10);
      const float e4m3 = i & 128 ? -magnitude : magnitude;
      const float expected = dtype == DType::int8 ? float(int8_t(i)) : e4m3;
      if (std::isnan(expected)) {
        ASSERT_TRUE(std::isnan(together[i])) << i;
      } else {
        ASSERT_EQ(std::bit_cast<uint32_t>(together[i]), std::bit_cast<uint32_t>(expected)) << i;
      }
      ASSERT_EQ(std::bit_cast<uint32_t>(apart[i]), std::bit_cast<uint32_t>(together[2 * i % 256]));
    }
  }
}

TEST(Conversions, RoundToNearestEven) {
  // Halfway between two neighbours, and just above: for each positive finite half.
  for (int i = 0; i < 0x7bff; ++i) {
    const float low = exact_half(uint16_t(i)), high = exact_half(uint16_t(i + 1));
    const float middle = low + (high - low) / 2;
    ASSERT_EQ(float_to_half(middle), i + (i & 1)) << i;
    ASSERT_EQ(float_to_half(std::nextafter(middle, kInf)), i + 1);
    ASSERT_EQ(float_to_half(-std::nextafter(middle, 0.0f)), i | 0x8000);
  }
  EXPECT_EQ(float_to_half(65519.996f), 0x7bff);
  EXPECT_EQ(float_to_half(65520.0f), 0x7c00);
  EXPECT_EQ(float_to_half(-1e30f), 0xfc00);
  EXPECT_EQ(float_to_bfloat16(std::bit_cast<float>(0x3f808000u)), 0x3f80);
  EXPECT_EQ(float_to_bfloat16(std::bit_cast<float>(0x3f818000u)), 0x3f82);
  EXPECT_EQ(float_to_bfloat16(std::bit_cast<float>(0x3f808001u)), 0x3f81);
  EXPECT_EQ(float_to_bfloat16(std::bit_cast<float>(0x7f7fffffu)), 0x7f80);
}

TEST(Conversions, RefuseOtherDtypes) {
  float x = 0;
  EXPECT_THROW(load_row(&x, &x, DType::int32, 1, 1), Error);
  EXPECT_THROW(store_row(&x, &x, DType::int8, 1, 1), Error);
  EXPECT_THROW(load_codes(&x, &x, DType::float32, 1, 1), Error);
}

TEST(Rows, ReadAndWriteAnyAxisOfAStridedTensor) {
  std::vector<float> data(2 * 3 * 4);
  std::iota(data.begin(), data.end(), 0.0f);
  const TensorView whole(data.data(), DType::float32, {2, 3, 4});
  const TensorView view = whole.transpose(0, 2).slice(0, 1, 4, 2);  // (2, 3, 2)
  const Rows rows(view, 0);
  ASSERT_EQ(rows.count(), 6);
  ASSERT_EQ(rows.length(), view.shape(0));
  float buffer[4];
  for (int64_t r = 0; r < 6; ++r) {
    const float* row = rows.read(r, buffer);
    for (int64_t i = 0; i < rows.length(); ++i)
      EXPECT_EQ(row[i], view.data_as<float>()[i * view.stride(0) + r / 2 * view.stride(1) +
                                              r % 2 * view.stride(2)]);
  }
  float* target = rows.target(5, buffer);
  for (int64_t i = 0; i < rows.length(); ++i) target[i] = 100.0f + float(i);
  rows.commit(5, target);
  EXPECT_EQ(rows.read(5, buffer)[1], 101.0f);
}

TEST(Rows, ComputeContiguousFloatsInPlace) {
  float data[6] = {0, 1, 2, 3, 4, 5}, buffer[3];
  const Rows rows(TensorView(data, DType::float32, {2, 3}));
  EXPECT_EQ(rows.read(1, buffer), data + 3);
  EXPECT_EQ(rows.target(1, buffer), data + 3);
}

TEST(Rows, ReadABroadcastRow) {
  float data[2] = {1, 2}, buffer[2];
  const TensorView one(data, DType::float32, {1, 2});
  const Rows rows(one.broadcast_to({5, 2}));
  ASSERT_EQ(rows.count(), 5);
  EXPECT_EQ(rows.read(4, buffer)[1], 2.0f);
}

TEST(Rows, RefuseADtypeThatIsNoRow) {
  int data[2] = {};
  EXPECT_THROW(Rows(TensorView(data, DType::int32, {2})), Error);
}

TEST(Scratch, KeepsABufferForEachSlot) {
  float* a = scratch(Slot::row_a, 100);
  float* b = scratch(Slot::row_b, 100);
  EXPECT_NE(a, b);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(a) % 64, 0u);
  EXPECT_EQ(scratch(Slot::row_a, 50), a);
}

TEST(Scratch, ARowThatFitsNoMemoryIsATypedError) {
  for (const int64_t floats : {int64_t(1) << 46, std::numeric_limits<int64_t>::max()}) {
    try {
      scratch(Slot::row_c, floats);
      FAIL();
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::out_of_memory);
    }
  }
  EXPECT_NE(scratch(Slot::row_c, 8), nullptr);
}

TEST(RowFind, NamesTheFirstPlaceOfAValueOrOfANan) {
  for (const int64_t n : {0, 1, 31, 32, 33, 200}) {
    std::vector<float> x(n, 1.0f);
    EXPECT_EQ(row_find(x.data(), 2.0f, n), n);
    EXPECT_EQ(row_find(x.data(), std::nanf(""), n), n);
    for (int64_t i = 0; i < n; ++i) {
      auto with = x;
      with[i] = with[n - 1] = 2.0f;
      ASSERT_EQ(row_find(with.data(), 2.0f, n), i) << n;
      with[i] = std::nanf("");
      ASSERT_EQ(row_find(with.data(), std::nanf(""), n), i) << n;
    }
  }
}

TEST(RowMaximumAndMinimum, KeepTheLargerTheSmallerAndEveryNan) {
  for (const int64_t n : {1, 16, 37}) {
    std::vector<float> x(n), y(n);
    for (int64_t i = 0; i < n; ++i) x[i] = float(i % 7), y[i] = 3;
    auto low = y;
    if (n > 2) x[1] = kNaN, y[2] = low[2] = kNaN;
    row_maximum(y.data(), x.data(), n);
    row_minimum(low.data(), x.data(), n);
    for (int64_t i = 0; i < n; ++i) {
      if (n > 2 && (i == 1 || i == 2)) {
        ASSERT_TRUE(std::isnan(y[i]) && std::isnan(low[i])) << i;
        continue;
      }
      ASSERT_EQ(y[i], std::max(float(i % 7), 3.0f));
      ASSERT_EQ(low[i], std::min(float(i % 7), 3.0f));
    }
  }
}

// Columns of a matrix are taken together; the last, fewer ones, and rows of a length of their own
// too.
TEST(MapRows, GivesEveryRowOnceWhereRowsAreColumns) {
  for (const DType dtype : {DType::float32, DType::bfloat16})
    for (const int64_t length : {1, 15, 16, 17, 5000})
      for (const int64_t columns : {16, 37, 130}) {
        const size_t bytes = dtype_bytes(dtype);
        std::vector<std::byte> from(2 * length * columns * bytes), to(2 * 3 * columns * bytes);
        std::vector<float> x(2 * length * columns), y(2 * 3 * columns);
        for (size_t i = 0; i < x.size(); ++i) x[i] = float(i % 251);
        store_row(from.data(), x.data(), dtype, 1, int64_t(x.size()));
        const Rows rows(TensorView(from.data(), dtype, {2, length, columns}), 1);
        const Rows out(TensorView(to.data(), dtype, {2, 3, columns}), 1);
        ASSERT_EQ(rows.num_beside(0), std::min<int64_t>(columns, length == 5000 ? 26 : 64));
        std::vector<std::atomic<int>> visits(rows.count());
        map_rows(rows, out, [&](int64_t row, const float* values, float* result) {
          ++visits[row];
          for (int64_t i = 0; i < length; ++i) {
            const int64_t at = (row / columns * length + i) * columns + row % columns;
            ASSERT_EQ(values[i], float(at % 251)) << row << " " << i;
          }
          for (int i = 0; i < 3; ++i) result[i] = float((row + i) % 200);
        });
        for (const auto& v : visits) ASSERT_EQ(v, 1);
        load_row(y.data(), to.data(), dtype, 1, int64_t(y.size()));
        for (int64_t row = 0; row < out.count(); ++row)
          for (int64_t i = 0; i < 3; ++i)
            ASSERT_EQ(y[(row / columns * 3 + i) * columns + row % columns], float((row + i) % 200));
      }
}

TEST(MapRows, WorksInPlaceAndOnRowsThatAreRows) {
  std::vector<float> data(70 * 40);
  std::iota(data.begin(), data.end(), 0.0f);
  const TensorView view(data.data(), DType::float32, {70, 40});
  const auto reverse = [](int64_t n) {
    return [n](int64_t, const float* x, float* y) {
      std::vector<float> copy(x, x + n);
      std::reverse_copy(copy.begin(), copy.end(), y);
    };
  };
  map_rows(Rows(view, 0), Rows(view, 0), reverse(70));
  EXPECT_EQ(data[3], float(69 * 40 + 3));
  map_rows(Rows(view, 1), Rows(view, 1), reverse(40));
  for (size_t i = 0; i < data.size(); ++i) ASSERT_EQ(data[i], float(data.size() - 1 - i));
}

TEST(ForEachRow, VisitsEveryRowOnce) {
  std::vector<int> visits(1000);
  for_each_row(1000, 4096, [&](int64_t row) { ++visits[row]; });
  EXPECT_EQ(visits, std::vector<int>(1000, 1));
}

}  // namespace
}  // namespace tensorcraft::host
