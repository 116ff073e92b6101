// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/host_async.h"
#include "tensorcraft/simt/cluster.hpp"

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

// These run beside the threads of a cluster: copies in flight, the barriers that count them, the
// async proxy's view of shared memory. An operation takes effect some time between its issue and
// the wait that orders it, as Options::timing says. Until then its destination holds all ones, so
// that an early read shows it; shared memory that it reads must stay as it is.
namespace tensorcraft::simt {

class Warpgroups;

// Who issued something, for reports.
struct Issue {
  const char* instruction;
  Thread* thread;
  SourceLine line;
  [[noreturn]] void fault(const std::string& text) const;
};
Issue issued(const char* instruction, const SourceLine& line);  // by the running thread

// A transaction barrier. The 8 bytes in shared memory hold `image`, to notice ordinary writes.
struct MBarrier {
  uint64_t* address = nullptr;
  Block* block = nullptr;
  uint32_t count = 0, pending = 0;
  int64_t bytes = 0;   // announced and not yet come
  uint32_t phase = 0;  // how many have completed
  bool fenced = false;
  const Thread* initialiser = nullptr;
  uint64_t image = 0;
  std::vector<Thread*> waiting;
  // The shadow files the knowledge of threads that arrive in this phase under this key.
  const void* phase_key() const { return reinterpret_cast<char*>(address) + (phase & 1); }
};

class MBarriers {
 public:
  void begin() { barriers_.clear(); }
  void init(uint64_t* address, uint32_t count, const Issue& issue);
  void inval(uint64_t* address, const Issue& issue);
  // The live barrier there; for the copy engine or another block it must have been fenced.
  MBarrier& at(const uint64_t* address, const Issue& issue, bool needs_fence = false);
  void arrive(MBarrier& barrier, uint32_t count, const Issue& issue);
  void expect(MBarrier& barrier, int64_t bytes, const Issue& issue);
  // `bytes` have come, or with a negative count are announced; may complete the phase.
  void add_pending(MBarrier& barrier, uint32_t count, const Issue& issue);
  void fence(const Thread& thread);
  bool awaited(const uint64_t* address) const;
  std::string describe(const void* address) const;  // for a deadlock's report; empty if none

 private:
  void settle(MBarrier& barrier);
  std::unordered_map<const uint64_t*, MBarrier> barriers_;
};

// One cp.async, or with a barrier the arrival that follows those before it.
struct ThreadCopy {
  void* to = nullptr;
  const void* from = nullptr;
  int size = 0, bytes = 0;
  uint32_t group = 0;
  uint64_t* barrier = nullptr;
  Known known;  // by the thread, if it is an arrival
};

// Shared memory of an operation that no wait has covered yet, whenever it took effect.
struct Unwaited {
  const void* at;
  size_t bytes;
  uint32_t group;
};

struct ThreadAsync {
  std::vector<ThreadCopy> copies;
  std::vector<Unwaited> writes, reads;  // for the shadow: of cp.async and of bulk stores
  uint32_t copy_group = 0;              // of the next; the committed ones are below
  uint32_t bulk_group = 0;
};

// A place in shared memory that a copy writes, and the barrier that counts it.
struct Target {
  std::byte* to;
  Block* block;
  uint64_t* barrier;
};

// A copy by the copy engine. Its source is shared memory or what `gather` reads, its destination
// shared memory or what `scatter` writes.
struct BulkCopy {
  Issue issue;
  size_t bytes = 0;
  const std::byte* from = nullptr;
  std::function<void(std::byte* image)> gather;
  std::function<void(const std::byte* image)> scatter;
  std::vector<Target> targets;
  uint32_t group = 0;  // of stores
  bool is_read = false;
  std::vector<std::byte> image;
  Known known;  // by the issuing thread
};

// Holds what the async proxy knows of shared memory: the bytes as they were at the last fence, and
// what it wrote itself.
class ProxyViews {
 public:
  explicit ProxyViews(size_t blocks) : views_(blocks) {}
  void begin();
  void fence(Block& block);
  void write(Block& block, const std::byte* at, size_t bytes);  // what is in memory there now
  // Reports bytes that a thread wrote and no thread fenced.
  void check(Block& block, const std::byte* at, size_t bytes, const Issue& issue);

 private:
  struct View {
    bool exists = false;
    std::vector<std::byte> bytes;
  };
  View& view(Block& block);
  std::vector<View> views_;
};

struct ClusterBarrier {
  size_t arrived = 0, exited = 0;
  size_t missing = 0;  // exited without an arrival in this phase
  uint32_t phase = 0;
  std::vector<char> by;  // which threads have arrived, and have not waited since
  std::vector<uint32_t> phase_of;
  std::vector<Thread*> waiting;
};

class Async {
 public:
  explicit Async(Cluster& cluster);
  ~Async();
  void begin();  // the cluster starts anew

  // Called by the scheduler: when no thread can run, true if something took effect; at a switch
  // between threads with Timing::seeded; when a thread exits.
  bool on_idle();
  void at_switch();
  void leave(Thread& thread);
  std::string describe(const void* waits_on) const { return barriers.describe(waits_on); }

  ThreadAsync& of(const Thread& thread);
  bool early() const { return timing_ == Timing::as_early_as_possible; }
  // With Timing::seeded, true once in n.
  bool chance(unsigned n);
  void note_pending();  // something waits to take effect

  void start(BulkCopy copy);
  void read(BulkCopy& copy);
  void land(size_t i);
  void wait_bulk(const Thread& thread, uint32_t before, bool read_only);
  void land_copies(const Thread& thread, uint32_t before);  // cp.async of these groups
  void land_arrival(const Thread& thread);  // the first one and the copies before it

  Cluster& cluster;
  MBarriers barriers;
  ProxyViews views;
  ClusterBarrier cluster_barrier;
  std::unique_ptr<Warpgroups> warpgroups;
  std::vector<int> registers;  // of each warpgroup, since its last setmaxnreg
  uint64_t changes = 0;        // of barriers; a loop of test_wait may go on after one

 private:
  bool land_awaited();
  void check_leaving_block(Thread& thread);

  const Timing timing_;
  uint64_t random_ = 0;
  std::vector<ThreadAsync> threads_;
  std::vector<BulkCopy> bulk_;
  size_t arrivals_ = 0;  // among the threads' copies
  friend void cp_async_mbarrier_arrive(uint64_t*, bool, const SourceLine&);
};

// The one of the running cluster.
Async& async();
// The block whose shared memory holds these bytes; else a fault that names `what`.
Block& block_of(const void* address, size_t bytes, const char* what, const Issue& issue);
// Returns the same place in the shared memory of block `rank`, which must run.
void* in_block(const void* own, uint32_t rank, const Issue& issue);
// When a thread exits: the cluster barrier may be complete.
void leave_cluster_barrier(Async& async, const Thread& thread);

}  // namespace tensorcraft::simt
