// SPDX-License-Identifier: Apache-2.0
#include "tests/support/guarded_memory.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, bytes) ((void)(address), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(address, bytes) ((void)(address), (void)(bytes))
#endif

namespace tensorcraft::test {
namespace {

constexpr size_t kGuard = 256;  // also what the driver aligns blocks to
constexpr std::byte kGuardByte{0xa5}, kNaN{0xff};

bool all_are(const std::byte* bytes, size_t count, std::byte value) {
  return std::all_of(bytes, bytes + count, [&](std::byte b) { return b == value; });
}

}  // namespace

size_t GuardedMemory::Block::room() const { return (bytes + kGuard - 1) / kGuard * kGuard; }

GuardedMemory::~GuardedMemory() {
  for (const auto& [data, block] : blocks_) {
    ASAN_UNPOISON_MEMORY_REGION(block.base, block.room() + 2 * kGuard);
    std::free(block.base);
  }
}

void* GuardedMemory::allocate(size_t bytes, int device) {
  Block block{nullptr, bytes, device, true};
  const size_t room = block.room();
  block.base = static_cast<std::byte*>(std::aligned_alloc(kGuard, room + 2 * kGuard));
  if (!block.base) return nullptr;
  std::byte* const data = block.base + kGuard;
  if (block.is_small()) std::memset(data, int(kNaN), bytes);
  std::memset(block.base, int(kGuardByte), kGuard);
  std::memset(data + bytes, int(kGuardByte), room + kGuard - bytes);
  ASAN_POISON_MEMORY_REGION(block.base, kGuard);
  ASAN_POISON_MEMORY_REGION(data + bytes, room + kGuard - bytes);
  blocks_[data] = block;
  return data;
}

bool GuardedMemory::release(void* data) {
  const auto found = blocks_.find(static_cast<std::byte*>(data));
  if (found == blocks_.end() || !found->second.alive) return false;
  Block& block = found->second;
  block.alive = false;
  if (block.is_small()) {
    std::memset(data, int(kNaN), block.bytes);
    ASAN_POISON_MEMORY_REGION(data, block.bytes);
    return true;
  }
  ASAN_UNPOISON_MEMORY_REGION(block.base, block.room() + 2 * kGuard);
  std::free(block.base);
  blocks_.erase(found);
  return true;
}

GuardedMemory::Blocks::const_iterator GuardedMemory::find(const void* address) const {
  const auto* const at = static_cast<const std::byte*>(address);
  auto found = blocks_.upper_bound(const_cast<std::byte*>(at));
  if (found == blocks_.begin()) return blocks_.end();
  --found;
  return at < found->first + found->second.bytes ? found : blocks_.end();
}

bool GuardedMemory::contains(const void* address) const { return find(address) != blocks_.end(); }

bool GuardedMemory::is_alive(const void* address, size_t bytes) const {
  const auto found = find(address);
  if (found == blocks_.end() || !found->second.alive) return false;
  return static_cast<const std::byte*>(address) + bytes <= found->first + found->second.bytes;
}

int GuardedMemory::device_of(const void* address) const {
  const auto found = find(address);
  return found == blocks_.end() ? -1 : found->second.device;
}

size_t GuardedMemory::bytes_in_use(int device) const {
  size_t bytes = 0;
  for (const auto& [data, block] : blocks_)
    if (block.alive && block.device == device) bytes += block.bytes;
  return bytes;
}

std::string GuardedMemory::damage() const {
  std::string text;
  for (const auto& [data, block] : blocks_) {
    const size_t behind = block.room() + kGuard - block.bytes;
    ASAN_UNPOISON_MEMORY_REGION(block.base, block.room() + 2 * kGuard);
    const std::string name = " a block of " + std::to_string(block.bytes) + " bytes;";
    if (!all_are(block.base, kGuard, kGuardByte)) text += " written in front of" + name;
    if (!all_are(data + block.bytes, behind, kGuardByte)) text += " written behind" + name;
    if (!block.alive && !all_are(data, block.bytes, kNaN)) text += " written after free:" + name;
    ASAN_POISON_MEMORY_REGION(block.base, kGuard);
    ASAN_POISON_MEMORY_REGION(data + block.bytes, behind);
    if (!block.alive) ASAN_POISON_MEMORY_REGION(data, block.bytes);
  }
  return text;
}

}  // namespace tensorcraft::test
