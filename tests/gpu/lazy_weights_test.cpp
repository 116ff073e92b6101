// SPDX-License-Identifier: Apache-2.0
// Lazy weights on a real GPU, whose copies and kernels are still to run when memory goes back.
#include "tensorcraft/runtime/safetensors/lazy_weights.hpp"

#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/cuda/memory.hpp"
#include "tensorcraft/runtime/memory/cuda_memory_device.hpp"
#include "tensorcraft/runtime/memory/pinned.hpp"
#include "tensorcraft/runtime/memory/pool.hpp"
#include "tests/runtime/safetensors/writer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <optional>
#include <random>
#include <vector>

namespace tensorcraft::test {
namespace {

constexpr int kTensors = 24;
constexpr size_t kLargest = size_t(4) << 20;

// Tensors of odd sizes, so that most begin at no multiple of anything.
size_t bytes_of(int i) {
  constexpr size_t kSizes[] = {kLargest, (size_t(1) << 20) + 13, 777, (size_t(2) << 20) - 1};
  return kSizes[i % 4];
}
std::string name_of(int i) { return join('w', i); }

struct File {
  std::string bytes;
  std::vector<size_t> begins;  // of each tensor's data
  size_t data_bytes = 0;
};

File random_file() {
  File file;
  std::string header = "{";
  for (int i = 0; i < kTensors; ++i) {
    const size_t begin = file.data_bytes, end = begin + bytes_of(i);
    header +=
        (i ? "," : "") + tensor_entry(name_of(i), "U8", join('[', bytes_of(i), ']'), begin, end);
    file.begins.push_back(begin);
    file.data_bytes = end;
  }
  file.bytes = file_bytes(header + "}", file.data_bytes);
  const size_t data = file.bytes.size() - file.data_bytes;
  std::mt19937 random(7);
  std::generate(file.bytes.begin() + std::ptrdiff_t(data), file.bytes.end(),
                [&] { return char(random()); });
  for (size_t& begin : file.begins) begin += data;
  return file;
}

class GpuLazyWeights : public testing::Test {
 protected:
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << "there is no GPU";
    before_ = current_stream(0);
    path_ = folder_.write("w.safetensors", file_.bytes);
  }
  void TearDown() override {
    if (cuda_device_count() > 0) set_current_stream(before_);
  }
  // Are the bytes those that the file has of a tensor?
  bool is_right(int i, const void* bytes) const {
    return std::memcmp(bytes, file_.bytes.data() + file_.begins[size_t(i)], bytes_of(i)) == 0;
  }

  const TemporaryFolder folder_;
  const File file_ = random_file();
  std::string path_;
  StreamRef before_;
};

// Tensors are copied out on a stream that is behind, let go of at once, and their memory is written
// by others meanwhile. The streams end now and then.
TEST_F(GpuLazyWeights, GiveTheBytesOfTheFileToTwoStreamsUnderPressure) {
  const size_t quota = file_.data_bytes / 4;
  MemoryPool pool(memory::cuda_memory_device(0), {.quota = file_.data_bytes / 3});
  struct Use {
    int tensor;
    PinnedBuffer host;
  };
  std::mt19937 random(1);
  std::optional<LazyWeights> weights(
      std::in_place, path_, Device::cuda(0),
      LazyOptions{.quota = quota, .checksum = true, .source = &pool});
  int wrong = 0;
  for (int epoch = 0; epoch < 20; ++epoch) {
    const std::array<Stream, 2> streams;
    std::deque<Use> uses;
    for (int step = 0; step < 50; ++step) {
      const Stream& stream = streams[random() % 2];
      set_current_stream(stream);
      const int i = int(random() % kTensors);
      {
        const auto resource = weights->get(name_of(i));
        PinnedBuffer host(bytes_of(i), stream);
        cuda::copy_async(host.data(), resource->view().data(), bytes_of(i), stream);
        uses.push_back({i, std::move(host)});
      }
      if (random() % 3 == 0) {
        const Stream& other = streams[random() % 2];
        const size_t bytes = 1 + random() % kLargest;
        const Block block = pool.allocate(bytes, other);
        cuda::fill_async(block.data, 0xee, bytes, other);
        pool.free(block.data, other);
      }
      ASSERT_LE(weights->statistics().resident_bytes, int64_t(quota));
    }
    for (const Stream& stream : streams) stream.ref().synchronize();
    for (const Use& use : uses) wrong += !is_right(use.tensor, use.host.data());
    set_current_stream(before_);
  }
  EXPECT_EQ(wrong, 0);
  weights->verify();
  const LazyStatistics now = weights->statistics();
  EXPECT_GT(now.reloads, 100);
  EXPECT_EQ(now.loaded_bytes - now.dropped_bytes, now.resident_bytes);
  EXPECT_EQ(pool.statistics().live_blocks, now.resident);
  weights.reset();
  EXPECT_EQ(pool.statistics().live_blocks, 0);
}

// All memory that weights have goes to an allocation that needs it, in the order of their stream.
TEST_F(GpuLazyWeights, GiveTheirMemoryToAnAllocationThatFindsNone) {
  const size_t quota = file_.data_bytes;
  MemoryPool pool(memory::cuda_memory_device(0), {.quota = quota + (quota / 4)});
  const LazyWeights weights(path_, Device::cuda(0), {.checksum = true, .source = &pool});
  const Stream stream;
  for (int round = 0; round < 5; ++round) {
    set_current_stream(stream);
    std::vector<PinnedBuffer> hosts;
    for (int i = 0; i < kTensors; ++i) {
      hosts.emplace_back(bytes_of(i), stream);
      cuda::copy_async(hosts.back().data(), weights.get(name_of(i))->view().data(), bytes_of(i),
                       stream);
    }
    set_current_stream(before_);
    const Block all = pool.allocate(quota, before_);
    cuda::fill_async(all.data, 0xee, quota, before_);
    EXPECT_LT(weights.statistics().resident, kTensors);
    pool.free(all.data, before_);
    stream.ref().synchronize();
    for (int i = 0; i < kTensors; ++i) ASSERT_TRUE(is_right(i, hosts[size_t(i)].data())) << i;
  }
  weights.drop();
  EXPECT_GT(pool.trim(), 0u);
  EXPECT_EQ(pool.statistics().live_blocks, 0);
  EXPECT_EQ(weights.statistics().resident, 0);
}

// A stream that used a tensor is gone before the tensor is, and both before the pool.
TEST_F(GpuLazyWeights, OutliveTheStreamsThatUsedThem) {
  MemoryPool pool(memory::cuda_memory_device(0), {.quota = file_.data_bytes});
  std::shared_ptr<const TensorResource> held;
  {
    const LazyWeights weights(path_, Device::cuda(0), {.source = &pool});
    for (int round = 0; round < 10; ++round) {
      const Stream stream;
      set_current_stream(stream);
      held = weights.get(name_of(round));
      PinnedBuffer host(bytes_of(round), stream);
      cuda::copy_async(host.data(), held->view().data(), bytes_of(round), stream);
      stream.ref().synchronize();
      EXPECT_TRUE(is_right(round, host.data()));
      set_current_stream(before_);
    }
    EXPECT_EQ(weights.drop(), [&] {
      size_t bytes = 0;
      for (int i = 0; i < 9; ++i) bytes += bytes_of(i);
      return bytes;
    }());
  }
  EXPECT_EQ(pool.statistics().live_blocks, 1);
  held = nullptr;
  EXPECT_EQ(pool.statistics().live_blocks, 0);
}

}  // namespace
}  // namespace tensorcraft::test
