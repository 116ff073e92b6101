// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/simt/bulk.hpp"

#include "tensorcraft/core/error.hpp"

#include <cstring>

namespace tensorcraft::simt {
namespace {

void poison(Async& a, const Target& t, size_t bytes) {
  std::memset(t.to, 0xff, bytes);
  a.views.write(*t.block, t.to, bytes);
}

bool is_poison(const std::byte* at, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i)
    if (at[i] != std::byte{0xff}) return false;
  return true;
}

void check_multiple(const void* address, const char* what, const Issue& issue) {
  if (reinterpret_cast<uintptr_t>(address) % 16 != 0)
    issue.fault(join(what, " is not a multiple of 16 bytes"));
}

// A 1D copy: what all of them ask for.
Issue check_line(const char* instruction, const void* to, const void* from, uint32_t bytes,
                 const SourceLine& line) {
  const Issue issue = issued(instruction, line);
  check_multiple(to, "the destination", issue);
  check_multiple(from, "the source", issue);
  if (bytes % 16 != 0) issue.fault(join("copies multiples of 16 bytes, not ", bytes));
  return issue;
}

void see_issue(Shadow& shadow, ThreadAsync& thread, BulkCopy& copy) {
  const Site site{.wrapper = copy.issue.instruction};
  if (copy.from) shadow.issue_read(copy.from, copy.bytes, site, true);
  for (const Target& t : copy.targets) shadow.issue_write(t.to, copy.bytes, site);
  if (copy.targets.empty()) thread.reads.push_back({copy.from, copy.bytes, copy.group});
  copy.known = shadow.issued();
}

}  // namespace

std::vector<Target> targets_of(void* to, size_t bytes, uint64_t* barrier, uint16_t mask,
                               const Issue& issue) {
  Async& a = async();
  const Block& own = *issue.thread->block;
  if (mask == 0) mask = uint16_t(1u << own.rank);
  std::vector<Target> targets;
  for (uint32_t rank = 0; rank < 16; ++rank) {
    if (!(mask >> rank & 1u)) continue;
    Target t{static_cast<std::byte*>(in_block(to, rank, issue)), nullptr,
             static_cast<uint64_t*>(in_block(barrier, rank, issue))};
    t.block = &block_of(t.to, bytes, "the destination", issue);
    a.barriers.at(t.barrier, issue, true);
    targets.push_back(t);
  }
  return targets;
}

void Async::start(BulkCopy copy) {
  if (copy.from) {
    Block& block = block_of(copy.from, copy.bytes, "the source", copy.issue);
    views.check(block, copy.from, copy.bytes, copy.issue);
    copy.image.assign(copy.from, copy.from + copy.bytes);
  }
  if (copy.targets.empty()) copy.group = of(*copy.issue.thread).bulk_group;
  if (Shadow* s = cluster.shadow()) see_issue(*s, of(*copy.issue.thread), copy);
  if (!early())
    for (const Target& t : copy.targets) poison(*this, t, copy.bytes);
  bulk_.push_back(std::move(copy));
  if (early() || chance(4)) return land(bulk_.size() - 1);
  note_pending();
}

void Async::read(BulkCopy& copy) {
  if (copy.is_read) return;
  copy.is_read = true;
  if (copy.gather) {
    copy.image.resize(copy.bytes);
    copy.gather(copy.image.data());
  } else if (std::memcmp(copy.image.data(), copy.from, copy.bytes) != 0) {
    copy.issue.fault(
        "its source in shared memory changed between the issue and the wait that says it is read");
  }
}

void Async::land(size_t i) {
  BulkCopy copy = std::move(bulk_[i]);
  bulk_.erase(bulk_.begin() + long(i));
  read(copy);
  if (copy.scatter) copy.scatter(copy.image.data());
  for (const Target& t : copy.targets) {
    if (!early() && !is_poison(t.to, copy.bytes))
      copy.issue.fault("its destination was written while the copy was under way");
    std::memcpy(t.to, copy.image.data(), copy.bytes);
    views.write(*t.block, t.to, copy.bytes);
  }
  if (Shadow* s = cluster.shadow(); s && !copy.targets.empty()) {
    if (copy.from) s->read_done(copy.from, copy.bytes);
    for (const Target& t : copy.targets) {
      const void* key = t.barrier ? barriers.at(t.barrier, copy.issue).phase_key() : t.to;
      s->land(t.to, copy.bytes, copy.known, key);
    }
  }
  for (const Target& t : copy.targets)
    if (t.barrier)
      barriers.expect(barriers.at(t.barrier, copy.issue), -int64_t(copy.bytes), copy.issue);
}

void Async::wait_bulk(const Thread& thread, uint32_t before, bool read_only) {
  for (size_t i = 0; i < bulk_.size();) {
    BulkCopy& c = bulk_[i];
    const bool waits = c.issue.thread == &thread && c.targets.empty() && c.group < before;
    if (waits && read_only) read(c);
    if (waits && !read_only)
      land(i);
    else
      ++i;
  }
}

void bulk_load(void* to, const void* from, uint32_t bytes, uint64_t* barrier, uint16_t mask,
               const SourceLine& line) {
  const Issue issue = check_line("cp.async.bulk.shared::cluster.global", to, from, bytes, line);
  BulkCopy copy{.issue = issue, .bytes = bytes};
  copy.gather = [from, bytes](std::byte* image) { std::memcpy(image, from, bytes); };
  copy.targets = targets_of(to, bytes, barrier, mask, issue);
  async().start(std::move(copy));
}

void bulk_store(void* to, const void* from, uint32_t bytes, const SourceLine& line) {
  const Issue issue = check_line("cp.async.bulk.global.shared::cta", to, from, bytes, line);
  BulkCopy copy{.issue = issue, .bytes = bytes, .from = static_cast<const std::byte*>(from)};
  copy.scatter = [to, bytes](const std::byte* image) { std::memcpy(to, image, bytes); };
  async().start(std::move(copy));
}

void bulk_reduce(Reduce op, ReduceType type, void* to, const void* from, uint32_t bytes,
                 const SourceLine& line) {
  const Issue issue = check_line("cp.reduce.async.bulk", to, from, bytes, line);
  if (!can_reduce(op, type)) issue.fault("has no such operation for this type");
  BulkCopy copy{.issue = issue, .bytes = bytes, .from = static_cast<const std::byte*>(from)};
  copy.scatter = [=](const std::byte* image) { reduce(op, type, to, image, bytes); };
  async().start(std::move(copy));
}

void bulk_to_cluster(void* to, const void* from, uint32_t bytes, uint64_t* barrier, uint32_t rank,
                     const SourceLine& line) {
  const Issue issue =
      check_line("cp.async.bulk.shared::cluster.shared::cta", to, from, bytes, line);
  BulkCopy copy{.issue = issue, .bytes = bytes, .from = static_cast<const std::byte*>(from)};
  copy.targets = targets_of(to, bytes, barrier, uint16_t(1u << rank), issue);
  async().start(std::move(copy));
}

void st_async(void* to, const void* value, uint32_t bytes, uint64_t* barrier, uint32_t rank,
              const SourceLine& line) {
  const Issue issue = issued("st.async", line);
  std::vector<std::byte> image(bytes);
  std::memcpy(image.data(), value, bytes);
  BulkCopy copy{.issue = issue, .bytes = bytes};
  copy.gather = [image](std::byte* to_image) { std::memcpy(to_image, image.data(), image.size()); };
  copy.targets = targets_of(to, bytes, barrier, uint16_t(1u << rank), issue);
  async().start(std::move(copy));
}

void bulk_prefetch(const void* from, uint32_t bytes, const SourceLine& line) {
  check_line("cp.async.bulk.prefetch", nullptr, from, bytes, line);
}

void bulk_commit_group() { ++async().of(Cluster::current()->self()).bulk_group; }

void bulk_wait_group(int pending, bool read, const SourceLine&) {
  Async& a = async();
  const Thread& self = Cluster::current()->self();
  const uint32_t groups = a.of(self).bulk_group;
  if (groups <= uint32_t(pending)) return;
  const uint32_t before = groups - uint32_t(pending);
  a.wait_bulk(self, before, read);
  if (Shadow* s = a.cluster.shadow())
    std::erase_if(a.of(self).reads, [&](const Unwaited& r) {
      if (r.group < before) s->read_done(r.at, r.bytes);
      return r.group < before;
    });
}

}  // namespace tensorcraft::simt
