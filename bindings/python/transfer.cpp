// SPDX-License-Identifier: Apache-2.0
#include "transfer.hpp"

#include "arguments.hpp"
#include "arrays.hpp"
#include "background.hpp"
#include "gil.hpp"
#include "graph.hpp"
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/fork.hpp"
#include "tensorcraft/core/log.hpp"
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/runtime/memory/pinned.hpp"
#include "tensorcraft/runtime/transfer/engine.hpp"

#include <nanobind/stl/string.h>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>

namespace tensorcraft::python {

using namespace nb::literals;

namespace {

using transfer::Direction;
using transfer::kDirections;

// The CUDA device whose lanes a copy takes.
int lane_device(Device from, Device to) { return from.is_cuda() ? from.index : to.index; }

Direction direction_of(Device from, Device to) {
  if (!from.is_cuda()) return Direction::h2d;
  if (!to.is_cuda()) return Direction::d2h;
  return from == to ? Direction::d2d : Direction::peer;
}

// Page-locked, so that the copy needs no staging; else the host's own.
Tensor host_result(DType dtype, const Dims& shape, Device device, StreamRef stream) {
  try {
    return Tensor(dtype, shape, device, stream, pinned_pool(stream.device()));
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::out_of_memory) throw;
    return Tensor(dtype, shape, device);
  }
}

// `lanes` is the index of the engine's GPU, -1 for an engine of the host.
PyTensor empty_result(const PyTensor& like, Device target, int lanes) {
  const Dims& shape = like.view.shape();
  if (!target.is_cuda() && lanes < 0)
    return own(Tensor(like.view.dtype(), shape, target), StreamRef());
  const StreamRef home = current_stream(target.is_cuda() ? target.index : lanes);
  return own(target.is_cuda() ? Tensor(like.view.dtype(), shape, target, home)
                              : host_result(like.view.dtype(), shape, target, home),
             home);
}

// Both memories, alive as long as a copy can touch them.
struct Ends {
  std::shared_ptr<Memory> to, from;
};

// Submits the copy, and tells both memories. Streams: what was done to either comes before.
Transfer start(TransferEngine& engine, const PyTensor& to, const PyTensor& from,
               transfer::Request request) {
  const auto settled = [&](const PyTensor& t, bool writes) {
    if (!t.view.device().is_cuda()) return t.memory->settle(StreamRef(), writes);
    const StreamRef stream = current_stream(t.view.device().index);
    t.memory->order_before(stream);
    request.after.push_back(stream);
  };
  settled(from, false);
  settled(to, true);
  request.to = to.view.writable_data();
  request.from = from.view.data();
  request.bytes = to.view.nbytes();
  request.keep = std::make_shared<Ends>(to.memory, from.memory);
  Transfer made;
  {
    const WithoutGil released;
    made = engine.submit(std::move(request));
  }
  to.memory->note_transfer(made, true);
  from.memory->note_transfer(made, false);
  return made;
}

transfer::Request request_of(Device to, Device from) {
  return {.direction = direction_of(from, to), .peer = to.is_cuda() ? to.index : 0};
}

// Numbers of bytes a second, or of transfers, by direction.
template <class Set>
void for_each_direction(const nb::dict& given, const char* name, Set set) {
  for (const auto& [key, value] : given) {
    const std::string_view direction = to_text(key, name);
    size_t i = 0;
    while (i < kDirections && to_string(Direction(i)) != direction) ++i;
    if (i == kDirections)
      fail(ErrorKind::value, "TransferEngine: ", name, ": expected h2d, d2h, d2d or peer, got ",
           direction);
    set(Direction(i), value);
  }
}

thread_local bool in_callback = false;  // of an engine, on its thread

// One transfer of tc.TransferEngine.
class TransferObject {
 public:
  TransferObject(Transfer transfer, PyTensor result)
      : transfer_(std::move(transfer)), result_(std::move(result)) {}
  std::string state() const { return std::string(to_string(transfer_.state())); }
  bool cancel() const {
    const WithoutGil released;
    return transfer_.cancel();
  }
  double gb_per_s() const { return transfer_.gb_per_s(); }
  const PyTensor& result() const { return result_; }
  // `told` is called with the state and the error once it has ended.
  void on_end(nb::object told) const {
    const Callback tell(std::move(told));
    const WithoutGil released;
    transfer_.on_end([tell, transfer = transfer_] {
      const bool outer = std::exchange(in_callback, true);
      try {
        std::string error;
        try {
          transfer.wait();
        } catch (const std::exception& e) {
          error = e.what();
        }
        tell(std::string(to_string(transfer.state())), error);
      } catch (const std::exception& e) {
        log_error(join("TransferEngine: a callback threw: ", e.what()));
      }
      in_callback = outer;
    });
  }

 private:
  Transfer transfer_;
  PyTensor result_;
};

// tc.TransferEngine has one.
class EngineObject {
 public:
  EngineObject(nb::handle device, const nb::dict& max_in_flight, const nb::dict& bandwidth)
      : device_(device.is_none() ? default_device() : to_device(device)) {
    transfer::Options options;
    for_each_direction(max_in_flight, "max_in_flight", [&](Direction d, nb::handle value) {
      const int64_t most = to_int64(value, "max_in_flight");
      options.limits(d).max_in_flight = int(std::clamp<int64_t>(most, 0, 1 << 20));
    });
    for_each_direction(bandwidth, "bandwidth", [&](Direction d, nb::handle value) {
      options.limits(d).bytes_per_second = to_double(value, "bandwidth");
    });
    engine_ = std::make_shared<TransferEngine>(device_, options);
  }
  ~EngineObject() {
    if (!engine_) return;
    if (is_of_parent())
      new std::shared_ptr(std::move(engine_));  // leaked: its threads are not in this process
    else
      end_elsewhere(std::move(engine_));
  }
  EngineObject(const EngineObject&) = delete;
  EngineObject& operator=(const EngineObject&) = delete;

  TransferObject to(nb::handle source, nb::handle device, nb::handle priority) {
    const PyTensor from = contiguous(source);
    const Device target = to_device(device);
    check_device(from.view.device(), target);
    return submit(empty_result(from, target, device_.is_cuda() ? device_.index : -1), from,
                  priority);
  }
  TransferObject copy(nb::handle source, const PyTensor& out, nb::handle priority) {
    const PyTensor from = contiguous(source);
    check_device(from.view.device(), out.view.device());
    if (out.view.read_only())
      fail(ErrorKind::buffer, "TransferEngine: out is read-only; give writable memory");
    if (!out.view.is_contiguous() || out.view.shape() != from.view.shape() ||
        out.view.dtype() != from.view.dtype())
      fail(ErrorKind::value, "TransferEngine: out must be contiguous, of shape ", from.view.shape(),
           " and dtype ", from.view.dtype(), ", got ", out.view);
    if (may_overlap(out.view, from.view))
      fail(ErrorKind::value, "TransferEngine: out and the source overlap; copy to other memory");
    return submit(out, from, priority);
  }

  nb::dict statistics() {
    nb::dict all;
    const transfer::Statistics now = open().statistics();
    for (size_t i = 0; i < kDirections; ++i) {
      const transfer::LaneStatistics& lane = now[i];
      all[nb::str(std::string(to_string(Direction(i))).c_str())] = nb::make_tuple(
          lane.queued, lane.running, lane.completed, lane.failed, lane.cancelled, lane.bytes,
          std::chrono::duration<double>(lane.busy).count(), lane.gb_per_s());
    }
    return all;
  }
  std::string device() const { return to_string(device_); }

  void close() {
    if (in_callback)
      fail(ErrorKind::value,
           "TransferEngine: close was called by a callback, whose thread it waits for; call it "
           "from outside");
    if (!engine_) return;
    if (is_of_parent()) return static_cast<void>(new std::shared_ptr(std::move(engine_)));
    std::shared_ptr<TransferEngine> gone = std::move(engine_);
    const WithoutGil released;
    gone.reset();
  }

 private:
  TransferEngine& open() {
    if (!engine_) fail(ErrorKind::value, "TransferEngine: it is closed; make another one");
    if (is_of_parent()) fail_in_forked_child("TransferEngine");
    return *engine_;
  }
  bool is_of_parent() const { return getpid() != process_; }

  static PyTensor contiguous(nb::handle source) {
    const PyTensor given = to_tensor(source);
    if (given.view.is_contiguous()) return given;
    return nb::cast<PyTensor>(nb::module_::import_("tensorcraft").attr("copy")(nb::cast(given)));
  }
  // An engine of a GPU copies from or to it, one of the host between tensors of the host.
  void check_device(Device from, Device to) const {
    const bool fits = device_.is_cuda() ? lane_device(from, to) == device_.index &&
                                              (from.is_cuda() || to.is_cuda())
                                        : !from.is_cuda() && !to.is_cuda();
    if (!fits)
      fail(ErrorKind::value, "TransferEngine: this engine is of ", device_,
           ", and the copy goes from ", from, " to ", to, "; make one of ",
           from.is_cuda() ? from : to);
  }
  // Host memory plays the device: the emulator's is the device's side.
  Direction direction(Device from, Device to) const {
    if (device_.is_cuda()) return direction_of(from, to);
    if (from == to) return Direction::d2d;
    return to == Device::simt() ? Direction::h2d : Direction::d2h;
  }
  TransferObject submit(PyTensor to, const PyTensor& from, nb::handle priority) {
    const int64_t rank = to_int64(priority, "priority");
    if (rank != int(rank))
      fail(ErrorKind::value, "TransferEngine: priority must fit 32 bits, got ", rank);
    if (device_.is_cuda()) refuse_while_recording("a copy");
    transfer::Request request = request_of(to.view.device(), from.view.device());
    request.direction = direction(from.view.device(), to.view.device());
    request.priority = int(rank);
    const Transfer made = start(open(), to, from, std::move(request));
    return {made, std::move(to)};
  }

  const Device device_;
  const pid_t process_ = getpid();
  std::shared_ptr<TransferEngine> engine_;
};

}  // namespace

PyTensor transferred(const PyTensor& t, Device target) {
  const Device from = t.view.device();
  const int lanes = lane_device(from, target);
  PyTensor result = empty_result(t, target, lanes);
  transfer::Request request = request_of(target, from);
  request.ahead = true;
  start(TransferEngine::instance(Device::cuda(lanes)), result, t, std::move(request));
  return result;
}

void register_transfer(nb::module_& m) {
  nb::class_<TransferObject>(m, "Transfer", "What a tc.Copy follows.")
      .def("state", &TransferObject::state)
      .def("cancel", &TransferObject::cancel)
      .def("gb_per_s", &TransferObject::gb_per_s)
      .def("result", &TransferObject::result)
      .def("on_end", &TransferObject::on_end, "told"_a);
  nb::class_<EngineObject> engines(m, "TransferEngine", "What tc.TransferEngine copies by.");
  engines
      .def(nb::init<nb::handle, const nb::dict&, const nb::dict&>(), "device"_a.none(),
           "max_in_flight"_a, "bandwidth"_a)
      .def("to", &EngineObject::to, "source"_a.none(), "device"_a.none(), "priority"_a.none())
      .def("copy", &EngineObject::copy, "source"_a.none(), "out"_a, "priority"_a.none())
      .def("statistics", &EngineObject::statistics)
      .def("close", &EngineObject::close)
      .def_prop_ro("device", &EngineObject::device);
  refuse_others(engines, "__init__",
                "TransferEngine: max_in_flight and bandwidth are dicts by direction");
  refuse_others(engines, "copy", "TransferEngine: copy takes an array and out=, a tc.Tensor");
}

}  // namespace tensorcraft::python
