// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <Python.h>

#include <exception>
#include <utility>

namespace tensorcraft::python {

// Stays in this thread for ever. For a daemon thread that needs the GIL after the interpreter began
// to end: Python would end it by an exception of its own kind, which no frame of C++ lets through.
[[noreturn]] void park();

// Gives the GIL up from here to the end of the scope. A long call in it asks now and then whether a
// signal came; a handler that raises ends the call with kind cancelled, which becomes what was
// raised.
class WithoutGil {
 public:
  WithoutGil();
  ~WithoutGil();
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  static bool signal_raised();

  PyThreadState* state_;
  WithoutGil*& innermost_;  // of this thread
  WithoutGil* outer_;
};

// Runs a step without the GIL, and then the other with it, also if the first throws: what it
// launched until then goes on.
template <class Step, class After>
void without_gil(Step&& step, After&& after) {
  try {
    const WithoutGil released;
    step();
  } catch (...) {
    after();
    throw;
  }
  after();
}

// When the program ends, and before its exit handlers run, after which a GPU's driver is gone: what
// other threads compute is waited for, a few seconds, and what they call next waits for ever.
void stop_threads_at_exit();

// Sets again what a signal handler raised in this thread, if an error of kind cancelled says so.
bool restore_interrupt();

// Runs Python code, in which the interpreter may end this thread.
template <class F>
auto call_python(F&& f) {
  try {
    return f();
  } catch (const std::exception&) {
    throw;
  } catch (...) {  // no exception of C++
    park();
  }
}

}  // namespace tensorcraft::python
