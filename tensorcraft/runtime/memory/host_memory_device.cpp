// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/runtime/memory/host_memory_device.hpp"

#include "tensorcraft/runtime/memory/size_class.hpp"

#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace tensorcraft::memory {
namespace {

class PassedMark final : public Mark {
 public:
  void record(StreamRef) override {}
  bool done() override { return true; }
  void order_before(StreamRef) override {}
  void wait() override {}
};

class HostMemoryDevice final : public MemoryDevice {
 public:
  const char* name() const override { return "cpu"; }
  void* take(size_t bytes) override {
    void* memory = nullptr;
    return posix_memalign(&memory, kGranule, bytes) == 0 ? memory : nullptr;
  }
  void give(void* memory) noexcept override { std::free(memory); }
  size_t total_bytes() const override { return pages(_SC_PHYS_PAGES); }
  size_t free_bytes() const override { return pages(_SC_AVPHYS_PAGES); }

  void require_usable() const override {}
  bool usable() const noexcept override { return true; }

  StreamState look(StreamRef) override { return {.id = 1}; }
  bool lasts(StreamRef) override { return true; }
  bool can_mark(StreamRef) override { return true; }
  std::unique_ptr<Mark> make_mark() override { return std::make_unique<PassedMark>(); }

  void copy(void* to, const void* from, size_t bytes, StreamRef) override {
    std::memcpy(to, from, bytes);
  }
  void fill(void* to, unsigned char value, size_t bytes, StreamRef) override {
    std::memset(to, value, bytes);
  }
  void synchronize(StreamRef) override {}
  // There is no recording on the host, so nobody asks.
  void give_to_graph(StreamRef, void (*release)(void*), void* owned) override { release(owned); }

 private:
  static size_t pages(int name) { return size_t(sysconf(name)) * size_t(sysconf(_SC_PAGESIZE)); }
};

}  // namespace

std::unique_ptr<MemoryDevice> host_memory_device() { return std::make_unique<HostMemoryDevice>(); }

}  // namespace tensorcraft::memory
