// SPDX-License-Identifier: Apache-2.0
#include "gil.hpp"

#include "tensorcraft/core/first_made.hpp"
#include "tensorcraft/core/fork.hpp"
#include "tensorcraft/core/interrupt.hpp"

#include <nanobind/nanobind.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include <unistd.h>

namespace tensorcraft::python {
namespace {

// One variable, as finding one costs a call.
struct OfThread {
  WithoutGil* innermost = nullptr;
  bool asks = false;
  bool ends_program = false;
};
thread_local constinit OfThread of_thread;
thread_local std::optional<nanobind::python_error> raised;

std::atomic<int> computing = 0;  // scopes without the GIL, of all threads
std::atomic<bool> ending = false;

void take_gil(PyThreadState* state) {
  try {
    PyEval_RestoreThread(state);
  } catch (...) {  // the interpreter ends this thread
    park();
  }
}

void stop_other_threads() {
  constexpr std::chrono::seconds kPatience{5};
  of_thread.ends_program = true;
  ending = true;
  PyThreadState* const state = PyEval_SaveThread();
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (computing > 0 && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  take_gil(state);
}

}  // namespace

void stop_threads_at_exit() {
  constexpr auto make = [] { return new InForkedChild([] { computing = 0; }); };
  static constinit FirstMade<InForkedChild, make> has_one_thread;
  *has_one_thread;
  nanobind::module_::import_("atexit").attr("register")(nanobind::cpp_function(stop_other_threads));
}

void park() {
  for (;;) pause();
}

WithoutGil::WithoutGil() : state_(PyEval_SaveThread()), innermost_(of_thread.innermost) {
  outer_ = std::exchange(innermost_, this);
  ++computing;
  if (ending && !of_thread.ends_program) {
    --computing;
    park();
  }
  if (std::exchange(of_thread.asks, true)) return;
  set_interrupt_check(signal_raised);  // for all calls of this thread
}

WithoutGil::~WithoutGil() {
  innermost_ = outer_;
  --computing;
  take_gil(state_);
}

bool WithoutGil::signal_raised() {
  WithoutGil* const self = of_thread.innermost;
  if (!self) return false;  // this thread has the GIL
  take_gil(self->state_);
  const bool did = PyErr_CheckSignals() != 0;
  if (did) raised.emplace();
  self->state_ = PyEval_SaveThread();
  return did;
}

bool restore_interrupt() {
  if (!raised) return false;
  raised->restore();
  raised.reset();
  return true;
}

}  // namespace tensorcraft::python
