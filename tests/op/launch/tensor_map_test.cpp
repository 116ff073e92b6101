// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/launch/tensor_map.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/simt/tensor_map.hpp"
#include "tests/support/fake_driver.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace tensorcraft::op {
namespace {

using test::FakeDriver;
using test::FakeGpu;

alignas(16) unsigned char memory[16];

TiledTensor tensor(void* address) {
  return {.dtype = DType::bfloat16,
          .address = address,
          .rank = 2,
          .dims = {64, 64},
          .strides = {128},
          .box = {64, 32}};
}

bool is_empty(const TensorMap& map) {
  return std::ranges::all_of(map.bytes, [](unsigned char x) { return x == 0; });
}

TEST(TensorMapOfAPlan, IsEncodedForTheSimtDevice) {
  const TensorMap map = tensor_map(tensor(memory), device_info(Device::simt()));
  ASSERT_TRUE(simt::decode_tiled(map).has_value());
  EXPECT_EQ(simt::decode_tiled(map)->address, memory);
}

TEST(TensorMapOfAPlan, MovesToTheWorkspaceOfALaunch) {
  TensorMap map = tensor_map(tensor(workspace_address()), device_info(Device::simt()));
  replace_address(map, memory, Device::simt());
  const TensorMap wanted = tensor_map(tensor(memory), device_info(Device::simt()));
  EXPECT_TRUE(std::ranges::equal(map.bytes, wanted.bytes));
}

Im2colTensor windows(void* address) {
  Im2colTensor t{.images = tensor(address)};
  t.images.rank = 3;
  t.images.dims = {64, 9, 2};
  t.images.strides = {128, 1152};
  return t;
}

TEST(TensorMapOfAPlan, OfWindowsIsLikeThat) {
  TensorMap map = tensor_map(windows(workspace_address()), device_info(Device::simt()));
  replace_address(map, memory, Device::simt());
  const TensorMap wanted = tensor_map(windows(memory), device_info(Device::simt()));
  EXPECT_TRUE(std::ranges::equal(map.bytes, wanted.bytes));
  FakeDriver fake({FakeGpu{}});
  EXPECT_FALSE(is_empty(tensor_map(windows(memory), device_info_of_arch("sm_90a"))));
  EXPECT_EQ(fake.calls["cuTensorMapEncodeIm2col"], 1);
  EXPECT_TRUE(is_empty(tensor_map(windows(nullptr), device_info_of_arch("sm_90a"))));
  Im2colTensor wrong = windows(nullptr);
  wrong.images.strides[0] = 24;
  EXPECT_THROW(tensor_map(wrong, device_info_of_arch("sm_90a")), Error);
}

TEST(TensorMapOfAPlan, IsEncodedByTheDriverOfAGpuThatIsThere) {
  FakeDriver fake({FakeGpu{}});
  EXPECT_FALSE(is_empty(tensor_map(tensor(memory), device_info_of_arch("sm_90a"))));
  EXPECT_EQ(fake.calls["cuTensorMapEncodeTiled"], 1);
}

TEST(TensorMapOfAPlan, IsEmptyWithoutADriverOrAnAddress) {
  {
    FakeDriver fake{std::vector<FakeGpu>()};
    EXPECT_TRUE(is_empty(tensor_map(tensor(memory), device_info_of_arch("sm_90a"))));
  }
  FakeDriver fake({FakeGpu{}});
  EXPECT_TRUE(is_empty(tensor_map(tensor(nullptr), device_info_of_arch("sm_90a"))));
  EXPECT_EQ(fake.calls["cuTensorMapEncodeTiled"], 0);
}

TEST(TensorMapOfAPlan, ObeysTheRulesOnAnyMachine) {
  FakeDriver fake{std::vector<FakeGpu>()};
  TiledTensor wrong = tensor(nullptr);
  wrong.strides[0] = 24;
  EXPECT_THROW(tensor_map(wrong, device_info_of_arch("sm_90a")), Error);
}

}  // namespace
}  // namespace tensorcraft::op
