// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/simt/shadow.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/device/base.h"
#include "tensorcraft/simt/cluster.hpp"

#include <algorithm>
#include <array>

namespace tensorcraft::simt {
namespace {

constexpr size_t kWordBytes = 4;
constexpr uintptr_t kWrapperTag = uintptr_t(1) << 63;  // no address of code or data has this bit

uintptr_t pack(const Site& s) {
  return s.wrapper ? reinterpret_cast<uintptr_t>(s.wrapper) | kWrapperTag
                   : reinterpret_cast<uintptr_t>(s.address);
}
Site unpack(uintptr_t site) {
  if (site & kWrapperTag) return {nullptr, reinterpret_cast<const char*>(site & ~kWrapperTag)};
  return {reinterpret_cast<const void*>(site), nullptr};
}

unsigned number(Cluster& cluster, const Thread& t) {
  return unsigned(&t - cluster.threads().data());
}

SharedCounts joined(const SharedCounts& a, const SharedCounts& b) {
  if (!a || a == b) return b;
  if (!b) return a;
  auto all = std::make_shared<Counts>(*a);
  for (size_t i = 0; i < all->size(); ++i) (*all)[i] = std::max((*all)[i], (*b)[i]);
  return all;
}

}  // namespace

// The history of one byte, or of a word that is always accessed whole. Steps count from 1.
struct Shadow::Cell {
  uint32_t write_step = 0;  // 0: not written yet
  uint32_t read_step = 0;   // of the only reader since the write
  uint16_t writer = 0, reader = 0;
  bool by_atomic = false, by_async = false;  // how it was written
  uint8_t reads_in_flight = 0;
  bool write_in_flight = false;
  uintptr_t write_site = 0, read_site = 0, flight_site = 0;
  std::shared_ptr<Counts> readers;  // last read of each thread, if several read
};

struct Shadow::Word {
  Cell whole;
  std::unique_ptr<std::array<Cell, kWordBytes>> bytes;  // if it is accessed in parts
  uint32_t generation = 0;
};

struct Shadow::Window {
  const std::byte* begin = nullptr;
  std::vector<Word> words;
};

Shadow* shadow() {
  Cluster* const cluster = Cluster::current();
  return cluster ? cluster->shadow() : nullptr;
}

Shadow::Shadow(Cluster& cluster) : cluster_(cluster) {
  for (Block& b : cluster.blocks()) {
    windows_.push_back(std::make_unique<Window>());
    windows_.back()->begin = b.shared;
    windows_.back()->words.resize(div_ceil(cluster.window_bytes(), kWordBytes));
  }
  steps_.resize(cluster.threads().size());
  known_.resize(cluster.threads().size());
}

Shadow::~Shadow() = default;

void Shadow::begin() {
  ++generation_;
  std::fill(steps_.begin(), steps_.end(), 1u);
  std::fill(known_.begin(), known_.end(), Known{});
  objects_.clear();
}

bool Shadow::knows(unsigned thread, uint32_t step) const {
  const unsigned self = number(cluster_, cluster_.self());
  const SharedCounts& seen = known_[self].seen;
  return thread == self || (seen && (*seen)[thread] >= step);
}

template <class F>
void Shadow::each_cell(const void* address, size_t bytes, const F& f) {
  const auto* at = static_cast<const std::byte*>(address);
  for (size_t w = 0; w < windows_.size(); ++w) {
    Window& window = *windows_[w];
    if (at < window.begin || at >= window.begin + window.words.size() * kWordBytes) continue;
    const size_t first = size_t(at - window.begin), last = first + bytes;
    if (!cluster_.is_shared(cluster_.blocks()[w], address, bytes))
      cluster_.fault(join("out of bounds: ", bytes, " bytes at offset ", first,
                          " of shared memory are not all the kernel's own"));
    for (size_t i = first / kWordBytes; i * kWordBytes < last; ++i) {
      Word& word = window.words[i];
      if (word.generation != generation_) {
        word.whole = {};
        word.bytes.reset();
        word.generation = generation_;
      }
      const size_t begin = std::max(first, i * kWordBytes),
                   end = std::min(last, (i + 1) * kWordBytes);
      if (end - begin < kWordBytes && !word.bytes) {
        word.bytes = std::make_unique<std::array<Cell, kWordBytes>>();
        word.bytes->fill(word.whole);
        for (Cell& c : *word.bytes)
          if (c.readers) c.readers = std::make_shared<Counts>(*c.readers);
      }
      if (!word.bytes)
        f(word.whole, begin);
      else
        for (size_t b = begin; b < end; ++b) f((*word.bytes)[b % kWordBytes], b);
    }
    return;
  }
}

void Shadow::race(size_t offset, Access access, const Site& site, unsigned other,
                  Access other_access, const Site& other_site) {
  static constexpr const char* kVerbs[] = {"reads", "writes", "updates atomically",
                                           "lets an asynchronous operation write",
                                           "lets an asynchronous operation read"};
  const Thread& t = cluster_.threads()[other];
  cluster_.fault(join("race: this thread ", kVerbs[int(access)], " shared memory at offset ",
                      offset, " in ", describe(site), ", while thread (", t.index.x, ", ",
                      t.index.y, ", ", t.index.z, ") of block (", t.block->index.x, ", ",
                      t.block->index.y, ", ", t.block->index.z, ") ", kVerbs[int(other_access)],
                      " it in ", describe(other_site), "; nothing orders the two"));
}

void Shadow::check(Cell& c, size_t offset, Access access, const Site& site, bool proxy) {
  const bool writes =
      access == Access::write || access == Access::atomic || access == Access::async_write;
  if (c.write_in_flight)
    cluster_.fault(join(writes ? "writes" : "reads", " shared memory at offset ", offset, " in ",
                        describe(site), ", where ", describe(unpack(c.flight_site)),
                        " has not delivered yet; wait for it first"));
  if (writes && c.reads_in_flight)
    cluster_.fault(join("writes shared memory at offset ", offset, " in ", describe(site),
                        ", which ", describe(unpack(c.flight_site)),
                        " still reads; wait for it first"));
  if (!writes && c.write_step == 0)
    cluster_.fault(join("reads shared memory at offset ", offset, " in ", describe(site),
                        ", which was never written"));
  if (c.write_step && !(access == Access::atomic && c.by_atomic) && !knows(c.writer, c.write_step))
    race(offset, access, site, c.writer,
         c.by_async    ? Access::async_write
         : c.by_atomic ? Access::atomic
                       : Access::write,
         unpack(c.write_site));
  if (proxy && !c.by_async) {
    const SharedCounts& fenced = known_[number(cluster_, cluster_.self())].fenced;
    if (!fenced || (*fenced)[c.writer] < c.write_step)
      cluster_.fault(join("missing fence.proxy.async: ", describe(site), " reads offset ", offset,
                          " of shared memory, which ", describe(unpack(c.write_site)),
                          " wrote through the generic proxy"));
  }
  if (!writes) return;
  if (c.readers) {
    for (unsigned t = 0; t < c.readers->size(); ++t)
      if ((*c.readers)[t] && !knows(t, (*c.readers)[t]))
        race(offset, access, site, t, Access::read, unpack(c.read_site));
  } else if (c.read_step && !knows(c.reader, c.read_step)) {
    race(offset, access, site, c.reader, Access::read, unpack(c.read_site));
  }
}

void Shadow::record(Cell& c, Access access, const Site& site) {
  const unsigned self = number(cluster_, cluster_.self());
  const uint32_t step = steps_[self];
  if (access != Access::read && access != Access::async_read) {
    c = {.write_step = step,
         .writer = uint16_t(self),
         .by_atomic = access == Access::atomic,
         .by_async = access == Access::async_write,
         .write_site = pack(site)};
    return;
  }
  if (c.readers) {
    (*c.readers)[self] = step;
  } else if (c.read_step == 0 || knows(c.reader, c.read_step)) {
    c.reader = uint16_t(self);
    c.read_step = step;
  } else {
    c.readers = std::make_shared<Counts>(steps_.size());
    (*c.readers)[c.reader] = c.read_step;
    (*c.readers)[self] = step;
  }
  c.read_site = pack(site);
}

void Shadow::read(const void* address, size_t bytes, const Site& site) {
  each_cell(address, bytes, [&](Cell& c, size_t offset) {
    check(c, offset, Access::read, site, false);
    record(c, Access::read, site);
  });
}

void Shadow::write(const void* address, size_t bytes, const Site& site) {
  each_cell(address, bytes, [&](Cell& c, size_t offset) {
    check(c, offset, Access::write, site, false);
    record(c, Access::write, site);
  });
}

void Shadow::atomic(const void* address, size_t bytes, const Site& site) {
  each_cell(address, bytes, [&](Cell& c, size_t offset) {
    if (c.write_step == 0)
      cluster_.fault(join("updates shared memory at offset ", offset, " in ", describe(site),
                          ", which was never written"));
  });
  atomic_store(address, bytes, site);
}

void Shadow::atomic_store(const void* address, size_t bytes, const Site& site) {
  each_cell(address, bytes, [&](Cell& c, size_t offset) {
    check(c, offset, Access::atomic, site, false);
    record(c, Access::atomic, site);
  });
}

void Shadow::issue_write(const void* address, size_t bytes, const Site& site) {
  each_cell(address, bytes, [&](Cell& c, size_t offset) {
    check(c, offset, Access::async_write, site, false);
    record(c, Access::async_write, site);
    c.write_in_flight = true;
    c.flight_site = pack(site);
  });
}

void Shadow::issue_read(const void* address, size_t bytes, const Site& site, bool proxy) {
  each_cell(address, bytes, [&](Cell& c, size_t offset) {
    check(c, offset, Access::async_read, site, proxy);
    record(c, Access::async_read, site);
    ++c.reads_in_flight;
    c.flight_site = pack(site);
  });
}

void Shadow::land(const void* address, size_t bytes) {
  const unsigned self = number(cluster_, cluster_.self());
  each_cell(address, bytes, [&](Cell& c, size_t) {
    c.write_in_flight = false;
    c.writer = uint16_t(self);
    c.write_step = steps_[self];
  });
}

void Shadow::land(const void* address, size_t bytes, const Known& issued, const void* object) {
  each_cell(address, bytes, [](Cell& c, size_t) { c.write_in_flight = false; });
  Known& known = objects_[object];
  known.seen = joined(known.seen, issued.seen);
  known.fenced = joined(known.fenced, issued.fenced);
}

void Shadow::read_done(const void* address, size_t bytes) {
  each_cell(address, bytes, [](Cell& c, size_t) {
    if (c.reads_in_flight) --c.reads_in_flight;
    // Any thread that waited for the operation may pass that on, not only the one that issued it.
    if (!c.reads_in_flight && !c.readers && c.read_site == c.flight_site) c.read_step = 0;
  });
}

Known Shadow::issued() const {
  const unsigned self = number(cluster_, cluster_.self());
  auto seen = known_[self].seen ? std::make_shared<Counts>(*known_[self].seen)
                                : std::make_shared<Counts>(steps_.size());
  (*seen)[self] = steps_[self];
  return {std::move(seen), known_[self].fenced};
}

void Shadow::synchronise(std::span<Thread* const> threads) {
  Known all;
  for (const Thread* t : threads) {
    const Known& known = known_[number(cluster_, *t)];
    all.seen = joined(all.seen, known.seen);
    all.fenced = joined(all.fenced, known.fenced);
  }
  auto seen =
      all.seen ? std::make_shared<Counts>(*all.seen) : std::make_shared<Counts>(steps_.size());
  for (const Thread* t : threads) {
    const unsigned i = number(cluster_, *t);
    (*seen)[i] = std::max((*seen)[i], steps_[i]++);
  }
  all.seen = std::move(seen);
  for (const Thread* t : threads) known_[number(cluster_, *t)] = all;
}

void Shadow::release(const void* object) {
  Known& known = objects_[object];
  const Known mine = issued();
  known.seen = joined(known.seen, mine.seen);
  known.fenced = joined(known.fenced, mine.fenced);
  ++steps_[number(cluster_, cluster_.self())];
}

void Shadow::acquire(const void* object) { acquire(cluster_.self(), object); }

void Shadow::acquire(const Thread& thread, const void* object) {
  const auto found = objects_.find(object);
  if (found == objects_.end()) return;
  Known& mine = known_[number(cluster_, thread)];
  mine.seen = joined(mine.seen, found->second.seen);
  mine.fenced = joined(mine.fenced, found->second.fenced);
}

void Shadow::forget(const void* object) { objects_.erase(object); }

void Shadow::fence_proxy() {
  Known& mine = known_[number(cluster_, cluster_.self())];
  mine.fenced = joined(mine.fenced, issued().seen);
  ++steps_[number(cluster_, cluster_.self())];
}

}  // namespace tensorcraft::simt
