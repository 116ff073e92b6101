// SPDX-License-Identifier: Apache-2.0
// Caches of keys and values in pageable memory of the host, on a real GPU: the same bytes as by way
// of page-locked memory, and what it costs beside that and beside the driver's own copy.
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/cuda/memory.hpp"
#include "tensorcraft/ops/transfer_hicache/transfer_hicache.hpp"
#include "tensorcraft/runtime/memory/pinned.hpp"
#include "tests/support/figures.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

namespace tensorcraft::test {
namespace {

const Device kCudaDevice = Device::cuda(0);

class GpuPageableKv : public testing::Test {
 protected:
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << "there is no GPU";
  }
};

// So many tokens on random pages of 16.
Tensor pages(int64_t n, int64_t of, unsigned seed) {
  constexpr int64_t kPage = 16;
  std::vector<int64_t> first(static_cast<size_t>(of / kPage));
  std::iota(first.begin(), first.end(), 0);
  std::ranges::shuffle(first, std::mt19937(seed));
  std::vector<int64_t> all;
  for (int64_t i = 0; i < n; ++i) all.push_back(first[size_t(i / kPage)] * kPage + i % kPage);
  return Tensor::from(all, {n}).to(kCudaDevice);
}

// No two of its words are equal, and other seeds have others.
Tensor pattern(const Dims& shape, uint32_t seed) {
  Tensor t(DType::uint8, shape);
  auto* const words = t.data_as<uint32_t>();
  for (int64_t i = 0; i < t.size() / 4; ++i) words[i] = uint32_t(i) * 2654435761u + seed * 77777u;
  return t;
}

// Returns host memory that the GPU reaches.
Tensor pinned(const Dims& shape, StreamRef stream) {
  return {DType::uint8, shape, Device::cpu(), stream, pinned_pool()};
}

bool are_equal(const Tensor& a, const Tensor& b) {
  const Tensor x = a.to(Device::cpu()), y = b.to(Device::cpu());
  return std::memcmp(x.data(), y.data(), x.nbytes()) == 0;
}

// Several windows, elements that end anywhere, there and back on a stream of its own.
TEST_F(GpuPageableKv, MovesTheBytesThatPageLockedMemoryMoves) {
  const Stream stream;
  set_current_stream(stream);
  for (const int64_t bytes : {int64_t(128), int64_t(1028), (int64_t(5) << 20) + 4}) {
    const bool is_large = bytes > 4096;
    const int64_t layers = is_large ? 1 : 3, n = is_large ? 32 : 16384, moved = n - 16;
    const Dims shape{layers, n, bytes};
    const Tensor k = pattern(shape, 1), v = pattern(shape, 2);
    const Tensor k_gpu = k.to(kCudaDevice), v_gpu = v.to(kCudaDevice);
    const Tensor here = pages(moved, n, 3), there = pages(moved, n, 4);
    Tensor k_plain = pattern(shape, 5), v_plain = pattern(shape, 6);
    const Tensor k_locked = pinned(shape, stream), v_locked = pinned(shape, stream);
    std::memcpy(k_locked.data(), k_plain.data(), k_plain.nbytes());
    std::memcpy(v_locked.data(), v_plain.data(), v_plain.nbytes());
    transfer_hicache_all_layer(k_plain, v_plain, there, k_gpu, v_gpu, here);
    transfer_hicache_all_layer(k_locked, v_locked, there, k_gpu, v_gpu, here);
    stream.ref().synchronize();
    EXPECT_EQ(std::memcmp(k_plain.data(), k_locked.data(), k_plain.nbytes()), 0) << bytes;
    EXPECT_EQ(std::memcmp(v_plain.data(), v_locked.data(), v_plain.nbytes()), 0) << bytes;
    const Tensor k_back = pattern(shape, 7).to(kCudaDevice),
                 v_back = pattern(shape, 8).to(kCudaDevice);
    const Tensor k_same = k_back.to(kCudaDevice), v_same = v_back.to(kCudaDevice);
    transfer_hicache_all_layer(k_back, v_back, here, k_plain, v_plain, there);
    std::memset(k_plain.data(), 0xee, k_plain.nbytes());  // it has been read
    transfer_hicache_all_layer(k_same, v_same, here, k_locked, v_locked, there);
    EXPECT_TRUE(are_equal(k_back, k_same)) << bytes;
    EXPECT_TRUE(are_equal(v_back, v_same)) << bytes;
  }
  set_current_stream(StreamRef());
}

template <class Call>
double best_ms(Call&& call) {
  double best = 1e9;
  for (int round = 0; round < 5; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    call();
    current_stream(0).synchronize();
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - begin;
    best = std::min(best, time.count());
  }
  return best;
}

// 256 MiB of keys and values on random pages.
using GpuPageableKvTiming = GpuPageableKv;
TEST_F(GpuPageableKvTiming, IsFasterThanTheDriversCopyOfPageableMemory) {
  constexpr int64_t kBytes = int64_t(128) << 20;  // of each cache that moves
  for (const int64_t bytes : {128, 512, 1024, 4096}) {
    const int64_t moved = kBytes / bytes, n = 2 * moved;
    const Tensor here = pages(moved, n, 1), there = pages(moved, n, 2);
    const Dims shape{n, bytes};
    const Tensor k(DType::uint8, shape, kCudaDevice), v(DType::uint8, shape, kCudaDevice);
    const Tensor k_plain = pattern(shape, 1), v_plain = pattern(shape, 2);
    const Tensor k_locked = pinned(shape, StreamRef()), v_locked = pinned(shape, StreamRef());
    const auto gb_per_s = [&](double ms) { return 2 * double(kBytes) / ms / 1e6; };
    for (const bool up : {true, false}) {
      const auto move = [&](const Tensor& k_host, const Tensor& v_host) {
        if (up)
          transfer_hicache_one_layer(k, v, here, k_host, v_host, there);
        else
          transfer_hicache_one_layer(k_host, v_host, there, k, v, here);
      };
      const auto copy = [&](const Tensor& host, const Tensor& device) {
        cuda::copy_async(up ? device.data() : host.data(), up ? host.data() : device.data(), kBytes,
                         current_stream(0));
      };
      const double plain = best_ms([&] { move(k_plain, v_plain); });
      const double locked = best_ms([&] { move(k_locked, v_locked); });
      const double driver = best_ms([&] {
        copy(k_plain, k);
        copy(v_plain, v);
      });
      report_figures(join("KV transfer, ", bytes, " B, ", up ? "host to device" : "device to host"),
                     {{"pageable GB/s", gb_per_s(plain)},
                      {"page-locked GB/s", gb_per_s(locked)},
                      {"driver's pageable copy GB/s", gb_per_s(driver)},
                      {"of the driver's", driver / plain}});
      if (bytes >= 512) {
        EXPECT_GE(driver / plain, 1) << bytes;
      }
    }
  }
}

}  // namespace
}  // namespace tensorcraft::test
