// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/merge_attention/merge_attention.hpp"

#include "tensorcraft/ops/all.hpp"
#include "tensorcraft/ops/attention/attention.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/tensors.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace tensorcraft {
namespace {

using test::normal_tensor, test::values;

// Every variant of the host and the emulator.
template <class F>
void each_merge_variant(F&& f) {
  const auto places = test::places();
  for (const auto& v : find_operator("merge_attention").description().variants)
    for (const Device place : places)
      if ((v.device == DeviceType::cpu) == (place == Device::cpu())) f(place, v.name);
}

TEST(MergeAttention, PartsBecomeTheWhole) {
  const Tensor q = normal_tensor({2, 3, 5, 64}, DType::float32, 1),
               k = normal_tensor({2, 3, 40, 64}, DType::float32, 2),
               v = normal_tensor({2, 3, 40, 64}, DType::float32, 3);
  const auto part = [&](const TensorView& keys, const TensorView& weights) {
    return attention(q, keys, weights, {.return_lse = true});
  };
  const auto whole = part(k, v), a = part(k.view().slice(2, 0, 13), v.view().slice(2, 0, 13)),
             b = part(k.view().slice(2, 13, 40), v.view().slice(2, 13, 40));
  each_merge_variant([&](Device place, std::string_view variant) {
    const auto merged = merge_attention(a.out.to(place), a.lse.to(place), b.out.to(place),
                                        b.lse.to(place), {.variant = variant});
    test::expect_close(merged.out, whole.out, 1e-6, 1e-6);
    test::expect_close(merged.lse, whole.lse, 1e-6, 1e-6);
  });
}

TEST(MergeAttention, ASideThatSawNoKeyIsLeftOut) {
  const auto rows =
      Tensor::from(std::vector<float>{NAN, NAN, NAN, NAN, 1, 2, 3, 4, NAN, NAN, NAN, NAN}, {3, 4});
  const auto others =
      Tensor::from(std::vector<float>{5, 6, 7, 8, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN}, {3, 4});
  const auto lse = Tensor::from(std::vector<float>{-INFINITY, 2, -INFINITY}, {3}),
             other = Tensor::from(std::vector<float>{-3, -INFINITY, -INFINITY}, {3});
  each_merge_variant([&](Device place, std::string_view variant) {
    const auto merged = merge_attention(rows.to(place), lse.to(place), others.to(place),
                                        other.to(place), {.variant = variant});
    EXPECT_EQ(values(merged.out), (std::vector<float>{5, 6, 7, 8, 1, 2, 3, 4, 0, 0, 0, 0}))
        << variant;
    EXPECT_EQ(values(merged.lse), (std::vector<float>{-3, 2, -INFINITY})) << variant;
  });
}

TEST(MergeAttention, FarApartLogarithmsNeitherOverflowNorVanish) {
  const auto one = Tensor::from(std::vector<float>{1, 1, 1, 1}, {1, 4}),
             two = Tensor::from(std::vector<float>{2, 2, 2, 2}, {1, 4});
  for (const float far : {90.0f, 1e4f, 1e30f})
    each_merge_variant([&](Device place, std::string_view variant) {
      const auto merged = merge_attention(
          one.to(place), Tensor::from(std::vector<float>{far}, {1}).to(place), two.to(place),
          Tensor::from(std::vector<float>{-far}, {1}).to(place), {.variant = variant});
      EXPECT_EQ(values(merged.out), std::vector<float>(4, 1.0f)) << variant;
      EXPECT_EQ(values(merged.lse), std::vector<float>{far}) << variant;
    });
}

TEST(MergeAttention, ASideMayBeTheResult) {
  const Tensor a = normal_tensor({37, 64}, DType::float32, 1),
               b = normal_tensor({37, 64}, DType::float32, 2),
               lse_a = normal_tensor({37}, DType::float32, 3),
               lse_b = normal_tensor({37}, DType::float32, 4);
  each_merge_variant([&](Device place, std::string_view variant) {
    const Tensor x = a.to(place), y = b.to(place), lx = lse_a.to(place), ly = lse_b.to(place);
    const auto merged = merge_attention(x, lx, y, ly, {.variant = variant});
    Tensor to(DType::float32, {37, 64}, place), lse(DType::float32, {37}, place);
    to.copy_from_host(values(a).data(), to.nbytes());
    lse.copy_from_host(values(lse_b).data(), lse.nbytes());
    merge_attention(to, to, lx, y, lse, {.lse = lse.view(), .variant = variant});
    EXPECT_EQ(values(to), values(merged.out)) << variant;
    EXPECT_EQ(values(lse), values(merged.lse)) << variant;
  });
}

TEST(MergeAttention, SaysWhatItTakes) {
  const Tensor out(DType::float32, {3, 4}), lse(DType::float32, {3}),
      short_lse(DType::float32, {2});
  test::expect_error(
      ErrorKind::value, [&] { merge_attention(out, short_lse, out, lse); },
      "merge_attention: lse_a: Size mismatch for shape#0: expected 3 but got 2; lse_a is [2], "
      "expected [3]");
  test::expect_error(
      ErrorKind::type, [&] { merge_attention(out, lse, Tensor(DType::float16, {3, 4}), lse); },
      "merge_attention: out_b: Dtype value [float16] not in the allowed options: [float32]; "
      "tc.astype(out_b, tc.float32) converts it");
  test::expect_error(
      ErrorKind::value, [&] { merge_attention(Tensor(DType::float32, {}), lse, out, lse); },
      "merge_attention: out_a: expected (..., head_dim) with a head_dim of at least 1, got shape "
      "[]");
}

}  // namespace
}  // namespace tensorcraft
