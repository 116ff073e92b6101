// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/runtime/safetensors/staging.hpp"

#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/runtime/safetensors/file.hpp"
#include "tests/runtime/safetensors/writer.hpp"

#include <gtest/gtest.h>

namespace tensorcraft {

using test::file_bytes;
using test::tensor_entry;

// Three pieces, so that each of the two buffers is used and one of them twice.
TEST(Staging, UploadsATensorLargerThanItsBuffers) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no CUDA device";
  const test::TemporaryFolder folder;
  const size_t bytes = 2 * safetensors::Staging::kBytes + 12345;
  const std::string header = "{" + tensor_entry("x", "U8", join("[", bytes, "]"), 0, bytes) + "}";
  const SafeTensors file(folder.write("x.safetensors", file_bytes(header, bytes)));
  const auto x = file.load("x", Device::cuda(), {.checksum = true});
  EXPECT_TRUE(x->view().read_only());
  EXPECT_NO_THROW(x->verify());
  Tensor host(DType::uint8, Dims{int64_t(bytes)});
  copy_bytes(host, x->view(), current_stream(0));
  for (size_t i = 0; i < bytes; ++i)
    ASSERT_EQ(host.data_as<uint8_t>()[i], uint8_t(i)) << "at byte " << i;
}

}  // namespace tensorcraft
