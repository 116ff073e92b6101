// SPDX-License-Identifier: Apache-2.0
#include "gil.hpp"

#include "tensorcraft/core/interrupt.hpp"

#include <nanobind/nanobind.h>

#include <optional>
#include <utility>

#include <unistd.h>

namespace tensorcraft::python {
namespace {

// One variable, as finding one costs a call.
struct OfThread {
  WithoutGil* innermost = nullptr;
  bool asks = false;
};
thread_local constinit OfThread of_thread;
thread_local std::optional<nanobind::python_error> raised;

void take_gil(PyThreadState* state) {
  try {
    PyEval_RestoreThread(state);
  } catch (...) {  // the interpreter ends this thread
    park();
  }
}

}  // namespace

void park() {
  for (;;) pause();
}

WithoutGil::WithoutGil() : state_(PyEval_SaveThread()), innermost_(of_thread.innermost) {
  outer_ = std::exchange(innermost_, this);
  if (std::exchange(of_thread.asks, true)) return;
  set_interrupt_check(signal_raised);  // for all calls of this thread
}

WithoutGil::~WithoutGil() {
  innermost_ = outer_;
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
