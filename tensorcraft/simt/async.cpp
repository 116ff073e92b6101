// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/simt/async.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/simt/warpgroup.hpp"

namespace tensorcraft::simt {

void Issue::fault(const std::string& text) const {
  Cluster::current()->fault(*thread, join(instruction, ": ", text), &line);
}

Issue issued(const char* instruction, const SourceLine& line) {
  return {instruction, &Cluster::current()->self(), line};
}

Async& async() { return Cluster::current()->async(); }

Async::Async(Cluster& c)
    : cluster(c),
      views(c.blocks().size()),
      warpgroups(std::make_unique<Warpgroups>()),
      timing_(c.options().timing),
      threads_(c.threads().size()) {}

Async::~Async() = default;

void Async::begin() {
  barriers.begin();
  views.begin();
  cluster_barrier = {};
  cluster_barrier.by.resize(threads_.size());
  cluster_barrier.phase_of.resize(threads_.size());
  warpgroups->begin();
  registers.clear();
  for (ThreadAsync& t : threads_) t = {};
  bulk_.clear();
  arrivals_ = 0;
  // Blocks differ in when things happen, runs with one seed do not.
  random_ = cluster.options().seed * 0x9e3779b97f4a7c15u + cluster.blocks()[0].index.x + 1;
}

ThreadAsync& Async::of(const Thread& thread) {
  return threads_[size_t(&thread - cluster.threads().data())];
}

bool Async::chance(unsigned n) {
  if (timing_ != Timing::seeded) return false;
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  return (random_ >> 32) % n == 0;
}

void Async::note_pending() { cluster.set_asks_async(timing_ == Timing::seeded); }

// Lands what a thread waits for, and no more: the newest first, since copies do not follow each
// other in any order.
bool Async::land_awaited() {
  for (size_t i = bulk_.size(); i-- > 0;)
    for (const Target& t : bulk_[i].targets)
      if (t.barrier && barriers.awaited(t.barrier)) return land(i), true;
  if (arrivals_ > 0)
    for (Thread& t : cluster.threads())
      for (const ThreadCopy& c : of(t).copies)
        if (c.barrier && barriers.awaited(c.barrier)) return land_arrival(t), true;
  return false;
}

bool Async::on_idle() {
  if (land_awaited()) return true;
  // A loop of test_wait may wait for any of them.
  for (size_t i = 0; i < bulk_.size(); ++i)
    if (!bulk_[i].targets.empty()) return land(i), true;
  if (arrivals_ > 0)
    for (Thread& t : cluster.threads())
      for (const ThreadCopy& c : of(t).copies)
        if (c.barrier) return land_arrival(t), true;
  return false;
}

void Async::at_switch() {
  if (!bulk_.empty() && chance(16)) land(size_t(random_ >> 40) % bulk_.size());
  if (chance(16)) {
    const Thread& t = cluster.threads()[size_t(random_ >> 40) % threads_.size()];
    const auto& copies = of(t).copies;
    if (!copies.empty() && !copies[0].barrier) land_copies(t, copies[0].group + 1);
  }
  if (chance(16)) warpgroups->land_one();
}

void Async::leave(Thread& thread) {
  land_copies(thread, ~0u);
  while (!of(thread).copies.empty()) land_arrival(thread);
  for (const BulkCopy& c : bulk_)
    if (c.issue.thread == &thread && c.targets.empty() && c.from && !c.is_read)
      c.issue.fault(
          "the thread exits before its source in shared memory has been read: "
          "cp.async.bulk.wait_group.read is missing");
  wait_bulk(thread, ~0u, false);
  warpgroups->leave(thread);
  if (thread.block->live == 1) check_leaving_block(thread);
}

void Async::check_leaving_block(Thread& thread) {
  for (const BulkCopy& c : bulk_)
    for (const Target& t : c.targets)
      if (t.block == thread.block)
        c.issue.fault(join("block ", thread.block->rank, " of the cluster exits while ", c.bytes,
                           " bytes are on their way into its shared memory"));
}

}  // namespace tensorcraft::simt
