// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/cuda/stream.hpp"
#include "tensorcraft/op/variant.hpp"

#include <functional>
#include <memory>
#include <string_view>
#include <utility>

namespace tensorcraft::bench {

// How a call is timed: by the clock of the host, by events around it, or by events around a graph
// of many calls.
enum class Method { wall, events, graph };
// Is a call so small that a graph must time it, as the host enqueues no faster?
constexpr bool is_short(double bytes, double us) { return bytes < 16e6 || us < 10; }
std::string_view to_string(Method method);

// Enqueues one call on the stream, or computes it on the host, with the n-th copy of its arrays.
using Call = std::function<void(int copy)>;

// Whose turn it is among the copies of a case. All candidates share one: else a call could find in
// the cache what that of another candidate has just read.
struct Rotation {
  int copies = 1, next = 0;
  int turn() { return std::exchange(next, (next + 1) % copies); }
};

// Times one call again and again, each with the next copy of its arrays.
class Timed {
 public:
  virtual ~Timed() = default;
  // Microseconds of one call, the mean of few if one is too short for the clock.
  virtual double microseconds() = 0;
  virtual Method method() const = 0;
};

// The call must have run before, so that nothing of it is compiled or allocated any more; `rough`
// is about how long it took, in microseconds. The rotation must outlive what is made. Before what
// is timed by events or a graph the same runs untimed: the device is busy while the host enqueues,
// and is not seen waiting for it. A call that cannot be recorded is timed by events.
std::unique_ptr<Timed> make_timed(Call call, Rotation& rotation, Method method, StreamRef stream,
                                  double rough);

// What a kernel reaches.
struct KernelProfile {
  double median_us = 0, p10_us = 0, p90_us = 0;
  double achieved_tflops = 0, achieved_gbs = 0;
};
// The time of a call that has run before, by events or a graph, after one that is not counted:
// `runs` times, fewer if they are long. `cost` is its work.
KernelProfile profile_kernel(const Call& call, Rotation& rotation, const op::Cost& cost,
                             StreamRef stream, int runs = 20);

}  // namespace tensorcraft::bench
