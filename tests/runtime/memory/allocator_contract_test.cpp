// SPDX-License-Identifier: Apache-2.0
// The contract of memory on every source that a machine without a GPU has. tests/gpu has the rest.
#include "tests/support/allocator_contract.hpp"

#include "tensorcraft/runtime/memory/cuda_memory_device.hpp"
#include "tensorcraft/runtime/memory/driver_allocator.hpp"
#include "tensorcraft/runtime/memory/pinned.hpp"
#include "tensorcraft/runtime/memory/pool.hpp"
#include "tests/support/fake_driver.hpp"
#include "tests/support/simulated_memory.hpp"

namespace tensorcraft::test {
namespace {

class HostSource final : public MemorySource {
  Allocator& allocator() override { return tensorcraft::allocator(Device::cpu()); }
  StreamRef stream(int) override { return {}; }
};

class SimulatedSource final : public MemorySource {
 public:
  explicit SimulatedSource(bool streams_last, memory::CheckOptions checks = {})
      : pool_(device_.handle(), {.checks = checks}) {
    device_.streams_last = streams_last;
  }

 private:
  Allocator& allocator() override { return pool_; }
  StreamRef stream(int index) override { return device_.stream(uintptr_t(index)); }
  SimulatedDevice device_;
  MemoryPool pool_;
};

class FakeSource final : public MemorySource {
 public:
  explicit FakeSource(const std::string& kind) : kind_(kind) { driver_.deferred = true; }
  ~FakeSource() override { EXPECT_EQ(driver_.damage(), ""); }

 private:
  Allocator& allocator() override {
    if (kind_ == "pinned") return pinned_pool();
    if (kind_ == "driver") return of_driver_;
    return MemoryPool::instance();
  }
  StreamRef stream(int index) override { return index == 0 ? StreamRef() : other_.ref(); }
  const std::string kind_;
  FakeDriver driver_;
  memory::DriverAllocator of_driver_;
  Stream other_;
};

std::vector<NamedSource> sources() {
  std::vector<NamedSource> all;
  all.push_back({"Host", [] { return std::make_unique<HostSource>(); }});
  for (const bool last : {true, false})
    all.push_back({last ? "PoolOfOwnStreams" : "PoolOfForeignStreams",
                   [last] { return std::make_unique<SimulatedSource>(last); }});
  all.push_back({"CheckedPool", [] {
                   return std::make_unique<SimulatedSource>(
                       true, memory::CheckOptions{.enabled = true, .quarantine = 8});
                 }});
  for (const std::string kind : {"pool", "pinned", "driver"})
    all.push_back({"Fake_" + kind, [kind] { return std::make_unique<FakeSource>(kind); }});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Memory, AllocatorContract, testing::ValuesIn(sources()), name_of_source);

}  // namespace
}  // namespace tensorcraft::test
