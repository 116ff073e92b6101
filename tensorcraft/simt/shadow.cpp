// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/simt/shadow.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/device/base.h"
#include "tensorcraft/simt/cluster.hpp"

#include <algorithm>
#include <cstdlib>
#include <new>

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

void raise(Counts& to, const Counts& least) {
  for (size_t i = 0; i < to.size(); ++i) to[i] = std::max(to[i], least[i]);
}
// These counts to be changed: a copy if others hold them too, zeros if there are none.
Counts& own(SharedCounts& counts, size_t size) {
  if (!counts) counts = std::make_shared<Counts>(size);
  if (counts.use_count() > 1) counts = std::make_shared<Counts>(*counts);
  return const_cast<Counts&>(*counts);  // made as Counts, and nobody else's
}
void add(SharedCounts& to, const SharedCounts& more) {
  if (!more || to == more) return;
  if (to)
    raise(own(to, more->size()), *more);
  else
    to = more;
}

}  // namespace

// Words are as they come from calloc: zeros, of which the system has no page before one is touched.
// So what they are made of has no constructors.

// The history of one byte, or of a word that is always accessed whole. Steps count from 1.
struct Shadow::Cell {
  uint32_t write_step;  // 0: not written yet
  uint32_t read_step;   // of the only reader since the write
  uint16_t writer, reader;
  bool by_atomic, by_async;  // how it was written
  uint8_t reads_in_flight;
  bool write_in_flight;
  uintptr_t write_site, read_site, flight_site;
  uint32_t* readers;  // last read of each thread, if several read
};

struct Shadow::Word {
  Cell whole;
  Cell* bytes;  // if it is accessed in parts
  uint32_t generation;
};

struct Shadow::Window {
  struct Free {
    void operator()(Word* words) const { std::free(words); }
  };
  const std::byte* begin;
  size_t size;  // in words
  std::unique_ptr<Word[], Free> words;
};

// Hands out arrays of equal size, and takes back one, or all at once.
template <class T>
class Shadow::Arrays {
 public:
  explicit Arrays(size_t size) : size_(size) {}
  T* take() {
    if (!free_.empty()) {
      T* const array = free_.back();
      free_.pop_back();
      return array;
    }
    if (used_ == all_.size()) all_.push_back(std::make_unique<T[]>(size_));
    return all_[used_++].get();
  }
  void give_back(T* array) { free_.push_back(array); }
  void take_back_all() {
    free_.clear();
    used_ = 0;
  }

 private:
  size_t size_, used_ = 0;
  std::vector<std::unique_ptr<T[]>> all_;
  std::vector<T*> free_;
};

struct Shadow::Memory {
  Arrays<uint32_t> readers;
  Arrays<Cell> bytes;
};

// The running thread: its number, its newest step, and what it knows of the others; null: nothing.
struct Shadow::Now {
  unsigned self;
  uint32_t step;
  const uint32_t* seen;

  bool knows(unsigned thread, uint32_t other_step) const {
    return thread == self || (seen && seen[thread] >= other_step);
  }
};

Shadow* shadow() {
  Cluster* const cluster = Cluster::current();
  return cluster ? cluster->shadow() : nullptr;
}

Shadow::Shadow(Cluster& cluster)
    : cluster_(cluster),
      memory_(new Memory{Arrays<uint32_t>(cluster.threads().size()), Arrays<Cell>(kWordBytes)}) {
  for (Block& b : cluster.blocks()) {
    const size_t size = div_ceil(cluster.window_bytes(), kWordBytes);
    auto* const words = static_cast<Word*>(std::calloc(size, sizeof(Word)));
    if (!words) throw std::bad_alloc();
    windows_.push_back({b.shared, size, std::unique_ptr<Word[], Window::Free>(words)});
  }
  steps_.resize(cluster.threads().size());
  known_.resize(cluster.threads().size());
}

Shadow::~Shadow() = default;

void Shadow::begin() {
  ++generation_;
  memory_->readers.take_back_all();
  memory_->bytes.take_back_all();
  std::fill(steps_.begin(), steps_.end(), 1u);
  std::fill(known_.begin(), known_.end(), Known{});
  objects_.clear();
  const auto end_of = [](const Window& w) { return w.begin + w.size * kWordBytes; };
  const std::byte *first = windows_.front().begin, *last = end_of(windows_.front());
  for (const Window& w : windows_) {
    first = std::min(first, w.begin);
    last = std::max(last, end_of(w));
  }
  if constexpr (kRaceBuild) watch(first, last, this);
}

void Shadow::end() {
  if constexpr (kRaceBuild) watch(nullptr, nullptr, nullptr);
}

Shadow::Now Shadow::now() const {
  const unsigned self = number(cluster_, cluster_.self());
  const SharedCounts& seen = known_[self].seen;
  return {self, steps_[self], seen ? seen->data() : nullptr};
}

uint32_t* Shadow::copy_of(const uint32_t* readers) {
  if (!readers) return nullptr;
  uint32_t* const copy = memory_->readers.take();
  std::copy_n(readers, steps_.size(), copy);
  return copy;
}

void Shadow::split(Word& word) {
  word.bytes = memory_->bytes.take();
  for (size_t i = 0; i < kWordBytes; ++i) {
    word.bytes[i] = word.whole;
    word.bytes[i].readers = copy_of(word.whole.readers);
  }
}

template <class F>
void Shadow::each_cell(const void* address, size_t bytes, const F& f) {
  const auto* at = static_cast<const std::byte*>(address);
  for (size_t w = 0; w < windows_.size(); ++w) {
    Window& window = windows_[w];
    if (at < window.begin || at >= window.begin + window.size * kWordBytes) continue;
    const size_t first = size_t(at - window.begin), last = first + bytes;
    if (!cluster_.is_shared(cluster_.blocks()[w], address, bytes))
      cluster_.fault(join("out of bounds: ", bytes, " bytes at offset ", first,
                          " of shared memory are not all the kernel's own"));
    for (size_t i = first / kWordBytes; i * kWordBytes < last; ++i) {
      Word& word = window.words[i];
      if (word.generation != generation_)
        word = {.whole = {}, .bytes = nullptr, .generation = generation_};
      const size_t begin = std::max(first, i * kWordBytes),
                   end = std::min(last, (i + 1) * kWordBytes);
      if (end - begin < kWordBytes && !word.bytes) split(word);
      if (!word.bytes)
        f(word.whole, begin);
      else
        for (size_t b = begin; b < end; ++b) f(word.bytes[b % kWordBytes], b);
    }
    return;
  }
}

void Shadow::race(size_t offset, Access access, const Site& site, unsigned other,
                  Access other_access, uintptr_t other_site) {
  static constexpr const char* kVerbs[] = {"reads", "writes", "updates atomically",
                                           "lets an asynchronous operation write",
                                           "lets an asynchronous operation read"};
  const Thread& t = cluster_.threads()[other];
  cluster_.fault(join("race: this thread ", kVerbs[int(access)], " shared memory at offset ",
                      offset, " in ", describe(site), ", while thread (", t.index.x, ", ",
                      t.index.y, ", ", t.index.z, ") of block (", t.block->index.x, ", ",
                      t.block->index.y, ", ", t.block->index.z, ") ", kVerbs[int(other_access)],
                      " it in ", describe(unpack(other_site)), "; nothing orders the two"));
}

// An asynchronous operation still writes the cell, or reads what is to be written.
void Shadow::in_flight(const Cell& c, size_t offset, bool writes, const Site& site) {
  if (c.write_in_flight)
    cluster_.fault(join(writes ? "writes" : "reads", " shared memory at offset ", offset, " in ",
                        describe(site), ", where ", describe(unpack(c.flight_site)),
                        " has not delivered yet; wait for it first"));
  cluster_.fault(join("writes shared memory at offset ", offset, " in ", describe(site), ", which ",
                      describe(unpack(c.flight_site)), " still reads; wait for it first"));
}

void Shadow::unwritten(size_t offset, const char* verb, const Site& site) {
  cluster_.fault(join(verb, " shared memory at offset ", offset, " in ", describe(site),
                      ", which was never written"));
}

void Shadow::check_fence(const Cell& c, size_t offset, const Site& site, const Now& now) {
  const SharedCounts& fenced = known_[now.self].fenced;
  if (!fenced || (*fenced)[c.writer] < c.write_step)
    cluster_.fault(join("missing fence.proxy.async: ", describe(site), " reads offset ", offset,
                        " of shared memory, which ", describe(unpack(c.write_site)),
                        " wrote through the generic proxy"));
}

// Reports a read of the cell that the running thread has not seen.
void Shadow::check_readers(const Cell& c, size_t offset, Access access, const Site& site,
                           const Now& now) {
  const auto check = [&](unsigned t, uint32_t step) {
    if (step && !now.knows(t, step)) race(offset, access, site, t, Access::read, c.read_site);
  };
  if (!c.readers) return check(c.reader, c.read_step);
  const auto size = unsigned(steps_.size());
  if (now.seen) {  // a loop of vectors, which mostly finds nothing
    uint32_t unseen = 0;
    for (unsigned t = 0; t < size; ++t) unseen |= uint32_t(c.readers[t] > now.seen[t]);
    if (!unseen) return;
  }
  for (unsigned t = 0; t < size; ++t) check(t, c.readers[t]);
}

void Shadow::add_reader(Cell& c, const Site& site, const Now& now) {
  if (c.readers) {
    c.readers[now.self] = now.step;
  } else if (c.read_step == 0 || now.knows(c.reader, c.read_step)) {
    c.reader = uint16_t(now.self);
    c.read_step = now.step;
  } else {
    c.readers = memory_->readers.take();
    std::fill_n(c.readers, steps_.size(), 0u);
    c.readers[c.reader] = c.read_step;
    c.readers[now.self] = now.step;
  }
  c.read_site = pack(site);
}

template <Shadow::Access access>
void Shadow::touch(Cell& c, size_t offset, const Site& site, const Now& now) {
  constexpr bool writes =
      access == Access::write || access == Access::atomic || access == Access::async_write;
  if (c.write_in_flight || (writes && c.reads_in_flight)) in_flight(c, offset, writes, site);
  if (!writes && c.write_step == 0) unwritten(offset, "reads", site);
  if (c.write_step && !(access == Access::atomic && c.by_atomic) &&
      !now.knows(c.writer, c.write_step))
    race(offset, access, site, c.writer,
         c.by_async    ? Access::async_write
         : c.by_atomic ? Access::atomic
                       : Access::write,
         c.write_site);
  if constexpr (!writes) return add_reader(c, site, now);
  check_readers(c, offset, access, site, now);
  if (c.readers) memory_->readers.give_back(c.readers);
  c = {.write_step = now.step,
       .read_step = 0,
       .writer = uint16_t(now.self),
       .reader = 0,
       .by_atomic = access == Access::atomic,
       .by_async = access == Access::async_write,
       .reads_in_flight = 0,
       .write_in_flight = false,
       .write_site = pack(site),
       .read_site = 0,
       .flight_site = 0,
       .readers = nullptr};
}

void Shadow::read(const void* address, size_t bytes, const Site& site) {
  const Now now = this->now();
  each_cell(address, bytes,
            [&](Cell& c, size_t offset) { touch<Access::read>(c, offset, site, now); });
}

void Shadow::write(const void* address, size_t bytes, const Site& site) {
  const Now now = this->now();
  each_cell(address, bytes,
            [&](Cell& c, size_t offset) { touch<Access::write>(c, offset, site, now); });
}

void Shadow::atomic(const void* address, size_t bytes, const Site& site) {
  each_cell(address, bytes, [&](Cell& c, size_t offset) {
    if (c.write_step == 0) unwritten(offset, "updates", site);
  });
  atomic_store(address, bytes, site);
}

void Shadow::atomic_store(const void* address, size_t bytes, const Site& site) {
  const Now now = this->now();
  each_cell(address, bytes,
            [&](Cell& c, size_t offset) { touch<Access::atomic>(c, offset, site, now); });
}

void Shadow::issue_write(const void* address, size_t bytes, const Site& site) {
  const Now now = this->now();
  each_cell(address, bytes, [&](Cell& c, size_t offset) {
    touch<Access::async_write>(c, offset, site, now);
    c.write_in_flight = true;
    c.flight_site = pack(site);
  });
}

void Shadow::issue_read(const void* address, size_t bytes, const Site& site, bool proxy) {
  const Now now = this->now();
  each_cell(address, bytes, [&](Cell& c, size_t offset) {
    touch<Access::async_read>(c, offset, site, now);
    if (proxy && !c.by_async) check_fence(c, offset, site, now);
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
  add(known.seen, issued.seen);
  add(known.fenced, issued.fenced);
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
  Known known = known_[self];
  own(known.seen, steps_.size())[self] = steps_[self];
  return known;
}

void Shadow::synchronise(std::span<Thread* const> threads) {
  Known all;
  for (const Thread* t : threads) {
    const Known& known = known_[number(cluster_, *t)];
    add(all.seen, known.seen);
    add(all.fenced, known.fenced);
  }
  Counts& seen = own(all.seen, steps_.size());
  for (const Thread* t : threads) {
    const unsigned i = number(cluster_, *t);
    seen[i] = std::max(seen[i], steps_[i]++);
  }
  for (const Thread* t : threads) known_[number(cluster_, *t)] = all;
}

void Shadow::release(const void* object) {
  const unsigned self = number(cluster_, cluster_.self());
  Known& known = objects_[object];
  add(known.seen, known_[self].seen);
  own(known.seen, steps_.size())[self] = steps_[self]++;
  add(known.fenced, known_[self].fenced);
}

void Shadow::acquire(const void* object) { acquire(cluster_.self(), object); }

void Shadow::acquire(const Thread& thread, const void* object) {
  const auto found = objects_.find(object);
  if (found == objects_.end()) return;
  Known& mine = known_[number(cluster_, thread)];
  add(mine.seen, found->second.seen);
  add(mine.fenced, found->second.fenced);
}

void Shadow::forget(const void* object) { objects_.erase(object); }

void Shadow::fence_proxy() {
  const unsigned self = number(cluster_, cluster_.self());
  Known& mine = known_[self];
  add(mine.fenced, mine.seen);
  own(mine.fenced, steps_.size())[self] = steps_[self]++;
}

}  // namespace tensorcraft::simt
