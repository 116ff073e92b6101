// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/packed_gemm/packed_gemm.hpp"

#include "tensorcraft/core/error.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/tensors.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace tensorcraft {
namespace {

using test::expect_error_with;
using test::places;
using test::tensor_of;
using test::values;

// Code 9 is 1 above the zero of int4, and -0.5 of e2m1.
TEST(PackedGemm, ACodeMeansWhatItsScaleSays) {
  for (const Device d : places()) {
    const Tensor a = tensor_of<float>(DType::float32, std::vector<float>(16, 1), {1, 16}, d);
    const Tensor codes = tensor_of<uint8_t>(DType::uint8, std::vector<uint8_t>(8, 0x99), {1, 8}, d);
    const Tensor half =  // 0.5
        tensor_of<uint16_t>(DType::float16, {0x3800}, {1, 1}, d);
    EXPECT_EQ(values(packed_gemm(a, codes, half)), (std::vector<float>{8})) << d;
    const Tensor zero = tensor_of<uint8_t>(DType::uint8, {7}, {1, 1}, d);
    EXPECT_EQ(values(packed_gemm(a, codes, half, {.zeros = zero.view()})),
              (std::vector<float>{16}));
    const Tensor least = tensor_of<uint16_t>(DType::float16, {0xc400}, {1, 1}, d);  // -4
    EXPECT_EQ(values(packed_gemm(a, codes, half, {.zeros = least.view()})),
              (std::vector<float>{8}));
    const Tensor exponent = tensor_of<uint8_t>(DType::uint8, {129}, {1, 1}, d);
    EXPECT_EQ(values(packed_gemm(a, codes, exponent)), (std::vector<float>{-32}));
    const Tensor e4m3 =  // 3
        tensor_of<uint8_t>(DType::float8_e4m3fn, {0x44}, {1, 1}, d);
    EXPECT_EQ(values(packed_gemm(a, codes, e4m3, {.tensor_scale = 0.5f})),
              (std::vector<float>{-12}));
    const Tensor nan = tensor_of<uint8_t>(DType::uint8, {255}, {1, 1}, d);
    EXPECT_TRUE(std::isnan(values(packed_gemm(a, codes, nan))[0]));
  }
}

// A row has the same bits alone and with others, up to what a block takes.
TEST(PackedGemm, ARowDependsOnNoOther) {
  std::mt19937 random(9);
  for (const Device d : places()) {
    const Tensor a = test::normal_tensor({8, 256}, DType::bfloat16).to(d);
    std::vector<uint8_t> bytes(40 * 128);
    for (uint8_t& byte : bytes) byte = uint8_t(random());
    const Tensor codes = tensor_of<uint8_t>(DType::uint8, bytes, {40, 128}, d);
    const Tensor scales =
        tensor_of<uint16_t>(DType::bfloat16, std::vector<uint16_t>(80, 0x3ca4), {40, 2}, d);
    const auto bits = [](const Tensor& t) {
      std::vector<uint16_t> all(size_t(t.size()));
      t.copy_to_host(all.data(), t.nbytes());
      return all;
    };
    const std::vector<uint16_t> all = bits(packed_gemm(a, codes, scales));
    const Tensor out(DType::bfloat16, {1, 40}, d);
    packed_gemm(out, a.slice(0, 3, 4), codes, scales);
    EXPECT_EQ(bits(out), (std::vector<uint16_t>(all.begin() + 120, all.begin() + 160))) << d;
  }
}

TEST(PackedGemm, SaysWhatDoesNotFit) {
  const Tensor a(DType::float32, {2, 32}), codes(DType::uint8, {3, 16}),
      scales(DType::float16, {3, 2}), zeros(DType::uint8, {3, 2});
  const auto refused = [](ErrorKind kind, const std::string& text, auto call) {
    expect_error_with(kind, text, call);
  };
  refused(ErrorKind::value, "codes: expected k / 2 = 16 bytes a row",
          [&] { packed_gemm(a, Tensor(DType::uint8, {3, 8}), scales); });
  refused(ErrorKind::value, "a group of a multiple of 16 that divides k = 32, got 4",
          [&] { packed_gemm(a, codes, Tensor(DType::float16, {3, 4})); });
  refused(ErrorKind::value, "k must be a multiple of 16, got 8", [&] {
    packed_gemm(Tensor(DType::float32, {2, 8}), Tensor(DType::uint8, {3, 4}), scales);
  });
  refused(ErrorKind::value, "zeros: only int4 has zero points",
          [&] { packed_gemm(a, codes, Tensor(DType::uint8, {3, 2}), {.zeros = zeros.view()}); });
  refused(
      ErrorKind::type, "zeros: Dtype value [bfloat16] not in the allowed options: [uint8, float16]",
      [&] { packed_gemm(a, codes, scales, {.zeros = Tensor(DType::bfloat16, {3, 2}).view()}); });
  refused(ErrorKind::value, "tensor_scale: only nvfp4 has one",
          [&] { packed_gemm(a, codes, scales, {.tensor_scale = 2}); });
  refused(ErrorKind::value, "Size mismatch",
          [&] { packed_gemm(a, codes, Tensor(DType::float16, {4, 2})); });
  EXPECT_THROW(packed_gemm(Tensor(DType::int32, {2, 32}), codes, scales), Error);
}

}  // namespace
}  // namespace tensorcraft
