// SPDX-License-Identifier: Apache-2.0
// Checks what a caller of any operator meets: errors name the caller's line, and a result of
// several tensors goes wherever a tensor does.
#include "tensorcraft/tensorcraft.hpp"
#include "tests/support/expect_line.hpp"
#include "tests/support/tensors.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <type_traits>
#include <vector>

namespace tensorcraft {
namespace {

using test::expect_line;

class CallersLine : public ::testing::Test {
 protected:
  const Tensor x{DType::float32, {2, 4}}, other{DType::float32, {3, 5}}, i8{DType::int8, {2, 4}};
};

TEST_F(CallersLine, IsNamedByTheFormThatAllocates) {
  const Tensor flat(DType::float32, {4});
  expect_line([&] { softmax(x, {.axis = 2}); });
  expect_line([&] { softmax(x, {.variant = "fastest"}); });
  expect_line([&] { relu(Tensor(DType::bool_, {2})); });
  expect_line([&] { add(x, other); });
  expect_line([&] { equal(x, other); });
  expect_line([&] { sum(x, {.axis = Dims{7}}); });
  expect_line([&] { gemm(x, other); });
  expect_line([&] { gemm(x, i8, {.alpha = 2}); });
  expect_line([&] { rms_norm(x, {.weight = other.view()}); });
  expect_line([&] { layer_norm(flat, {.bias = x.view()}); });
  expect_line([&] { rope(x, {.k = other.view()}); });
  expect_line([&] { attention(x, x, x); });
  expect_line([&] { topk(x, {.k = 9}); });
  expect_line([&] { elementwise("a +", {{"a", x}}); });
  expect_line([&] { elementwise("a + b", {{"a", x}, {"b", other}}); });
  expect_line([&] { embedding(x, x); });
  expect_line([&] { permute_dims(x, {.axes = Dims{0, 0}}); });
  expect_line([&] { take(x, x); });
  expect_line([&] { quantize(i8); });
}

TEST_F(CallersLine, IsNamedByTheFormThatWritesIntoATensor) {
  expect_line([&] { softmax(other, x); });
  expect_line([&] { add(other, x, x); });
  expect_line([&] { gemm(x, x, other); });
  expect_line([&] { rms_norm(i8, x); });
  expect_line([&] { copy(other, x); });
  expect_line([&] { elementwise(other, "a", {{"a", x}}); });
  expect_line([&] { softmax(x.view().as_read_only(), x); });
}

TEST_F(CallersLine, IsNamedByWhatJoinsAndSplits) {
  const std::array arrays{x.view(), other.view()};
  const std::vector<TensorView> none;
  expect_line([&] { concat(arrays); });
  expect_line([&] { concat(none); });
  expect_line([&] { stack(arrays, {.axis = 3}); });
  expect_line([&] { concat(x, std::span(arrays).first(1), {.axis = 5}); });
  expect_line([&] { stack(x, std::span(arrays).first(1)); });
  expect_line([&] { split(x, 3); });
  expect_line([&] { split(x, std::array<int64_t, 1>{1}, 4); });
}

// Options that are a variable name the line that makes it.
TEST_F(CallersLine, IsThatOfTheOptions) {
  const auto here = std::source_location::current();
  const SoftmaxOptions options{.axis = 5};
  try {
    softmax(x, options);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.where().line(), here.line() + 1);
  }
}

TEST_F(CallersLine, IsNamedByTheRegistryToo) {
  for (const op::Operator* op : operators()) {
    SCOPED_TRACE(op->description().name);
    const std::vector<TensorView> too_many(20, x);
    expect_line([&] { op->infer({too_many, {}}); });
    expect_line([&] { op->run(std::array{x.view()}, {too_many, {}}); });
    const auto& options = op->description().options;
    EXPECT_TRUE(std::ranges::none_of(options, [](auto& o) { return o.name == "where"; }));
  }
}

template <class Result>
constexpr bool kStandsForATensor =
    std::is_convertible_v<const Result&, TensorView> && std::is_convertible_v<Result&&, Tensor>;

static_assert(kStandsForATensor<Tensor> && kStandsForATensor<RmsNormResult> &&
              kStandsForATensor<LayerNormResult> && kStandsForATensor<BatchNormResult> &&
              kStandsForATensor<BatchNormBackwardResult> && kStandsForATensor<RopeResult> &&
              kStandsForATensor<TopkResult> && kStandsForATensor<AttentionResult> &&
              kStandsForATensor<CrossEntropyResult> && kStandsForATensor<QuantizeResult>);

TEST(Result, GoesWhereATensorGoes) {
  const Tensor x = Tensor::from({1.f, -2.f, 3.f, 4.f, 0.f, 1.f}, {2, 3});
  const std::vector<float> expected = relu(rms_norm(x).out).to_vector<float>();
  EXPECT_EQ(relu(rms_norm(x)).to_vector<float>(), expected);  // no .out
  const Tensor y = rms_norm(x);
  EXPECT_EQ(relu(y).to_vector<float>(), expected);
  const auto [values, indices] = topk(x, {.k = 1});
  EXPECT_EQ(values.to_vector<float>(), (std::vector<float>{3, 4}));
  EXPECT_EQ(indices.size(), 2);
}

TEST(Result, HasEmptyTensorsForWhatWasNotAsked) {
  const Tensor q(DType::float32, {1, 1, 2, 8});
  fill(q, q, {.value = 1});
  EXPECT_EQ(attention(q, q, q).lse.size(), 0);
  EXPECT_EQ(attention(q, q, q, {.return_lse = true}).lse.size(), 2);
  EXPECT_EQ(rms_norm(q).residual_out.size(), 0);
}

}  // namespace
}  // namespace tensorcraft
