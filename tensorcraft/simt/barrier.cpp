// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/device/host_async.h"
#include "tensorcraft/simt/cluster.hpp"

namespace tensorcraft {
namespace simt {
namespace {

bool same(const SourceLine& a, const SourceLine& b) {
  return a.line() == b.line() && a.column() == b.column() && a.file_name() == b.file_name();
}

// `last` is the thread that completes the barrier, if it waits too.
void complete(Cluster& cluster, Barrier& barrier, Thread* last) {
  if (Shadow* shadow = cluster.shadow()) {
    std::vector<Thread*> all = barrier.waiting;
    if (last) all.push_back(last);
    shadow->synchronise(all);
    for (Thread* t : all) shadow->acquire(*t, &barrier);  // from those that arrived only
    shadow->forget(&barrier);
  }
  for (Thread* t : barrier.waiting) cluster.wake(*t);
  barrier.waiting.clear();
  barrier.lanes.clear();
  barrier.arrived = barrier.expected = 0;
}

// bar.sync and bar.arrive count whole warps, once each.
void meet_named(int id, int threads, bool waits, const char* what, const SourceLine& line) {
  Cluster& cluster = *Cluster::current();
  const Thread& self = cluster.self();
  Block& block = *self.block;
  if (id < 0 || id >= kNamedBarriers)
    cluster.fault(join(what, ": the barrier must be in [0, 16), got ", id), &line);
  const int most = int(block.warps.size()) * 32;
  if (threads <= 0 || threads % 32 != 0 || threads > most)
    cluster.fault(
        join(what, " ", id, ": the count must be a multiple of 32 up to ", most, ", got ", threads),
        &line);
  Barrier& b = block.barriers[id];
  b.lanes.resize(block.warps.size());
  unsigned& lanes = b.lanes[size_t(self.rank / 32)];
  if (lanes >> self.lane & 1u)
    cluster.fault(join(what, " ", id, ": the thread comes again before ", threads, " have come"),
                  &line);
  lanes |= 1u << self.lane;
  if (b.arrived + 1 == threads)
    for (size_t w = 0; w < b.lanes.size(); ++w)
      if (b.lanes[w] != 0 && (block.warps[w].exists & ~block.warps[w].exited & ~b.lanes[w]) != 0)
        cluster.fault(join(what, " ", id, ": only some lanes of warp ", w, " have come"), &line);
  meet(cluster, b, threads, waits, what, line);
}

}  // namespace

void bar_sync(int id, int threads, const SourceLine& line) {
  meet_named(id, threads, true, "bar.sync", line);
}
void bar_arrive(int id, int threads, const SourceLine& line) {
  meet_named(id, threads, false, "bar.arrive", line);
}

void meet(Cluster& cluster, Barrier& barrier, int expected, bool waits, const char* what,
          const SourceLine& line) {
  Thread& self = cluster.self();
  if (barrier.arrived > 0 && barrier.expected != expected)
    cluster.fault(
        join(what, " expects ", expected, " threads, others wait there for ", barrier.expected),
        &line);
  barrier.expected = expected;
  ++barrier.arrived;
  if (Shadow* shadow = cluster.shadow(); shadow && !waits) shadow->release(&barrier);
  if (barrier.arrived == (expected ? expected : self.block->live))
    return complete(cluster, barrier, waits ? &self : nullptr);
  if (!waits) return;
  barrier.waiting.push_back(&self);
  cluster.wait(what, line);
}

void leave_barriers(Thread& thread) {
  Block& block = *thread.block;
  for (Barrier& b : block.barriers)
    if (b.arrived > 0 && b.expected == 0 && b.arrived == block.live)
      complete(*Cluster::current(), b, nullptr);
}

}  // namespace simt

// All threads of a block must come to the same __syncthreads(), or the code diverges.
void __syncthreads(SourceLine line) {
  simt::Cluster& cluster = *simt::Cluster::current();
  simt::Barrier& barrier = cluster.self().block->barriers[0];
  if (!barrier.waiting.empty() && !simt::same(barrier.waiting[0]->line, line))
    cluster.fault(
        join("barrier divergence: this thread is at another __syncthreads() than ", "thread ",
             barrier.waiting[0]->rank, ", which waits at line ", barrier.waiting[0]->line.line()),
        &line);
  simt::meet(cluster, barrier, 0, true, "__syncthreads()", line);
}

void __threadfence() {}
void __threadfence_block() {}

}  // namespace tensorcraft
