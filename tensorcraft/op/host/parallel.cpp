// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/host/parallel.hpp"

#include "tensorcraft/core/config.hpp"
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/first_made.hpp"
#include "tensorcraft/core/fork.hpp"
#include "tensorcraft/core/interrupt.hpp"
#include "tensorcraft/core/usable_cores.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <system_error>
#include <thread>
#include <vector>

#include <pthread.h>
#include <sched.h>

namespace tensorcraft::host {
namespace {

// 0.1 to 0.5 ms of polling before a thread sleeps: calls of one step of a model follow each other
// that fast, and waking a sleeping thread takes as long as a small product.
constexpr int kSpins = 10000;
// Ranges per thread: enough that a thread that loses its core does not hold up the others.
constexpr int64_t kRangesPerThread = 4;
// A range is done in pieces, between which it can be left: so many, but none of fewer grains, as
// some functions prepare each.
constexpr int64_t kPiecesPerRange = 64, kGrainsPerPiece = 4;

thread_local bool inside_parallel_for = false;

void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// The cores the calling thread may run on; none if they cannot be told.
cpu_set_t own_cores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) CPU_ZERO(&set);
  return set;
}

struct Job {
  RangeFunction function = nullptr;
  void* context = nullptr;
  int64_t n = 0, range = 0, num_ranges = 0, piece = 0;

  // Ends early if `failed` becomes true.
  void run(int64_t index, const std::atomic<bool>& failed) const {
    const int64_t begin = index * range, end = n - begin <= range ? n : begin + range;
    for (int64_t at = begin; at < end && !failed.load(std::memory_order_relaxed); at += piece) {
      function(context, at, end - at <= piece ? end : at + piece);
      if (n > piece) check_interrupt();
    }
  }
};

class Pool {
 public:
  bool try_acquire() { return !busy_.exchange(true, std::memory_order_acquire); }
  void release() { busy_.store(false, std::memory_order_release); }

  // Only the thread that acquired the pool calls this.
  void run(const Job& job, int threads) {
    start_workers(threads - 1);
    leave_core_to_caller();
    job_ = job;
    error_ = nullptr;
    failed_.store(false, std::memory_order_relaxed);
    active_workers_.store(threads - 1, std::memory_order_relaxed);
    unfinished_.store(job.num_ranges, std::memory_order_relaxed);
    // The ticket is the generation above the number of unclaimed ranges.
    const uint64_t generation = (ticket_.load(std::memory_order_relaxed) >> 32) + 1;
    ticket_.store(generation << 32 | uint64_t(job.num_ranges), std::memory_order_release);
    ticket_.notify_all();
    claim_ranges();
    wait_until_finished();
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  }

 private:
  void start_workers(int count) {
    try {
      while (int(workers_.size()) < count) {
        workers_.reserve(workers_.size() + 1);
        std::thread worker([this, index = int(workers_.size())] { work(index); });
        workers_.push_back(worker.native_handle());
        worker.detach();
        callers_core_ = -1;
      }
    } catch (const std::system_error&) {
      // The system has no more threads: those there are, and the caller, do the work.
    }
  }

  // In a virtual machine Linux takes an idle core for one that is not there, wakes a worker on its
  // caller's core, and lets it wait there for milliseconds. So workers may run on any other core.
  void leave_core_to_caller() {
    const int core = sched_getcpu();
    if (core < 0 || core == callers_core_) return;
    callers_core_ = core;
    cpu_set_t others = cores_;
    CPU_CLR(core, &others);
    if (CPU_COUNT(&others) == 0) return;
    for (const pthread_t worker : workers_) pthread_setaffinity_np(worker, sizeof others, &others);
  }

  void work(int index) {
    inside_parallel_for = true;
    for (;;) {
      const uint64_t seen = wait_for_ranges();
      if (index < active_workers_.load(std::memory_order_relaxed))
        claim_ranges();
      else
        ticket_.wait(seen);
    }
  }

  // A ticket with ranges left in it.
  uint64_t wait_for_ranges() {
    for (int spin = 0;; ++spin) {
      const uint64_t ticket = ticket_.load(std::memory_order_acquire);
      if (uint32_t(ticket) != 0) return ticket;
      if (spin < kSpins)
        pause_cpu();
      else
        ticket_.wait(ticket, std::memory_order_acquire);
    }
  }

  // The job may be read only by the holder of a claimed range: it cannot change before that range
  // is finished.
  void claim_ranges() {
    uint64_t ticket = ticket_.load(std::memory_order_acquire);
    while (uint32_t(ticket) != 0) {
      if (!ticket_.compare_exchange_weak(ticket, ticket - 1, std::memory_order_acquire)) continue;
      run_range(job_.num_ranges - int64_t(uint32_t(ticket)));
      ticket = ticket_.load(std::memory_order_acquire);
    }
  }

  void run_range(int64_t index) {
    try {
      job_.run(index, failed_);
    } catch (...) {
      if (!failed_.exchange(true)) error_ = std::current_exception();
    }
    if (unfinished_.fetch_sub(1, std::memory_order_acq_rel) == 1) unfinished_.notify_one();
  }

  void wait_until_finished() {
    for (int spin = 0;; ++spin) {
      const int64_t left = unfinished_.load(std::memory_order_acquire);
      if (left == 0) return;
      if (spin < kSpins)
        pause_cpu();
      else
        unfinished_.wait(left, std::memory_order_acquire);
    }
  }

  alignas(64) std::atomic<uint64_t> ticket_ = 0;
  alignas(64) std::atomic<int64_t> unfinished_ = 0;
  alignas(64) std::atomic<bool> busy_ = false;
  std::atomic<bool> failed_ = false;
  std::atomic<int> active_workers_ = 0;
  std::vector<pthread_t> workers_;  // they never end
  const cpu_set_t cores_ = own_cores();
  int callers_core_ = -1;  // as the workers know it
  Job job_;
  std::exception_ptr error_;
};

std::atomic<Pool*> current_pool = nullptr;
std::atomic<int> requested_threads = 0;

// The threads of the parent do not exist in the child of a fork: it starts with a pool of its own.
void forget_pool() { current_pool.store(nullptr, std::memory_order_relaxed); }

// Leaked on purpose: detached workers may look at it until the process has ended.
Pool& pool() {
  Pool* existing = current_pool.load(std::memory_order_acquire);
  if (existing) return *existing;
  static constinit FirstMade<InForkedChild, [] { return new InForkedChild(forget_pool); }> forgets;
  *forgets;
  Pool* created = new Pool;
  if (current_pool.compare_exchange_strong(existing, created, std::memory_order_acq_rel))
    return *created;
  delete created;  // another thread was first; this one has no workers yet
  return *existing;
}

// The pool and the mark of the calling thread, held for one parallel_for.
struct Turn {
  explicit Turn(Pool& p) : pool(p) { inside_parallel_for = true; }
  ~Turn() {
    inside_parallel_for = false;
    pool.release();
  }
  Turn(const Turn&) = delete;
  Pool& pool;
};

int* usual_threads() {
  return new int(config().num_threads > 0 ? config().num_threads : usable_cores());
}

}  // namespace

int num_threads() {
  const int requested = requested_threads.load(std::memory_order_relaxed);
  if (requested > 0) return requested;
  static constinit FirstMade<const int, usual_threads> initial;
  return *initial;
}

void set_num_threads(int count) {
  if (count < 0)
    fail(ErrorKind::value, "set_num_threads: count must be at least 0, got ", count,
         "; 0 means one thread for each core");
  requested_threads.store(count, std::memory_order_relaxed);
}

void parallel_for(int64_t n, int64_t grain, RangeFunction function, void* context) {
  if (n <= 0) return;
  if (n <= grain) return function(context, 0, n);
  grain = std::max<int64_t>(grain, 1);
  const int64_t grains = n / grain + (n % grain != 0);
  const int threads = int(std::min<int64_t>(num_threads(), grains));
  const auto piece_of = [&](int64_t range) {
    const int64_t wanted = std::max(range / grain / kPiecesPerRange, kGrainsPerPiece);
    return range / grain < wanted ? range : wanted * grain;
  };
  if (threads <= 1 || inside_parallel_for || !pool().try_acquire()) {
    const Job alone{function, context, n, n, 1, piece_of(n)};
    return alone.run(0, false);
  }
  const Turn turn(pool());
  const int64_t wanted = std::min(grains, threads * kRangesPerThread);
  const int64_t range = (grains / wanted + (grains % wanted != 0)) * grain;
  const Job job{function, context, n, range, n / range + (n % range != 0), piece_of(range)};
  turn.pool.run(job, threads);
}

}  // namespace tensorcraft::host
