// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/runtime/memory/graph_pool.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/cuda/graph_memory.hpp"
#include "tensorcraft/cuda/memory.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <unordered_map>

namespace tensorcraft {

class GraphPool::State : public std::enable_shared_from_this<GraphPool::State> {
 public:
  explicit State(StreamRef stream) : recorded(stream), own_(stream.device()) {}
  ~State() {
    if (blocks_.empty()) return;
    try {
      synchronize(Device::cuda(recorded.device()));
    } catch (const std::exception&) {
      // A device that cannot be waited for runs nothing more.
    }
    for (const Sized& block : blocks_) cuda::deallocate(block.data, own_);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  void* take(size_t bytes) {
    const std::lock_guard lock(mutex_);
    // A block is not spent on much less than it has room for.
    const size_t size = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    auto best = unused_.end();
    for (auto block = unused_.begin(); block != unused_.end(); ++block)
      if (block->bytes >= size && block->bytes <= 2 * size &&
          (best == unused_.end() || block->bytes < best->bytes))
        best = block;
    if (best != unused_.end()) {
      void* const data = best->data;
      unused_.erase(best);
      return data;
    }
    const DeviceGuard guard(recorded.device());
    const cuda::RelaxedCapture relaxed(cuda::require_driver());
    blocks_.push_back({cuda::allocate(size, own_), size});
    return blocks_.back().data;
  }
  // Of what is freed in the order of the recording.
  void give_back(void* data) {
    const std::lock_guard lock(mutex_);
    const auto own = [&](const Sized& block) { return block.data == data; };
    unused_.push_back(*std::ranges::find_if(blocks_, own));
  }
  void end() noexcept {
    for (const auto& [data, stream] : kept) cuda::deallocate(data, stream);
    kept.clear();
    late.clear();
    try {
      own_.ref().synchronize();
    } catch (const std::exception&) {
      // As above.
    }
  }

  const StreamRef recorded;
  // Of others, freed while this thread records into the pool: a recording forbids it.
  std::vector<std::pair<void*, StreamRef>> kept;
  std::vector<std::shared_ptr<State>> late;

 private:
  static constexpr size_t kAlignment = 256;
  struct Sized {
    void* data;
    size_t bytes;
  };

  std::mutex mutex_;
  Stream own_;  // the memory's: what a recorded stream allocates is a node
  std::vector<Sized> blocks_, unused_;
};

namespace {

thread_local GraphPool::State* recording = nullptr;

// The pool of each block that a tensor has. Leaked on purpose: tensors with static storage may be
// freed after every destructor here ran.
struct Owners {
  std::mutex mutex;
  std::unordered_map<void*, std::shared_ptr<GraphPool::State>> of;
  std::atomic<size_t> count = 0;  // calls without any need no lock
};
Owners& owners() {
  static auto* one = new Owners;
  return *one;
}

// The last one to let go waits for the device.
void let_go(std::shared_ptr<GraphPool::State> state) {
  if (recording && state.get() != recording) recording->late.push_back(std::move(state));
}

}  // namespace

GraphPool::GraphPool(StreamRef stream) : state_(std::make_shared<State>(stream)) {}
GraphPool::~GraphPool() { let_go(std::move(state_)); }

GraphPool::Recording::Recording(const GraphPool& pool) : state_(pool.state_) {
  if (recording)
    fail(ErrorKind::value, "Graph: this thread records another graph; end that recording first");
  recording = state_.get();
}

void GraphPool::Recording::end() noexcept {
  if (!state_) return;
  recording = nullptr;
  state_->end();
  state_ = nullptr;
}

void* graph_pool::take(size_t bytes, StreamRef stream) {
  if (!recording || !(recording->recorded == stream)) return nullptr;
  void* const data = recording->take(bytes);
  const std::lock_guard lock(owners().mutex);
  owners().of.emplace(data, recording->shared_from_this());
  owners().count = owners().of.size();
  return data;
}

bool graph_pool::give(void* data, StreamRef stream) noexcept {
  Owners& all = owners();
  if (all.count != 0) {
    std::shared_ptr<GraphPool::State> owner;
    {
      const std::lock_guard lock(all.mutex);
      if (const auto found = all.of.find(data); found != all.of.end()) {
        owner = std::move(found->second);
        all.of.erase(found);
        all.count = all.of.size();
      }
    }
    if (owner) {
      if (owner.get() == recording) recording->give_back(data);
      let_go(std::move(owner));
      return true;
    }
  }
  if (!recording || recording->recorded.device() != stream.device()) return false;
  recording->kept.emplace_back(data, stream);
  return true;
}

}  // namespace tensorcraft
