// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/simt/fiber.hpp"
#include "tensorcraft/simt/launch.hpp"
#include "tensorcraft/simt/shadow.hpp"
#include "tensorcraft/simt/warp.hpp"

#include <atomic>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

// The blocks that run together on one OS thread and the threads in them. Everything in simt/ that
// makes a thread wait, wake or fail goes through Cluster.
namespace tensorcraft::simt {

class Async;
struct Block;
struct Warp;

inline uint64_t count(const Index3& extent) { return uint64_t(extent.x) * extent.y * extent.z; }

enum class State : uint8_t { runnable, waiting, done };

struct Thread {
  Fiber fiber;
  Index3 index;
  Block* block = nullptr;
  Warp* warp = nullptr;
  int rank = 0;  // in its block
  int lane = 0;
  State state = State::runnable;
  const char* waits_for = nullptr;  // names what, while it waits
  const void* waits_on = nullptr;   // the transaction barrier, if it is one
  SourceLine line;
};

// A warp-wide instruction for which some lanes have come.
struct Gathering {
  const WarpInstruction* instruction = nullptr;
  unsigned mask = 0, arrived = 0;
  void (*body)(const LaneArguments&) = nullptr;
  LaneArguments arguments{};
};

struct Warp {
  Thread* first = nullptr;  // its lanes are neighbours
  unsigned exists = 0, exited = 0;
  std::vector<Gathering> gatherings;
};

// Threads meet here; `expected` of them complete it.
struct Barrier {
  int arrived = 0;
  int expected = 0;  // while some have arrived
  std::vector<Thread*> waiting;
  std::vector<unsigned> lanes;  // of each warp; with bar.sync and bar.arrive only
};

inline constexpr int kNamedBarriers = 16;

struct Block {
  Index3 index;
  unsigned rank = 0;  // in its cluster
  int live = 0;       // threads that have not exited
  std::vector<Warp> warps;
  Barrier barriers[kNamedBarriers];
  std::unique_ptr<std::byte[]> memory;
  std::byte* shared = nullptr;  // the shared-memory window, at a 1024-byte boundary
};

class Cluster {
 public:
  // `stopped` is asked between its threads and ends the cluster; null: nothing does.
  Cluster(const Launch& launch, Body body, const void* params, const Options& options,
          const std::atomic<bool>* stopped = nullptr);
  ~Cluster();
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  // The cluster this OS thread runs; null outside a kernel.
  static Cluster* current();

  // Runs the cluster with this index to its end; throws what the kernel threw or a fault. After
  // that it cannot run another.
  void run(uint64_t index);

  Thread& self() { return *self_; }
  const Launch& launch() const { return launch_; }
  const Options& options() const { return options_; }
  std::vector<Block>& blocks() { return blocks_; }
  std::vector<Thread>& threads() { return threads_; }
  // Null outside the race build.
  Shadow* shadow() { return kRaceBuild ? shadow_.get() : nullptr; }
  size_t window_bytes() const;  // of a block's shared memory

  // Suspends the calling thread until another wakes it.
  void wait(const char* what, const SourceLine& line);
  void wake(Thread& thread);
  // Suspends it until ready(state) holds, asked when no thread can run.
  void wait_until(const char* what, const SourceLine& line, bool (*ready)(void*), void* state);
  // Ends the launch: "simt: KERNEL: block (..), thread (..): text (file:line)". Unwinds nothing, so
  // it may be called from anywhere in a kernel.
  [[noreturn]] void fault(std::string text, const SourceLine* line = nullptr) {
    fault(*self_, std::move(text), line);
  }
  // Likewise for what another thread did before.
  [[noreturn]] void fault(const Thread& thread, std::string text, const SourceLine* line);

  // Lets every other thread run before the caller goes on. If all threads do so again and again
  // while nothing changes, it is a deadlock, but not if it waits for memory, as another cluster may
  // write that.
  void spin(const char* what, const SourceLine& line, bool waits_for_memory);

  // Asks whether the launch should go on, and ends it if not; no other thread runs meanwhile.
  void pause();

  // Shared memory of the running thread's block, at an offset that is the same in each block.
  void* static_shared(const void* key, size_t bytes, size_t align);
  void* dynamic_shared(size_t bytes);
  // Whether these bytes are in what a block may use of its window.
  bool is_shared(const Block& block, const void* address, size_t bytes) const;
  // Calls visit(offset, bytes) for each piece of its window that a block may use.
  template <class F>
  void each_shared_piece(const F& visit) const {
    if (launch_.shared_bytes > 0) visit(size_t(0), launch_.shared_bytes);
    for (const Static& s : statics_) visit(s.offset, s.bytes);
  }

  // Returns what runs beside the threads; made when first asked for.
  Async& async();
  // Whether it is asked at each switch between threads.
  void set_asks_async(bool asks) { asks_async_ = asks; }

 private:
  struct Static {
    const void* key;
    size_t offset, bytes;
  };
  struct Poller {
    Thread* thread;
    bool (*ready)(void*);
    void* state;
  };

  static void enter(void* cluster);
  void allocate_shared(Block& block);
  void clear_shared(Block& block);
  void begin_block(Block& block, uint64_t cluster_index);
  void exit_thread();
  void switch_away();
  bool may_go_on();
  void switch_to(Thread& next);
  Thread* next_runnable();
  bool poll();
  bool wake_spinning();
  std::string deadlock() const;
  std::string place(const Thread& thread) const;
  void end_with(std::exception_ptr failure);

  const Launch launch_;
  const Body body_;
  const void* const params_;
  const Options options_;
  const std::atomic<bool>* const stopped_;
  unsigned switches_ = 0;
  bool pauses_ = false;  // the running thread asks whether to go on
  std::unique_ptr<Stacks> stacks_;
  std::vector<Block> blocks_;
  std::vector<Thread> threads_;
  std::vector<Thread*> queue_;  // a ring: runnable threads in the order they became so
  size_t queue_head_ = 0, queue_count_ = 0;
  std::vector<Poller> pollers_;
  std::vector<Thread*> spinning_;
  int idle_rounds_ = 0;  // in which nothing changed but for spinning threads
  uint64_t changes_ = 0;
  bool spins_for_memory_ = false;
  std::unique_ptr<Async> async_;
  bool asks_async_ = false;
  std::vector<Static> statics_;
  size_t static_used_ = 0;
  std::unique_ptr<Shadow> shadow_;
  Fiber main_;
  Thread* self_ = nullptr;
  // The indices of this OS thread: finding a thread-local variable again costs a call.
  Index3 *thread_index_ = nullptr, *block_index_ = nullptr;
  size_t live_ = 0;
  bool ending_ = false;
  std::exception_ptr failure_;
};

// A barrier's arrival and, if `waits`, its wait. Completes it when enough threads have come; 0
// expects every thread of the block that has not exited.
void meet(Cluster& cluster, Barrier& barrier, int expected, bool waits, const char* what,
          const SourceLine& line);
// Completes barriers and instructions that were waiting for a thread that exits.
void leave_barriers(Thread& thread);
void leave_warp(Thread& thread);

}  // namespace tensorcraft::simt
