// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/host.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

// The race build knows this of every byte of shared memory: who wrote it, who read it since, and
// what is ordered before what. Each thread has a vector clock; two accesses of which neither is
// ordered before the other, and one writes, are a race whatever the schedule was.
namespace tensorcraft::simt {

class Cluster;
struct Thread;

// The race build compiles rungs with -fsanitize=thread and links the functions of tsan.cpp, so that
// the shadow sees every access. In other builds each hook is nothing.
#if defined(TENSORCRAFT_SIMT_RACE)
inline constexpr bool kRaceBuild = true;
#else
inline constexpr bool kRaceBuild = false;
#endif

// Counts of the threads' steps, by number of the thread in its cluster; immutable and shared.
using Counts = std::vector<uint32_t>;
using SharedCounts = std::shared_ptr<const Counts>;

// A thread, a barrier object or an asynchronous operation knows this to have happened: all accesses
// up to these steps. `fenced` is the part that a fence.proxy.async made visible to the async proxy.
struct Known {
  SharedCounts seen, fenced;
};

// A place in the code: the address after a call into tsan.cpp, or the name of a wrapper.
struct Site {
  const void* address = nullptr;
  const char* wrapper = nullptr;
};

class Shadow {
 public:
  explicit Shadow(Cluster& cluster);
  ~Shadow();

  // The cluster starts anew: no byte is written, nothing has happened.
  void begin();
  // It has run to its end.
  void end();

  // Accesses of the running thread to [address, address + bytes), in some block's shared memory.
  // Anything else is ignored.
  void read(const void* address, size_t bytes, const Site& site);
  void write(const void* address, size_t bytes, const Site& site);
  void atomic(const void* address, size_t bytes, const Site& site);
  void atomic_store(const void* address, size_t bytes, const Site& site);

  // Everything any of these threads did is ordered before everything each of them will do.
  void synchronise(std::span<Thread* const> threads);
  // Orders what the running thread did before what follows an acquire() of the same object.
  void release(const void* object);
  void acquire(const void* object);
  void acquire(const Thread& thread, const void* object);
  void forget(const void* object);

  // The running thread issues an asynchronous operation that will write (read) these bytes; until
  // it has landed any other access (write) to them is reported. Async reads of a bulk copy or a
  // matrix instruction also want every generic write fenced: `proxy`.
  void issue_write(const void* address, size_t bytes, const Site& site);
  void issue_read(const void* address, size_t bytes, const Site& site, bool proxy);
  // It is complete for the running thread, as a wait shows, ...
  void land(const void* address, size_t bytes);
  // ... or for each thread that acquires `object`, as a transaction barrier shows; `issued` is what
  // issued() gave at the issue.
  void land(const void* address, size_t bytes, const Known& issued, const void* object);
  void read_done(const void* address, size_t bytes);
  Known issued() const;

  // fence.proxy.async: what the running thread knows may be read by the async proxy.
  void fence_proxy();

 private:
  struct Cell;
  struct Word;
  struct Window;
  template <class T>
  class Arrays;
  struct Memory;
  struct Now;
  enum class Access : uint8_t { read, write, atomic, async_write, async_read };

  template <class F>
  void each_cell(const void* address, size_t bytes, const F& f);
  void split(Word& word);
  uint32_t* copy_of(const uint32_t* readers);
  Now now() const;
  // Checks and notes an access of the running thread.
  template <Access access>
  void touch(Cell& cell, size_t offset, const Site& site, const Now& now);
  void check_fence(const Cell& cell, size_t offset, const Site& site, const Now& now);
  void check_readers(const Cell& cell, size_t offset, Access access, const Site& site,
                     const Now& now);
  void add_reader(Cell& cell, const Site& site, const Now& now);
  [[noreturn]] void in_flight(const Cell& cell, size_t offset, bool writes, const Site& site);
  [[noreturn]] void unwritten(size_t offset, const char* verb, const Site& site);
  [[noreturn]] void race(size_t offset, Access access, const Site& site, unsigned other,
                         Access other_access, uintptr_t other_site);

  Cluster& cluster_;
  std::vector<Window> windows_;
  std::unique_ptr<Memory> memory_;  // of cells
  std::vector<Known> known_;        // of each thread, without its own newest step
  std::vector<uint32_t> steps_;     // own newest step
  std::unordered_map<const void*, Known> objects_;
  uint32_t generation_ = 0;
};

// This OS thread's accesses to [begin, end) go to the shadow from now on, and no others; null:
// none. In tsan.cpp, so of the race build alone.
void watch(const std::byte* begin, const std::byte* end, Shadow* shadow);

// The one of the running cluster; null outside a kernel and outside the race build.
Shadow* shadow();
// Accesses that a wrapper makes for its thread.

inline void shadow_read(const void* address, size_t bytes, const char* wrapper) {
  if constexpr (kRaceBuild)
    if (Shadow* s = shadow()) s->read(address, bytes, {.wrapper = wrapper});
}
inline void shadow_write(const void* address, size_t bytes, const char* wrapper) {
  if constexpr (kRaceBuild)
    if (Shadow* s = shadow()) s->write(address, bytes, {.wrapper = wrapper});
}

// "tensorcraft/ops/gemm/02_block_tiled.cuh:37" for an address in loaded code with debug
// information, else "libtensorcraft.so+0x1234".
std::string describe(const Site& site);

}  // namespace tensorcraft::simt
