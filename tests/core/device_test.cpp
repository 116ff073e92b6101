// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/device.hpp"

#include "tests/support/expect_error.hpp"

#include <gtest/gtest.h>

namespace tensorcraft {
namespace {

TEST(Device, ReadsWhatItPrints) {
  for (const Device d : {Device::cpu(), Device::simt(), Device::cuda(0), Device::cuda(12)})
    EXPECT_EQ(parse_device(to_string(d)), d);
  EXPECT_EQ(parse_device("cuda"), Device::cuda(0));
  EXPECT_EQ(to_string(Device::cuda(-1)), "cuda");
}

TEST(Device, RefusesOtherNames) {
  for (const char* name : {"", "gpu", "CPU", "cuda:", "cuda:-1", "cuda:1x", "cuda: 1", "cpu:0",
                           "cuda:99999999999999999999"})
    test::expect_error(
        ErrorKind::value, [&] { parse_device(name); },
        join("device \"", name, "\" is not known; use \"cpu\", \"cuda\", \"cuda:N\" or \"simt\""));
}

TEST(Device, ComesFromDlpack) {
  EXPECT_EQ(from_dlpack(dlpack::DLDevice{dlpack::kDLCPU, 0}), Device::cpu());
  EXPECT_EQ(from_dlpack(dlpack::DLDevice{dlpack::kDLCUDAHost, 0}), Device::cpu());
  EXPECT_EQ(from_dlpack(dlpack::DLDevice{dlpack::kDLCUDA, 2}), Device::cuda(2));
  EXPECT_EQ(from_dlpack(dlpack::DLDevice{dlpack::kDLCUDAManaged, 1}), Device::cuda(1));
  EXPECT_THROW(from_dlpack(dlpack::DLDevice{dlpack::kDLMetal, 0}), Error);
  EXPECT_EQ(to_dlpack(Device::cuda(3)), (dlpack::DLDevice{dlpack::kDLCUDA, 3}));
  EXPECT_EQ(to_dlpack(Device::simt()), (dlpack::DLDevice{dlpack::kDLCPU, 0}));
}

}  // namespace
}  // namespace tensorcraft
