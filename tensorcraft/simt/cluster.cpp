// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/simt/cluster.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/interrupt.hpp"
#include "tensorcraft/simt/async.hpp"

#include <algorithm>
#include <thread>
#include <utility>

namespace tensorcraft {

thread_local constinit Index3 threadIdx, blockIdx, blockDim, gridDim;

namespace simt {
namespace {

thread_local Cluster* running = nullptr;

Index3 index_of(uint64_t i, const Index3& extent) {
  return {unsigned(i % extent.x), unsigned(i / extent.x % extent.y),
          unsigned(i / extent.x / extent.y)};
}

std::string text(const Index3& i) { return join("(", i.x, ", ", i.y, ", ", i.z, ")"); }

// The path from the repository's own folder on: short, and the same on every machine.
std::string_view short_path(std::string_view path) {
  size_t own = 0;
  for (const char* folder : {"tensorcraft/", "tests/"})
    if (const size_t at = path.rfind(folder); at != std::string_view::npos) own = std::max(own, at);
  return path.substr(own);
}

}  // namespace

Cluster* Cluster::current() { return running; }

Cluster::Cluster(const Launch& launch, Body body, const void* params, const Options& options,
                 const std::atomic<bool>* stopped)
    : launch_(launch),
      body_(body),
      params_(params),
      options_(options),
      stopped_(stopped),
      blocks_(count(launch.cluster)),
      threads_(blocks_.size() * count(launch.block)),
      queue_(threads_.size()) {
  stacks_ = borrow_stacks(threads_.size(), launch.stack_bytes);
  const size_t block_threads = count(launch.block);
  for (size_t b = 0; b < blocks_.size(); ++b) {
    blocks_[b].rank = unsigned(b);
    blocks_[b].warps.resize((block_threads + 31) / 32);
    for (size_t i = 0; i < block_threads; ++i) {
      Thread& t = threads_[b * block_threads + i];
      t.block = &blocks_[b];
      t.warp = &blocks_[b].warps[i / 32];
      t.rank = int(i);
      t.lane = int(i % 32);
      t.index = index_of(i, launch.block);
      t.fiber.stack = stacks_->at(b * block_threads + i);
      // Stacks that all end at one offset in their page would share a few lines of the cache.
      t.fiber.stack_bytes = launch.stack_bytes - i % 32 * 128;
      if (t.lane == 0) t.warp->first = &t;
      t.warp->exists |= 1u << t.lane;
      prepare_fiber(t.fiber, enter, this);
    }
    allocate_shared(blocks_[b]);
  }
  if constexpr (kRaceBuild) shadow_ = std::make_unique<Shadow>(*this);
}

Cluster::~Cluster() {
  // A thread that failed leaves frames; the others wait at the end of their body.
  if (!failure_) {
    ending_ = true;
    for (Thread& t : threads_) {
      if (!t.fiber.context) continue;
      self_ = &t;
      switch_fiber(main_, t.fiber);
    }
  }
  return_stacks(std::move(stacks_));
}

void Cluster::enter(void* cluster) {
  Cluster& c = *static_cast<Cluster*>(cluster);
  while (!c.ending_) {
    try {
      c.body_(c.params_);
    } catch (...) {
      c.end_with(std::current_exception());
    }
    c.exit_thread();
  }
  leave_fiber(c.self_->fiber, c.main_);
}

void Cluster::begin_block(Block& block, uint64_t cluster_index) {
  const Index3 clusters{launch_.grid.x / launch_.cluster.x, launch_.grid.y / launch_.cluster.y,
                        launch_.grid.z / launch_.cluster.z};
  const Index3 at = index_of(cluster_index, clusters);
  const Index3 inside = index_of(block.rank, launch_.cluster);
  block.index = {at.x * launch_.cluster.x + inside.x, at.y * launch_.cluster.y + inside.y,
                 at.z * launch_.cluster.z + inside.z};
  block.live = int(count(launch_.block));
  for (Warp& w : block.warps) {
    w.exited = 0;
    w.gatherings.clear();
  }
  for (Barrier& b : block.barriers) b = {};
  clear_shared(block);
}

void Cluster::run(uint64_t index) {
  running = this;
  thread_index_ = &threadIdx;
  block_index_ = &blockIdx;
  blockDim = launch_.block;
  gridDim = launch_.grid;
  for (Block& b : blocks_) begin_block(b, index);
  if (async_) async_->begin();
  asks_async_ = false;
  if (shadow_) shadow_->begin();
  live_ = threads_.size();
  queue_head_ = queue_count_ = 0;
  idle_rounds_ = 0;
  // Another order of the threads is another legal run.
  const size_t first = options_.timing == Timing::seeded ? options_.seed * 7 : 0;
  for (size_t i = 0; i < threads_.size(); ++i) {
    Thread& t = threads_[(first + i) % threads_.size()];
    t.state = State::waiting;
    wake(t);
  }
  Thread& next = *next_runnable();
  self_ = &next;
  threadIdx = next.index;
  blockIdx = next.block->index;
  switch_fiber(main_, next.fiber);
  while (std::exchange(pauses_, false) && may_go_on()) switch_fiber(main_, self_->fiber);
  running = nullptr;
  if (shadow_) shadow_->end();
  if (failure_) std::rethrow_exception(failure_);
}

void Cluster::wake(Thread& t) {
  t.state = State::runnable;
  const size_t at = queue_head_ + queue_count_++;
  queue_[at < queue_.size() ? at : at - queue_.size()] = &t;
}

Thread* Cluster::next_runnable() {
  if (queue_count_ == 0) return nullptr;
  Thread* next = queue_[queue_head_];
  if (++queue_head_ == queue_.size()) queue_head_ = 0;
  --queue_count_;
  return next;
}

void Cluster::switch_to(Thread& next) {
  Thread& from = *self_;
  if (&next == &from) return;
  self_ = &next;
  *thread_index_ = next.index;
  *block_index_ = next.block->index;
  switch_fiber(from.fiber, next.fiber);
}

// On the stack of the OS thread, as the answer may run any code of the caller's.
bool Cluster::may_go_on() {
  try {
    check_interrupt();
    if (stopped_ && *stopped_) fail(ErrorKind::cancelled, "another cluster ended the launch");
  } catch (...) {
    failure_ = std::current_exception();
  }
  return !failure_;
}

void Cluster::pause() {
  pauses_ = true;
  switch_fiber(self_->fiber, main_);
}

void Cluster::switch_away() {
  constexpr unsigned kSwitches = 1 << 14;  // about a millisecond
  if (++switches_ % kSwitches == 0) [[unlikely]]
    pause();
  if (asks_async_) [[unlikely]]
    async_->at_switch();
  for (;;) {
    if (Thread* next = next_runnable()) return switch_to(*next);
    if (async_ && async_->on_idle()) continue;
    if (!poll() && !wake_spinning())
      end_with(std::make_exception_ptr(Error(ErrorKind::kernel_fault, deadlock())));
  }
}

void Cluster::wait(const char* what, const SourceLine& line) {
  self_->state = State::waiting;
  self_->waits_for = what;
  self_->line = line;
  switch_away();
}

void Cluster::wait_until(const char* what, const SourceLine& line, bool (*ready)(void*),
                         void* state) {
  if (ready(state)) return;
  pollers_.push_back({self_, ready, state});
  wait(what, line);
}

bool Cluster::poll() {
  bool woke = false;
  for (size_t i = 0; i < pollers_.size();) {
    if (!pollers_[i].ready(pollers_[i].state)) {
      ++i;
      continue;
    }
    wake(*pollers_[i].thread);
    pollers_.erase(pollers_.begin() + long(i));
    woke = true;
  }
  return woke;
}

// Threads that spin and nothing else can go on: so many rounds without any change are a deadlock.
constexpr int kIdleRounds = 1000;

void Cluster::spin(const char* what, const SourceLine& line, bool waits_for_memory) {
  spinning_.push_back(self_);
  spins_for_memory_ |= waits_for_memory;
  wait(what, line);
}

bool Cluster::wake_spinning() {
  if (spinning_.empty()) return false;
  const uint64_t changes = async_ ? async_->changes : 0;
  idle_rounds_ = changes == changes_ && !spins_for_memory_ ? idle_rounds_ + 1 : 0;
  changes_ = changes;
  if (idle_rounds_ > kIdleRounds) return false;
  if (spins_for_memory_) std::this_thread::yield();
  spins_for_memory_ = false;
  for (Thread* t : spinning_) wake(*t);
  spinning_.clear();
  return true;
}

Async& Cluster::async() {
  if (!async_) {
    async_ = std::make_unique<Async>(*this);
    async_->begin();
    for (const Thread& t : threads_)
      if (t.state == State::done) leave_cluster_barrier(*async_, t);
  }
  return *async_;
}

void Cluster::exit_thread() {
  Thread& t = *self_;
  if (async_) async_->leave(t);
  t.state = State::done;
  --live_;
  --t.block->live;
  t.warp->exited |= 1u << t.lane;
  leave_warp(t);
  leave_barriers(t);
  if (async_) leave_cluster_barrier(*async_, t);
  if (live_ > 0) return switch_away();
  switch_fiber(t.fiber, main_);  // comes back for the next cluster, or to end
}

void Cluster::end_with(std::exception_ptr failure) {
  failure_ = std::move(failure);
  leave_fiber(self_->fiber, main_);
}

std::string Cluster::place(const Thread& t) const {
  return join("block ", text(t.block->index), ", thread ", text(t.index));
}

void Cluster::fault(const Thread& thread, std::string what, const SourceLine* line) {
  std::string message = join("simt: ", launch_.name, ": ", place(thread), ": ", what);
  if (line) message += join(" (", short_path(line->file_name()), ":", line->line(), ")");
  end_with(std::make_exception_ptr(Error(ErrorKind::kernel_fault, message)));
  __builtin_unreachable();
}

std::string Cluster::deadlock() const {
  std::string message = join("simt: ", launch_.name, ": deadlock: every thread waits");
  const char* last = nullptr;
  const void* last_on = nullptr;
  unsigned last_line = 0;
  int shown = 0;
  for (const Thread& t : threads_) {
    const bool known = t.waits_for == last && t.line.line() == last_line && t.waits_on == last_on;
    if (t.state != State::waiting || known) continue;
    last = t.waits_for;
    last_on = t.waits_on;
    last_line = t.line.line();
    if (++shown > 8) break;
    message += join("\n  from ", place(t), ": ", t.waits_for, " (", short_path(t.line.file_name()),
                    ":", last_line, ")", t.waits_on ? async_->describe(t.waits_on) : "");
  }
  const auto exited = std::count_if(threads_.begin(), threads_.end(),
                                    [](const Thread& t) { return t.state == State::done; });
  if (exited > 0) message += join("\n  ", exited, " threads have exited");
  return message;
}

}  // namespace simt
}  // namespace tensorcraft

// Kernels of users are compiled with -fsanitize-coverage=trace-pc, and so call this at each step
// between two branches: one that spins can be interrupted too.
// NOLINTNEXTLINE(bugprone-reserved-identifier,readability-identifier-naming): the compiler's name
extern "C" __attribute__((visibility("default"))) void __sanitizer_cov_trace_pc() {
  constexpr unsigned kSteps = 1 << 20;  // some milliseconds
  thread_local constinit unsigned steps = 0;
  if (++steps % kSteps != 0) [[likely]]
    return;
  if (auto* const cluster = tensorcraft::simt::Cluster::current()) cluster->pause();
}
