// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/runtime/memory/memory_device.hpp"
#include "tensorcraft/runtime/memory/pool.hpp"

#include <memory>
#include <random>
#include <vector>

namespace tensorcraft::test {

// Answers at once and has no memory: what is measured over it is the pool.
class QuickDevice final : public memory::MemoryDevice {
 public:
  const char* name() const override { return "the quick device"; }
  void* take(size_t bytes) override {
    const uintptr_t at = next_;
    next_ += bytes + (size_t(1) << 30);
    return reinterpret_cast<void*>(at);
  }
  void give(void*) noexcept override {}
  size_t total_bytes() const override { return size_t(1) << 40; }
  size_t free_bytes() const override { return size_t(1) << 40; }
  void require_usable() const override {}
  bool usable() const noexcept override { return true; }
  memory::StreamState look(StreamRef) override { return {}; }
  bool lasts(StreamRef) override { return true; }
  bool can_mark(StreamRef) override { return false; }
  std::unique_ptr<memory::Mark> make_mark() override { return nullptr; }
  void copy(void*, const void*, size_t, StreamRef) override {}
  void fill(void*, unsigned char, size_t, StreamRef) override {}
  void synchronize(StreamRef) override {}
  void give_to_graph(StreamRef, void (*)(void*), void*) override {}

 private:
  uintptr_t next_ = uintptr_t(1) << 40;
};

// Leaves more than 65,536 holes of many sizes between blocks in use.
inline void make_holes(MemoryPool& pool) {
  std::mt19937 random(2);
  std::vector<Block> blocks;
  for (int i = 0; i < 2 * 66000; ++i) blocks.push_back(pool.allocate(256 + random() % 100000, {}));
  for (size_t i = 0; i < blocks.size(); i += 2) pool.deallocate(blocks[i], {});
}

}  // namespace tensorcraft::test
