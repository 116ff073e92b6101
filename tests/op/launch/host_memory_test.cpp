// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/launch/host_memory.hpp"

#include "tensorcraft/cuda/memory.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/fake_driver.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace tensorcraft::op {
namespace {

TEST(HostMemory, TheFirstTensorElsewhereSaysWhere) {
  const TensorView host(nullptr, DType::float32, {0}),
      simt(nullptr, DType::float32, {0}, Device::simt());
  EXPECT_EQ(reaching_device(std::vector{host, host}), Device::cpu());
  EXPECT_EQ(reaching_device(std::vector{host, simt, host}), Device::simt());
  EXPECT_EQ(reaching_device({}), Device::cpu());
}

TEST(HostMemory, KeepsWhatAViewIs) {
  std::vector<float> x(8);
  const TensorView host(x.data(), DType::float32, {2, 2}, {4, 1}, Device::cpu(), Access::read_only);
  const TensorView there = reached(host, Device::simt());
  EXPECT_EQ(there.data(), x.data());
  EXPECT_EQ(there.device(), Device::simt());
  EXPECT_EQ(there.strides(), host.strides());
  EXPECT_TRUE(there.read_only());
  EXPECT_EQ(reached(host, Device::cpu()).device(), Device::cpu());
}

TEST(HostMemory, AGpuReachesPageLockedMemoryAlone) {
  const test::FakeDriver driver;
  void* const pinned = cuda::allocate_pinned(64);
  const TensorView locked(pinned, DType::float32, {16});
  EXPECT_EQ(reached(locked, Device::cuda(0)).data(), pinned);
  EXPECT_EQ(reached(locked, Device::cuda(0)).device(), Device::cuda(0));
  EXPECT_FALSE(is_pageable(locked, Device::cuda(0)));
  cuda::deallocate_pinned(pinned);
  std::vector<float> x(16);
  const TensorView plain(x.data(), DType::float32, {16});
  EXPECT_TRUE(is_pageable(plain, Device::cuda(0)));
  EXPECT_FALSE(is_pageable(plain, Device::simt()));
  EXPECT_FALSE(is_pageable(plain.slice(0, 0, 0), Device::cuda(0)));
  EXPECT_EQ(reached(plain, Device::cuda(0)).data(), x.data());
  test::expect_error(
      ErrorKind::value, [&] { refuse_pageable(plain, Device::cuda(0), "op", "x"); },
      "op: x: cuda:0 cannot reach the memory of the host where Tensor<16>[strides=<1>, "
      "dtype=float32, device=cpu] lies: it is not page-locked; make it with tc.memory.pinned(), or "
      "move the tensor with .to(\"cuda:0\")");
}

}  // namespace
}  // namespace tensorcraft::op
