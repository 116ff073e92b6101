// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/host/onednn.hpp"
#include "tensorcraft/ops/gemm/gemm.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/tensors.hpp"

#include <gtest/gtest.h>

#include <cmath>

// Products of float8 on the host by oneDNN.
namespace tensorcraft {
namespace {

using test::doubles, test::normal_tensor;

// oneDNN has them as bfloat16, which holds every number: in all layouts, one matrix for a batch
// too, and few rows or scales by block are left to cpu.
TEST(GemmBytesOnTheHost, MultiplyFloat8ByOneDnnWithoutRounding) {
  if (!host::onednn::available()) GTEST_SKIP() << "oneDNN is not installed";
  const int64_t batch = 3, m = 21, n = 37, k = 150;
  const Tensor a_scale = normal_tensor({m, 1}, DType::float32, 3),
               b_scale = normal_tensor({n}, DType::float32, 4);
  for (const DType dtype : {DType::float8_e4m3fn, DType::float8_e5m2})
    for (const bool transpose_a : {false, true})
      for (const bool transpose_b : {false, true}) {
        SCOPED_TRACE(join(dtype, " ", transpose_a, " ", transpose_b));
        const Tensor a =
            normal_tensor(transpose_a ? Dims{batch, k, m} : Dims{batch, m, k}, dtype, 1);
        const Tensor b = normal_tensor(transpose_b ? Dims{n, k} : Dims{k, n}, dtype, 2);
        a.data_as<uint8_t>()[7] = dtype == DType::float8_e4m3fn ? 0x7f : 0x7e;  // NaN
        const auto product = [&](std::string_view variant) {
          return gemm(a, b,
                      {.alpha = 0.5f,
                       .transpose_a = transpose_a,
                       .transpose_b = transpose_b,
                       .a_scale = a_scale,
                       .b_scale = b_scale,
                       .out_dtype = DType::float32,
                       .variant = variant});
        };
        const auto got = doubles(product("onednn")), want = doubles(product("reference"));
        for (size_t i = 0; i < got.size(); ++i) {
          if (std::isnan(want[i]))
            ASSERT_TRUE(std::isnan(got[i])) << i;
          else
            ASSERT_NEAR(got[i], want[i], 1e-4 + 1e-5 * std::abs(want[i])) << i;
        }
      }
  const Tensor b = normal_tensor({n, k}, DType::float8_e4m3fn, 2),
               few = normal_tensor({4, k}, DType::float8_e4m3fn, 1);
  test::expect_error_with(ErrorKind::unsupported, "few rows: cpu reads float8 once, in place",
                          [&] { gemm(few, b, {.transpose_b = true, .variant = "onednn"}); });
  const Tensor many = normal_tensor({m, k}, DType::float8_e4m3fn, 1),
               of_a = normal_tensor({m, 2}, DType::float32, 5),
               of_b = normal_tensor({1, 2}, DType::float32, 6);
  const GemmOptions by_block{
      .transpose_b = true, .a_scale = of_a, .b_scale = of_b, .variant = "onednn"};
  test::expect_error_with(ErrorKind::unsupported,
                          "scales by block: cpu adds the products of one after the other",
                          [&] { gemm(many, b, by_block); });
}

}  // namespace
}  // namespace tensorcraft
