// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/simt/async.hpp"

namespace tensorcraft::simt {
namespace {

size_t number_of(const Async& a, const Thread& t) {
  return size_t(&t - a.cluster.threads().data());
}

// The shadow files the knowledge of threads that arrive in this phase under this key.
const void* key(const ClusterBarrier& b, uint32_t phase) {
  return reinterpret_cast<const char*>(&b) + (phase & 1);
}

// Threads that have exited are not waited for.
void settle(Async& a) {
  ClusterBarrier& b = a.cluster_barrier;
  if (b.arrived == 0 || b.arrived + b.missing < a.cluster.threads().size()) return;
  Shadow* const shadow = a.cluster.shadow();
  if (shadow)
    for (const Thread* t : b.waiting) shadow->acquire(*t, key(b, b.phase));
  ++b.phase;
  if (shadow) shadow->forget(key(b, b.phase));
  b.arrived = 0;
  b.missing = b.exited;
  for (Thread* t : b.waiting) a.cluster.wake(*t);
  b.waiting.clear();
}

}  // namespace

Index3 cluster_ctaid() {
  const Index3 extent = cluster_nctaid();
  const unsigned rank = cluster_ctarank();
  return {rank % extent.x, rank / extent.x % extent.y, rank / extent.x / extent.y};
}
Index3 cluster_nctaid() { return Cluster::current()->launch().cluster; }
uint32_t cluster_ctarank() { return Cluster::current()->self().block->rank; }
uint32_t cluster_nctarank() { return uint32_t(Cluster::current()->blocks().size()); }

void cluster_arrive(const SourceLine& line) {
  const Issue issue = issued("barrier.cluster.arrive", line);
  Async& a = async();
  ClusterBarrier& b = a.cluster_barrier;
  const size_t me = number_of(a, *issue.thread);
  if (b.by[me]) issue.fault("the thread arrives again without barrier.cluster.wait");
  if (Shadow* s = a.cluster.shadow()) s->release(key(b, b.phase));
  b.by[me] = true;
  b.phase_of[me] = b.phase;
  ++b.arrived;
  settle(a);
}

void cluster_wait(const SourceLine& line) {
  const Issue issue = issued("barrier.cluster.wait", line);
  Async& a = async();
  ClusterBarrier& b = a.cluster_barrier;
  const size_t me = number_of(a, *issue.thread);
  if (!b.by[me]) issue.fault("the thread has not arrived");
  b.by[me] = false;
  if (b.phase != b.phase_of[me]) {
    if (Shadow* s = a.cluster.shadow()) s->acquire(key(b, b.phase_of[me]));
    return;
  }
  b.waiting.push_back(issue.thread);
  a.cluster.wait("barrier.cluster.wait", line);
}

void leave_cluster_barrier(Async& a, const Thread& thread) {
  ClusterBarrier& b = a.cluster_barrier;
  const size_t i = number_of(a, thread);
  ++b.exited;
  if (!b.by[i] || b.phase_of[i] != b.phase) ++b.missing;
  settle(a);
}

void* in_block(const void* own, uint32_t rank, const Issue& issue) {
  Cluster& cluster = *Cluster::current();
  const Block& mine = *issue.thread->block;
  if (rank >= cluster.blocks().size())
    issue.fault(join("block ", rank, " of a cluster of ", cluster.blocks().size()));
  const Block& from = block_of(own, 1, "the address", issue);
  const Block& to = cluster.blocks()[rank];
  if (&to != &mine && cluster.async().cluster_barrier.phase == 0)
    issue.fault(
        join("reaches into block ", rank, " before a cluster barrier has shown that it runs"));
  if (&to != &mine && to.live == 0)
    issue.fault(join("reaches into block ", rank, " of the cluster, which has exited"));
  return to.shared + (static_cast<const std::byte*>(own) - from.shared);
}

void* mapa(const void* own, uint32_t rank, const SourceLine& line) {
  return in_block(own, rank, issued("mapa", line));
}

void* cluster_access(const void* own, uint32_t rank, size_t bytes, const char* instruction,
                     const SourceLine& line) {
  const Issue issue = issued(instruction, line);
  if (reinterpret_cast<uintptr_t>(own) % bytes != 0)
    issue.fault(join("the address is a multiple of ", bytes, " bytes"));
  void* const there = in_block(own, rank, issue);
  block_of(there, bytes, "the address", issue);
  return there;
}

}  // namespace tensorcraft::simt
