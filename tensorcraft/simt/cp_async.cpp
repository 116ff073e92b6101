// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/simt/async.hpp"

#include <cstring>

namespace tensorcraft::simt {
namespace {

void complete(const ThreadCopy& copy) {
  std::memset(copy.to, 0, size_t(copy.size));
  // If nothing is read, `from` may be null.
  if (copy.bytes > 0) std::memcpy(copy.to, copy.from, size_t(copy.bytes));
}

void check(const ThreadCopy& c, const Issue& issue) {
  if (c.size != 4 && c.size != 8 && c.size != 16)
    issue.fault(join("copies 4, 8 or 16 bytes, not ", c.size));
  if (c.bytes < 0 || c.bytes > c.size)
    issue.fault(join("reads 0 to ", c.size, " bytes, not ", c.bytes));
  if (reinterpret_cast<uintptr_t>(c.to) % uintptr_t(c.size) != 0 ||
      reinterpret_cast<uintptr_t>(c.from) % uintptr_t(c.size) != 0)
    issue.fault(join("both addresses are multiples of ", c.size, " bytes"));
  block_of(c.to, size_t(c.size), "the destination", issue);
}

// A wait, or an arrival if `barrier` is not null, covers the copies of these groups.
void cover_writes(Shadow& shadow, ThreadAsync& thread, uint32_t before, const MBarrier* barrier,
                  const Known& known) {
  std::erase_if(thread.writes, [&](const Unwaited& w) {
    if (w.group >= before) return false;
    if (barrier)
      shadow.land(w.at, w.bytes, known, barrier->phase_key());
    else
      shadow.land(w.at, w.bytes);
    return true;
  });
  if (barrier) shadow.land(barrier->address, 0, known, barrier->phase_key());
}

void wait_for_copies(uint32_t before) {
  Async& a = async();
  const Thread& self = Cluster::current()->self();
  a.land_copies(self, before);
  if (Shadow* s = a.cluster.shadow()) cover_writes(*s, a.of(self), before, nullptr, {});
}

}  // namespace

void cp_async(void* shared, const void* global, int size, int bytes, const SourceLine& line) {
  const Issue issue = issued("cp.async", line);
  Async& a = async();
  ThreadAsync& mine = a.of(*issue.thread);
  const ThreadCopy copy{shared, global, size, bytes, mine.copy_group};
  check(copy, issue);
  if (Shadow* s = a.cluster.shadow()) {
    s->issue_write(shared, size_t(size), {.wrapper = issue.instruction});
    mine.writes.push_back({shared, size_t(size), mine.copy_group});
  }
  if (a.early() || a.chance(3)) return complete(copy);
  std::memset(shared, 0xff, size_t(size));
  mine.copies.push_back(copy);
  a.note_pending();
}

void cp_async_commit() { ++async().of(Cluster::current()->self()).copy_group; }

void cp_async_wait_group(int pending) {
  const uint32_t groups = async().of(Cluster::current()->self()).copy_group;
  if (groups > uint32_t(pending)) wait_for_copies(groups - uint32_t(pending));
}

void cp_async_wait_all() { wait_for_copies(~0u); }

void Async::land_copies(const Thread& thread, uint32_t before) {
  std::erase_if(of(thread).copies, [before](const ThreadCopy& c) {
    const bool lands = !c.barrier && c.group < before;
    if (lands) complete(c);
    return lands;
  });
}

void Async::land_arrival(const Thread& thread) {
  auto& copies = of(thread).copies;
  size_t i = 0;
  for (; !copies[i].barrier; ++i) complete(copies[i]);
  uint64_t* const barrier = copies[i].barrier;
  const uint32_t group = copies[i].group;
  const Known known = std::move(copies[i].known);
  copies.erase(copies.begin(), copies.begin() + long(i) + 1);
  --arrivals_;
  const Issue issue{"cp.async.mbarrier.arrive", const_cast<Thread*>(&thread), SourceLine{}};
  MBarrier& b = barriers.at(barrier, issue);
  if (Shadow* s = cluster.shadow()) cover_writes(*s, of(thread), group + 1, &b, known);
  barriers.arrive(b, 1, issue);
}

void cp_async_mbarrier_arrive(uint64_t* barrier, bool increments, const SourceLine& line) {
  const Issue issue = issued("cp.async.mbarrier.arrive", line);
  Async& a = async();
  MBarrier& b = a.barriers.at(barrier, issue);
  if (increments) a.barriers.add_pending(b, 1, issue);
  ThreadAsync& mine = a.of(*issue.thread);
  mine.copies.push_back({.group = mine.copy_group, .barrier = barrier});
  if (Shadow* s = a.cluster.shadow()) mine.copies.back().known = s->issued();
  ++a.arrivals_;
  if (a.early()) a.land_arrival(*issue.thread);
}

}  // namespace tensorcraft::simt
