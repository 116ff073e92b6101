// SPDX-License-Identifier: Apache-2.0
// Processes killed while they load weights, drop them and move blocks to the host leave their file
// as it was, no shared memory and no lock: the next process does all of it.
#include "tensorcraft/runtime/memory/pool.hpp"
#include "tensorcraft/runtime/safetensors/lazy_weights.hpp"
#include "tests/runtime/safetensors/writer.hpp"
#include "tests/stress/stress.hpp"
#include "tests/support/fake_driver.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace tensorcraft {
namespace {

namespace fs = std::filesystem;
using test::Child;

constexpr size_t kBytes = size_t(256) << 10;  // of a tensor, and of a block
constexpr int kTensors = 12;

std::string file_of_tensors() {
  std::string header = "{";
  size_t end = 0;
  for (int i = 0; i < kTensors; ++i, end += kBytes)
    header += (i ? "," : "") +
              test::tensor_entry(join('t', i), "U8", join('[', kBytes, ']'), end, end + kBytes);
  return test::file_bytes(header + "}", end);
}

std::set<std::string> names_in(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename());
  return names;
}

// Every tensor and, between them, blocks of which a part is on the host; room is for half of it.
class Work {
 public:
  explicit Work(const std::string& path)
      : weights_(path, Device::cuda(0), {.checksum = true}),
        pool_(MemoryPool::instance(Device::cuda(0))) {
    pool_.set_quota((kTensors / 2 + 2) * kBytes);
    for (BlockId& block : blocks_) block = pool_.create(kBytes, {});
  }
  // Are all bytes right?
  bool once() {
    for (int i = 0; i < kTensors; ++i) {
      const BlockId block = blocks_[size_t(i) % 4];
      pool_.pin(block, {});
      const auto tensor = weights_.get(join('t', i));
      pool_.unpin(block, {});
      Tensor host(DType::uint8, tensor->view().shape());
      copy_bytes(host, tensor->view(), {});
      const auto* const bytes = host.data_as<uint8_t>();
      for (size_t at = 0; at < kBytes; at += 251)
        if (bytes[at] != uint8_t(at)) return false;
    }
    return true;
  }
  bool was_short_of_memory() const {
    return weights_.statistics().drops > 0 && pool_.statistics().evictions > 0;
  }

 private:
  LazyWeights weights_;
  MemoryPool& pool_;
  BlockId blocks_[4] = {};
};

class UploadKill : public testing::Test {
 protected:
  // Returns after so many rounds: 0 if all was right.
  Child start(int rounds) const {
    return Child(log_, [=, this] {
      test::FakeDriver driver;
      Work work(path_);
      for (int i = 0; i < rounds; ++i)
        if (!work.once()) return 1;
      return work.was_short_of_memory() ? 0 : 2;
    });
  }
  test::TemporaryFolder folder_;
  std::string path_ = folder_.write("x.safetensors", file_of_tensors()), log_ = folder_.file("log");
};

TEST_F(UploadKill, LeavesTheFileAsItWasAndTheNextProcessLoadsIt) {
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_EQ(start(2).wait(), 0) << test::read_file(log_);
  const auto whole = std::chrono::duration_cast<std::chrono::microseconds>(
      std::chrono::steady_clock::now() - begin);
  const auto shared = names_in("/dev/shm"), own = names_in(folder_.path());
  std::mt19937 random(11);
  std::uniform_int_distribution<long> moment_us(0, 2 * whole.count());
  const int kills = test::repeats(40, 400);
  for (int i = 0; i < kills; ++i) {
    Child child = start(1 << 20);
    std::this_thread::sleep_for(std::chrono::microseconds(moment_us(random)));
    child.kill_now();
  }
  EXPECT_EQ(start(2).wait(), 0) << test::read_file(log_);
  EXPECT_EQ(test::read_file(path_), file_of_tensors());
  EXPECT_EQ(names_in(folder_.path()), own);
  const auto left = names_in("/dev/shm");
  EXPECT_TRUE(std::ranges::none_of(left, [&](const std::string& name) {
    return name.find("tensorcraft") != name.npos && !shared.contains(name);
  }));
  RecordProperty("kills", kills);
}

}  // namespace
}  // namespace tensorcraft
