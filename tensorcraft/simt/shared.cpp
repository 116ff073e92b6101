// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/device/base.h"
#include "tensorcraft/simt/cluster.hpp"

#include <cstring>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, bytes) ((void)(address), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(address, bytes) ((void)(address), (void)(bytes))
#endif

// The window of a block: dynamic shared memory from offset 0, as descriptors and swizzles want its
// 1024-byte boundary, then the static structs, each between zones that no thread may touch.
namespace tensorcraft::simt {
namespace {

constexpr size_t kAlign = 1024, kZone = 64, kStaticLimit = 48 * 1024;

size_t static_begin(const Launch& launch) { return round_up(launch.shared_bytes, kAlign) + kZone; }
// Static structs and their zones; few kernels have more than one.
constexpr size_t kStaticBytes = kStaticLimit + 16 * kAlign;

}  // namespace

size_t Cluster::window_bytes() const { return static_begin(launch_) + kStaticBytes; }

void Cluster::allocate_shared(Block& block) {
  const size_t bytes = window_bytes();
  block.memory = std::make_unique<std::byte[]>(bytes + 2 * kAlign);
  const auto address = reinterpret_cast<uintptr_t>(block.memory.get());
  block.shared = block.memory.get() + (round_up(address + kZone, kAlign) - address);
  ASAN_POISON_MEMORY_REGION(block.memory.get(), bytes + 2 * kAlign);
  ASAN_UNPOISON_MEMORY_REGION(block.shared, launch_.shared_bytes);
}

// All ones is a NaN in every float type, so a value that was never written shows.
void Cluster::clear_shared(Block& block) {
  std::memset(block.shared, 0xff, launch_.shared_bytes);
  for (const Static& s : statics_) std::memset(block.shared + s.offset, 0xff, s.bytes);
}

void* Cluster::static_shared(const void* key, size_t bytes, size_t align) {
  for (const Static& s : statics_)
    if (s.key == key) return self_->block->shared + s.offset;
  static_used_ += bytes;
  if (static_used_ > kStaticLimit)
    fault(join("static shared memory of ", static_used_, " bytes is beyond the limit of ",
               kStaticLimit));
  const size_t after = statics_.empty() ? static_begin(launch_)
                                        : statics_.back().offset + statics_.back().bytes + kZone;
  statics_.push_back({key, round_up(after, align), bytes});
  const Static& s = statics_.back();
  for (Block& b : blocks_) {
    ASAN_UNPOISON_MEMORY_REGION(b.shared + s.offset, bytes);
    std::memset(b.shared + s.offset, 0xff, bytes);
  }
  return self_->block->shared + s.offset;
}

void* Cluster::dynamic_shared(size_t bytes) {
  if (bytes > launch_.shared_bytes)
    fault(join("the kernel lays out ", bytes, " bytes of dynamic shared memory, the launch gives ",
               launch_.shared_bytes));
  return self_->block->shared;
}

bool Cluster::is_shared(const Block& block, const void* address, size_t bytes) const {
  const auto* at = static_cast<const std::byte*>(address);
  const auto inside = [&](const std::byte* begin, size_t size) {
    return at >= begin && at + bytes <= begin + size;
  };
  if (inside(block.shared, launch_.shared_bytes)) return true;
  for (const Static& s : statics_)
    if (inside(block.shared + s.offset, s.bytes)) return true;
  return false;
}

void* static_shared(const void* key, size_t bytes, size_t align) {
  return Cluster::current()->static_shared(key, bytes, align);
}
void* dynamic_shared(size_t bytes) { return Cluster::current()->dynamic_shared(bytes); }

uint32_t shared_address(const void* pointer, const SourceLine& line) {
  Cluster& cluster = *Cluster::current();
  const Block& block = *cluster.self().block;
  if (!cluster.is_shared(block, pointer, 1))
    cluster.fault("the address of something outside the block's shared memory is asked for", &line);
  return uint32_t(static_cast<const std::byte*>(pointer) - block.shared);
}

}  // namespace tensorcraft::simt
