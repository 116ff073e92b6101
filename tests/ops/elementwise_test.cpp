// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/elementwise/elementwise.hpp"

#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/ops/all.hpp"
#include "tensorcraft/ops/permute/permute.hpp"
#include "tests/support/expect_error.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

namespace tensorcraft {
namespace {

using test::expect_error;

template <class T>
constexpr DType kDType = DType::float32;
template <>
constexpr DType kDType<int32_t> = DType::int32;
template <>
constexpr DType kDType<int64_t> = DType::int64;

template <class T>
TensorView view(std::vector<T>& values) {
  return {values.data(), kDType<T>, {int64_t(values.size())}};
}

std::vector<float> ramp(int64_t n, float scale) {
  std::vector<float> values(static_cast<size_t>(n));
  for (size_t i = 0; i < values.size(); ++i) values[i] = scale * float(int64_t(i % 1013) - 500) / 7;
  return values;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST(Add, IsExactInFloat32) {
  for (const int64_t n : {1, 3, 4, 5, 1023, (1 << 20) + 3}) {
    std::vector<float> a = ramp(n, 1), b = ramp(n, 0.3f), c(static_cast<size_t>(n)), expected = c;
    for (size_t i = 0; i < c.size(); ++i) expected[i] = a[i] + b[i];
    add(view(c), view(a), view(b));
    EXPECT_TRUE(same_bits(c, expected)) << n;
  }
}

TEST(Elementwise, GivesTheSameBitsWhateverTheAddressAndStrides) {
  constexpr int64_t n = 1023;
  std::vector<float> x = ramp(n, 0.05f), plain(n), wide(3 * n + 1), moved(n + 1);
  for (const char* name : {"exp", "tanh", "sigmoid", "relu", "leaky_relu", "elu", "silu", "gelu"}) {
    const op::Operator& op = find_operator(name);
    const TensorView in = view(x), out = view(plain);
    op.run(std::span(&out, 1), {std::span(&in, 1), {}});
    const TensorView strided(wide.data() + 1, DType::float32, {n}, {3}, Device::cpu());
    const TensorView unaligned(moved.data() + 1, DType::float32, {n});
    copy(unaligned, in);
    op.run(std::span(&strided, 1), {std::span(&unaligned, 1), {}});
    std::vector<float> gathered(n);
    copy(view(gathered), strided);
    EXPECT_TRUE(same_bits(plain, gathered)) << name;
  }
}

TEST(Elementwise, WritesOverItsInputWhereThatIsAsked) {
  std::vector<float> x = {-1, 2, -3}, y = {10, 20, 30};
  relu(view(x), view(x));
  EXPECT_EQ(x, (std::vector<float>{0, 2, 0}));
  add(view(y), view(x), view(y));
  EXPECT_EQ(y, (std::vector<float>{10, 22, 30}));
  expect_error(
      ErrorKind::value,
      [&] {
        const TensorView all(y.data(), DType::float32, {2}),
            later(y.data() + 1, DType::float32, {2});
        relu(later, all);
      },
      "relu: out overlaps the memory of x; they must be the same tensor or apart");
}

TEST(Elementwise, PromotesByTheTable) {
  constexpr DType f32 = DType::float32, f16 = DType::float16, bf16 = DType::bfloat16,
                  i8 = DType::int8, i16 = DType::int16, i32 = DType::int32, i64 = DType::int64,
                  u8 = DType::uint8;
  struct Row {
    DType a, b, sum, quotient;
  };
  for (const Row& row :
       {Row{f32, f32, f32, f32}, Row{f32, f16, f32, f32}, Row{bf16, f32, f32, f32},
        Row{f16, bf16, f32, f32}, Row{f16, f16, f16, f16}, Row{i32, f16, f16, f16},
        Row{bf16, i64, bf16, bf16}, Row{i64, f32, f32, f32}, Row{i32, i64, i64, f32},
        Row{i32, i32, i32, f32}, Row{i8, u8, i16, f32}, Row{u8, i16, i16, f32},
        Row{i8, i32, i32, f32}, Row{u8, u8, u8, f32}, Row{i8, f16, f16, f16}}) {
    Tensor a(row.a, {2}), b(row.b, {2});
    fill(a, a, {.value = 3});
    fill(b, b, {.value = 2});
    EXPECT_EQ(add(a, b).dtype(), row.sum) << row.a << " + " << row.b;
    const Tensor quotient = divide(a, b);
    EXPECT_EQ(quotient.dtype(), row.quotient) << row.a << " / " << row.b;
    EXPECT_EQ(astype(quotient, {.dtype = f32}).data_as<float>()[1], 1.5f);
  }
}

TEST(Elementwise, IntegersOfOptionsAreExactToTheEdgesOf64Bits) {
  constexpr int64_t odd = (int64_t(1) << 53) + 1, least = std::numeric_limits<int64_t>::min();
  std::vector<int64_t> x = {odd, odd - 1, least};
  EXPECT_EQ(clip(view(x), {.min = odd}).data_as<int64_t>()[1], odd);
  EXPECT_EQ(clip(view(x), {.min = least}).data_as<int64_t>()[2], least);
  EXPECT_EQ(clip(view(x), {.max = -odd}).data_as<int64_t>()[0], -odd);
  EXPECT_EQ(clip(view(x)).data_as<int64_t>()[0], odd);
  EXPECT_EQ(fill(view(x), {.value = odd}).data_as<int64_t>()[0], odd);
  EXPECT_EQ(fill(Tensor(DType::int8, {1}), {.value = 300}).data_as<int8_t>()[0], 127);
}

// A digit beyond float32's decides how a half-way value is rounded.
TEST(Elementwise, NumbersAndIntegersAreRoundedOnce) {
  const auto filled = [](DType dtype, double value) {
    return astype(fill(Tensor(dtype, {1}), {.value = value}), {.dtype = DType::float32})
        .data_as<float>()[0];
  };
  EXPECT_EQ(filled(DType::bfloat16, 1 + 0x1p-8 + 0x1p-40), 1 + 0x1p-7f);
  EXPECT_EQ(filled(DType::bfloat16, -1 - 0x1p-8 + 0x1p-40), -1.0f);
  EXPECT_EQ(filled(DType::float16, 1 + 0x1p-11 + 0x1p-40), 1 + 0x1p-10f);
  EXPECT_EQ(filled(DType::float8_e4m3fn, 1 + 0x1p-4 + 0x1p-40), 1 + 0x1p-3f);
  EXPECT_EQ(filled(DType::float8_e5m2, -1 - 0x1p-3 - 0x1p-40), -1 - 0x1p-2f);
  std::vector<int64_t> x = {(1 << 26) + (1 << 18) + 1, -(1 << 26) - (1 << 18) - 1};
  for (const char* variant : {"cpu", "reference"}) {
    const Tensor y = astype(view(x), {.dtype = DType::bfloat16, .variant = variant});
    EXPECT_EQ(float(y.data_as<bf16>()[0]), 0x1.02p26f) << variant;
    EXPECT_EQ(float(y.data_as<bf16>()[1]), -0x1.02p26f) << variant;
  }
}

TEST(Elementwise, RefusesDtypesThatWouldPromoteInSilence) {
  Tensor a(DType::bool_, {2}), b(DType::float32, {2}), c(DType::float8_e4m3fn, {2});
  const char* tail =
      " not in the allowed options: [float32, float16, bfloat16, int8, int16, int32, int64, uint8]";
  expect_error(
      ErrorKind::type, [&] { add(a, b); },
      std::string("add: a: Dtype value [bool]") + tail + "; tc.astype(a, tc.float32) converts it");
  expect_error(
      ErrorKind::type, [&] { maximum(b, c); },
      std::string("maximum: b: Dtype value [float8_e4m3fn]") + tail +
          "; tc.astype(b, tc.float32) converts it");
}

TEST(Elementwise, NamesShapesThatDoNotBroadcast) {
  Tensor a(DType::float32, {2, 3}), b(DType::float32, {4});
  expect_error(
      ErrorKind::value, [&] { multiply(a, b); },
      "multiply: a and b: shapes [2, 3] and [4] do not broadcast: dimension 1 is 3 and 4");
}

TEST(Elementwise, RefusesAnOutputOfAnotherShapeOrDtype) {
  Tensor a(DType::float32, {2, 3}), half(DType::float16, {2, 3}), row(DType::float32, {3});
  expect_error(
      ErrorKind::type, [&] { add(half, a, a); },
      "add: out: Dtype value [float16] not in the allowed options: [float32]");
  EXPECT_THROW(add(row, a, row), Error);
}

class EveryHostRow : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Rows, EveryHostRow, ::testing::Values("cpu", "reference"));

TEST_P(EveryHostRow, WrapsIntegersAndKeepsAll64Bits) {
  const ElementwiseOptions row{.variant = GetParam()};
  constexpr int64_t big = (int64_t(1) << 60) + 1;
  constexpr int64_t largest = std::numeric_limits<int64_t>::max();
  std::vector<int64_t> a = {big, largest, -5}, b = {2, 1, 7}, c(3);
  add(view(c), view(a), view(b), row);
  EXPECT_EQ(c, (std::vector<int64_t>{big + 2, std::numeric_limits<int64_t>::min(), 2}));
  maximum(view(c), view(a), view(b), row);
  EXPECT_EQ(c, (std::vector<int64_t>{big, largest, 7}));
  std::vector<int32_t> x = {1 << 30, std::numeric_limits<int32_t>::min()}, y = {4, -1}, z(2);
  multiply(view(z), view(x), view(y), row);
  EXPECT_EQ(z, (std::vector<int32_t>{0, std::numeric_limits<int32_t>::min()}));
  copy(view(c), view(a), {.variant = GetParam()});
  EXPECT_EQ(c, a);
  astype(view(z), view(a).slice(0, 0, 2), {.dtype = DType::int32, .variant = GetParam()});
  EXPECT_EQ(z, (std::vector<int32_t>{1, -1}));
  std::vector<float> past = {1e30f, -1e30f, NAN};
  astype(view(c), view(past), {.dtype = DType::int64, .variant = GetParam()});
  EXPECT_EQ(c, (std::vector<int64_t>{largest, -largest - 1, 0}));
  fill(view(c), view(c), {.value = 1e300, .variant = GetParam()});
  EXPECT_EQ(c[0], largest);
}

TEST(Elementwise, KeepsNanWhereTheContractSaysSo) {
  std::vector<float> x = {NAN, -1, 2}, y = {1, NAN, 3}, z(3);
  relu(view(z), view(x));
  EXPECT_TRUE(std::isnan(z[0]));
  maximum(view(z), view(x), view(y));
  EXPECT_TRUE(std::isnan(z[0]) && std::isnan(z[1]));
  EXPECT_EQ(z[2], 3);
  minimum(view(z), view(y), view(x));
  EXPECT_TRUE(std::isnan(z[0]) && std::isnan(z[1]));
}

// Returns what `explain` says of a call with memory on a GPU of this architecture; nothing is read.
op::Explanation explain_add(const TensorView& out, const TensorView& a, const TensorView& b) {
  const TensorView inputs[] = {a, b};
  return find_operator("add").explain(std::span(&out, 1), {inputs, {}},
                                      device_info_of_arch("sm_90a"));
}

TEST(Elementwise, ChoosesVectorAccessesWhereTheyAreLegalAndSaysWhyElsewhere) {
  const auto gpu = [](int64_t offset, Dims shape, Dims strides) {  // apart from an offset of 0
    const uintptr_t address = (uintptr_t(offset ? 2 : 1) << 40) + uintptr_t(offset) * 4;
    return TensorView(reinterpret_cast<void*>(address), DType::float32, shape, strides,
                      Device::cuda(0));
  };
  const TensorView out = gpu(0, {64, 64}, {64, 1});
  EXPECT_EQ(explain_add(out, out, out).variant, "vectorized");
  EXPECT_EQ(explain_add(out, out, gpu(1, {}, {})).variant, "vectorized");  // one element
  const auto unaligned = explain_add(out, gpu(1, {64, 64}, {64, 1}), out);
  EXPECT_EQ(unaligned.variant, "naive");
  EXPECT_EQ(unaligned.variants[0].reason, "every address must be a multiple of 16");
  EXPECT_EQ(explain_add(out, out, gpu(64, {64}, {1})).variant, "vectorized");  // whole vectors
  const TensorView odd = gpu(0, {64, 62}, {62, 1});
  for (const auto& [to, b] :
       {std::pair(out, gpu(64, {64, 1}, {1, 1})), std::pair(odd, gpu(64, {62}, {1}))}) {
    const auto other = explain_add(to, to, b);
    EXPECT_EQ(other.variant, "naive");
    EXPECT_EQ(other.variants[0].reason,
              "every tensor must be contiguous, one element, or an input that repeats whole "
              "vectors");
  }
}

TEST(ElementwiseOnGpu, NaiveAndVectorizedAgreeBitForBit) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU";
  constexpr int64_t n = (1 << 20) + 3;
  std::vector<float> x = ramp(n, 0.02f), y = ramp(n, 0.3f);
  for (const DType dtype : {DType::float32, DType::float16, DType::bfloat16, DType::int32}) {
    const Tensor a = astype(view(x), {.dtype = dtype}).to(Device::cuda(0));
    const Tensor b = astype(view(y), {.dtype = dtype}).to(Device::cuda(0));
    for (const op::Operator* op : operators()) {
      const auto& d = op->description();
      if (d.group != "elementwise" || d.name == "fill" || d.name == "astype") continue;
      if (std::ranges::find(d.dtypes, dtype) == d.dtypes.end()) continue;
      if (d.inputs.size() > 2 || d.name == "clip") continue;  // expression_test.cpp has those
      if (d.name.ends_with("_and_mul")) continue;             // its rows have halves
      const TensorView both[] = {a, b};
      const std::span inputs(both, d.inputs.size());
      std::vector<std::vector<std::byte>> results;
      for (const char* variant : {"naive", "vectorized"}) {
        const Tensor result(op->infer({inputs, {}})[0].dtype, {n}, Device::cuda(0));
        const TensorView out = result;
        op->run(std::span(&out, 1), {inputs, {}, variant});
        result.copy_to_host(results.emplace_back(result.nbytes()).data(), result.nbytes());
      }
      EXPECT_EQ(results[0], results[1]) << d.name << " " << dtype;
    }
  }
}

}  // namespace
}  // namespace tensorcraft
