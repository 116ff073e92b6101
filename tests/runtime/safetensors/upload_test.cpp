// SPDX-License-Identifier: Apache-2.0
// Loads to a GPU, which is a driver in host memory here: the engine reads, stages and copies.
#include "tensorcraft/core/interrupt.hpp"
#include "tensorcraft/runtime/safetensors/file.hpp"
#include "tests/runtime/safetensors/writer.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/fake_driver.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

namespace tensorcraft {
namespace {

using test::FakeDriver;
using test::file_bytes;
using test::tensor_entry;

// A file of tensors t0, t1, ... of these sizes.
std::string file_of(const std::vector<size_t>& sizes) {
  std::string header = "{";
  size_t begin = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    header += (i ? "," : "") +
              tensor_entry(join('t', i), "U8", join('[', sizes[i], ']'), begin, begin + sizes[i]);
    begin += sizes[i];
  }
  return file_bytes(header + "}", begin);
}

class SafeTensorsUpload : public testing::Test {
 protected:
  SafeTensorsUpload() { driver_.deferred = true; }
  ~SafeTensorsUpload() override { EXPECT_EQ(driver_.damage(), ""); }
  static std::vector<uint8_t> bytes_of(const TensorResource& resource) {
    Tensor host(DType::uint8, resource.view().shape());
    copy_bytes(host, resource.view(), current_stream(0));
    return host.to_vector<uint8_t>();
  }
  FakeDriver driver_;
  const test::TemporaryFolder folder_;
};

TEST_F(SafeTensorsUpload, BringsEveryByteOfEveryTensor) {
  const std::vector<size_t> sizes = {0, 1, 1000, 300'000, (5 << 20) + 7, 3, 2 << 20};
  const SafeTensors file(folder_.write("x.safetensors", file_of(sizes)));
  for (const bool checksum : {false, true}) {
    const auto all = file.load_all(Device::cuda(0), {.checksum = checksum});
    ASSERT_EQ(all.size(), sizes.size());
    size_t begin = 0;
    for (size_t i = 0; i < sizes.size(); ++i) {
      EXPECT_EQ(all[i]->name(), join('t', i));
      EXPECT_TRUE(all[i]->view().read_only());
      const auto bytes = bytes_of(*all[i]);
      ASSERT_EQ(bytes.size(), sizes[i]);
      for (size_t b = 0; b < sizes[i]; ++b)
        ASSERT_EQ(bytes[b], uint8_t(begin + b)) << i << " at " << b;
      begin += sizes[i];
      if (checksum) {
        EXPECT_NO_THROW(all[i]->verify());
      }
    }
  }
}

TEST_F(SafeTensorsUpload, ReadsPiecesBesideEachOther) {
  const SafeTensors file(folder_.write("x.safetensors", file_of({8 << 20})));
  const int before = driver_.calls["cuMemcpyAsync"];
  const auto x = file.load("t0", Device::cuda(0));
  EXPECT_GE(driver_.calls["cuMemcpyAsync"] - before, 4);
  EXPECT_EQ(driver_.calls["cuStreamSynchronize"], 0);
}

TEST_F(SafeTensorsUpload, ReportsProgressUpToTheTotal) {
  const std::vector<size_t> sizes = {1000, 4 << 20, 0, 100};
  const SafeTensors file(folder_.write("x.safetensors", file_of(sizes)));
  std::vector<uint64_t> done;
  file.load_all(Device::cuda(0), {.progress = [&](uint64_t now, uint64_t total) {
                  EXPECT_EQ(total, file.nbytes());
                  done.push_back(now);
                }});
  EXPECT_TRUE(std::is_sorted(done.begin(), done.end()));
  EXPECT_GE(done.size(), 3u);
  EXPECT_EQ(done.back(), file.nbytes());
}

TEST_F(SafeTensorsUpload, AFileThatIsCutOffMeanwhileIsAnErrorAndNothingHangs) {
  const std::vector<size_t> sizes(40, 1 << 20);
  const std::string path = folder_.write("x.safetensors", file_of(sizes));
  const SafeTensors file(path);
  bool cut = false;
  try {
    file.load_all(Device::cuda(0), {.progress = [&](uint64_t, uint64_t) {
                    if (!std::exchange(cut, true)) std::filesystem::resize_file(path, 2 << 20);
                  }});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::io) << error.what();
  }
}

TEST_F(SafeTensorsUpload, ProgressMayStopIt) {
  const SafeTensors file(folder_.write("x.safetensors", file_of(std::vector<size_t>(40, 1 << 20))));
  test::expect_error(
      ErrorKind::cancelled,
      [&] {
        file.load_all(Device::cuda(0), {.progress = [](uint64_t, uint64_t) {
                        fail(ErrorKind::cancelled, "enough");
                      }});
      },
      "enough");
}

TEST_F(SafeTensorsUpload, ADriverThatRefusesIsAnErrorOfItsKind) {
  const SafeTensors file(folder_.write("x.safetensors", file_of({1 << 20, 1 << 20})));
  driver_.failing["cuMemcpyAsync"] = 999;
  EXPECT_THROW(file.load_all(Device::cuda(0)), Error);
  driver_.failing.clear();
  EXPECT_EQ(file.load_all(Device::cuda(0)).size(), 2u);
}

}  // namespace
}  // namespace tensorcraft
