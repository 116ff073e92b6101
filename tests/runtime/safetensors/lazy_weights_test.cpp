// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/runtime/safetensors/lazy_weights.hpp"

#include "tensorcraft/cuda/launch.hpp"
#include "tensorcraft/cuda/memory.hpp"
#include "tensorcraft/runtime/memory/host_memory_device.hpp"
#include "tensorcraft/runtime/memory/pinned.hpp"
#include "tensorcraft/runtime/memory/pool.hpp"
#include "tests/runtime/safetensors/writer.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/fake_driver.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>
#include <vector>

namespace tensorcraft {
namespace {

using test::expect_error_with;
using test::file_bytes;
using test::tensor_entry;
using Resource = std::shared_ptr<const TensorResource>;

constexpr size_t kBytes = size_t(1) << 20;  // of each tensor
constexpr int kTensors = 6;

std::string name_of(int i) { return join('t', i); }

// Tensors t0, t1, ... of kBytes bytes, then "wide", which cannot be loaded.
std::string file_of_tensors() {
  std::string header = "{";
  size_t begin = 0;
  for (int i = 0; i < kTensors; ++i, begin += kBytes)
    header += tensor_entry(name_of(i), "U8", join('[', kBytes, ']'), begin, begin + kBytes) + ",";
  std::string bytes =
      file_bytes(header + tensor_entry("wide", "F64", "[1]", begin, begin + 8) + "}", begin + 8);
  // The first byte of a tensor is its number.
  for (int i = 0; i < kTensors; ++i)
    bytes[bytes.size() - 8 - size_t(kTensors - i) * kBytes] = char(100 + i);
  return bytes;
}

// Is it the i-th tensor, to its end?
bool is_right(const Resource& resource, int i) {
  const TensorView view = resource->view();
  const auto* const bytes = view.data_as<const uint8_t>();
  return resource->name() == name_of(i) && view.nbytes() == kBytes && bytes[0] == 100 + i &&
         bytes[1] == 1 && bytes[kBytes - 1] == 255;
}

// A pool of host memory with room for three tensors, so that a fourth one needs a drop.
class LazyWeightsTest : public testing::Test {
 protected:
  const test::TemporaryFolder folder_;
  const std::string path_ = folder_.write("x.safetensors", file_of_tensors());
  MemoryPool pool_{memory::host_memory_device(), {.quota = 3 * kBytes}};
  LazyWeights weights_{path_, Device::cpu(), {.source = &pool_}};
};

TEST_F(LazyWeightsTest, LoadsATensorAtItsFirstUseAndKeepsIt) {
  EXPECT_EQ(weights_.names().size(), size_t(kTensors) + 1);
  EXPECT_EQ(weights_.info("t2").nbytes(), kBytes);
  EXPECT_EQ(weights_.statistics().loads, 0);
  EXPECT_EQ(pool_.statistics().live_blocks, 0);
  const void* const first = weights_.get("t2")->view().data();
  EXPECT_TRUE(weights_.is_resident("t2"));
  EXPECT_FALSE(weights_.is_resident("t1"));
  EXPECT_EQ(weights_.get("t2")->view().data(), first);
  EXPECT_TRUE(is_right(weights_.get("t2"), 2));
  EXPECT_EQ(weights_.statistics().loads, 1);
  EXPECT_EQ(weights_.statistics().loaded_bytes, int64_t(kBytes));
  EXPECT_EQ(pool_.statistics().live_blocks, 1);
}

TEST_F(LazyWeightsTest, IsReadOnlyByType) {
  static_assert(std::is_same_v<decltype(weights_.get("t0")), Resource>);
  EXPECT_TRUE(weights_.get("t0")->view().read_only());
}

TEST_F(LazyWeightsTest, DropsTheLeastRecentlyUsedIfAnAllocationFindsNoRoom) {
  for (const char* name : {"t0", "t1", "t2", "t0"}) weights_.get(name);
  const Block block = pool_.allocate(kBytes, {});
  EXPECT_FALSE(weights_.is_resident("t1"));
  EXPECT_TRUE(weights_.is_resident("t0"));
  EXPECT_TRUE(weights_.is_resident("t2"));
  EXPECT_TRUE(is_right(weights_.get("t1"), 1));  // in the place of t2
  EXPECT_FALSE(weights_.is_resident("t2"));
  const LazyStatistics now = weights_.statistics();
  EXPECT_EQ(now.loads, 4);
  EXPECT_EQ(now.reloads, 1);
  EXPECT_EQ(now.reloaded_bytes, int64_t(kBytes));
  EXPECT_EQ(now.drops, 2);
  EXPECT_EQ(now.resident, 2);
  EXPECT_EQ(now.loaded_bytes - now.dropped_bytes, now.resident_bytes);
  pool_.free(block.data, {});
}

TEST_F(LazyWeightsTest, NeverDropsWhatSomebodyHolds) {
  const Resource held = weights_.get("t0");
  weights_.get("t1");
  weights_.get("t2");
  const Block blocks[] = {pool_.allocate(kBytes, {}), pool_.allocate(kBytes, {})};
  EXPECT_TRUE(weights_.is_resident("t0"));
  EXPECT_TRUE(is_right(held, 0));
  expect_error_with(ErrorKind::out_of_memory, "Memory pool quota exceeded",
                    [&] { weights_.get("t3"); });
  for (const Block& block : blocks) pool_.free(block.data, {});
  EXPECT_TRUE(is_right(weights_.get("t3"), 3));
}

TEST_F(LazyWeightsTest, WhatItGaveOutlivesIt) {
  Resource held;
  {
    const LazyWeights copy = std::exchange(weights_, LazyWeights(path_));
    held = copy.get("t4");
  }
  EXPECT_TRUE(is_right(held, 4));
  EXPECT_EQ(pool_.statistics().live_blocks, 1);
  const Block blocks[] = {pool_.allocate(kBytes, {}), pool_.allocate(kBytes, {})};
  expect_error_with(ErrorKind::out_of_memory, "quota", [&] { pool_.allocate(kBytes, {}); });
  for (const Block& block : blocks) pool_.free(block.data, {});
}

TEST_F(LazyWeightsTest, DropGivesAsMuchAsIsAskedFor) {
  for (const char* name : {"t0", "t1", "t2"}) weights_.get(name);
  EXPECT_EQ(weights_.drop(kBytes + 1), 2 * kBytes);
  EXPECT_TRUE(weights_.is_resident("t2"));
  EXPECT_EQ(weights_.drop(), kBytes);
  EXPECT_EQ(weights_.drop(), 0u);
  EXPECT_EQ(pool_.statistics().live_blocks, 0);
}

TEST_F(LazyWeightsTest, FilesDropInOneOrderOfUse) {
  const LazyWeights other(path_, Device::cpu(), {.source = &pool_});
  weights_.get("t0");
  other.get("t1");
  weights_.get("t2");
  other.get("t3");  // in the place of t0
  EXPECT_FALSE(weights_.is_resident("t0"));
  weights_.get("t4");  // in the place of t1
  EXPECT_FALSE(other.is_resident("t1"));
  EXPECT_TRUE(weights_.is_resident("t2"));
  const Block blocks[] = {pool_.allocate(kBytes, {}), pool_.allocate(kBytes, {})};
  EXPECT_FALSE(weights_.is_resident("t2"));
  EXPECT_FALSE(other.is_resident("t3"));
  EXPECT_TRUE(weights_.is_resident("t4"));
  for (const Block& block : blocks) pool_.free(block.data, {});
}

TEST_F(LazyWeightsTest, HasAQuotaOfItsOwn) {
  const LazyWeights weights(path_, Device::cpu(), {.quota = 2 * kBytes});
  for (int i = 0; i < kTensors; ++i) {
    EXPECT_TRUE(is_right(weights.get(name_of(i)), i));
    EXPECT_LE(weights.statistics().resident_bytes, int64_t(2 * kBytes));
  }
  const Resource held[] = {weights.get("t0"), weights.get("t1"), weights.get("t2")};
  EXPECT_EQ(weights.statistics().resident, 3);  // what is held stays, beyond it too
}

TEST_F(LazyWeightsTest, ATensorThatCannotBeLoadedHidesNoOther) {
  for (int round = 0; round < 2; ++round)
    expect_error_with(ErrorKind::type, "tensor \"wide\" has dtype F64, which cannot be loaded",
                      [&] { weights_.get("wide"); });
  expect_error_with(ErrorKind::key, "no tensor is named \"none\"", [&] { weights_.get("none"); });
  EXPECT_TRUE(is_right(weights_.get("t5"), 5));
  EXPECT_EQ(weights_.statistics().loads, 1);
}

TEST_F(LazyWeightsTest, AFileThatChangedIsAnErrorAtTheNextLoad) {
  const Resource held = weights_.get("t0");
  std::filesystem::resize_file(path_, 4096);
  expect_error_with(ErrorKind::io, "it changed", [&] { weights_.get("t1"); });
  EXPECT_TRUE(is_right(weights_.get("t0"), 0));
}

// Other bytes at the same place, of equal length and time, as a bad disk gives.
void spoil(const std::string& path, size_t from_end) {
  const auto time = std::filesystem::last_write_time(path);
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-std::streamoff(from_end), std::ios::end);
  file.put('!');
  file.close();
  std::filesystem::last_write_time(path, time);
}

TEST_F(LazyWeightsTest, AChecksumFindsOtherBytesAtAReload) {
  const LazyWeights weights(path_, Device::cpu(), {.checksum = true, .source = &pool_});
  weights.get("t4");
  weights.get("t5");
  weights.verify();
  weights.drop();
  spoil(path_, 8 + kBytes / 2);  // in t5
  EXPECT_TRUE(is_right(weights.get("t4"), 4));
  expect_error_with(ErrorKind::io, "\"t5\" has other bytes than when it was first loaded",
                    [&] { weights.get("t5"); });
}

TEST_F(LazyWeightsTest, VerifyFindsBytesThatWereWrittenOver) {
  const LazyWeights weights(path_, Device::cpu(), {.checksum = true});
  const Resource held = weights.get("t1");
  *const_cast<uint8_t*>(held->view().data_as<const uint8_t>()) ^= 1;
  expect_error_with(ErrorKind::internal, "\"t1\"", [&] { weights.verify(); });
  expect_error_with(ErrorKind::value, "opened without checksums", [&] { weights_.verify(); });
}

TEST_F(LazyWeightsTest, ThreadsThatAskForOneTensorLoadItOnce) {
  constexpr int kThreads = 8;
  for (int i = 0; i < kTensors; ++i) {
    std::barrier together(kThreads);
    std::vector<Resource> found(kThreads);
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] {
        together.arrive_and_wait();
        found[size_t(t)] = weights_.get(name_of(i));
      });
    for (std::thread& thread : threads) thread.join();
    for (const Resource& resource : found) EXPECT_EQ(resource, found[0]);
    EXPECT_TRUE(is_right(found[0], i));
    EXPECT_EQ(weights_.statistics().loads, i + 1);
  }
}

TEST_F(LazyWeightsTest, ThreadsUnderPressureAlwaysFindTheRightBytes) {
  std::atomic<int> wrong = 0, full = 0;
  const auto use = [&](unsigned seed) {
    std::mt19937 random(seed);
    for (int step = 0; step < 300; ++step) try {
        const int i = int(random() % kTensors);
        const Resource resource = weights_.get(name_of(i));
        if (random() % 4 == 0) std::this_thread::yield();
        if (!is_right(resource, i)) ++wrong;
      } catch (const Error& error) {  // the other threads hold all that there is room for
        if (error.kind() != ErrorKind::out_of_memory) ++wrong;
        ++full;
      }
  };
  const auto press = [&] {
    for (int step = 0; step < 300; ++step) try {
        const Block block = pool_.allocate(kBytes, {});
        std::memset(block.data, 0xee, kBytes);
        pool_.free(block.data, {});
      } catch (const Error&) {
        ++full;
      }
  };
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) threads.emplace_back(use, t);
  threads.emplace_back(press);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  const LazyStatistics now = weights_.statistics();
  EXPECT_GT(now.reloads, 0);
  EXPECT_EQ(now.loaded_bytes - now.dropped_bytes, now.resident_bytes);
  EXPECT_EQ(pool_.statistics().live_blocks, now.resident);
  weights_.drop();
  EXPECT_EQ(pool_.statistics().live_blocks, 0);
}

// On a GPU, whose driver is in host memory here.
class LazyWeightsOnGpu : public LazyWeightsTest {
 protected:
  LazyWeightsOnGpu() {
    driver_.deferred = true;
    MemoryPool::instance(Device::cuda(0)).set_quota(3 * kBytes);
  }
  ~LazyWeightsOnGpu() override { EXPECT_EQ(driver_.damage(), ""); }
  static Tensor on_host(const Resource& resource) {
    Tensor host(DType::uint8, resource->view().shape());
    copy_bytes(host, resource->view(), current_stream(0));
    return host;
  }
  test::FakeDriver driver_;
};

TEST_F(LazyWeightsOnGpu, DropsAndLoadsAgain) {
  const LazyWeights weights(path_, Device::cuda(0), {.checksum = true});
  for (int round = 0; round < 2; ++round)
    for (int i = 0; i < kTensors; ++i) {
      const Tensor host = on_host(weights.get(name_of(i)));
      ASSERT_EQ(host.data_as<uint8_t>()[0], 100 + i);
      ASSERT_EQ(host.data_as<uint8_t>()[kBytes - 1], 255);
    }
  EXPECT_EQ(weights.statistics().resident, 3);
  EXPECT_EQ(weights.statistics().reloads, kTensors);
  const Tensor other(DType::uint8, {int64_t(2 * kBytes)}, Device::cuda(0));
  EXPECT_EQ(weights.statistics().resident, 1);
  weights.verify();
}

TEST_F(LazyWeightsOnGpu, MemoryIsReusedAfterTheWorkOfTheStreamThatAskedForIt) {
  const LazyWeights weights(path_, Device::cuda(0));
  const Stream mine;
  const PinnedBuffer host(kBytes, mine);
  const StreamRef before = current_stream(0);
  set_current_stream(mine);
  cuda::copy_async(host.data(), weights.get("t0")->view().data(), kBytes, mine);
  set_current_stream(before);
  weights.drop();
  // Takes all memory and writes it, while the copy has not run.
  std::vector<Tensor> others;
  for (int i = 0; i < 3; ++i) {
    others.emplace_back(DType::uint8, Dims{int64_t(kBytes)}, Device::cuda(0));
    cuda::fill_async(others.back().data(), 0xee, kBytes, before);
  }
  before.synchronize();
  mine.ref().synchronize();
  const auto* const bytes = static_cast<const uint8_t*>(host.data());
  EXPECT_EQ(bytes[0], 100);
  EXPECT_EQ(bytes[kBytes - 1], 255);
}

TEST_F(LazyWeightsOnGpu, GivesItsMemoryToALaunchThatFindsNoRoom) {
  const LazyWeights weights(path_, Device::cuda(0));
  const Resource held = weights.get("t0");
  for (const char* const name : {"t1", "t2"}) weights.get(name);
  const size_t before = driver_.memory.bytes_in_use(0);
  const std::byte image[4] = {};
  const auto kernel = LoadedKernel::load(image, "tc_entry", 0);
  driver_.fail_at("cuLaunchKernelEx", 1, cuda::kErrorOutOfMemory);
  launch(*kernel, {.grid = {1, 1, 1}, .block = {1, 1, 1}}, nullptr, {}, "softmax");
  EXPECT_EQ(weights.statistics().resident, 1);
  EXPECT_LT(driver_.memory.bytes_in_use(0), before);
  EXPECT_EQ(driver_.launches.size(), 1u);
}

TEST_F(LazyWeightsOnGpu, IsNotLoadedWhileAGraphIsRecorded) {
  const LazyWeights weights(path_, Device::cuda(0));
  const Resource held = weights.get("t0");
  driver_.capturing = true;
  EXPECT_EQ(weights.get("t0"), held);
  expect_error_with(ErrorKind::unsupported, "\"t1\" is not loaded, and cannot be while",
                    [&] { weights.get("t1"); });
  driver_.capturing = false;
  EXPECT_NO_THROW(weights.get("t1"));
}

}  // namespace
}  // namespace tensorcraft
