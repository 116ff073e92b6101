// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <map>
#include <string>

namespace tensorcraft::test {

// Device memory of a driver in host memory. Blocks are between guard bytes and begin as NaN; what
// was freed becomes NaN again and is kept to the end, so that a late access is seen: a read as a
// wrong result, a write by damage(), both at once under ASan. Not safe from several threads.
class GuardedMemory {
 public:
  ~GuardedMemory();
  void* allocate(size_t bytes, int device);  // null if the host has no room
  // False if no such block is alive.
  bool release(void* data);
  bool contains(const void* address) const;  // in a block that is alive or was
  // Is the range inside one block that is alive?
  bool is_alive(const void* address, size_t bytes) const;
  int device_of(const void* address) const;  // -1 of none
  size_t bytes_in_use(int device) const;
  // Reports what was written to places that may not be written; empty if all is well.
  std::string damage() const;

 private:
  struct Block {
    std::byte* base;  // with the guards
    size_t bytes;
    int device;
    bool alive;
    // Larger blocks are not filled, nor kept once they are freed.
    bool is_small() const { return bytes <= size_t(1) << 20; }
    size_t room() const;
  };
  using Blocks = std::map<std::byte*, Block>;
  Blocks::const_iterator find(const void* address) const;

  Blocks blocks_;
};

}  // namespace tensorcraft::test
