// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/tensor_matcher.hpp"

#include "tests/support/expect_error.hpp"

#include <concepts>
#include <string>

#include <gtest/gtest.h>

namespace tensorcraft {
namespace {

using test::expect_error;

float storage[1];
TensorView tensor(const Dims& shape, DType dtype = DType::float32, Device device = Device::cpu()) {
  return {storage, dtype, shape, device};
}
TensorView strided(const Dims& shape, const Dims& strides) {
  return {storage, DType::float32, shape, strides, Device::cpu()};
}

TEST(Matcher, BindsASymbolOnceAndComparesAfterwards) {
  SymbolicSize n("n"), m("seq_len");
  TensorMatcher({n, m}).verify(tensor({32, 128})).verify(tensor({32, 128}));
  EXPECT_EQ(n.unwrap(), 32);
  EXPECT_EQ(m.unwrap(), 128);
  const TensorView bad = tensor({32, 256});
  expect_error(
      ErrorKind::value, [&] { TensorMatcher({n, m}).verify(bad, "op", "x"); },
      "op: x: Size mismatch for shape#1('seq_len'): expected 128 but got 256"
      "; x is [32, 256], expected [32, 128]");
}

TEST(Matcher, GivesTheWholeErrorText) {
  SymbolicSize n, head_dim("head_dim");
  head_dim.set_value(128);
  const TensorView t(storage, DType::float32, {100, 256}, Device::cuda(0));
  std::string text;
  unsigned line = 0;
  try {
    line = __LINE__ + 1;
    TensorMatcher({n, head_dim}).verify(t);
  } catch (const Error& e) {
    text = e.what();
    EXPECT_EQ(e.kind(), ErrorKind::value);
    EXPECT_EQ(e.root_cause(), "Size mismatch for shape#1('head_dim'): expected 128 but got 256");
  }
  EXPECT_EQ(text, join("Tensor match failed for Tensor<100, 256>[strides=<256, 1>, dtype=float32, "
                       "device=cuda:0] at ",
                       __FILE__, ":", line,
                       "\n- Root cause: Size mismatch for shape#1('head_dim'): expected 128 but "
                       "got 256"));
}

TEST(Matcher, NamesTheOperatorTheArgumentAndWhereTheSymbolWasBound) {
  SymbolicSize m("m"), n("n"), k("k");
  TensorMatcher({m, k}).verify(tensor({8, 64}), "gemm", "a");
  expect_error(
      ErrorKind::value, [&] { TensorMatcher({k, n}).verify(tensor({63, 8}), "gemm", "b"); },
      "gemm: b: Size mismatch for shape#0('k'): expected 64 but got 63 (k is a.shape[1])"
      "; a is [8, 64], b is [63, 8]");
}

TEST(Matcher, NamesTheStrideThatASymbolWasBoundFrom) {
  SymbolicSize lda("lda");
  TensorMatcher({4, 8}).with_strides({lda, 1}).verify(strided({4, 8}, {16, 1}), "f", "a");
  expect_error(
      ErrorKind::value,
      [&] {
        TensorMatcher({4, 8}).with_strides({lda, 1}).verify(strided({4, 8}, {8, 1}), "f", "b");
      },
      "f: b: Size mismatch for stride#0('lda'): expected 16 but got 8 (lda is a.strides[0])"
      "; a has strides [16, 1], b has strides [8, 1]; pass b.copy()");
}

TEST(Matcher, SaysNothingOfANameThatASymbolDoesNotHave) {
  SymbolicSize s;
  s.set_value(3);
  expect_error(
      ErrorKind::value, [&] { TensorMatcher({s}).verify(tensor({4}), "f", "x"); },
      "f: x: Size mismatch for shape#0: expected 3 but got 4"
      "; x is [4], expected [3]");
  expect_error(
      ErrorKind::value, [&] { TensorMatcher({5}).verify(tensor({4}), "f", "x"); },
      "f: x: Size mismatch for shape#0: expected 5 but got 4"
      "; x is [4], expected [5]");
}

TEST(Matcher, TakesAnySizeForMinusOne) {
  TensorMatcher({-1, kAnySize}).verify(tensor({3, 4})).verify(tensor({5, 6}));
}

TEST(Matcher, ChecksTheRankFirst) {
  expect_error(
      ErrorKind::value, [] { TensorMatcher({2, 3}).verify(tensor({2}), "f", "x"); },
      "f: x: Tensor dimension mismatch: expected 2 but got 1"
      "; x is [2]");
  TensorMatcher::any_shape().verify(tensor({2})).verify(tensor({}));
}

TEST(Matcher, RefusesMoreDimensionsThanATensorHas) {
  expect_error(
      ErrorKind::value, [] { TensorMatcher({1, 1, 1, 1, 1, 1, 1, 1, 1}); },
      "a shape of 9 dimensions is asked for; at most 8 are accepted");
}

TEST(Matcher, WantsContiguousTensorsUnlessStridesAreGiven) {
  const TensorView t = strided({4, 8}, {16, 1});
  expect_error(
      ErrorKind::value, [&] { TensorMatcher({4, 8}).verify(t, "f", "x"); },
      "f: x: Tensor is not contiguous as expected"
      "; strides [16, 1], pass x.copy()");
  TensorMatcher({4, 8}).with_strides({16, 1}).verify(t);
  TensorMatcher({4, 8}).with_any_strides().verify(t);
}

TEST(Matcher, RefusesStridesTwiceOrOfAnotherRank) {
  expect_error(
      ErrorKind::internal, [] { TensorMatcher({1}).with_strides({1}).with_strides({1}); },
      "Strides already specified");
  expect_error(
      ErrorKind::internal, [] { TensorMatcher({1}).with_strides({1, 1}); },
      "Strides size must match shape size");
}

TEST(Matcher, IgnoresTheStrideOfASizeOfOneInBothOrders) {
  const TensorView one = strided({1, 8}, {999, 1}), many = strided({4, 8}, {16, 1});
  for (const bool one_first : {true, false}) {
    SymbolicSize stride("stride");
    TensorMatcher({-1, 8})
        .with_strides({stride, 1})
        .verify(one_first ? one : many)
        .verify(one_first ? many : one);
    EXPECT_EQ(stride.unwrap(), 16);
  }
}

TEST(Symbol, RefusesASecondValueAndAMissingOne) {
  SymbolicSize size;
  SymbolicDType dtype;
  SymbolicDevice device;
  expect_error(ErrorKind::internal, [&] { size.unwrap(); }, "Size value is not set");
  expect_error(ErrorKind::internal, [&] { dtype.unwrap(); }, "Dtype value is not set");
  expect_error(ErrorKind::internal, [&] { device.unwrap(); }, "Device value is not set");
  size.set_value(1);
  dtype.set_value(DType::int8);
  device.set_value(Device::cuda(1));
  expect_error(ErrorKind::internal, [&] { size.set_value(1); }, "Size value already set");
  expect_error(
      ErrorKind::internal, [&] { dtype.set_value(DType::int8); }, "Dtype value already set");
  expect_error(
      ErrorKind::internal, [&] { device.set_value(Device::cpu()); }, "Device value already set");
}

TEST(MatcherDType, NamesTheAllowedOptions) {
  expect_error(
      ErrorKind::type,
      [] {
        TensorMatcher({4}).with_dtype<float, bf16>().verify(tensor({4}, DType::int8), "gemm", "a");
      },
      "gemm: a: Dtype value [int8] not in the allowed options: [float32, bfloat16]"
      "; tc.astype(a, tc.float32) converts it");
}

TEST(MatcherDType, TakesOptionsAtRunTime) {
  const TensorView half = tensor({4}, DType::float16);
  TensorMatcher({4}).with_dtype({DType::float32, DType::float16}).verify(half);
  TensorMatcher({4}).with_dtype(DType::float16).verify(half);
  expect_error(
      ErrorKind::type,
      [&] { TensorMatcher({4}).with_dtype(DType::float32).verify(half, "f", "x"); },
      "f: x: Dtype value [float16] not in the allowed options: [float32]"
      "; tc.astype(x, tc.float32) converts it");
}

TEST(MatcherDType, SharesASymbolBetweenTensors) {
  SymbolicDType dtype;
  TensorMatcher({4}).with_dtype<float, f16>(dtype).verify(tensor({4}), "f", "a");
  EXPECT_EQ(dtype.unwrap(), DType::float32);
  const TensorView half = tensor({4}, DType::float16);
  expect_error(
      ErrorKind::type, [&] { TensorMatcher({4}).with_dtype(dtype).verify(half, "f", "b"); },
      "f: b: DType mismatch: expected float32 but got float16 (the dtype of a)"
      "; tc.astype(b, tc.float32) converts it");
}

TEST(MatcherDType, WantsOneDtypeForAllTensorsOfAChain) {
  expect_error(
      ErrorKind::type,
      [] {
        TensorMatcher({4})
            .with_dtype<float, f16>()
            .verify(tensor({4}), "f", "a")
            .verify(tensor({4}, DType::float16), "f", "b");
      },
      "f: b: DType mismatch: expected float32 but got float16 (the dtype of a)"
      "; tc.astype(b, tc.float32) converts it");
}

TEST(MatcherDevice, NamesTheAllowedOptions) {
  const TensorView t = tensor({4}, DType::float32, Device::cuda(1));
  TensorMatcher({4}).with_device<dlpack::kDLCPU, dlpack::kDLCUDA>().verify(t);
  expect_error(
      ErrorKind::value,
      [&] { TensorMatcher({4}).with_device<dlpack::kDLCPU>().verify(t, "f", "x"); },
      "f: x: Device value [cuda:1] not in the allowed options: [cpu]");
  expect_error(
      ErrorKind::value,
      [&] { TensorMatcher({4}).with_device<dlpack::kDLCUDA>().verify(tensor({4}), "f", "x"); },
      "f: x: Device value [cpu] not in the allowed options: [cuda]");
}

TEST(MatcherDevice, SharesASymbolBetweenTensors) {
  SymbolicDevice device;
  const TensorView first = tensor({4}, DType::float32, Device::cuda(0));
  const TensorView second = tensor({4}, DType::float32, Device::cuda(1));
  TensorMatcher({4}).with_device<dlpack::kDLCUDA>(device).verify(first, "f", "a");
  expect_error(
      ErrorKind::value, [&] { TensorMatcher({4}).with_device(device).verify(second, "f", "b"); },
      "f: b: Device mismatch: expected cuda:0 but got cuda:1 (the device of a)");
  expect_error(
      ErrorKind::value,
      [&] { TensorMatcher({4}).with_device(Device::cuda(1)).verify(first, "f", "a"); },
      "f: a: Device value [cuda:0] not in the allowed options: [cuda:1]");
}

template <class Matcher>
concept VerifiesAsLvalue = requires(Matcher& m, const TensorView& t) { m.verify(t); };
template <class Matcher>
concept VerifiesAsRvalue = requires(Matcher&& m, const TensorView& t) { std::move(m).verify(t); };
static_assert(!VerifiesAsLvalue<TensorMatcher> && VerifiesAsRvalue<TensorMatcher>);
static_assert(!std::copy_constructible<TensorMatcher> && !std::move_constructible<TensorMatcher>);
static_assert(!std::copy_constructible<SymbolicSize>);

}  // namespace
}  // namespace tensorcraft
