// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/runtime/safetensors/lazy_weights.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/fork.hpp"
#include "tensorcraft/core/interrupt.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <utility>

namespace tensorcraft {
namespace {

using Resource = std::shared_ptr<const TensorResource>;

// A stream that outlives all tensors, whoever asked for them first.
LoadOptions load_options(Device device, const LazyOptions& options) {
  return {.checksum = options.checksum,
          .source = options.source ? options.source : &allocator(device),
          .stream = StreamRef::default_stream(device.index)};
}

}  // namespace

class LazyWeights::State final : public Reclaimer {
 public:
  State(const std::string& path, Device on, const LazyOptions& options)
      : file(path), device(on), quota_(options.quota), load_(load_options(on, options)) {}

  // Adds the state to the reclaimers of the allocator that it loads from.
  static std::shared_ptr<State> make(const std::string& path, Device device,
                                     const LazyOptions& options) {
    auto state = std::make_shared<State>(path, device, options);
    state->load_.source->add(state);
    return state;
  }

  Resource get(std::string_view name) {
    const auto bytes = int64_t(file.info(name).nbytes());
    Lock lock(mutex_);
    Slot& slot = slots_[std::string(name)];
    slot.last_use = std::chrono::steady_clock::now();
    wait_while_loading(slot, lock);
    if (slot.resource) return slot.resource;
    slot.loading = true;
    on_their_way_ += bytes;
    lock.unlock();
    Resource loaded;
    try {
      make_room();
      loaded = load(name, slot.checksum);
    } catch (...) {
      lock.lock();
      end_loading(slot, bytes);
      throw;
    }
    lock.lock();
    end_loading(slot, bytes);
    put(slot, loaded, bytes);
    return loaded;
  }

  bool is_resident(std::string_view name) {
    const std::lock_guard lock(mutex_);
    const auto known = slots_.find(name);
    return known != slots_.end() && known->second.resource;
  }

  size_t reclaim(size_t bytes, LastUse until) override {
    std::vector<Resource> dropped;  // freed once the lock is gone
    const std::lock_guard lock(mutex_);
    return drop(bytes, until, dropped);
  }

  LastUse least_recent_use() override {
    LastUse oldest = LastUse::max();
    const std::lock_guard lock(mutex_);
    for (const auto& [name, slot] : slots_)
      if (slot.is_idle()) oldest = std::min(oldest, slot.last_use);
    return oldest;
  }

  std::vector<Resource> resident() {
    std::vector<Resource> found;
    const std::lock_guard lock(mutex_);
    for (const auto& [name, slot] : slots_)
      if (slot.resource) found.push_back(slot.resource);
    return found;
  }

  bool has_checksums() const { return load_.checksum; }

  LazyStatistics statistics() {
    const std::lock_guard lock(mutex_);
    return counts_;
  }

  const SafeTensors file;
  const Device device;

 private:
  struct Slot {
    Resource resource;
    bool loading = false;  // by one thread, which alone changes what follows
    std::optional<uint64_t> checksum;
    bool was_loaded = false;
    LastUse last_use;
    // Only this slot has it: others get it from here, under the lock.
    bool is_idle() const { return resource && resource.use_count() == 1; }
  };

  using Lock = std::unique_lock<std::mutex>;

  // The threads that load, and those that wait for them, are not in a child.
  void forget_loading() {
    for (auto& [name, slot] : slots_) slot.loading = false;
    on_their_way_ = 0;
    std::construct_at(&loaded_);
  }

  void wait_while_loading(const Slot& slot, Lock& lock) {
    wait_or_interrupt(loaded_, lock, [&slot] { return !slot.loading; });
  }

  Resource load(std::string_view name, const std::optional<uint64_t>& before) const {
    if (device.is_cuda() && current_stream(device.index).is_capturing())
      fail(ErrorKind::unsupported, "weights: ", safetensors::in_quotes(name),
           " is not loaded, and cannot be while a graph is recorded; ask for it before, and hold "
           "it");
    Resource loaded = file.load(name, device, load_);
    if (before && loaded->checksum() != before)
      fail(ErrorKind::io, "weights: ", safetensors::in_quotes(name),
           " has other bytes than when it was first loaded; the file changed: open it again");
    return loaded;
  }

  void end_loading(Slot& slot, int64_t bytes) {
    slot.loading = false;
    on_their_way_ -= bytes;
    loaded_.notify_all();
  }

  void put(Slot& slot, const Resource& loaded, int64_t bytes) {
    slot.resource = loaded;
    slot.checksum = loaded->checksum();
    ++counts_.loads;
    counts_.loaded_bytes += bytes;
    if (std::exchange(slot.was_loaded, true)) {
      ++counts_.reloads;
      counts_.reloaded_bytes += bytes;
    }
    ++counts_.resident;
    counts_.resident_bytes += bytes;
  }

  void make_room() {
    if (quota_ == 0) return;
    std::vector<Resource> dropped;
    const std::lock_guard lock(mutex_);
    const int64_t over = counts_.resident_bytes + on_their_way_ - int64_t(quota_);
    if (over > 0) drop(size_t(over), LastUse::max(), dropped);
  }

  // Moves idle tensors that were last used at `until` or before out, the least recently used first,
  // until they have so many bytes.
  size_t drop(size_t bytes, LastUse until, std::vector<Resource>& dropped) {
    std::vector<Slot*> idle;
    for (auto& [name, slot] : slots_)
      if (slot.is_idle() && slot.last_use <= until) idle.push_back(&slot);
    std::ranges::sort(idle, {}, &Slot::last_use);
    dropped.reserve(idle.size());
    size_t given = 0;
    for (Slot* const slot : idle) {
      if (given >= bytes) break;
      const size_t size = slot->resource->view().nbytes();
      given += size;
      ++counts_.drops;
      --counts_.resident;
      counts_.dropped_bytes += int64_t(size);
      counts_.resident_bytes -= int64_t(size);
      dropped.push_back(std::move(slot->resource));
    }
    return given;
  }

  const size_t quota_;
  const LoadOptions load_;
  ForkSafeMutex mutex_;  // guards all below; not held while a tensor is loaded or freed
  std::condition_variable loaded_;
  std::map<std::string, Slot, std::less<>> slots_;
  int64_t on_their_way_ = 0;  // bytes of tensors that are being loaded
  LazyStatistics counts_;
  const InForkedChild in_child_{[this] { forget_loading(); }};
};

LazyWeights::LazyWeights(const std::string& path, Device device, const LazyOptions& options)
    : state_(State::make(path, device, options)) {}

const std::vector<std::string>& LazyWeights::names() const { return state_->file.names(); }

bool LazyWeights::contains(std::string_view name) const { return state_->file.contains(name); }

const safetensors::TensorInfo& LazyWeights::info(std::string_view name) const {
  return state_->file.info(name);
}

Device LazyWeights::device() const { return state_->device; }

std::shared_ptr<const TensorResource> LazyWeights::get(std::string_view name,
                                                       std::source_location where) const {
  return at_line(where, [&] {
    Resource resource = state_->get(name);
    if (!state_->device.is_cuda()) return resource;
    const StreamRef now = current_stream(state_->device.index);
    if (!(now == resource->stream())) resource->record(now);
    return resource;
  });
}

bool LazyWeights::is_resident(std::string_view name) const { return state_->is_resident(name); }

size_t LazyWeights::drop(size_t bytes) const {
  return state_->reclaim(bytes, Reclaimer::LastUse::max());
}

void LazyWeights::verify() const {
  if (!state_->has_checksums())
    fail(ErrorKind::value,
         "verify: the weights were opened without checksums; open them with "
         "checksum = true");
  for (const auto& resource : state_->resident()) resource->verify();
}

LazyStatistics LazyWeights::statistics() const { return state_->statistics(); }

}  // namespace tensorcraft
