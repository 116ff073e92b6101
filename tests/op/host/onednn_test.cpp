// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/host/onednn.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/op/host/parallel.hpp"
#include "tests/op/host/gemm_problems.hpp"

#include <thread>

namespace tensorcraft::host {
namespace {

struct OneDnn : testing::Test {
  void SetUp() override {
    if (!onednn::available()) GTEST_SKIP() << onednn::unavailable_reason();
  }
};

void run(const GemmCase& c) {
  SCOPED_TRACE(testing::Message() << c.batch << " x " << c.m << " x " << c.n << " x " << c.k);
  GemmData data(c);
  ASSERT_EQ(onednn::declines(data.problem), nullptr);
  onednn::matmul(data.problem);
  data.check();
}

TEST_F(OneDnn, HasAVersion) { EXPECT_EQ(onednn::version().substr(0, 2), "3."); }

TEST_F(OneDnn, AgreesWithDoubleInEveryLayout) {
  for (const bool transpose_a : {false, true})
    for (const bool transpose_b : {false, true})
      for (const int64_t gap : {0, 3})
        for (const int64_t batch : {1, 5})
          run({.m = 150,
               .n = 130,
               .k = 70,
               .batch = batch,
               .transpose_a = transpose_a,
               .transpose_b = transpose_b,
               .gap = gap});
}

TEST_F(OneDnn, SplitsRowsColumnsAndBatchesBetweenThreads) {
  for (const int threads : {1, 2, 3, 5}) {
    set_num_threads(threads);
    run({.m = 400, .n = 100, .k = 300, .bias = true});
    run({.m = 16, .n = 1000, .k = 300, .bias = true});
    run({.m = 64, .n = 64, .k = 32, .batch = 53, .bias = true});
  }
  set_num_threads(0);
}

TEST_F(OneDnn, AppliesEveryActivation) {
  for (const Activation a : {Activation::none, Activation::relu, Activation::gelu,
                             Activation::gelu_tanh, Activation::silu})
    run({.m = 40, .n = 96, .k = 100, .bias = true, .activation = a});
}

TEST_F(OneDnn, ScalesAndAddsToTheOutput) {
  run({.m = 40, .n = 96, .k = 100, .alpha = 0.5f, .beta = -0.25f});
  run({.m = 40, .n = 96, .k = 100, .alpha = -2.0f, .activation = Activation::relu});
}

TEST_F(OneDnn, MultipliesBfloat16OrSaysThatItCannot) {
  for (const DType out : {DType::bfloat16, DType::float32}) {
    const GemmCase c{.m = 64, .n = 96, .k = 128, .in = DType::bfloat16, .out = out, .bias = true};
    if (onednn::declines(GemmData(c).problem) == nullptr) run(c);
  }
}

TEST_F(OneDnn, WorksInSeveralThreadsAtOnce) {
  std::vector<std::thread> users;
  for (int u = 0; u < 4; ++u)
    users.emplace_back([] {
      for (int i = 0; i < 10; ++i) run({.m = 80, .n = 64, .k = 50, .bias = true});
    });
  for (auto& user : users) user.join();
}

TEST_F(OneDnn, SaysWhyItDeclines) {
  GemmData mixed({.m = 4, .n = 4, .k = 4});
  mixed.problem.b.dtype = DType::bfloat16;
  EXPECT_STREQ(onednn::declines(mixed.problem), "a and b differ in dtype");
  GemmData both({.m = 4, .n = 4, .k = 4, .alpha = 2, .bias = true});
  EXPECT_STREQ(onednn::declines(both.problem), "a bias beside alpha or c");
  GemmData empty({.m = 4, .n = 4, .k = 0});
  EXPECT_STREQ(onednn::declines(empty.problem), "an extent is 0");
  EXPECT_THROW(onednn::matmul(empty.problem), Error);
}

}  // namespace
}  // namespace tensorcraft::host
