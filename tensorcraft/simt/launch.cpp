// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/simt/launch.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/usable_cores.hpp"
#include "tensorcraft/simt/cluster.hpp"
#include "tensorcraft/simt/instrumentation.hpp"
#include "tensorcraft/simt/shadow.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace tensorcraft::simt {
namespace {

constexpr uint64_t kMaxBlockThreads = 1024, kMaxClusterBlocks = 16;
constexpr size_t kMaxSharedBytes = 227 * 1024;  // of an sm_90 block
// Each worker maps a guard page for every thread, and a process may have 65,530 mappings.
constexpr unsigned kMaxWorkers = 16;

thread_local Options current_options;

bool divides(const Index3& cluster, const Index3& grid) {
  return cluster.x > 0 && cluster.y > 0 && cluster.z > 0 && grid.x % cluster.x == 0 &&
         grid.y % cluster.y == 0 && grid.z % cluster.z == 0;
}

void check(const Launch& l) {
  const uint64_t threads = count(l.block);
  if (threads == 0 || threads > kMaxBlockThreads)
    fail(ErrorKind::value, "simt: ", l.name, ": a block has 1 to ", kMaxBlockThreads,
         " threads, got ", threads);
  if (l.grid.y > 65535 || l.grid.z > 65535 || l.grid.x > 0x7fffffffu || count(l.grid) == 0)
    fail(ErrorKind::value, "simt: ", l.name, ": the grid is at most (2^31 - 1, 65535, 65535) and ",
         "not empty, got (", l.grid.x, ", ", l.grid.y, ", ", l.grid.z, ")");
  if (count(l.cluster) > kMaxClusterBlocks || !divides(l.cluster, l.grid))
    fail(ErrorKind::value, "simt: ", l.name, ": a cluster has 1 to ", kMaxClusterBlocks,
         " blocks and divides the grid, got (", l.cluster.x, ", ", l.cluster.y, ", ", l.cluster.z,
         ")");
  if (l.shared_bytes > kMaxSharedBytes)
    fail(ErrorKind::value, "simt: ", l.name, ": a block has at most ", kMaxSharedBytes,
         " bytes of shared memory, got ", l.shared_bytes);
}

// The caller and its helpers take clusters until none is left or one failed.
class Run {
 public:
  Run(const Launch& launch, Body body, const void* params)
      : launch_(launch),
        body_(body),
        params_(params),
        clusters_(count(launch.grid) / count(launch.cluster)) {}

  // A helper without memory for its stacks leaves the work to the caller, which says what is wrong
  // if it has none either.
  void work(bool helps) noexcept {
    try {
      std::optional<Cluster> cluster;
      try {
        cluster.emplace(launch_, body_, params_, options_, &stopped_);
      } catch (...) {
        if (helps) return;
        throw;
      }
      for (uint64_t i; (i = next_++) < clusters_;) cluster->run(i);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
      next_ = clusters_;
      stopped_ = true;
    }
  }

  void finish() {
    const auto cores = uint64_t(usable_cores());
    const uint64_t wanted = std::min({cores, clusters_, uint64_t(kMaxWorkers)}) - 1;
    std::vector<std::thread> helpers;
    try {
      helpers.reserve(wanted);
      while (helpers.size() < wanted) helpers.emplace_back([this] { work(true); });
    } catch (const std::exception&) {
      // The system has no more threads: those there are, and the caller, do the work.
    }
    work(false);
    for (std::thread& t : helpers) t.join();
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  const Launch& launch_;
  const Body body_;
  const void* const params_;
  const Options options_ = current_options;
  const uint64_t clusters_;
  std::atomic<uint64_t> next_ = 0;
  std::atomic<bool> stopped_ = false;
  std::mutex mutex_;
  std::exception_ptr failure_;
};

}  // namespace

void launch(const Launch& launch, Body body, const void* params) {
  check(launch);
  if (Cluster::current())
    fail(ErrorKind::unsupported, "simt: ", launch.name, ": a kernel cannot launch a kernel");
  Run(launch, body, params).finish();
}

bool is_race_library() { return kRaceBuild; }

bool is_asan_library() {
#if defined(__SANITIZE_ADDRESS__)
  return true;
#else
  return false;
#endif
}

bool compiles([[maybe_unused]] DType type) {
#if defined(TENSORCRAFT_SIMT_INSTRUMENTED)
  return type != DType::float16;
#else
  return true;
#endif
}

void set_options(const Options& options) { current_options = options; }
Options options() { return current_options; }

}  // namespace tensorcraft::simt
