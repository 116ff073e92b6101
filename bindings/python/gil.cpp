// SPDX-License-Identifier: Apache-2.0
#include "gil.hpp"

#include <nanobind/nanobind.h>

#include <optional>
#include <utility>

#include <unistd.h>

namespace tensorcraft::python {
namespace {

thread_local WithoutGil* innermost = nullptr;
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

WithoutGil::WithoutGil()
    : state_(PyEval_SaveThread()),
      outer_(std::exchange(innermost, this)),
      outer_check_(set_interrupt_check(signal_raised)) {}

WithoutGil::~WithoutGil() {
  set_interrupt_check(outer_check_);
  innermost = outer_;
  take_gil(state_);
}

bool WithoutGil::signal_raised() {
  WithoutGil* const self = innermost;
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
