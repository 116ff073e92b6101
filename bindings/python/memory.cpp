// SPDX-License-Identifier: Apache-2.0
#include "memory.hpp"

#include "gil.hpp"
#include "graph.hpp"
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/first_made.hpp"
#include "tensorcraft/core/fork.hpp"
#include "tensorcraft/cuda/device.hpp"

#include <algorithm>
#include <iterator>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace tensorcraft::python {
namespace {

// Decrements that wait for the GIL.
struct Pending {
  ForkSafeMutex mutex;
  std::vector<PyObject*> objects;
  bool scheduled = false;
};
Pending& pending() {
  static constinit FirstMade<Pending> one;
  return *one;
}

int run_pending(void*) {
  std::vector<PyObject*> objects;
  {
    const std::lock_guard lock(pending().mutex);
    objects.swap(pending().objects);
    pending().scheduled = false;
  }
  for (PyObject* o : objects) Py_DECREF(o);
  return 0;
}

ForkSafeMutex& transfers_mutex() {
  static constinit FirstMade<ForkSafeMutex> one;
  return *one;
}

void release(PyObject* object) {
  if (!Py_IsInitialized()) return;  // the interpreter took the object with it
  if (PyGILState_Check()) {
    Py_DECREF(object);
    return;
  }
  const std::lock_guard lock(pending().mutex);
  pending().objects.push_back(object);
  // The interpreter's queue may be full; the next release asks again.
  if (!pending().scheduled) pending().scheduled = Py_AddPendingCall(run_pending, nullptr) == 0;
}

}  // namespace

void wait_for(Device device) {
  std::optional<WithoutGil> without_gil;
  if (PyGILState_Check()) without_gil.emplace();
  synchronize(device);
}

Memory::Memory(Tensor tensor, StreamRef home)
    : tensor_(std::move(tensor)),
      device_(tensor_.device()),
      home_(home),
      recorded_(device_.is_cuda() && GraphRecording::active()) {}

std::shared_ptr<const void> share(nb::object object) {
  return {object.release().ptr(), [](PyObject* p) { release(p); }};
}

Memory::~Memory() {
  if (!device_.is_cuda()) return;
  try {
    if (GraphRecording* const recording = GraphRecording::active(); recording && shared_) {
      recording->free_later(std::make_shared<Tensor>(std::move(tensor_)));
      recording->free_later(std::const_pointer_cast<void>(owner_));
      return;
    }
    if (shared_) wait_for(device_);  // else the tensor goes back in the order of its stream
  } catch (const std::exception&) {
    // A device that cannot be waited for runs nothing more.
  }
}

void Memory::note_transfer(const Transfer& transfer, bool writes) {
  const std::lock_guard lock(transfers_mutex());
  transfers_.push_back({transfer, writes});
  in_transfer_.store(true, std::memory_order_release);
}

void Memory::settle_transfers(StreamRef stream, bool writes) {
  std::vector<InTransfer> waiting, ended;  // what they keep goes after the lock, perhaps by the GIL
  {
    const std::lock_guard lock(transfers_mutex());
    const auto gone = std::ranges::stable_partition(transfers_, [](const InTransfer& one) {
      const transfer::State state = one.transfer.state();
      return one.writes ? state != transfer::State::completed : !transfer::is_terminal(state);
    });
    ended.assign(std::move_iterator(gone.begin()), std::move_iterator(gone.end()));
    transfers_.erase(gone.begin(), gone.end());
    in_transfer_ = !transfers_.empty();
    for (const InTransfer& one : transfers_)
      if (one.writes || writes) waiting.push_back(one);
  }
  if (waiting.empty()) return;
  std::optional<WithoutGil> without_gil;
  if (PyGILState_Check()) without_gil.emplace();
  for (const InTransfer& one : waiting) try {
      // Nothing that is recorded waits for work outside.
      if (!device_.is_cuda() || GraphRecording::active())
        one.transfer.wait();
      else
        one.transfer.order_before(stream);
    } catch (const Error&) {
      if (one.writes) throw;  // a failed read left the memory as it was
    }
}

void Memory::host_used_on(StreamRef stream) {
  if (cuda_device_count() == 0) return;  // the stream is a placeholder
  if (!owner_) tensor_.record(stream);
  used_by_ = stream.device();
}

void Memory::resource_used_on(StreamRef stream) {
  if (!(stream == home_)) resource_->record(stream);
}

void Memory::wait_for_gpu() {
  if (used_by_ >= 0) wait_for(Device::cuda(std::exchange(used_by_, -1)));
}

void Memory::order_before(StreamRef stream) {
  settle(stream, true);
  // Recorded work runs at a launch, after all that was enqueued before it.
  if (!device_.is_cuda() || GraphRecording::active()) return;
  if (shared_ || recorded_) return wait_for(device_);
  if (stream == home_) return;
  Event done(device_.index);
  done.record(home_);
  done.wait(stream);
}

void order_now(const PyTensor& t) {
  if (t.view.device().is_cuda()) t.memory->order_before(current_stream(t.view.device().index));
}

PyTensor own(Tensor tensor, StreamRef home) {
  const TensorView view = tensor.view();
  return {view, std::make_shared<Memory>(std::move(tensor), home)};
}

}  // namespace tensorcraft::python
