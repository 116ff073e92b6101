// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/causal_conv1d/causal_conv1d.hpp"

#include "tests/support/expect_error.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace tensorcraft {
namespace {

TEST(CausalConv1d, ATokenSeesThoseBeforeIt) {
  std::vector<float> x = {1, 2, 3}, w = {10, 1}, out(3), before = {4};
  const TensorView to(out.data(), DType::float32, {1, 3, 1});
  const TensorView from(x.data(), DType::float32, {1, 3, 1}), by(w.data(), DType::float32, {1, 2});
  causal_conv1d(to, from, by);
  EXPECT_EQ(out, (std::vector<float>{1, 12, 23}));
  causal_conv1d(to, from, by, {.state = TensorView(before.data(), DType::float32, {1, 1, 1})});
  EXPECT_EQ(out, (std::vector<float>{41, 12, 23}));
}

TEST(CausalConv1d, PiecesGiveTheBitsOfTheWhole) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  for (int i = 0; i < 100; ++i) {
    const int64_t tokens = 1 + random() % 12, channels = 1 + random() % 9, width = 1 + random() % 5;
    Tensor x(DType::float32, {1, tokens, channels}), w(DType::float32, {channels, width});
    for (Tensor* t : {&x, &w})
      for (int64_t e = 0; e < t->size(); ++e) t->data_as<float>()[e] = normal(random);
    const Tensor whole = causal_conv1d(x, w, {.silu = true}).out;
    Tensor state(DType::float32, {1, width - 1, channels});
    std::memset(state.data(), 0, state.view().nbytes());
    for (int64_t first = 0; first < tokens;) {
      const int64_t end = std::min<int64_t>(tokens, first + 1 + random() % 4);
      CausalConv1dResult piece = causal_conv1d(
          x.view().slice(1, first, end), w, {.silu = true, .state = state, .return_state = true});
      ASSERT_EQ(std::memcmp(piece.out.data(), whole.data_as<float>() + first * channels,
                            piece.out.view().nbytes()),
                0)
          << i;
      state = std::move(piece.new_state);
      first = end;
    }
  }
}

TEST(CausalConv1d, WidthAndStateAreChecked) {
  const Tensor x(DType::float32, {2, 3, 4}), w(DType::float32, {4, 3});
  test::expect_error_with(ErrorKind::value, "a width from 1 to 16",
                          [&] { causal_conv1d(x, Tensor(DType::float32, {4, 17})); });
  test::expect_error_with(ErrorKind::value, "channels",
                          [&] { causal_conv1d(x, Tensor(DType::float32, {5, 3})); });
  const Tensor state(DType::float32, {2, 3, 4});
  test::expect_error_with(ErrorKind::value, "state",
                          [&] { causal_conv1d(x, w, {.state = state}); });
  test::expect_error_with(ErrorKind::value, "at least one token", [&] {
    causal_conv1d(Tensor(DType::float32, {2, 0, 4}), w, {.return_state = true});
  });
}

}  // namespace
}  // namespace tensorcraft
