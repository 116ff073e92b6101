// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/host/gemm.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/op/host/parallel.hpp"
#include "tests/op/host/gemm_problems.hpp"

namespace tensorcraft::host {
namespace {

void run(const GemmCase& c) {
  SCOPED_TRACE(testing::Message() << c.batch << " x " << c.m << " x " << c.n << " x " << c.k);
  GemmData data(c);
  gemm(data.problem);
  data.check();
}

TEST(HostGemm, AgreesWithDoubleAroundEveryTileSize) {
  for (const int64_t m : {1, 4, 5, 6, 7, 11, 12, 13, 96, 97})
    for (const int64_t n : {1, 7, 8, 9, 16, 17, 31, 32, 33, 385}) run({.m = m, .n = n, .k = 19});
  for (const int64_t k : {0, 1, 2, 383, 384, 385, 800}) run({.m = 13, .n = 33, .k = k});
}

TEST(HostGemm, TakesEveryLayoutWithGapsBetweenLines) {
  for (const bool transpose_a : {false, true})
    for (const bool transpose_b : {false, true})
      for (const int64_t gap : {0, 3})
        run({.m = 50,
             .n = 70,
             .k = 40,
             .batch = 2,
             .transpose_a = transpose_a,
             .transpose_b = transpose_b,
             .gap = gap});
}

TEST(HostGemm, ConvertsLowPrecisionInAndOut) {
  for (const DType in : {DType::float32, DType::float16, DType::bfloat16})
    for (const DType out : {DType::float32, DType::float16, DType::bfloat16})
      run({.m = 37, .n = 41, .k = 500, .transpose_b = true, .in = in, .out = out, .bias = true});
}

TEST(HostGemm, AppliesTheEpilogueOnceAfterAllOfK) {
  for (const Activation a : {Activation::none, Activation::relu, Activation::gelu,
                             Activation::gelu_tanh, Activation::silu})
    run({.m = 20, .n = 40, .k = 900, .alpha = 0.5f, .beta = -0.25f, .bias = true, .activation = a});
}

TEST(HostGemm, IsTheSameForAnyNumberOfThreads) {
  const GemmCase c{.m = 300, .n = 500, .k = 700, .bias = true, .activation = Activation::gelu};
  std::vector<float> first;
  for (const int threads : {1, 2, 3, 7}) {
    set_num_threads(threads);
    GemmData data(c);
    gemm(data.problem);
    if (first.empty()) first = data.d.read();
    // The last element is padding and stays NaN.
    const auto now = data.d.read();
    ASSERT_TRUE(std::equal(now.begin(), now.end() - 1, first.begin())) << threads;
  }
  set_num_threads(0);
}

TEST(HostGemm, SharesAnOperandThroughABatchStrideOfZero) {
  GemmData data({.m = 17, .n = 23, .k = 31, .batch = 40});
  data.problem.b.batch = 0;
  gemm(data.problem);
  data.check();
}

TEST(HostGemm, DoesNothingForAnEmptyResult) {
  gemm({.m = 0, .n = 5, .k = 5});
  gemm({.m = 5, .n = 5, .k = 5, .batch = 0});
}

TEST(HostGemm, RefusesADtypeThatIsNoRow) {
  GemmData data({.m = 2, .n = 2, .k = 2});
  data.problem.b.dtype = DType::int16;
  try {
    gemm(data.problem);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::type);
    EXPECT_STREQ(
        e.what(),
        "gemm: b: dtype int16 is not supported on the host; expected a float of 8 to 32 bits "
        "or int8");
  }
}

}  // namespace
}  // namespace tensorcraft::host
