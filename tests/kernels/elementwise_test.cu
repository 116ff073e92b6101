// SPDX-License-Identifier: Apache-2.0
// A user's function over arrays of every length and address: a functor, and a lambda under
// --extended-lambda.
#include "tensorcraft/kernels/elementwise.cuh"

#include <gtest/gtest.h>

namespace tensorcraft::kernels {
namespace {

bool has_gpu() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
}

// n elements, `offset` after an aligned address, seen by host and GPU.
template <class T>
class Managed {
 public:
  Managed(int64_t n, int64_t offset) : offset_(offset) {
    EXPECT_EQ(cudaMallocManaged(&memory_, size_t(n + offset + 1) * sizeof(T)), cudaSuccess);
  }
  ~Managed() { cudaFree(memory_); }
  Managed(const Managed&) = delete;
  Managed& operator=(const Managed&) = delete;
  T* get() { return memory_ + offset_; }

 private:
  T* memory_ = nullptr;
  int64_t offset_;
};

float value_at(int64_t i) { return float(i % 61 - 30); }

struct Halved {
  float by;
  __device__ float operator()(float x) const { return x * by; }
};
struct Sum {
  __device__ float operator()(float a, float b) const { return a + b; }
};

// What is behind the last element stays.
template <class T>
void expect_right(int64_t n, int64_t offset) {
  Managed<T> a(n, offset), out(n, offset);
  for (int64_t i = 0; i < n; ++i) a.get()[i] = T(value_at(i)), out.get()[i] = T(99.0f);
  out.get()[n] = T(99.0f);
  const auto expect = [&](auto&& expected, const char* what) {
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    for (int64_t i = 0; i < n; ++i)
      ASSERT_EQ(float(out.get()[i]), expected(value_at(i))) << what << ' ' << n << " at " << i;
    ASSERT_EQ(float(out.get()[n]), 99.0f) << what << ' ' << n;
  };
  launch_elementwise(a.get(), out.get(), n, Halved{0.5f});
  expect([](float x) { return x * 0.5f; }, "functor");
  launch_elementwise(a.get(), a.get(), out.get(), n, Sum{});
  expect([](float x) { return x + x; }, "functor of two");
  const float more = 3;
  launch_elementwise(a.get(), out.get(), n, [more] __device__(float x) { return more - x; });
  expect([](float x) { return 3 - x; }, "lambda");
}

TEST(Elementwise, CallsAUsersFunctionForEachElement) {
  if (!has_gpu()) GTEST_SKIP() << "there is no GPU";
  for (const int64_t n : {0, 1, 3, 4, 5, 1023, (1 << 20) + 3})
    for (const int64_t offset : {0, 1, 2}) {
      expect_right<float>(n, offset);
      expect_right<bf16>(n, offset);
    }
}

// More elements than 65535 blocks have threads.
TEST(Elementwise, BlocksTakeSeveralStridesOfALongArray) {
  if (!has_gpu()) GTEST_SKIP() << "there is no GPU";
  expect_right<float>((int64_t(1) << 24) + 70'003, 1);
}

}  // namespace
}  // namespace tensorcraft::kernels
