// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "gil.hpp"
#include "memory.hpp"

#include <nanobind/nanobind.h>

#include <memory>
#include <stdexcept>

// Objects with threads of their own need this of Python: schedulers and transfer engines.
namespace tensorcraft::python {

// A callable of Python's that threads of ours call. What it raises becomes an exception of C++.
class Callback {
 public:
  explicit Callback(nb::object callable) : callable_(share(std::move(callable))) {}
  template <class... Arguments>
  void operator()(const Arguments&... arguments) const {
    const nb::gil_scoped_acquire gil;
    call_python([&] {
      try {
        nb::handle(static_cast<PyObject*>(const_cast<void*>(callable_.get())))(arguments...);
      } catch (const nb::python_error& error) {
        throw std::runtime_error(error.what());
      }
    });
  }

 private:
  std::shared_ptr<const void> callable_;
};

// An object that went without close(), perhaps in a call of its own thread's or while that dropped
// the last reference, is ended by another thread.
void end_elsewhere(std::shared_ptr<void> object);

// Registers what waits for those at exit.
void register_background(nb::module_& m);

}  // namespace tensorcraft::python
