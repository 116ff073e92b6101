// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/simt/async.hpp"

#include <cstring>

namespace tensorcraft::simt {
namespace {

constexpr uint32_t kMaxCount = (1u << 20) - 1;  // of arrivals, and of bytes in either direction

uint64_t image_of(const MBarrier& b) {
  return 0x6d62000000000000u ^ uint64_t(b.phase) << 44 ^ uint64_t(b.pending) << 22 ^
         uint64_t(b.bytes);
}

void store_image(MBarrier& b) {
  b.image = image_of(b);
  std::memcpy(b.address, &b.image, sizeof(b.image));
}

std::string place(const MBarrier& b) {
  return join("the barrier at byte ", reinterpret_cast<std::byte*>(b.address) - b.block->shared,
              " of shared memory");
}

// The shadow checks that a thread uses a barrier only after its initialisation.
void see_use(const uint64_t* address, const Issue& issue) {
  shadow_read(address, sizeof(*address), issue.instruction);
}
void see_arrival(const MBarrier& b, const Issue& issue) {
  see_use(b.address, issue);
  if (Shadow* s = shadow()) s->release(b.phase_key());
}
void see_completed(const uint64_t* address, uint32_t parity) {
  if (Shadow* s = shadow()) s->acquire(reinterpret_cast<const char*>(address) + parity);
}

void check_address(const uint64_t* address, const Issue& issue) {
  if (reinterpret_cast<uintptr_t>(address) % 8 != 0)
    issue.fault("a barrier lies at a multiple of 8 bytes");
  block_of(address, sizeof(*address), "the barrier", issue);
}

}  // namespace

Block& block_of(const void* address, size_t bytes, const char* what, const Issue& issue) {
  Cluster& cluster = *Cluster::current();
  if (cluster.is_shared(*issue.thread->block, address, bytes)) return *issue.thread->block;
  for (Block& b : cluster.blocks())
    if (cluster.is_shared(b, address, bytes)) return b;
  issue.fault(join(what, " (", bytes, " bytes) is not in shared memory"));
}

void MBarriers::init(uint64_t* address, uint32_t count, const Issue& issue) {
  check_address(address, issue);
  if (count < 1 || count > kMaxCount)
    issue.fault(join("the count must be in [1, 2^20 - 1], got ", count));
  Block& block = block_of(address, 8, "the barrier", issue);
  if (&block != issue.thread->block) issue.fault("the barrier is another block's");
  MBarrier& b = barriers_[address];
  if (b.address) issue.fault(join(place(b), " is initialised again without mbarrier.inval"));
  b = {.address = address,
       .block = &block,
       .count = count,
       .pending = count,
       .initialiser = issue.thread};
  store_image(b);
  shadow_write(address, sizeof(*address), issue.instruction);
  if (Shadow* s = shadow()) {
    s->forget(address);
    s->forget(reinterpret_cast<char*>(address) + 1);
  }
}

void MBarriers::inval(uint64_t* address, const Issue& issue) {
  const MBarrier& b = at(address, issue);
  if (!b.waiting.empty()) issue.fault(join(place(b), " has threads that wait"));
  shadow_write(address, sizeof(*address), issue.instruction);
  barriers_.erase(address);
}

MBarrier& MBarriers::at(const uint64_t* address, const Issue& issue, bool needs_fence) {
  check_address(address, issue);
  const auto found = barriers_.find(address);
  if (found == barriers_.end()) {
    const Block& block = block_of(address, 8, "the barrier", issue);
    issue.fault(join("there is no initialised barrier at byte ",
                     reinterpret_cast<const std::byte*>(address) - block.shared,
                     " of shared memory"));
  }
  MBarrier& b = found->second;
  uint64_t now;
  std::memcpy(&now, address, sizeof(now));
  if (now != b.image) issue.fault(join(place(b), " was overwritten by an ordinary store"));
  if (needs_fence && !b.fenced)
    issue.fault(join(place(b),
                     " was initialised and not fenced: fence.mbarrier_init or fence.proxy.async "
                     "comes before the copy engine or another block uses it"));
  return b;
}

void MBarriers::arrive(MBarrier& b, uint32_t count, const Issue& issue) {
  if (count < 1 || count > b.pending)
    issue.fault(join(count, " arrivals at ", place(b), ", where phase ", b.phase,
                     " still waits for ", b.pending, " of ", b.count));
  b.pending -= count;
  settle(b);
}

void MBarriers::expect(MBarrier& b, int64_t bytes, const Issue& issue) {
  b.bytes += bytes;
  if (b.bytes > int64_t(kMaxCount) || b.bytes < -int64_t(kMaxCount))
    issue.fault(join(place(b), " would wait for ", b.bytes, " bytes, beyond 2^20 - 1"));
  settle(b);
}

void MBarriers::add_pending(MBarrier& b, uint32_t count, const Issue& issue) {
  if (b.pending + count > kMaxCount) issue.fault(join(place(b), " waits for too many arrivals"));
  b.pending += count;
  store_image(b);
}

void MBarriers::settle(MBarrier& b) {
  ++async().changes;
  if (b.pending == 0 && b.bytes == 0) {
    Shadow* const s = shadow();
    if (s)
      for (const Thread* t : b.waiting) s->acquire(*t, b.phase_key());
    ++b.phase;
    if (s) s->forget(b.phase_key());
    b.pending = b.count;
    for (Thread* t : b.waiting) Cluster::current()->wake(*t);
    b.waiting.clear();
  }
  store_image(b);
}

void MBarriers::fence(const Thread& thread) {
  for (auto& [address, b] : barriers_)
    if (b.initialiser == &thread) b.fenced = true;
}

bool MBarriers::awaited(const uint64_t* address) const {
  const auto found = barriers_.find(address);
  return found != barriers_.end() && !found->second.waiting.empty();
}

std::string MBarriers::describe(const void* address) const {
  const auto found = barriers_.find(static_cast<const uint64_t*>(address));
  if (found == barriers_.end()) return {};
  const MBarrier& b = found->second;
  return join(", ", place(b), ": phase ", b.phase, " waits for ", b.pending, " of ", b.count,
              " arrivals and ", b.bytes, " bytes");
}

void mbarrier_init(uint64_t* barrier, uint32_t count, const SourceLine& line) {
  async().barriers.init(barrier, count, issued("mbarrier.init", line));
}

void mbarrier_inval(uint64_t* barrier, const SourceLine& line) {
  async().barriers.inval(barrier, issued("mbarrier.inval", line));
}

void mbarrier_arrive(uint64_t* barrier, uint32_t count, const SourceLine& line) {
  const Issue issue = issued("mbarrier.arrive", line);
  MBarriers& all = async().barriers;
  MBarrier& b = all.at(barrier, issue);
  see_arrival(b, issue);
  all.arrive(b, count, issue);
}

void mbarrier_arrive_cluster(uint64_t* barrier, uint32_t rank, uint32_t count,
                             const SourceLine& line) {
  const Issue issue = issued("mbarrier.arrive.shared::cluster", line);
  MBarriers& all = async().barriers;
  auto* const there = static_cast<uint64_t*>(in_block(barrier, rank, issue));
  MBarrier& b = all.at(there, issue, rank != issue.thread->block->rank);
  see_arrival(b, issue);
  all.arrive(b, count, issue);
}

void mbarrier_expect_tx(uint64_t* barrier, uint32_t bytes, bool arrives, const SourceLine& line) {
  const Issue issue = issued(arrives ? "mbarrier.arrive.expect_tx" : "mbarrier.expect_tx", line);
  MBarriers& all = async().barriers;
  MBarrier& b = all.at(barrier, issue);
  if (arrives && b.pending == 0)
    issue.fault(join("an arrival at ", place(b), ", where phase ", b.phase, " waits for none"));
  if (arrives)
    see_arrival(b, issue);
  else
    see_use(barrier, issue);
  all.expect(b, bytes, issue);
  if (arrives) all.arrive(b, 1, issue);
}

bool mbarrier_test_wait(const uint64_t* barrier, uint32_t parity, const SourceLine& line) {
  const Issue issue = issued("mbarrier.test_wait", line);
  see_use(barrier, issue);
  const auto done = [&] { return (async().barriers.at(barrier, issue).phase & 1) != parity; };
  if (!done()) Cluster::current()->spin("mbarrier.test_wait", line, false);
  if (!done()) return false;
  see_completed(barrier, parity);
  return true;
}

bool mbarrier_try_wait(const uint64_t* barrier, uint32_t parity, const SourceLine& line) {
  const Issue issue = issued("mbarrier.try_wait", line);
  if (parity > 1) issue.fault(join("a parity is 0 or 1, got ", parity));
  MBarrier& b = async().barriers.at(barrier, issue);
  see_use(barrier, issue);
  if ((b.phase & 1) != parity) {
    see_completed(barrier, parity);
    return true;
  }
  b.waiting.push_back(issue.thread);
  issue.thread->waits_on = barrier;
  Cluster::current()->wait("mbarrier.try_wait", line);
  issue.thread->waits_on = nullptr;
  return true;
}

}  // namespace tensorcraft::simt
