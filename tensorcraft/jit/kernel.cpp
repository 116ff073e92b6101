// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/jit/kernel.hpp"

#include "tensorcraft/core/config.hpp"
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/first_made.hpp"
#include "tensorcraft/core/fork.hpp"
#include "tensorcraft/core/hash.hpp"
#include "tensorcraft/core/log.hpp"
#include "tensorcraft/cuda/driver.hpp"
#include "tensorcraft/cuda/launch_watcher.hpp"
#include "tensorcraft/jit/compiler.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <list>
#include <mutex>
#include <set>
#include <span>
#include <system_error>
#include <unordered_map>
#include <utility>

namespace tensorcraft::jit {
namespace {

using Kernel = std::shared_ptr<const LoadedKernel>;

struct Slot {
  KernelKey key;
  int device = -1;
  friend bool operator==(const Slot&, const Slot&) = default;
};

struct SlotHash {
  size_t operator()(const Slot& slot) const {
    std::array<uint64_t, sizeof(KernelKey) / 8 + 1> words;
    static_assert(sizeof(words) == sizeof(KernelKey) + 8);
    std::memcpy(words.data(), &slot.key, sizeof(KernelKey));
    words.back() = uint64_t(slot.device);
    return hash_words(words);
  }
};

// Every thread's hits: written by that thread alone, so that a hit shares no cache line.
struct HitCounts {
  ForkSafeMutex mutex;
  std::set<const std::atomic<long>*> threads;
  long ended_threads = 0;
};
HitCounts& hit_counts() {
  static constinit FirstMade<HitCounts> counts;
  return *counts;
}

// Kernels of this process by key and device, the one unused for longest at the end of the list.
class KernelMap {
 public:
  // Sets `compiled` if this call compiled.
  Kernel get(const Slot& slot, std::optional<StreamRef> stream, bool& compiled);
  bool has(const Slot& slot);  // or a thread loads it
  void clear();
  void set_limit(size_t kernels);
  // Changes whenever the look-ups that threads remember must be forgotten.
  uint64_t generation() const { return generation_.load(std::memory_order_acquire); }
  long hits() const { return hits_; }
  Compiler& compiler() { return compiler_; }

 private:
  struct Row {
    Slot slot;
    std::shared_future<Kernel> kernel;
    uint64_t ticket;
  };
  using Rows = std::list<Row>;

  Kernel load(const Slot& slot, bool& compiled);
  void forget(const Slot& slot, uint64_t ticket);
  void evict_beyond_limit();

  ForkSafeMutex mutex_;
  Rows rows_;
  std::unordered_map<Slot, Rows::iterator, SlotHash> index_;
  size_t limit_ = 4096;
  uint64_t next_ticket_ = 0;
  std::atomic<uint64_t> generation_ = 1;
  std::atomic<long> hits_ = 0;
  Compiler compiler_{config().cache_dir, size_t(config().cache_limit_bytes), kLockTimeout,
                     config().jit};
};

// They stay loaded: unloading them while the driver shuts down fails.
KernelMap& kernels() {
  static constinit FirstMade<KernelMap> map;
  return *map;
}

std::span<const std::byte> as_bytes(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

Kernel load_image(const Compiler::Result& result, int device) {
  Kernel kernel = LoadedKernel::load(as_bytes(result.entry.image), result.program.entry, device);
  cuda::name_kernel(kernel->handle(), result.program.signature);
  if (log_enabled(LogLevel::debug))
    log_debug(join("jit: ", result.program.signature, ": loaded on cuda:", device));
  return kernel;
}

// Loading and compiling take driver calls that a capture forbids.
void refuse_during_capture(const Slot& slot, std::optional<StreamRef> stream) {
  if (!stream || !stream->is_capturing()) return;
  fail(ErrorKind::unsupported, "jit: ", readable_name(slot.key),
       " is not loaded on cuda:", slot.device,
       ", and cannot be while a CUDA graph is captured; warm up first: make the same "
       "call once before the capture begins");
}

// On a thread of its own, if one is left. Who needs what it does asks again, and gets the error.
template <class Work>
std::future<void> start(Work work) {
  const auto quiet = [work] {
    try {
      work();
    } catch (const Error&) {
    }
  };
  try {
    return std::async(std::launch::async, quiet);
  } catch (const std::system_error&) {
    return {};
  }
}

// Makes the device's context while the kernel is compiled: both take long on a first call, and
// neither needs the other.
std::future<void> start_context(int device) {
  if (cuda::has_primary_context(device)) return {};
  return start([device] { cuda::primary_context(device); });
}

// A line for each kernel, which `tensorcraft cache export --recorded` reads.
void note(const Program& program) {
  if (config().kernel_record.empty()) return;
  static constinit FirstMade<ForkSafeMutex> mutex;
  const std::lock_guard lock(*mutex);
  std::ofstream record(config().kernel_record, std::ios::app);
  record << join(program.key, " ", program.signature, "\n") << std::flush;
  if (!record)
    log_warn_once("kernel_record",
                  join("kernel_record: ", config().kernel_record, " cannot be written"));
}

Kernel KernelMap::load(const Slot& slot, bool& compiled) {
  const std::string arch = device_info(Device::cuda(slot.device)).arch();
  const std::future<void> context = start_context(slot.device);
  Compiler::Result result = compiler_.build(slot.key, arch);
  note(result.program);
  if (context.valid()) context.wait();
  if (result.from_disk) {
    try {
      return load_image(result, slot.device);
    } catch (const Error& error) {
      // Most likely the driver refuses the image itself, as after a change of driver.
      if (error.kind() == ErrorKind::device_lost || error.kind() == ErrorKind::out_of_memory) throw;
      compiler_.reject(result);
      result = compiler_.build(slot.key, arch);
    }
  }
  compiled = !result.from_disk;
  return load_image(result, slot.device);
}

void KernelMap::evict_beyond_limit() {
  while (rows_.size() > limit_) {
    index_.erase(rows_.back().slot);
    rows_.pop_back();
  }
}

void KernelMap::forget(const Slot& slot, uint64_t ticket) {
  const std::lock_guard lock(mutex_);
  const auto found = index_.find(slot);
  if (found == index_.end() || found->second->ticket != ticket) return;
  rows_.erase(found->second);
  index_.erase(found);
}

Kernel KernelMap::get(const Slot& slot, std::optional<StreamRef> stream, bool& compiled) {
  std::promise<Kernel> promise;
  uint64_t ticket = 0;
  {
    std::unique_lock lock(mutex_);
    if (const auto found = index_.find(slot); found != index_.end()) {
      rows_.splice(rows_.begin(), rows_, found->second);
      const std::shared_future<Kernel> kernel = found->second->kernel;
      lock.unlock();
      Kernel loaded = kernel.get();  // waits if another thread compiles, and throws its error
      ++hits_;
      return loaded;
    }
    refuse_during_capture(slot, stream);
    ticket = next_ticket_++;
    rows_.push_front({slot, promise.get_future().share(), ticket});
    index_[slot] = rows_.begin();
    evict_beyond_limit();
  }
  try {
    Kernel loaded = load(slot, compiled);
    promise.set_value(loaded);
    return loaded;
  } catch (...) {
    forget(slot, ticket);
    promise.set_exception(std::current_exception());
    throw;
  }
}

bool KernelMap::has(const Slot& slot) {
  const std::lock_guard lock(mutex_);
  return index_.contains(slot);
}

void KernelMap::clear() {
  const std::lock_guard lock(mutex_);
  rows_.clear();
  index_.clear();
  ++generation_;
}

void KernelMap::set_limit(size_t limit) {
  const std::lock_guard lock(mutex_);
  limit_ = limit;
  evict_beyond_limit();
  ++generation_;
}

// The last kernels of one thread, by hash: a hit takes no lock and allocates nothing.
class ThreadCache {
 public:
  ThreadCache() {
    const std::lock_guard lock(hit_counts().mutex);
    hit_counts().threads.insert(&hits_);
  }
  ~ThreadCache() {
    const std::lock_guard lock(hit_counts().mutex);
    hit_counts().threads.erase(&hits_);
    hit_counts().ended_threads += hits_;
  }

  bool has(const Slot& slot) { return line_of(slot).holds(slot, kernels().generation()); }

  const Kernel& get(const Slot& slot, std::optional<StreamRef> stream) {
    const uint64_t generation = kernels().generation();
    if (!last_->holds(slot, generation)) last_ = &line_of(slot);
    Line& line = *last_;
    if (line.holds(slot, generation)) {
      hits_.store(hits_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    } else {
      line = {slot, 0, nullptr};
      bool compiled = false;
      line.kernel = kernels().get(slot, stream, compiled);
      line.generation = generation;
    }
    return line.kernel;
  }

 private:
  struct Line {
    Slot slot;
    uint64_t generation = 0;
    Kernel kernel;
    bool holds(const Slot& wanted, uint64_t now) const {
      return generation == now && slot == wanted;
    }
  };
  Line& line_of(const Slot& slot) { return lines_[SlotHash()(slot) % lines_.size()]; }

  std::array<Line, 128> lines_;
  Line* last_ = &lines_[0];  // of a loop over one kernel, which then is not hashed
  std::atomic<long> hits_ = 0;
};

ThreadCache& thread_cache() {
  thread_local ThreadCache cache;
  return cache;
}

void require_cuda(Device device) {
  if (device.is_cuda()) return;
  fail(ErrorKind::value, "jit: kernels are compiled for CUDA devices, got ", device);
}

}  // namespace

CompileReport compile(const KernelKey& key, std::string_view arch, bool fresh) {
  Compiler::Result result = kernels().compiler().build(key, arch, fresh);
  const ResourceUse use = parse_resource_use(result.entry.log);
  return {.signature = std::move(result.program.signature),
          .image = std::move(result.entry.image),
          .log = std::move(result.entry.log),
          .registers = use.registers,
          .shared_bytes = use.shared_bytes,
          .spill_bytes = use.spill_store_bytes + use.spill_load_bytes,
          .stack_bytes = use.stack_bytes,
          .milliseconds = result.entry.milliseconds,
          .from_disk = result.from_disk,
          .on_disk = result.on_disk};
}

const Kernel& get_kernel(const KernelKey& key, Device device, std::optional<StreamRef> stream) {
  require_cuda(device);
  return thread_cache().get({key, device.index}, stream);
}

std::future<void> load_ahead(const KernelKey& key, Device device, std::optional<StreamRef> stream) {
  require_cuda(device);
  const Slot slot{key, device.index};
  if (thread_cache().has(slot) || kernels().has(slot)) return {};
  if (stream && stream->is_capturing()) return {};
  return start([slot] {
    bool compiled = false;
    kernels().get(slot, std::nullopt, compiled);
  });
}

bool load_kernel(const KernelKey& key, Device device) {
  require_cuda(device);
  bool compiled = false;
  kernels().get({key, device.index}, std::nullopt, compiled);
  return compiled;
}

void clear_memory() { kernels().clear(); }
void set_memory_limit(size_t limit) { kernels().set_limit(limit); }

Counters counters() {
  const Compiler& compiler = kernels().compiler();
  Counters result{.memory_hits = kernels().hits(),
                  .disk_hits = compiler.disk_hits(),
                  .compiles = compiler.compiles(),
                  .bad_entries = compiler.bad_entries()};
  HitCounts& hits = hit_counts();
  const std::lock_guard lock(hits.mutex);
  result.memory_hits += hits.ended_threads;
  for (const std::atomic<long>* thread : hits.threads) result.memory_hits += *thread;
  return result;
}

}  // namespace tensorcraft::jit
