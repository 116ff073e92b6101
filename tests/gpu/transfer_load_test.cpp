// SPDX-License-Identifier: Apache-2.0
// Weights from a file to a real GPU, against the disk and the link.
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/runtime/memory/pinned.hpp"
#include "tensorcraft/runtime/safetensors/file.hpp"
#include "tensorcraft/runtime/transfer/engine.hpp"
#include "tests/runtime/safetensors/writer.hpp"
#include "tests/support/figures.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <thread>
#include <vector>

namespace tensorcraft {
namespace {

constexpr size_t kWeightBytes = size_t(128) << 20, kWeights = 32;  // 4 GiB
constexpr size_t kFileBytes = kWeightBytes * kWeights;

class GpuTransferLoadTiming : public testing::Test {
 protected:
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << "there is no GPU";
    std::string header = "{";
    for (size_t i = 0; i < kWeights; ++i)
      header +=
          (i ? "," : "") + test::tensor_entry(join('t', i), "U8", join('[', kWeightBytes, ']'),
                                              i * kWeightBytes, (i + 1) * kWeightBytes);
    path_ = folder_.write("x.safetensors", test::file_bytes(header + "}", 0));
    std::ofstream file(path_, std::ios::app | std::ios::binary);
    std::string tensor(kWeightBytes, '\0');
    for (size_t i = 0; i < kWeights; ++i) {
      for (size_t b = 0; b < tensor.size(); b += 4096) tensor[b] = char(i + b / 4096);
      file << tensor;
    }
    file.close();
    ASSERT_TRUE(file);
  }
  // Makes the next read come from the disk, as far as the system lets it.
  void forget() const {
    const int file = open(path_.c_str(), O_RDONLY);
    fsync(file);
    posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    close(file);
  }
  template <class Work>
  static double gb_per_s(Work&& work) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
    return double(kFileBytes) / time.count() / 1e9;
  }
  // As many threads as the engine has read the file to page-locked memory, and do no more.
  double disk() const {
    constexpr size_t kPiece = size_t(4) << 20;
    const int threads = transfer::ThreadStager::usual_threads();
    const PinnedBuffer memory(kPiece * size_t(threads), StreamRef());
    const int file = open(path_.c_str(), O_RDONLY);
    const double speed = gb_per_s([&] {
      std::atomic<size_t> next = 0;
      std::vector<std::jthread> all;
      for (int t = 0; t < threads; ++t)
        all.emplace_back([&, t] {
          char* const to = static_cast<char*>(memory.data()) + kPiece * size_t(t);
          for (size_t at = next.fetch_add(kPiece); at < kFileBytes; at = next.fetch_add(kPiece))
            if (pread(file, to, kPiece, off_t(at)) <= 0) return;
        });
    });
    close(file);
    return speed;
  }
  static double link() {
    constexpr size_t kBytes = size_t(1) << 30;
    const Stream stream;
    const PinnedBuffer host(kBytes, stream);
    const Tensor there(DType::uint8, {int64_t(kBytes)}, Device::cuda(0), stream);
    double best = 0;
    for (int round = 0; round < 5; ++round)
      best = std::max(best, gb_per_s([&] {
                        TransferEngine::instance()
                            .submit({.to = there.data(), .from = host.data(), .bytes = kBytes})
                            .wait();
                      }));
    return best * double(kBytes) / double(kFileBytes);
  }

  const test::TemporaryFolder folder_;
  std::string path_;
};

TEST_F(GpuTransferLoadTiming, ALoadIsAsFastAsTheSlowerOfDiskAndLink) {
  const double to_device = link();
  for (const bool cold : {true, false}) {
    double from_disk = 0, load = 0;
    for (int round = 0; round < 2; ++round) {
      if (cold) forget();
      from_disk = std::max(from_disk, disk());
      if (cold) forget();
      load = std::max(load, gb_per_s([&] {
                        const auto all = SafeTensors(path_).load_all(Device::cuda(0));
                        EXPECT_EQ(all.size(), kWeights);
                      }));
    }
    const double bound = std::min(from_disk, to_device);
    test::report_figures(cold ? "cold load of a file" : "warm load of a file",
                         {{"load GB/s", load},
                          {"disk GB/s", from_disk},
                          {"link GB/s", to_device},
                          {"of the slower", load / bound}});
    if (cold) {
      EXPECT_GE(load / bound, 0.9);
    }
  }
  const auto all = SafeTensors(path_).load_all(Device::cuda(0));
  for (const size_t i : {size_t(0), kWeights - 1}) {
    Tensor host(DType::uint8, all[i]->view().shape());
    copy_bytes(host, all[i]->view(), current_stream(0));
    for (size_t b = 0; b < kWeightBytes; b += 4096)
      ASSERT_EQ(host.data_as<uint8_t>()[b], uint8_t(i + b / 4096)) << i << " at " << b;
  }
}

}  // namespace
}  // namespace tensorcraft
