// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <memory>
#include <type_traits>

namespace tensorcraft::host {

// Threads a parallel_for may use, the caller's included: what set_num_threads() gave, else the
// configuration's num_threads, else the cores this process may run on.
int num_threads();
// For the whole process, from the next parallel_for on; 0 goes back to the configuration.
// Fails with kind value on a negative count.
void set_num_threads(int count);

using RangeFunction = void (*)(void* context, int64_t begin, int64_t end);
void parallel_for(int64_t n, int64_t grain, RangeFunction function, void* context);

// Calls f(begin, end) on ranges that together cover [0, n) once; inner bounds are multiples of
// grain, and depend on n, grain and num_threads() alone. One call if n <= grain. The caller takes
// part. Between ranges it asks check_interrupt(). A call from inside f, and a call while another
// thread has the pool, run all of [0, n) in the calling thread, so nothing waits for a pool and
// nothing deadlocks. The first exception of f is thrown here once every range has ended. Threads
// start with the first call that needs them, and again in the child of a fork; they may run on the
// cores of the first caller, but for the one that the present caller is on.
template <class F>
void parallel_for(int64_t n, int64_t grain, F&& f) {
  using Function = std::remove_reference_t<F>;
  parallel_for(
      n, grain,
      [](void* context, int64_t begin, int64_t end) {
        (*static_cast<Function*>(context))(begin, end);
      },
      const_cast<void*>(static_cast<const void*>(std::addressof(f))));
}

}  // namespace tensorcraft::host
