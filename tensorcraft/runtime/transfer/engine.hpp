// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/device.hpp"
#include "tensorcraft/runtime/status/status.hpp"
#include "tensorcraft/runtime/transfer/core.hpp"

#include <coroutine>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <thread>

namespace tensorcraft {

// A copy that a TransferEngine was given, and the future of it: it ends once, completed, failed or
// cancelled. Copies of the object are the same transfer. It may outlive the engine, by whose end it
// has ended. Safe for concurrent use.
class Transfer {
 public:
  // None; it has completed.
  Transfer() = default;

  // These return the present state.
  transfer::State state() const;
  bool done() const { return transfer::is_terminal(state()); }
  // Returns when it has ended; throws what it failed with, or kind cancelled. Not to be called by
  // what on_end() or `co_await` runs on the engine's thread, kind value.
  void wait() const;
  // Work that is enqueued later on the stream comes after its copies on the device: it may read the
  // destination there, and write the source. The host waits until they are on their lane, and not
  // for them. Throws like wait() if it ended otherwise.
  void order_before(StreamRef stream) const;
  // A queued one ends at once, and what it kept alive goes. Of a running one no further piece
  // begins; it ends when those that did are copied, and the destination is undefined. False if it
  // had ended.
  bool cancel() const;
  // Calls it once the transfer has ended, on the engine's thread; at once, on this one, if it has.
  // It throws nothing and does not wait.
  void on_end(std::function<void()> call) const;
  uint64_t bytes_copied() const;
  // From its start to its end, or to now; 0 before.
  double gb_per_s() const;

  // `co_await transfer` goes on once it has ended, like on_end(), and throws like wait().
  struct Awaiter;
  Awaiter operator co_await() const;

 private:
  friend class TransferEngine;
  struct Engine;
  Transfer(std::shared_ptr<Engine> engine, std::shared_ptr<transfer::Record> record)
      : engine_(std::move(engine)), record_(std::move(record)) {}
  std::shared_ptr<Engine> engine_;
  std::shared_ptr<transfer::Record> record_;
};

// co_await turns a transfer into this.
struct Transfer::Awaiter {
  // The three functions of an awaiter.
  Transfer transfer;
  bool await_ready() const { return transfer.done(); }
  void await_suspend(std::coroutine_handle<> caller) const {
    const Transfer own = transfer;  // the caller may be gone before on_end() returns
    own.on_end([caller] { caller.resume(); });
  }
  void await_resume() const { transfer.wait(); }
};
inline Transfer::Awaiter Transfer::operator co_await() const { return {*this}; }

// Copies between the host, a device and another one, on streams of its own, beside the caller's
// work: by priority, then in order, within the limits of each direction. Pageable memory goes
// through a ring of page-locked slots, filled and emptied by threads while other slots are copied.
// Safe for concurrent use. The destructor cancels what is queued and waits for the rest. The child
// of a fork can only destroy it: what needs its threads fails with kind unsupported.
class TransferEngine {
 public:
  using Clock = std::function<transfer::Time()>;  // never goes back
  // Who finds out what has been copied, and goes on.
  enum class Drive : uint8_t {
    thread,   // one of the engine's own
    callers,  // those of submit(), cancel(), advance() and Transfer::wait()
  };
  // On a CUDA device, or on host memory that plays one: kind value for limits under which nothing
  // could move, or a device that does not exist.
  explicit TransferEngine(Device device, const transfer::Options& options = {});
  TransferEngine(std::unique_ptr<transfer::CopyDevice> device,
                 std::unique_ptr<transfer::Stager> stager, const transfer::Options& options,
                 Clock clock, Drive drive = Drive::thread);
  ~TransferEngine();
  TransferEngine(const TransferEngine&) = delete;
  TransferEngine& operator=(const TransferEngine&) = delete;

  // The engine of a device that the library itself uses. It lives until the process ends, when it
  // stops. Kind value for a device that is not CUDA.
  static TransferEngine& instance(Device device = Device::cuda());
  // Returns when nothing is queued or runs; of the instance of a device, if it was made.
  void synchronize();
  static void synchronize(Device device);

  // Returns without waiting for a copy. Kind value for a request that cannot be, and for a stream
  // that is recorded into a graph.
  Transfer submit(transfer::Request request);
  // Moves what can be moved now, without waiting.
  void advance();
  transfer::Statistics statistics() const;  // of this moment

 private:
  void drive(const std::stop_token& stop);

  std::shared_ptr<Transfer::Engine> engine_;
  std::optional<status::Source> source_;  // of an engine that a Device was given for
  std::jthread driver_;
};

}  // namespace tensorcraft
